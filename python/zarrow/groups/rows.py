"""Appending rows to a table, which is stored as a group with an array for each column.

1. The table has the columns of the group, by name; in any order.
2. Elements are written behind the end of each array, where no reader sees them. Then all arrays grow. If a
   column cannot be written, none grows, and the error begins with the column's name. A column of nothing but
   nulls takes the type of its array.
3. Appends take turns (`append_turns`). An array that another writer changes meanwhile is not replaced: the
   append is refused.
4. In stores without conditional puts, such as fsspec's and icechunk's, each array is appended to by itself.
   If one cannot be, those before it are cut to their old length. icechunk shows changes after its commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from zarrow._zarrow import Array, Group, _ChunkParts, _StoredValues, asarray
from zarrow.anndata.encoding import refuse_unfinished
from zarrow.api import concurrent_calls
from zarrow.errors import ZarrowError
from zarrow.groups import tables
from zarrow.groups.places import refuse_read_only, store_of
from zarrow.hints.calling_line import warn

if TYPE_CHECKING:
    from zarrow.groups.array_documents import ArrayDocuments

# Stores elements behind the end: from this row on, with the old documents, and the new ones by column.
Write: TypeAlias = Callable[[int, "ArrayDocuments", Mapping[str, bytes]], None]


def append(self: Group, table: Any) -> int:
    """Append the rows of a table: each column to the array of the same name.

    Elements are written behind the end of each array first, where no reader sees them. Then all arrays grow.
    If the call fails, or the process is killed before, the table has its old rows. Other calls of `append`
    wait, in threads and processes: in a folder by its lock, and in a cloud with conditional puts by claims
    on the arrays' metadata. After a kill, these stop others for ten seconds on the same machine, and for
    four minutes on other ones. In other stores, such as fsspec's, only the threads of this process wait.

    A kill while the arrays grow, which takes moments, leaves columns of different lengths; make them equal by
    `Array.resize`.

    Parameters
    ----------
    table
        A table as for `save`, with a column for each array of the group. A column of only nulls takes the
        type of its array, if that stores missing elements.

    Returns
    -------
    int
        The new number of rows.

    Raises
    ------
    TypeError
        It is not a table, or a column of the group is a group itself.
    ValueError
        The table and the group have different columns, or columns differ in length. If a column cannot be
        appended, nothing is, and the message begins with the column's name.
    StaleHandleError
        Another writer changed an array during the call; nothing was appended.
    ReadOnlyError
        The group was opened with mode `"r"`, or its store is read-only.
    DataTypeError, CodecError, StoreError
        As `Array.append`.

    Warns
    -----
    ZarrowWarning
        The rows were appended, and a later request failed, such as one for consolidated metadata.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("table.zarr", {"x": [1, 2], "name": ["a", "b"]})
    >>> table = zarrow.open("table.zarr")
    >>> table.append({"x": [3], "name": ["c"]})
    3
    >>> table["name"][...].tolist()
    ['a', 'b', 'c']
    """
    refuse_read_only(self)
    columns = tables.columns(table)
    if columns is None:
        raise TypeError(
            "append takes a table (of pandas, polars or Arrow, or a dict of arrays), not "
            f'{type(table).__name__}: to append to one array, type group["name"].append(values)'
        )
    arrays = _columns_of(self, columns)
    values = {name: _elements(name, columns[name], array) for name, array in arrays.items()}
    added = _common_length({name: len(column) for name, column in values.items()}, "columns of the table")
    writes = {name: partial(_write, name, array, values[name]) for name, array in arrays.items()}

    def write(length: int, documents: ArrayDocuments, after: Mapping[str, bytes]) -> None:
        store, is_remote = store_of(self), self._is_remote()
        cloud = _StoredValues(store, create=False) if is_remote else None
        each = [partial(one, store, cloud, documents, after[name], length) for name, one in writes.items()]
        concurrent_calls.run(each, len(each) if is_remote else 1)

    return grow(self, arrays, added, write, partial(_append_each, arrays, values))


def grow(
    group: Group,
    arrays: Mapping[str, Array],
    added: int,
    write: Write,
    one_by_one: Callable[[int, Done], None],
) -> int:
    """Grow all arrays by rows, once `write` has stored elements behind their end (step 2).

    In a store without conditional puts, `one_by_one` appends to the arrays.

    Returns
    -------
    int
        The new number of rows.
    """
    from zarrow.groups.append_turns import in_turn
    from zarrow.groups.array_documents import key_of

    done = Done()
    try:
        keys = [key_of(array) for array in arrays.values()]
        return in_turn(group, keys, partial(_grow, group, arrays, added, write, one_by_one, done))
    except BaseException as error:
        if done.length is not None and isinstance(error, ZarrowError | OSError):
            # An error would make the caller append the rows again.
            text = f"the rows were appended; open the group again, since a later request failed: {error}"
            warn(text)
            return done.length
        if done.length is None and not group._is_remote():
            _clear_behind(arrays, done)
        error.add_note(done.note())
        raise


class Done:
    """What an append has changed, for its error.

    Attributes
    ----------
    length
        The new number of rows, once all arrays have them.
    left
        The old length of each array that may have kept rows.
    reach
        The length that arrays would have, once elements were written behind their end.
    """

    def __init__(self) -> None:
        self.length: int | None = None
        self.left: dict[str, int] = {}
        self.reach: int | None = None

    def note(self) -> str:
        """Return a note for an error."""
        if self.length is not None:
            return "the rows were appended"
        if not self.left:
            return "nothing was appended"
        length = next(iter(self.left.values()))
        return f"these arrays may have kept rows: {sorted(self.left)}; resize them to {length} rows"


def _grow(
    group: Group,
    arrays: Mapping[str, Array],
    added: int,
    write: Write,
    one_by_one: Callable[[int, Done], None],
    done: Done,
    documents: ArrayDocuments | None,
) -> int:
    """Append to all arrays, in the turn of this append."""
    from zarrow.groups.array_documents import key_of

    if documents is None:
        _call_each(group, [array.refresh for array in arrays.values()])
        lengths = {name: array.shape[0] for name, array in arrays.items()}
    else:
        lengths = {name: documents.shape(key_of(array))[0] for name, array in arrays.items()}
    length = _common_length(lengths, "arrays of the group")
    if not added:
        return length
    if documents is None:
        one_by_one(length, done)
    else:
        _grow_together(group, arrays, length, added, write, done, documents)
    return length + added


def _append_each(arrays: Mapping[str, Array], values: Mapping[str, Any], length: int, done: Done) -> None:
    """Append to one array after the other (step 4)."""
    grown: dict[str, Array] = {}
    try:
        for name, array in arrays.items():
            grown[name] = array
            with tables.naming(name):
                array.append(values[name])
    except BaseException:
        for name, array in grown.items():
            if array.shape[0] > length:
                done.left[name] = length
                array.resize((length, *array.shape[1:]))
                del done.left[name]
        raise


def _grow_together(
    group: Group,
    arrays: Mapping[str, Array],
    length: int,
    added: int,
    write: Write,
    done: Done,
    documents: ArrayDocuments,
) -> None:
    """Write the elements, and then the new shapes (step 2)."""
    from zarrow.groups.array_documents import changed, is_consolidated, key_of

    store, is_remote = store_of(group), group._is_remote()
    keys = {name: key_of(array) for name, array in arrays.items()}
    after = {name: documents.longer(key, 0, added) for name, key in keys.items()}
    done.reach = length + added
    write(length, documents, after)
    kept: list[str] = []
    try:
        refused = documents.replace({keys[name]: document for name, document in after.items()}, kept)
    finally:
        done.left |= {name: length for name, key in keys.items() if key in kept}
    if refused is not None:
        raise changed(refused)
    done.length = length + added
    _call_each(group, [array.refresh for array in arrays.values()])
    if not is_remote or group._is_consolidated() or is_consolidated(store, group.path):
        for array in arrays.values():
            # Consolidated metadata of groups above follow a change of attributes.
            array.attrs.update({})


def _clear_behind(arrays: Mapping[str, Array], done: Done) -> None:
    """Remove the elements of a failed append, so that they take no place; growing would remove them, too."""
    if done.reach is None:
        return
    for array in arrays.values():
        with contextlib.suppress(ZarrowError, OSError):
            _StoredValues(store_of(array), create=False).clear_behind(array.path, done.reach)


def _call_each(group: Group, functions: Sequence[Callable[[], object]]) -> None:
    """Call functions that ask the group's store: at once, if it is remote."""
    concurrent_calls.run(functions, len(functions) if group._is_remote() else 1)


def _write(
    name: str,
    array: Array,
    values: Any,
    store: Any,
    cloud: _StoredValues | None,
    documents: ArrayDocuments,
    document: bytes,
    length: int,
) -> None:
    """Write the elements of a column behind the end of its array."""
    from zarrow.groups.appended_chunks import AppendedChunks

    with tables.naming(name):
        if cloud is not None and array.write_unit is not None:
            unit = max(1, array.write_unit[0])
            AppendedChunks(cloud, documents, array, 0, unit).put(document, values, length)
            return
        shape = (length + len(values), *array.shape[1:])
        _ChunkParts(store, array.path, array.zarr_format, document).array(shape)[length:] = values


def _elements(name: str, column: Any, array: Array) -> Any:
    """Return the elements of a column as its array takes them."""
    with tables.naming(name):
        missing = tables.missing_elements(column, array)
        if missing is not None:
            return missing
        elements = asarray(column)
        if not elements.shape:
            raise ValueError("it is one value, where a list or an array is needed")
        return elements


def _columns_of(group: Group, columns: dict[str, Any]) -> dict[str, Array]:
    """Return the arrays to append to; refuse a table with other columns (step 1)."""
    refuse_unfinished(group)
    names = group.attrs.get("column-order") or sorted(group.keys())
    if not names:
        raise ValueError("the group has no columns yet: type zarrow.save(store, table) for the first rows")
    lacking = [name for name in names if name not in columns]
    unknown = [name for name in columns if name not in names]
    if lacking or unknown:
        found = [f"it lacks {lacking}"] * bool(lacking) + [f"the group lacks {unknown}"] * bool(unknown)
        raise ValueError(
            f"the table must have the columns of the group, {names}: {', and '.join(found)}; a pandas index "
            "is a column unless it counts the rows (.reset_index(drop=True))"
        )
    members: dict[str, Any] = {}

    def open_member(name: str) -> None:
        members[name] = group[name]

    _call_each(group, [partial(open_member, name) for name in names])
    arrays = {name: members[name] for name in names}
    for name, array in arrays.items():
        if not isinstance(array, Array):
            raise TypeError(
                f"{name!r} is a group, and rows are appended to arrays: save the table with "
                "missing='fill' or missing='optional'"
            )
        if not array.shape:
            raise ValueError(f"{name!r} has no axis to append along")
    return arrays


def _common_length(lengths: dict[str, int], what: str) -> int:
    if len(set(lengths.values())) != 1:
        raise ValueError(f"the {what} have different lengths: {lengths}")
    return next(iter(lengths.values()))
