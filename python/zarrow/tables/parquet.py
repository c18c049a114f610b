"""Writes a table to a Parquet file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

if TYPE_CHECKING:
    from zarrow.tables.table import Table


def write(table: Table, path: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
    """Write a table beside the file, a row group for each batch, and then replace the file."""
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    reader = pa.RecordBatchReader.from_stream(table)
    try:
        with pyarrow.parquet.ParquetWriter(temporary, reader.schema, **options) as writer:
            for batch in reader:
                writer.write_batch(batch)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
