"""The sets of samples, written once by zarr-python."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr

BATCH = 32
WINDOW_NBYTES = 16 << 20  # of rows that are shuffled together, and of tensorstore's cache


@dataclass(frozen=True)
class SampleSet:
    """An array of float32, and its samples: rows, or random crops of a shape."""

    title: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    samples: int
    crop: tuple[int, int, int] | None = None
    window_nbytes: int = WINDOW_NBYTES


SETS = {
    "rows-16": SampleSet("16 samples a chunk", (1024, 128, 128), (16, 128, 128), 1024),
    "rows-1": SampleSet("1 sample a chunk", (1024, 128, 128), (1, 128, 128), 1024),
    # With zarrow's default window. tensorstore reads three batches of 14 MiB at a time beside its cache.
    "crops": SampleSet("random crops of 48³", (256, 256, 256), (64, 64, 64), 256, (48, 48, 48), 64 << 20),
}


def write(folder: Path, name: str) -> None:
    """Write the group of a set, unless it exists. Each row begins with its number."""
    path, chosen = folder / f"{name}.zarr", SETS[name]
    if path.exists():
        return
    part = folder / f"{name}.part"
    values = np.random.default_rng(5).integers(0, 1000, chosen.shape).astype("float32")
    if chosen.crop is None:
        values[:, 0, 0] = np.arange(chosen.samples)
    zarr.open_group(part, mode="w").create_array(
        "x", data=values, chunks=chosen.chunks, dimension_names=["time", "row", "column"]
    )
    zarr.consolidate_metadata(part)
    part.rename(path)
