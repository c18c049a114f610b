"""Filters as lists of comparisons, in the form of `pyarrow.parquet.read_table(filters=...)`.

1. `[("id", ">", 5), ("name", "in", ["owl"])]` are comparisons that a row must all fulfil. A list of such
   lists are alternatives. A condition of `pyarrow.compute` is taken as well.
2. Values are converted to pyarrow's: NumPy's scalars, and text for a column of times.
3. A missing element fulfils no comparison except "not in", as in pyarrow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from zarrow._zarrow import Group
from zarrow.tables.scanning import Scan, condition_columns, filter_of
from zarrow.tables.table import Table

if TYPE_CHECKING:
    import numpy.typing as npt

Comparison: TypeAlias = tuple[str, str, Any]
Filters: TypeAlias = Sequence[Comparison] | Sequence[Sequence[Comparison]] | pc.Expression

_OPERATORS = ("==", "=", "!=", "<", "<=", ">", ">=", "in", "not in")
_EXAMPLE = 'filters=[("id", ">", 5), ("name", "in", ["owl", "wren"])]'


class Query:
    """The rows of a group that fulfil filters, and their columns.

    Attributes
    ----------
    scan : Scan
        All rows, with the columns of the filters too.
    columns : list of str
        The columns of the result.
    condition : pyarrow.compute.Expression
        The filters.
    """

    def __init__(
        self,
        group: Group,
        columns: Sequence[str] | None,
        rows: slice | None,
        filters: Filters,
        sorted_by: str | None,
        options: Mapping[str, Any],
    ) -> None:
        if rows is not None and not isinstance(rows, slice):
            raise TypeError(f"expected rows as a slice, such as slice(0, 10), or None, got {rows!r}")
        alternatives = None if isinstance(filters, pc.Expression) else _alternatives(filters)
        stream = group.to_arrow(columns, **options)
        self.columns = list(stream.column_names or ())
        if isinstance(filters, pc.Expression):
            used = condition_columns(filters, dict.fromkeys([*self.columns, *group.keys()]))
        else:
            used = [name for each in alternatives or () for name, _, _ in each]
        others = [
            name for name in dict.fromkeys([*used, sorted_by or ""]) if name and name not in self.columns
        ]
        for name in others:
            if columns is None and name not in group:
                raise KeyError(f"the table has no column {name!r}: it has {self.columns}")
        names = (*self.columns, *others) if others or columns is not None else None
        table = Table(group, names, 0, stream.num_rows)
        self.scan = Scan(table if rows is None else table[rows], sorted_by, options)
        self.condition = filters if alternatives is None else _condition(alternatives, self.scan.schema)

    def numbers(self, rows: range | None = None) -> npt.NDArray[np.int64]:
        """Return the numbers of the rows in the group, ascending; only columns of the filters are read."""
        found = self.scan.numbers(filter_of(self.condition, self.scan.schema.names), rows)
        return np.concatenate([np.empty(0, np.int64), *found])


def selection(numbers: npt.NDArray[np.int64]) -> slice | npt.NDArray[np.int64]:
    """Return numbers of rows as a selection: as a slice if they follow each other."""
    count = len(numbers)
    if count and int(numbers[-1]) - int(numbers[0]) + 1 == count:
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers if count else slice(0, 0)


def _alternatives(filters: Any) -> list[list[Comparison]]:
    """Return lists of comparisons (step 1).

    Raises
    ------
    TypeError
        The filters are something else.
    ValueError
        The list is empty, or an operator is unknown.
    """
    if isinstance(filters, tuple) and len(filters) == 3 and isinstance(filters[0], str):
        filters = [filters]
    if not isinstance(filters, list | tuple):
        found = type(filters)
        if found.__module__.startswith("polars"):
            raise TypeError(
                "filters are comparisons, not an expression of polars: type "
                "group.scan_polars().filter(expression).collect()"
            )
        raise TypeError(f"expected comparisons, such as {_EXAMPLE}, got {filters!r:.100}")
    if not filters:
        raise ValueError(f"filters are empty: leave them out, or pass comparisons, such as {_EXAMPLE}")
    is_flat = any(isinstance(each, str) or (each and isinstance(each[0], str)) for each in filters)
    nested = [filters] if is_flat else filters
    if not all(nested):
        raise ValueError("an alternative of the filters has no comparison: leave it out")
    return [[_checked(each) for each in part] for part in nested]


def _checked(comparison: Any) -> Comparison:
    if not isinstance(comparison, tuple | list) or len(comparison) != 3 or not isinstance(comparison[0], str):
        raise TypeError(
            f"expected a comparison of three items, such as ('id', '>', 5), got {comparison!r:.100}"
        )
    name, operator, value = comparison
    if operator not in _OPERATORS:
        raise ValueError(f"operator {operator!r} is unknown, expected one of {', '.join(_OPERATORS)}")
    if operator in ("in", "not in"):
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise TypeError(f"{operator!r} takes a list of values, got {value!r:.100}")
    elif value is None:
        raise ValueError(
            f"a comparison with None has no rows: type filters=pyarrow.compute.field({name!r}).is_null(), or "
            f"~pyarrow.compute.field({name!r}).is_null()"
        )
    return name, operator, value


def _condition(alternatives: list[list[Comparison]], schema: pa.Schema) -> pc.Expression:
    converted = [
        [(name, operator, _value(name, operator, value, schema)) for name, operator, value in each]
        for each in alternatives
    ]
    return pyarrow.parquet.filters_to_expression(converted)


def _value(name: str, operator: str, value: Any, schema: pa.Schema) -> Any:
    """Return a value, or several, as pyarrow compares it with a column (step 2).

    Raises
    ------
    TypeError
        The column is not compared with such a value.
    """
    kind = schema.field(name).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        if operator in ("in", "not in"):
            found = _several([_scalar(each, kind) for each in value], kind)
        else:
            found = _scalar(value, kind)
        # Types that are not compared are refused here.
        pc.equal(pa.array([], kind), found[:0] if isinstance(found, pa.Array) else found)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"column {name!r} of {kind} is not compared with {value!r:.100}: {error}") from error
    return found


def _several(scalars: list[pa.Scalar], kind: pa.DataType) -> pa.Array:
    """Return the values of a list that a column of this type can have.

    pyarrow compares a list in the column's type: it would round times of another unit.
    """
    if pa.types.is_temporal(kind):
        arrays = []
        for scalar in scalars:
            # A cast would take numbers, and times of a zone, which are not compared.
            pc.equal(pa.array([], kind), scalar)
            # A time that would be rounded is in no row.
            with contextlib.suppress(pa.ArrowInvalid):
                arrays.append(pa.repeat(scalar, 1).cast(kind))
        return pa.concat_arrays([pa.array([], kind), *arrays])
    if pa.types.is_uint64(kind) and all(pa.types.is_integer(scalar.type) for scalar in scalars):
        return pa.array([value for scalar in scalars if (value := scalar.as_py()) >= 0], kind)
    return pa.array([scalar.as_py() for scalar in scalars]) if scalars else pa.array([], kind)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    if type(value).__module__.partition(".")[0] == "pandas" and getattr(value, "tz", None) is None:
        # pyarrow would round to microseconds.
        value = getattr(value, "to_numpy", lambda: value)()
    if isinstance(value, int) and value > np.iinfo(np.int64).max:
        return pa.scalar(value, pa.uint64())
    if isinstance(value, np.datetime64 | np.timedelta64) and np.datetime_data(value)[0] not in (
        "s",
        "ms",
        "us",
        "ns",
    ):
        value = value.astype("M8[s]" if isinstance(value, np.datetime64) else "m8[s]")
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value)
    is_text = pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type)
    is_date = pa.types.is_date(scalar.type) and pa.types.is_timestamp(kind)
    return scalar.cast(kind) if is_date or (is_text and pa.types.is_temporal(kind)) else scalar
