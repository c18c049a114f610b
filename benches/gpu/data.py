"""The arrays: one field of measurements, stored in each encoding, in a group for each."""

from pathlib import Path
from typing import Any

import numpy as np

import zarrow

MIB = 1 << 20

# Name of the array in its group: readers of tables open the group.
NAME = "elements"

CODECS: dict[str, list[dict[str, Any]]] = {
    "raw": [],
    "zstd": [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
    "lz4": [{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}],
    "blosc-lz4": [
        {
            "name": "blosc",
            "configuration": {
                "cname": "lz4",
                "clevel": 5,
                "shuffle": "shuffle",
                "typesize": 4,
                "blocksize": 0,
            },
        }
    ],
    "blosc-zstd": [
        {
            "name": "blosc",
            "configuration": {
                "cname": "zstd",
                "clevel": 3,
                "shuffle": "bitshuffle",
                "typesize": 4,
                "blocksize": 0,
            },
        }
    ],
    "gzip": [{"name": "gzip", "configuration": {"level": 1}}],
}

ROWS = (*CODECS, "sharded-zstd")


def write(folder: Path, row: str, mib: int) -> Path:
    """Write the array of a row, of `mib` MiB, unless it exists."""
    path = folder / f"{row}-{mib}.zarr" / NAME
    if path.exists():
        return path
    zarrow.create_group(path.parent, overwrite=True)
    # Rows of 1 MiB: smooth values with some noise, like measurements, which compress to about a half.
    rows, columns = mib, 1 << 18
    options: dict[str, Any] = {"compressors": CODECS[row.removeprefix("sharded-")]}
    if row.startswith("sharded-"):
        options |= {"chunks": (1, columns // 4), "shards": (min(rows, 16), columns)}
    else:
        options |= {"chunks": (1, columns)}
    array = zarrow.create_array(path, shape=(rows, columns), dtype="float32", overwrite=True, **options)
    random = np.random.default_rng(1)
    wave = np.sin(np.linspace(0, 50, columns, dtype="float32")) * 20 + 280
    for row_number in range(0, rows, 16):
        count = min(16, rows - row_number)
        noise = random.integers(-8, 8, (count, columns)).astype("float32") / 64
        array[row_number : row_number + count] = np.round(wave * 64) / 64 + noise
    return path
