"""Reads the rows of a table that match a filter, a batch at a time.

1. If the filter is of a sorted column, `sorted_rows` finds the ranges of rows that may match.
2. Of a batch, the columns of the filter are read first. The others are read from the first to the last row
   that matches; if none does, they are not read.
3. Batches begin at multiples of the chunks of all columns that the query needs, so that no chunk is decoded
   twice. Without a filter, batches share memory with the elements read; matching rows are copied, unless
   they follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zarrow._zarrow import Array
from zarrow.tables import sorted_rows

if TYPE_CHECKING:
    from zarrow.tables.table import Table

Match = Callable[[pa.Table], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Filter:
    """The filter of a query: its columns, the rows of a batch that match, and a condition for a search."""

    columns: Sequence[str]
    # Returns the numbers of matching rows, ascending.
    match: Match
    # A condition that all matching rows fulfil; None if unknown.
    condition: pc.Expression | None


@dataclass(frozen=True)
class Scan:
    """The rows of a table, to be read by queries."""

    table: Table
    sorted_by: str | None
    # Options of `Table.to_arrow`.
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.sorted_by
        if name is None:
            return
        if name not in self.table.column_names:
            raise ValueError(f"sorted_by={name!r} is not a column: the table has {self.table.column_names}")
        column = self.table.group[name]
        if not isinstance(column, Array) or len(column.shape) != 1:
            raise ValueError(f"sorted_by={name!r} is not an array with one axis")
        kind = self.schema.field(name).type
        if not sorted_rows.has_order(kind):
            raise ValueError(f"sorted_by={name!r} has type {kind}: expected numbers, times or text")

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of all columns."""
        schema: pa.Schema = pa.schema(self.table.to_arrow(**self.options))
        return schema

    def batches(
        self, columns: Sequence[str], rows_filter: Filter | None = None, n_rows: int | None = None
    ) -> Iterator[pa.Table]:
        """Yield the matching rows of these columns, which are at least one.

        Parameters
        ----------
        columns
            Names, in the order of the result.
        rows_filter
            Which rows; by default all.
        n_rows
            Only the first rows of the table, before the filter.
        """
        stop = self.table.stop if n_rows is None else min(self.table.stop, self.table.start + n_rows)
        rows = range(self.table.start, stop)
        if rows_filter is None:
            yield from (pa.Table.from_batches([batch]) for batch in self._read(columns, rows, None))
            return
        tested = [name for name in rows_filter.columns if name not in columns]
        batch_rows = self.table.group.to_arrow([*columns, *tested], **self.options).batch_rows
        # The filter may have no columns, for example a constant.
        for at, batch, found in self._tested(rows, rows_filter, columns, batch_rows):
            if found.size:
                yield self._matching(columns, batch, found, at, batch_rows)

    def numbers(self, rows_filter: Filter, rows: range | None = None) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the numbers of the matching rows in the group; by default of all rows of the table."""
        rows = range(self.table.start, self.table.stop) if rows is None else rows
        for at, _, found in self._tested(rows, rows_filter, self.schema.names[:1], None):
            yield found + at

    def _tested(
        self, rows: range, rows_filter: Filter, others: Sequence[str], batch_rows: int | None
    ) -> Iterator[tuple[int, pa.Table, npt.NDArray[np.int64]]]:
        """Yield batches of the filter's columns, each with its first row and its matching rows."""
        for part in self.narrowed(rows, rows_filter):
            at = part.start
            for batch in self._read(list(rows_filter.columns) or others, part, batch_rows):
                tested = pa.Table.from_batches([batch])
                if self.sorted_by in tested.column_names:
                    self._check_order(tested[self.sorted_by])
                yield at, tested, rows_filter.match(tested)
                at += batch.num_rows

    def _matching(
        self,
        columns: Sequence[str],
        tested: pa.Table,
        found: npt.NDArray[np.int64],
        at: int,
        batch_rows: int,
    ) -> pa.Table:
        """Return the matching rows of a batch that begins at a row (step 2)."""
        first, count = int(found[0]), int(found[-1] - found[0]) + 1
        parts = {name: tested[name].slice(first, count) for name in tested.column_names}
        others = [name for name in columns if name not in parts]
        if others:
            read = list(self._read(others, range(at + first, at + first + count), batch_rows))
            parts |= dict(zip(others, pa.Table.from_batches(read).columns, strict=True))
        schema = pa.schema([self.schema.field(name) for name in columns], self.schema.metadata)
        result = pa.table([parts[name] for name in columns], schema=schema)
        return result if found.size == count else result.take(pa.array(found - first))

    def _read(self, columns: Sequence[str], rows: range, batch_rows: int | None) -> Iterator[pa.RecordBatch]:
        options = self.options if batch_rows is None else {**self.options, "batch_rows": batch_rows}
        stream = self.table.group.to_arrow(list(columns), rows=slice(rows.start, rows.stop), **options)
        return iter(pa.RecordBatchReader.from_stream(stream))

    def narrowed(self, rows: range, rows_filter: Filter) -> list[range]:
        """Return the ranges of rows that may match (step 1)."""
        name, condition = self.sorted_by, rows_filter.condition
        if name is None or condition is None or name not in rows_filter.columns:
            return [rows]
        group = self.table.group
        return sorted_rows.narrowed(
            group[name], rows, name, self.schema, condition, is_remote=group._is_remote()
        )

    def _check_order(self, elements: pa.ChunkedArray) -> None:
        """Refuse elements that are not in order."""
        present = sorted_rows.without_nan(elements).drop_null()
        before, after = present[:-1], present[1:]
        in_order = (pc.less_equal(before, after), pc.greater_equal(before, after))
        if not any(pc.all(each, min_count=0).as_py() for each in in_order):
            raise sorted_rows.not_sorted(str(self.sorted_by))


def filter_of(condition: pc.Expression, names: Sequence[str]) -> Filter:
    """Return the filter of a condition for a table with columns of these names."""
    number = "row"
    while number in names:
        number += "_"

    def match(batch: pa.Table) -> npt.NDArray[np.int64]:
        numbered = batch.append_column(number, pa.array(np.arange(batch.num_rows)))
        # pyarrow does not promise the order of rows.
        found: npt.NDArray[np.int64] = np.sort(numbered.filter(condition)[number].to_numpy())
        return found

    return Filter(condition_columns(condition, names), match, condition)


def condition_columns(condition: pc.Expression, names: Iterable[str]) -> list[str]:
    """Return names of columns that a condition may use: all that occur in its text.

    A column that is named by its place, as `pyarrow.compute.field(0)`, needs all columns before it.
    """
    text = str(condition)
    if "FieldPath(" in text:
        return list(names)
    return [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
