"""The data of the sweep: small arrays, each of one type, codec, order and shape, written by zarr-python."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, GzipCodec, TransposeCodec, ZstdCodec

PREFIX = "sweep-"
CODECS: dict[str, Any] = {
    "raw": None,
    "zstd": ZstdCodec(level=3),
    "blosc": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
    "gzip": GzipCodec(level=5),
}
TYPES = ("bool", "uint8", "int16", "float32", "float64", "complex64", "datetime64[ms]")
CUBE = (200, 200, 200)
SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "line": ((8_000_000,), (65_536,)),
    "one-chunk": (CUBE, CUBE),
    "plane": ((4096, 2048), (256, 256)),
    "tall": ((2_000_000, 4), (50_000, 4)),
    "wide": ((4, 2_000_000), (1, 50_000)),
    "four-axes": ((20, 40, 100, 100), (5, 20, 50, 50)),
    "uneven": ((211, 197, 193), (64, 50, 33)),
    "small-chunks": ((1000, 2000), (10, 20)),
}


@dataclass(frozen=True)
class Set:
    """One array: its values and its encoding."""

    dtype: str = "float32"
    codec: str = "zstd"
    shape: tuple[int, ...] = CUBE
    chunks: tuple[int, ...] = (50, 50, 50)
    shards: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None

    def values(self) -> NDArray[Any]:
        """Make values that compress like measurements."""
        count = int(np.prod(self.shape))
        waves = np.sin(np.arange(count) / 50) * 100 + np.random.default_rng(3).normal(0, 0.5, count)
        if self.dtype == "string":
            return np.array([f"name-{value:.0f}" for value in waves], "T").reshape(self.shape)
        kind = np.dtype(self.dtype).kind
        if kind == "b":
            values: NDArray[Any] = waves > 0
        elif kind in "uiM":
            values = np.round(waves + 110).astype(np.int64)
        else:
            values = np.round(waves, 1)
        return values.astype(self.dtype).reshape(self.shape)


def _sets() -> dict[str, Set]:
    """Name every set."""
    sets = {f"{dtype}-{codec}": Set(dtype, codec) for dtype in TYPES for codec in CODECS}
    for codec in ("raw", "zstd", "blosc"):
        for name, (shape, chunks) in SHAPES.items():
            sets[f"{name}-{codec}"] = Set("float32", codec, shape, chunks)
    for codec in ("raw", "zstd"):
        sets[f"column-major-{codec}"] = Set("float32", codec, order=(2, 1, 0))
        sets[f"turned-{codec}"] = Set("int16", codec, order=(1, 2, 0))
        sets[f"sharded-{codec}"] = Set("float32", codec, chunks=(25, 25, 25), shards=(100, 100, 100))
    sets["strings-zstd"] = Set("string", "zstd", (500_000,), (10_000,))
    return {PREFIX + name: each for name, each in sets.items()}


SETS = _sets()


def is_set(name: str) -> bool:
    """Return whether a set of data belongs to the sweep."""
    return name in SETS


def writer(name: str) -> Callable[[Path], None]:
    """Return a function that writes a set."""
    described = SETS[name]

    def write(path: Path) -> None:
        values = described.values()
        filters = [] if described.order is None else [TransposeCodec(order=described.order)]
        array = zarr.create_array(
            path,
            shape=described.shape,
            dtype="string" if described.dtype == "string" else values.dtype,
            chunks=described.chunks,
            shards=described.shards,
            filters=filters,
            compressors=CODECS[described.codec],
        )
        array[...] = values

    return write
