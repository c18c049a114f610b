"""Scans a table by polars, as a source of `polars.io.plugins.register_io_source`.

The filter is evaluated by polars, on each batch that may match. polars limits the rows before the filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from zarrow.tables.polars_condition import condition_of
from zarrow.tables.scanning import Filter, Scan

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from zarrow.tables.table import Table


def scan(table: Table, sorted_by: str | None) -> pl.LazyFrame:
    """Return a LazyFrame of a table: `Table.scan_polars`."""
    source = Scan(table, sorted_by)
    names = table.column_names

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del batch_size  # Batches are whole chunks.
        wanted = names if columns is None else columns
        rows_filter = None if predicate is None else _filter(predicate, names)
        for batch in source.batches(wanted or names[:1], rows_filter, n_rows):
            yield _frame(batch).select(wanted) if wanted else pl.DataFrame(height=batch.num_rows)

    schema = _frame(pa.table(table[:0].to_arrow())).schema
    return register_io_source(batches, schema=schema, explain_name="zarrow")


def _filter(predicate: pl.Expr, names: list[str]) -> Filter:
    used = set(predicate.meta.root_names())
    number = "row"
    while number in names:
        number += "_"

    def match(batch: pa.Table) -> npt.NDArray[np.int64]:
        matching = _frame(batch).with_row_index(number).filter(predicate)
        return matching[number].to_numpy().astype("i8")

    return Filter([name for name in names if name in used], match, condition_of(predicate))


def _frame(batch: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(batch)
