"""Writes a table to a Parquet file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from zarrow.api.progress import reporting

if TYPE_CHECKING:
    from zarrow.api.progress import Progress
    from zarrow.tables.table import Table


def write(
    table: Table,
    path: str | os.PathLike[str],
    options: Mapping[str, Any],
    progress: Progress | bool | None = None,
) -> None:
    """Write a table beside the file, a row group for each batch, and then replace the file."""
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    reader = pa.RecordBatchReader.from_stream(table)
    try:
        with (
            reporting(progress, "to_parquet", "{} rows".format) as report,
            pyarrow.parquet.ParquetWriter(temporary, reader.schema, **options) as writer,
        ):
            done = 0
            for batch in reader:
                writer.write_batch(batch)
                done += batch.num_rows
                if report is not None:
                    report(done, table.num_rows)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
