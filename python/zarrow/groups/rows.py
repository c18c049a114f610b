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
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Group, _ChunkParts, _StoredValues, asarray, open
from zarrow.anndata.encoding import refuse_unfinished
from zarrow.api import at_once
from zarrow.errors import NotFoundError, StaleHandleError, ZarrowError, ZarrowWarning
from zarrow.groups import tables
from zarrow.hints.calling_line import frames_of_zarrow

if TYPE_CHECKING:
    from zarrow.groups.append_turns import Check

_DOCUMENTS = {2: ".zarray", 3: "zarr.json"}


def append(self: Group, table: Any) -> int:
    """Append the rows of a table: each column to the array of the same name.

    Elements are written behind the end of each array first, where no reader sees them. Then all arrays grow.
    If the call fails, or the process is killed before, the table has its old rows. Other calls of `append`
    wait, in threads and processes: in a folder by its lock, and in a cloud with conditional puts by a claim
    on the group's metadata, which stops others for four minutes after a kill. In other stores, such as
    fsspec's, only the threads of this process wait.

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
    DataTypeError, CodecError, ReadOnlyError, StoreError
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
    from zarrow.groups.append_turns import in_turn

    columns = tables.columns(table)
    if columns is None:
        raise TypeError(
            "append takes a table (of pandas, polars or Arrow, or a dict of arrays), not "
            f'{type(table).__name__}: to append to one array, type group["name"].append(values)'
        )
    arrays = _columns_of(self, columns)
    values = {name: _elements(name, columns[name], array) for name, array in arrays.items()}
    added = _common_length({name: len(column) for name, column in values.items()}, "columns of the table")
    done = _Done()
    try:
        return in_turn(self, partial(_append, self, arrays, values, added, done))
    except BaseException as error:
        if done.length is not None and isinstance(error, ZarrowError | OSError):
            # An error would make the caller append the rows again.
            text = f"the rows were appended; open the group again, since a later request failed: {error}"
            warnings.warn(text, ZarrowWarning, stacklevel=frames_of_zarrow())
            return done.length
        error.add_note(done.note())
        raise


class _Done:
    """What an append has changed, for its error.

    Attributes
    ----------
    length
        The new number of rows, once all arrays have them.
    left
        The old length of each array that may have kept rows.
    """

    def __init__(self) -> None:
        self.length: int | None = None
        self.left: dict[str, int] = {}

    def note(self) -> str:
        """Return a note for an error."""
        if self.length is not None:
            return "the rows were appended"
        if not self.left:
            return "nothing was appended"
        length = next(iter(self.left.values()))
        return f"these arrays may have kept rows: {sorted(self.left)}; resize them to {length} rows"


def _append(
    group: Group,
    arrays: Mapping[str, Array],
    values: Mapping[str, Any],
    added: int,
    done: _Done,
    check: Check,
) -> int:
    """Append to all arrays, in the turn of this append."""
    _call_each(group, [array.refresh for array in arrays.values()])
    length = _common_length({name: array.shape[0] for name, array in arrays.items()}, "arrays of the group")
    if not added:
        return length
    if check is None:
        _append_each(arrays, values, length, done)
    else:
        _append_together(group, arrays, values, length, done, check)
    return length + added


def _append_each(arrays: Mapping[str, Array], values: Mapping[str, Any], length: int, done: _Done) -> None:
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


def _append_together(
    group: Group,
    arrays: Mapping[str, Array],
    values: Mapping[str, Any],
    length: int,
    done: _Done,
    check: Callable[[], None],
) -> None:
    """Write the elements, and then the new shapes (step 2)."""
    store = group.__reduce__()[1][0]
    stored = _StoredValues(store, create=False)
    keys = [f"{array.path}/{_DOCUMENTS[array.zarr_format]}" for array in arrays.values()]
    if stored.is_local():
        before = [(document, "") for document in stored.get_each(keys)]
    else:
        before = [found or (None, "") for found in stored.get_versions(keys)]
    after = [
        _longer(key, document, length, len(values[name]))
        for name, key, (document, _) in zip(arrays, keys, before, strict=True)
    ]
    writes = [
        partial(_write, name, store, array, document, values[name], length)
        for (name, array), document in zip(arrays.items(), after, strict=True)
    ]
    at_once.run(writes, 1 if stored.is_local() else len(writes))
    check()
    if stored.is_local():
        changes = [(key, old, new) for key, (old, _), new in zip(keys, before, after, strict=True)]
        changed = stored.commit(changes)
    else:
        kept: list[str] = []
        try:
            changed = _put(stored, keys, before, after, kept)
        finally:
            done.left |= {name: length for name, key in zip(arrays, keys, strict=True) if key in kept}
    if changed is not None:
        raise _changed(changed)
    done.length = length + len(next(iter(values.values())))
    _call_each(group, [array.refresh for array in arrays.values()])
    if stored.is_local() or _is_consolidated(group):
        for array in arrays.values():
            # Consolidated metadata of groups above follow a change of attributes.
            array.attrs.update({})


def _is_consolidated(group: Group) -> bool:
    """Whether a group or one above has consolidated metadata."""
    names, store = group.path.split("/"), group.__reduce__()[1][0]
    found = [group._is_consolidated()]

    def look(path: str) -> None:
        with contextlib.suppress(NotFoundError):
            node = open(store, path, mode="r")
            found.append(isinstance(node, Group) and node._is_consolidated())

    if not found[0] and group.path:
        at_once.run([partial(look, "/".join(names[:count])) for count in range(len(names))])
    return any(found)


def _call_each(group: Group, functions: Sequence[Callable[[], object]]) -> None:
    """Call functions that ask the group's store: at once, if it is remote."""
    at_once.run(functions, len(functions) if group._is_remote() else 1)


def _longer(key: str, document: bytes | None, length: int, added: int) -> bytes:
    """Return the document of an array with more rows."""
    import json

    metadata = json.loads(document or b"{}")
    if metadata.get("shape", ())[:1] != [length]:
        raise _changed(key)
    metadata["shape"][0] += added
    return json.dumps(metadata, indent=2).encode()


def _write(name: str, store: Any, array: Array, document: bytes, values: Any, length: int) -> None:
    """Write the elements of a column behind the end of its array."""
    shape = (length + len(values), *array.shape[1:])
    with tables.naming(name):
        _ChunkParts(store, array.path, array.zarr_format, document).array(shape)[length:] = values


def _changed(name: str) -> StaleHandleError:
    return StaleHandleError(
        f"{name!r} was changed by another writer during the append: repeat it", kind="stale_handle"
    )


def _put(
    stored: _StoredValues,
    keys: Sequence[str],
    before: Sequence[tuple[bytes | None, str]],
    after: Sequence[bytes],
    kept: list[str],
) -> str | None:
    """Replace documents of a remote store, or none; return the key of one that has changed.

    On an error, `kept` has the keys of documents that may be replaced.
    """
    refused: list[str] = []

    def replace(at: int) -> None:
        if stored.set_if(keys[at], after[at], before[at][1]) is None:
            refused.append(keys[at])

    try:
        at_once.run([partial(replace, at) for at in range(len(keys))])
    except BaseException:
        refused.append("")
        raise
    finally:
        if refused:
            kept.extend(keys)
            _restore(stored, keys, before, after, kept)
    return refused[0] if refused else None


def _restore(
    stored: _StoredValues,
    keys: Sequence[str],
    before: Sequence[tuple[bytes | None, str]],
    after: Sequence[bytes],
    kept: list[str],
) -> None:
    """Put the old documents in place of the new ones, and remove these keys from `kept`."""
    with contextlib.suppress(ZarrowError, OSError):
        # A lost answer may hide that a document was replaced.
        found = stored.get_versions(keys)
        for key, now, (old, _), new in zip(keys, found, before, after, strict=True):
            is_new = now is not None and now[0] == new
            if not is_new or (now and stored.set_if(key, old or b"", now[1]) is not None):
                kept.remove(key)


def _elements(name: str, column: Any, array: Array) -> Any:
    """Return the elements of a column as its array takes them."""
    missing = tables.missing_elements(column, array)
    if missing is not None:
        return missing
    with tables.naming(name):
        return asarray(column)


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
