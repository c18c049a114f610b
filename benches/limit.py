"""The limit of the machine: arguments for the Rust example `limit`."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benches.row import Row
from benches.scale import string_bytes

PROGRAM = Path("target/release/examples/limit")
NAME = "limit"


def request(row: Row, folder: Path, scratch: Path) -> str:
    """Describe the reads, or the write, of a row for the program."""
    store = folder / f"{row.data}.zarr"
    metadata = json.loads((store / "zarr.json").read_text())
    shape = metadata["shape"]
    boxes = [
        ([part.start for part in selection], [part.stop - part.start for part in selection])
        for selection in row.selections
    ] or [([0] * len(shape), shape)]
    data_type = metadata["data_type"]
    reads = [
        {"start": start, "shape": shape, "bytes": result_bytes(data_type, shape)} for start, shape in boxes
    ]
    written = str(scratch / "limit")
    return json.dumps(
        {
            "store": str(store.resolve()),
            "task": row.limit,
            "boxes": reads,
            "folder": written,
            "kept": row.kept,
        }
    )


def result_bytes(data_type: Any, shape: list[int]) -> int:
    """Count the bytes of a result."""
    count = math.prod(shape)
    return string_bytes(count) if data_type == "string" else int(count * np.dtype(data_type).itemsize)
