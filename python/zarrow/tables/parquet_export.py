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
from zarrow.tables.reported_rows import batches

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
    rows = table.to_arrow()
    try:
        with (
            reporting(progress, "to_parquet", "{} rows".format) as report,
            pyarrow.parquet.ParquetWriter(temporary, pa.schema(rows), **options) as writer,
        ):
            for batch in batches(rows, report):
                writer.write_batch(batch)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
