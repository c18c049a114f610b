"""Tables of other libraries as columns by their names: pandas, polars, pyarrow, and what looks like them.

1. A column becomes an array of its own, in a group whose attribute `column-order` has their names in their
   order.
2. The index of a pandas table is a column too, unless it only counts the rows and has no name.
3. A stream of Arrow's is read to its end first, with pyarrow.
4. `Group.to_arrow` gives the table again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrow import _zarrow


def columns(table: Any) -> dict[str, Any] | None:
    """Give the columns of a table by their names; None for what is no table.

    Raises
    ------
    TypeError
        A name is no string, or stands for two columns.
    """
    family = type(table).__module__.partition(".")[0]
    if family == "xarray" and hasattr(table, "data_vars"):
        raise TypeError(
            "a Dataset has coordinates and attributes beside its variables: type dataset.to_zarr(path), or "
            "store its variables one by one"
        )
    if isinstance(table, Mapping):
        return _checked([(name, table[name]) for name in table])
    if family == "pandas" and hasattr(table, "columns"):
        if type(table.index).__name__ != "RangeIndex" or table.index.name is not None:
            table = table.reset_index()
        return _checked([(name, table.iloc[:, at]) for at, name in enumerate(table.columns)])
    if family == "polars":
        if type(getattr(table, "dtype", None)).__name__ == "Struct":
            raise TypeError("a Series of structs has several columns: type series.struct.unnest() first")
        if hasattr(table, "collect"):
            raise TypeError("a LazyFrame has no values yet: type .collect() first")
        return _checked(list(zip(table.columns, table, strict=True))) if hasattr(table, "columns") else None
    if _is_stream(table):
        table = _zarrow._import("pyarrow").table(table)
    if hasattr(table, "column_names") and hasattr(table, "column"):
        names = enumerate(table.column_names)
        return _checked([(name, table.column(at)) for at, name in names])
    return None


def _is_stream(table: Any) -> bool:
    """Tell what gives rows by Arrow's stream alone: pyarrow's readers, DuckDB's relations, our own."""
    if not hasattr(table, "__arrow_c_stream__") or hasattr(table, "column") or hasattr(table, "__array__"):
        return False
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return names is not None or hasattr(table, "read_next_batch")


def _checked(named: list[tuple[Any, Any]]) -> dict[str, Any]:
    by_name = dict(named)
    for name in by_name:
        if not isinstance(name, str):
            raise TypeError(f"names of arrays are str, and {name!r} is not: rename this column first")
    if len(by_name) < len(named):
        raise TypeError("several columns have the same name: rename them first")
    return by_name
