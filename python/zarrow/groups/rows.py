"""Appending rows to a table, which is stored as a group with an array for each column.

1. The table has the columns of the group, by name; in any order.
2. Each column is appended to its array. If one cannot be, those before it are cut to their old length, and
   the error begins with the column's name. A column of nothing but nulls takes the type of its array.
3. There is one writer at a time: of two that append at once, one may write between the columns of the other.
"""

from __future__ import annotations

from typing import Any

from zarrow._zarrow import Array, Group, asarray
from zarrow.anndata.encoding import refuse_unfinished
from zarrow.groups import tables


def append(self: Group, table: Any) -> int:
    """`Group.append`."""
    columns = tables.columns(table)
    if columns is None:
        raise TypeError(
            "append takes a table (of pandas, polars or Arrow, or a dict of arrays), not "
            f'{type(table).__name__}: to append to one array, type group["name"].append(values)'
        )
    arrays = _columns_of(self, columns)
    length = _common_length({name: array.shape[0] for name, array in arrays.items()}, "arrays of the group")
    values = {name: _elements(name, columns[name], array) for name, array in arrays.items()}
    added = _common_length({name: len(column) for name, column in values.items()}, "columns of the table")
    grown: list[Array] = []
    try:
        for name, array in arrays.items():
            grown.append(array)
            with tables.naming(name):
                array.append(values[name])
    except BaseException as error:
        error.add_note("nothing was appended")
        for array in grown:
            if array.shape[0] > length:
                array.resize((length, *array.shape[1:]))
        raise
    return length + added


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
    lacking = [name for name in names if name not in columns]
    unknown = [name for name in columns if name not in names]
    if lacking or unknown:
        found = [f"it lacks {lacking}"] * bool(lacking) + [f"the group lacks {unknown}"] * bool(unknown)
        raise ValueError(
            f"the table must have the columns of the group, {names}: {', and '.join(found)}; a pandas index "
            "is a column unless it counts the rows (.reset_index(drop=True))"
        )
    arrays = {name: group[name] for name in names}
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
