"""The limit of the machine: what the Rust example `limit` is asked for."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from benches.data import PERIOD, names
from benches.rows import Row

PROGRAM = Path("target/release/examples/limit")
NAME = "limit"


def request(row: Row, folder: Path) -> str:
    """Describe the reads of a row as the program takes them."""
    store = folder / f"{row.data}.zarr"
    metadata = json.loads((store / "zarr.json").read_text())
    shape = metadata["shape"]
    boxes = [
        ([part.start for part in selection], [part.stop - part.start for part in selection])
        for selection in row.selections
    ] or [([0] * len(shape), shape)]
    return json.dumps(
        {
            "store": str(store.resolve()),
            "task": row.limit,
            "boxes": [
                {"start": start, "shape": shape, "bytes": result_bytes(metadata["data_type"], shape)}
                for start, shape in boxes
            ],
        }
    )


def result_bytes(data_type: Any, shape: list[int]) -> int:
    """Count the bytes of a result. An element of strings has an offset and, on average, the bytes of a name."""
    if data_type == "string":
        period = list(names(PERIOD))
        return int(math.prod(shape) * (8 + len("".join(period)) / PERIOD))
    return int(math.prod(shape) * np.dtype(data_type).itemsize)
