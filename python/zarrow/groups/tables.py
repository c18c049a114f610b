"""Tables of other libraries as columns by their names: pandas, polars, pyarrow, and similar objects.

1. Each column becomes an array, in a group with an attribute `column-order`, which lists the names in order.
2. The index of a pandas table is also stored as columns, which an attribute names (`pandas_index`), unless
   it only counts the rows and has no name.
3. A stream of Arrow's is read to its end first, with pyarrow. The other way, `Group.__arrow_c_stream__` is in
   `interchange.consumers`.
4. A column of nothing but nulls has no type: it is refused, or takes that of the array it is appended to.
5. An error that a column causes begins with its name.
6. `Group.to_arrow` and `to_pandas` give the table again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from zarrow import _zarrow
from zarrow.errors import ExchangeError, ZarrowError
from zarrow.groups import pandas_index


def columns(table: Any) -> dict[str, Any] | None:
    """Return the columns of a table by name; None for anything else.

    Raises
    ------
    TypeError
        A name is not a string, or stands for two columns.
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
        if pandas_index.is_stored(table):
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
        return _checked([(pandas_index.stored_name(name), table.column(at)) for at, name in names])
    return None


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Begin an error's message with the name of the column that caused it (step 5)."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ZarrowError) or type(error) in (TypeError, ValueError, OverflowError):
            error.args = (f"{name!r}: {error}", *error.args[1:])
        else:  # what its arguments are, only its class knows
            error.add_note(f"in {name!r}")
        raise


def is_null(column: Any) -> bool:
    """Return whether a column of Arrow's or polars' has the type null (step 4)."""
    family = type(column).__module__.partition(".")[0]
    if family == "pyarrow":
        return str(getattr(column, "type", "")) == "null"
    return family == "polars" and str(getattr(column, "dtype", "")) == "Null"


def refuse_sparse(value: Any) -> None:
    """Refuse a sparse matrix of SciPy, which is stored within an AnnData.

    Raises
    ------
    TypeError
        It is one; the message says what stores it.
    """
    if type(value).__module__.startswith("scipy.sparse") and hasattr(value, "toarray"):
        raise TypeError(
            f"a sparse {type(value).__name__} is not an array: call .toarray() first for a dense array, or "
            "type zarrow.save(path, anndata.AnnData(matrix)); zarrow.open(path)['X'].to_scipy() reads it back"
        )


def refuse_null(column: Any) -> None:
    """Refuse a column of nothing but nulls, which has no type.

    Raises
    ------
    ExchangeError
        It is one; the message says to cast it.
    """
    family = type(column).__module__.partition(".")[0]
    if is_null(column) or (family == "pandas" and _is_all_none(column)):
        cast = {"pandas": 'astype("float64")', "polars": "cast(polars.Float64)"}
        raise ExchangeError(
            "all elements are null, so the column has no data type: cast it, as "
            f"column.{cast.get(family, 'cast(pyarrow.float64())')}"
        )


def missing_elements(column: Any, array: _zarrow.Array) -> Any:
    """Return elements for an array if a column has only missing ones; None for other columns (step 4)."""
    if not hasattr(column, "__len__"):
        raise TypeError(f"expected a list or an array, got {type(column).__name__}")
    length = len(column)
    if not is_null(column) and not _is_all_none(column):
        return None
    if array.dtype.kind in "iub":
        return _zarrow._import("numpy").ma.masked_all((length, *array.shape[1:]), array.dtype)
    return [None] * length


def _is_all_none(column: Any) -> bool:
    if type(column).__module__.partition(".")[0] == "pandas" and column.dtype == object:
        column = list(column)
    return isinstance(column, list | tuple) and bool(column) and all(value is None for value in column)


def _is_stream(table: Any) -> bool:
    """Return whether rows come only as an Arrow stream: pyarrow's readers, DuckDB's relations, our own."""
    if not hasattr(table, "__arrow_c_stream__") or hasattr(table, "column") or hasattr(table, "__array__"):
        return False
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return names is not None or hasattr(table, "read_next_batch")


def _checked(named: list[tuple[Any, Any]]) -> dict[str, Any]:
    by_name = dict(named)
    for name in by_name:
        if not isinstance(name, str):
            raise TypeError(f"expected names of type str, got {name!r}: rename this column first")
    if len(by_name) < len(named):
        raise TypeError("several columns have the same name: rename them first")
    return by_name
