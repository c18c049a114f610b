"""Reports the rows of a table for `progress=`, batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from zarrow._zarrow import ArrowStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zarrow.api.progress import Progress
    from zarrow.tables.filtered_rows import FilteredRows


def batches(rows: ArrowStream | FilteredRows, report: Progress | None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream; each is reported when the caller asks for the next one."""
    if report is None:
        yield from rows
        return
    done, count = 0, rows.num_rows
    report(done, count)
    for batch in rows:
        yield batch
        done += batch.num_rows
        report(done, max(done, count))


def read(rows: ArrowStream | FilteredRows, report: Progress | None) -> pa.Table:
    """Read all rows."""
    schema: Any = rows
    return pa.Table.from_batches(batches(rows, report), pa.schema(schema))
