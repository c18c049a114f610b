"""The data: each set is written once by zarr-python, and by the other formats' own libraries.

A set is identified by its name and the suffix of its format: `raw.zarr`, `raw.npy`, `raw.h5`, `raw.b2nd`. A
format takes part in a row if it has the row's set.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from benches import programs, single_files, sweep
from benches.scale import COLUMNS, COUNTED_CHUNK, PERIOD, SMALL_CHUNK, SMALL_READS, Scale


def write(scale: Scale, folder: Path, names: set[str]) -> None:
    """Write the missing sets, and flush them to disk, so that they can be dropped from the page cache."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in sorted(names) if not (folder / name).with_suffix(".done").exists()]
    for name in missing:
        print(f"writing {name}", flush=True)
        for old in folder.glob(f"{name}.*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        writer(scale, name)(folder / f"{name}.zarr")
        (folder / name).with_suffix(".done").touch()
    if missing:
        os.sync()


def writer(scale: Scale, name: str) -> Callable[[Path], None]:
    """Return a function that writes the named set."""
    if sweep.is_set(name):
        return sweep.writer(name)
    if programs.is_set(name):
        return programs.writer(name)
    kind, _, number = name.partition("-")
    if kind == "size":
        return lambda path: write_size(path, scale.side, int(number))
    if kind == "count":
        return lambda path: write_count(path, int(number))
    if kind in ("small", "table", "strings"):
        return {"small": write_small, "table": write_table, "strings": write_strings}[kind](scale)
    return lambda path: write_cube(path, name, cube(scale.side))


@cache
def cube(side: int) -> NDArray[np.float32]:
    """Make waves with some noise, rounded to three digits like measurements."""
    x = np.linspace(0, 20, side, dtype=np.float32)
    waves = np.sin(x)[:, None, None] * np.cos(x)[None, :, None] + x[None, None, :] * np.float32(0.1)
    waves += np.random.default_rng(0).normal(0, 1e-3, waves.shape).astype(np.float32)
    rounded: NDArray[np.float32] = np.round(waves, 3).astype(np.float32)
    return rounded


CUBES: dict[str, dict[str, Any]] = {
    "raw": {"chunks": (64,) * 3, "compressors": None},
    "zstd": {"chunks": (64,) * 3, "compressors": ZstdCodec(level=3)},
    "blosc": {"chunks": (64,) * 3, "compressors": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")},
    "gzip": {"chunks": (64,) * 3, "compressors": GzipCodec(level=5)},
    "sharded": {"chunks": (32,) * 3, "shards": (256,) * 3, "compressors": ZstdCodec(level=3)},
}


def write_cube(path: Path, name: str, data: NDArray[np.float32]) -> None:
    """Write the main array in one of its encodings."""
    rows: dict[str, Any] = {"chunks": (16, *data.shape[1:]), "compressors": None}
    options = rows if name == "rows" else CUBES[name]
    create(path, data.shape, data.dtype, **options)[...] = data
    single_files.write(path.with_suffix(""), data, options["chunks"])


def write_size(path: Path, side: int, size: int) -> None:
    """Write a cube with edges of `size` elements, from the main array's start or its repetitions."""
    array = create(path, (size,) * 3, np.dtype(np.float32), **CUBES["zstd"])
    block = cube(side)[: min(side, size), : min(side, size), : min(side, size)]
    for corner in np.ndindex(*(size // len(block),) * 3):
        array[tuple(slice(at * len(block), (at + 1) * len(block)) for at in corner)] = block


def write_count(path: Path, count: int) -> None:
    """Write a square of small raw chunks: the metadata by zarr-python, the chunk files directly."""
    side = round(count**0.5)
    create(
        path,
        (side * COUNTED_CHUNK,) * 2,
        np.dtype(np.float32),
        chunks=(COUNTED_CHUNK,) * 2,
        compressors=None,
    )
    values = np.arange(COUNTED_CHUNK**2, dtype="<f4")
    for row in range(side):
        folder = path / "c" / str(row)
        folder.mkdir(parents=True)
        for column in range(side):
            (folder / str(column)).write_bytes((values + row * side + column).astype("<f4").tobytes())


def write_small(scale: Scale) -> Callable[[Path], None]:
    """Write many chunks of 16 KiB along one axis."""

    def write(path: Path) -> None:
        data = np.arange(SMALL_READS * SMALL_CHUNK, dtype=np.float32)
        create(path, data.shape, data.dtype, chunks=(SMALL_CHUNK,), compressors=None)[...] = data
        single_files.write(path.with_suffix(""), data, (SMALL_CHUNK,))

    return write


def write_table(scale: Scale) -> Callable[[Path], None]:
    """Write a table of random numbers in shards."""

    def write(path: Path) -> None:
        data = np.random.default_rng(1).normal(size=(scale.table_rows, COLUMNS)).astype(np.float32)
        chunks, shards = (1_000, COLUMNS), (scale.table_rows // 10, COLUMNS)
        compressor = ZstdCodec(level=3)
        create(path, data.shape, data.dtype, chunks=chunks, shards=shards, compressors=compressor)[...] = data
        single_files.write(path.with_suffix(""), data, chunks)

    return write


def write_strings(scale: Scale) -> Callable[[Path], None]:
    """Write short strings of variable length."""

    def write(path: Path) -> None:
        data = np.array(list(names(scale.strings)), dtype=np.dtypes.StringDType())
        with warnings.catch_warnings(action="ignore"):  # zarr-python's string type is not in the standard
            options = {"chunks": (scale.strings // 100,), "compressors": ZstdCodec(level=3)}
            create(path, data.shape, "string", **options)[...] = data
        single_files.write_strings(path.with_suffix(""), data)

    return write


def names(count: int) -> Iterator[str]:
    """Yield short strings of different lengths, which repeat after a period."""
    return (f"name-{number * 7919 % PERIOD}" for number in range(count))


def create(path: Path, shape: tuple[int, ...], dtype: Any, **options: Any) -> Any:
    """Create an array with zarr-python."""
    return zarr.create_array(path, shape=shape, dtype=dtype, **options)
