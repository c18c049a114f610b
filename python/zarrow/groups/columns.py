"""Values that are assigned to a table are its columns: `group["obs"]["cluster"] = labels`.

1. A table is a group with the attribute `column-order`. Readers of tables, here and in anndata, see the
   columns that it lists, and no others.
2. In a dataframe of AnnData, a column that is not one element for each row is refused before anything is
   stored. A column of pandas is stored as in `zarrow.save(path, adata)`. Another one gets the encoding that
   anndata expects, also of missing elements.
   A Series of pandas with an index must have that of the table: its elements are stored in their order.
3. After a value with a new name is stored, the name becomes the last in `column-order`, in one step beside
   other writers. Before a column is erased, its name goes from there.
4. A column of a dataframe replaces another one, also where one of the two is a group, such as a
   categorical. It is built in memory first, unless it is an array of numbers. In folders and in memory it is
   put in place in one step; elsewhere an old one is erased right before. Consolidated metadata lack the
   column meanwhile, so that a reader gets an error, and never new elements by old metadata.
5. A dict of arrays is stored as a table, too, and may have arrays of different lengths: a new array of
   another length is no column there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zarrow._zarrow import Array, Group, MemoryStore, _create_group, _create_whole_group, _import
from zarrow.anndata.encoding import encoding_of
from zarrow.arrays.missing import ANNDATA_ARRAY
from zarrow.arrays.nullable import STRINGS
from zarrow.errors import NodeExistsError, NotFoundError, ShapeError, ZarrowError
from zarrow.groups import pandas_index

# Stores a value at a path of a group, with missing elements in a form.
_Store = Callable[[Group, str, Any, str | None], None]


def store_member(group: Group, path: str, value: Any, store: _Store) -> None:
    """Store a value at a path by `store`, as a column if the group there is a table.

    Raises
    ------
    ShapeError
        The table is a dataframe of AnnData, and the value is not one element for each row.
    NodeExistsError
        The value is a table, and a dataframe of AnnData is at the path.
    TypeError
        The value is a table, and a column of a dataframe of AnnData is at the path.
    ValueError
        The value is a Series of pandas with another index than the table.
    """
    if _is_table(value) and not isinstance(value, Group):
        _refuse_dataframe(group.get(path))
    parent, _, name = path.strip("/").rpartition("/")
    table = group.get(parent) if parent else group
    order = _order_of(table)
    if not isinstance(table, Group) or order is None:
        if parent and table is None:
            _refuse_below_dataframe(group, parent)
        store(group, path, value, None)
        return
    is_dataframe = encoding_of(table) == "dataframe"
    index = [_index_of(table)] if is_dataframe else []
    others = (table.get(listed) for listed in (*index, *map(str, order)) if listed != name)
    rows = next((found for found in map(_rows_of, others) if found is not None), None)
    levels = index or list(pandas_index.levels(table, order))
    if name not in levels:
        value = _without_index(table, levels, rows, name, value)
    is_column, is_listed = _is_column(value), name in order or name in index
    if not is_dataframe:
        store(group, path, value, None)
    elif not is_column:
        if is_listed:
            raise TypeError(f"{name!r} is a column of {table.name!r}, which a table cannot replace")
        store(group, path, value, "anndata" if not isinstance(value, Array | Group) else None)
    else:
        if rows is not None:
            _refuse_shape(table, name, value, rows)
        _store_column(table, name, value, store, is_listed)
    if not is_listed and is_column:
        length = _rows_of(table.get(name))
        if length is not None and rows in (None, length):
            table._change_attributes("extend", {"column-order": [name]})


def _store_column(table: Group, name: str, value: Any, store: _Store, is_listed: bool) -> None:
    """Store a column of a dataframe (steps 2 and 4)."""
    is_of_numbers = type(value) is _import("numpy").ndarray and value.dtype.kind in "biufc"
    try:
        if not is_of_numbers and not isinstance(value, Array):
            _put(table, name, _built(table, name, value, store), is_listed)
            return
        store(table, name, value, None)
    except NodeExistsError:
        if not is_listed or _rows_of(table.get(name)) is None:
            raise
        _put(table, name, _built(table, name, value, store), is_listed)
        return
    stored = table[name]
    if "encoding-type" not in stored._attributes():
        stored.attrs.update(_encoding_of(stored))


def erase_member(group: Group, path: str) -> None:
    """Erase the node at a path, and its name from the columns of a table.

    Raises
    ------
    NotFoundError
        No node is at the path.
    ValueError
        It is the index of a dataframe of AnnData.
    """
    parent, _, name = path.strip("/").rpartition("/")
    table = group.get(parent) if parent else group
    if isinstance(table, Group) and encoding_of(table) == "dataframe" and name == _index_of(table):
        raise ValueError(
            f"{name!r} is the index of the dataframe {table.name!r}, which needs one: assign another, as "
            f"group[{path!r}] = names"
        )
    if not isinstance(table, Group) or name not in (_order_of(table) or ()):
        group._erase(path)
        return
    shorter = "shorten", {"column-order": [name]}
    try:
        table._change_attributes(*shorter)
    except (ZarrowError, OSError):
        # On a full disk a column can be erased, and nothing else stored before.
        table._erase(name)
        table._change_attributes(*shorter)
        return
    try:
        table._erase(name)
    except NotFoundError:
        raise
    except BaseException:
        table._change_attributes("extend", {"column-order": [name]})
        raise


def _order_of(table: Array | Group | None) -> list[Any] | None:
    """Return the names of the columns; None if the node is no table."""
    order = table._attributes().get("column-order") if isinstance(table, Group) else None
    return order if isinstance(order, list) else None


def _built(table: Group, name: str, value: Any, store: _Store) -> Array | Group:
    """Return a new column of a dataframe in memory."""
    from zarrow.anndata import saving
    from zarrow.api.copying import copy_group

    built = _create_group(
        MemoryStore(), "", {}, zarr_format=table.zarr_format, overwrite=False, durability="none"
    )
    if isinstance(value, Group):
        copy_group(value, built, name)
    elif type(value).__module__.partition(".")[0] == "pandas":
        saving.store_column(built, name, value)
    else:
        store(built, name, value, None if isinstance(value, Array) else "anndata")
    column = built[name]
    if isinstance(column, Array) and "encoding-type" not in column._attributes():
        column.attrs.update(_encoding_of(column))
    return column


def _put(table: Group, name: str, column: Array | Group, is_listed: bool) -> None:
    """Store a column from memory; it replaces a column or an array, and no other group (step 4)."""
    existing = table.get(name)
    overwrite = isinstance(existing, Array) or (is_listed and _rows_of(existing) is not None)
    if isinstance(column, Array):
        table.create_array(name, data=column, overwrite=overwrite)
        return

    def add_members(group: Group) -> None:
        for part, array in column.items():
            group[part] = array

    is_put = _create_whole_group(
        table,
        name,
        column._attributes(),
        add_members,
        lambda: overwrite,
        zarr_format=table.zarr_format,
        overwrite=overwrite,
    )
    if not is_put:
        from zarrow.api.copying import copy_group

        if overwrite:
            table._erase(name)
        copy_group(column, table, name)


def _encoding_of(column: Array) -> dict[str, str]:
    """Return the attributes that anndata expects of a column."""
    return STRINGS if column.dtype.kind == "T" else ANNDATA_ARRAY


def _index_of(table: Group) -> str:
    """Return the name of a dataframe's index."""
    return str(table._attributes().get("_index", "_index"))


def _is_column(value: Any) -> bool:
    return not _is_table(value) or (isinstance(value, Group) and _rows_of(value) is not None)


def _refuse_below_dataframe(group: Group, parent: str) -> None:
    """Refuse a new group below a dataframe: a column's name has no slash."""
    while parent:
        parent, _, name = parent.rpartition("/")
        above = group.get(parent) if parent else group
        if isinstance(above, Group):
            if encoding_of(above) == "dataframe":
                raise ValueError(f"{above.name!r} is a dataframe, and has no column {name!r} with members")
            return


def _refuse_dataframe(existing: Array | Group | None) -> None:
    """Refuse to store a table over a dataframe: its index would stay."""
    if isinstance(existing, Group) and encoding_of(existing) == "dataframe":
        raise NodeExistsError(
            f"{existing.name!r} is a dataframe of AnnData: assign its columns one by one, or erase it first",
            node=existing,
        )


def _without_index(table: Group, levels: list[str], rows: int | None, name: str, value: Any) -> Any:
    """Return a value; a Series of pandas without its index, which must be that of the table.

    A table without an index has the numbers of its rows. An index that only counts the elements names no
    rows, unless the table has numbers as its index.

    Raises
    ------
    ValueError
        The index has other rows, or the same rows in another order.
    """
    given: Any = getattr(value, "index", None)
    if rows is None or type(given).__module__.partition(".")[0] != "pandas":
        return value
    range_index = _import("pandas").RangeIndex
    has_levels = bool(levels) and all(_rows_of(table.get(level)) is not None for level in levels)
    own = table.to_pandas(levels).index if has_levels else range_index(rows)
    if given.equals(own):
        return value.reset_index(drop=True)
    is_of_numbers = own.nlevels == 1 and getattr(own.dtype, "kind", "") in "iu"
    is_other = has_levels or set(given) == set(range(rows))
    if given.equals(range_index(len(given))) and not (has_levels and is_of_numbers):
        return value
    if not is_other:
        return value  # with a warning that the index is not stored
    raise ValueError(
        f"the index of the Series for {name!r} differs from that of {table.name!r}: type "
        "series.reindex(group.to_pandas().index), or series.to_numpy() to store its elements in their order"
    )


def _refuse_shape(table: Group, name: str, value: Any, rows: int) -> None:
    """Refuse a column of AnnData that is not one element for each row."""
    is_list = isinstance(value, list | tuple)
    shape = (len(value),) if is_list else getattr(value, "shape", None)
    if isinstance(value, Group):
        shape = (_rows_of(value),)
    if shape is None:
        is_scalar = isinstance(value, str | bytes) or not hasattr(value, "__len__")
        shape = _import("numpy").shape(value) if is_scalar else (len(value),)
    if tuple(shape) != (rows,):
        found = "no axis" if not shape else " x ".join(map(str, shape))
        raise ShapeError(f"{table.name!r} has {rows} rows, and the column {name!r} has {found}", node=table)


def _is_table(value: Any) -> bool:
    # The names of a lazy table take time: only its class is asked.
    kind = type(value)
    return isinstance(value, Mapping | Group) or hasattr(kind, "columns") or hasattr(kind, "column_names")


def _rows_of(column: Array | Group | None) -> int | None:
    """Return the length of a column: of an array, or of a categorical or nullable group."""
    if isinstance(column, Group):
        is_column = encoding_of(column).startswith(("categorical", "nullable"))
        member = column.get("codes" if "codes" in column else "values") if is_column else None
        return _rows_of(member) if isinstance(member, Array) else None
    return column.shape[0] if column is not None and column.shape else None
