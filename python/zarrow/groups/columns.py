"""Values that are assigned to a table are its columns: `group["obs"]["cluster"] = labels`.

1. A table is a group with the attribute `column-order`. Readers of tables, here and in anndata, see the
   columns that it lists, and no others.
2. In a dataframe of AnnData, a column that is not one element for each row is refused before anything is
   stored. A column of pandas is stored as in `zarrow.save(path, adata)`. Another one gets the encoding that
   anndata expects, also of missing elements.
3. After a value with a new name is stored, the name becomes the last in `column-order`, in one step beside
   other writers. Before a column is erased, its name goes from there.
4. A column of a dataframe replaces another one, also where one of the two is a group, such as a
   categorical. The new one is built in memory first. In folders and in memory it takes the place of the old
   one in one step; elsewhere the old one is erased right before.
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
from zarrow.errors import NodeExistsError, NotFoundError, ShapeError


def store_member(group: Group, path: str, value: Any, store: Callable[[str | None], None]) -> None:
    """Store a value at a path by `store`, as a column if the group there is a table.

    Raises
    ------
    ShapeError
        The table is a dataframe of AnnData, and the value is not one element for each row.
    NodeExistsError
        The value is a table, and a dataframe of AnnData is at the path.
    TypeError
        The value is a table, and a column of a dataframe of AnnData is at the path.
    """
    if _is_table(value) and not isinstance(value, Group):
        _refuse_dataframe(group.get(path))
    parent, _, name = path.strip("/").rpartition("/")
    table = group.get(parent) if parent else group
    order = _order_of(table)
    if not isinstance(table, Group) or order is None:
        store(None)
        return
    is_dataframe = encoding_of(table) == "dataframe"
    index = [str(table._attributes().get("_index", "_index"))] if is_dataframe else []
    others = (table.get(listed) for listed in (*index, *map(str, order)) if listed != name)
    rows = next((found for found in map(_rows_of, others) if found is not None), None)
    is_column = not _is_table(value) or (isinstance(value, Group) and _rows_of(value) is not None)
    if is_dataframe and rows is not None and is_column:
        _refuse_shape(table, name, value, rows)
    if is_dataframe and name in order and not is_column:
        raise TypeError(f"{name!r} is a column of {table.name!r}, which a table cannot replace")
    try:
        if is_dataframe and name in order and isinstance(value, Group):
            _replace(table, name, value)
        elif is_dataframe and type(value).__module__.partition(".")[0] == "pandas" and not _is_table(value):
            from zarrow.anndata import saving

            saving.store_column(table, name, value)
        else:
            store("anndata" if is_dataframe and not isinstance(value, Array | Group) else None)
    except NodeExistsError:
        existing = table.get(name)
        if not is_dataframe or name not in order or _rows_of(existing) is None:
            raise
        _replace(table, name, value)
    stored = table[name]
    if is_dataframe and isinstance(stored, Array) and "encoding-type" not in stored._attributes():
        stored.attrs.update(STRINGS if stored.dtype.kind == "T" else ANNDATA_ARRAY)
    is_new, length = name not in order and name not in index, _rows_of(stored)
    if is_new and length is not None and rows in (None, length):
        table._change_attributes("extend", {"column-order": [name]})


def erase_member(group: Group, path: str) -> None:
    """Erase the node at a path, and its name from the columns of a table.

    Raises
    ------
    NotFoundError
        No node is at the path.
    """
    parent, _, name = path.strip("/").rpartition("/")
    table = group.get(parent) if parent else group
    if not isinstance(table, Group) or name not in (_order_of(table) or ()):
        group._erase(path)
        return
    table._change_attributes("shorten", {"column-order": [name]})
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


def _replace(table: Group, name: str, value: Any) -> None:
    """Replace a column, where it or the new one is a group (step 4)."""
    attributes = {**table._attributes(), "column-order": []}
    built = _create_group(
        MemoryStore(), "", attributes, zarr_format=table.zarr_format, overwrite=False, durability="none"
    )
    built[name] = value
    column = built[name]
    if isinstance(column, Array):
        table.create_array(name, data=column, overwrite=True)
        return

    def add_members(group: Group) -> None:
        for part, array in column.items():
            group[part] = array

    is_replaced = _create_whole_group(
        table,
        name,
        column._attributes(),
        add_members,
        lambda: True,
        zarr_format=table.zarr_format,
        overwrite=True,
    )
    if not is_replaced:
        from zarrow.api.copying import copy_group

        table._erase(name)
        copy_group(column, table, name)


def _refuse_dataframe(existing: Array | Group | None) -> None:
    """Refuse to store a table over a dataframe: its index would stay."""
    if isinstance(existing, Group) and encoding_of(existing) == "dataframe":
        raise NodeExistsError(
            f"{existing.name!r} is a dataframe of AnnData: assign its columns one by one, or erase it first",
            kind="node_exists",
            store=existing.store,
            path=existing.path,
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
        raise ShapeError(
            f"{table.name!r} has {rows} rows, and the column {name!r} has {found}",
            kind="shape",
            store=table.store,
            path=table.path,
        )


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
