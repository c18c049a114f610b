"""The same arrays in formats of one file: what else a user would pick, each written by its own library.

HDF5 brings no zstd: where the others compress with it, HDF5 has gzip.
"""

from pathlib import Path
from typing import Any

import blosc2
import h5py
import numpy as np
from numpy.typing import NDArray

# Which formats hold which set, and how they compress it.
NPY = {"raw", "rows", "sharded", "small", "table"}
HDF5: dict[str, dict[str, Any]] = {
    "raw": {},
    "rows": {},
    "small": {},
    "gzip": {"compression": "gzip", "compression_opts": 5},
    "sharded": {"compression": "gzip", "compression_opts": 5},
    "table": {"compression": "gzip", "compression_opts": 5},
}
ZSTD = {"codec": blosc2.Codec.ZSTD, "clevel": 3, "filters": [blosc2.Filter.NOFILTER]}
LZ4 = {"codec": blosc2.Codec.LZ4, "clevel": 5, "filters": [blosc2.Filter.SHUFFLE]}
BLOSC2: dict[str, dict[str, Any]] = {
    "raw": {"cparams": {"clevel": 0}},
    "rows": {"cparams": {"clevel": 0}},
    "small": {"cparams": {"clevel": 0}},
    "zstd": {"cparams": ZSTD},
    "blosc": {"cparams": LZ4},
    "sharded": {"cparams": ZSTD, "chunks": (256,) * 3, "blocks": (32,) * 3},
    "table": {"cparams": ZSTD},
}


def write(stem: Path, data: NDArray[Any], chunks: tuple[int, ...]) -> None:
    """Write an array to `stem` with the suffix of each format that holds the set of that name."""
    name = stem.name
    if name in NPY:
        np.save(stem.with_suffix(".npy"), data)
    if name in HDF5:
        write_hdf5(stem.with_suffix(".h5"), data, chunks, name)
    if name in BLOSC2:
        write_blosc2(stem.with_suffix(".b2nd"), data, chunks, name)


def write_hdf5(path: Path, data: NDArray[Any], chunks: tuple[int, ...], name: str) -> None:
    """Write an array as the set of that name is compressed in HDF5."""
    with h5py.File(path, "w") as file:
        file.create_dataset("data", data=data, chunks=chunks, **HDF5[name])


def write_blosc2(path: Path, data: NDArray[Any], chunks: tuple[int, ...], name: str) -> None:
    """Write an array as the set of that name is compressed by blosc2."""
    blosc2.asarray(data, urlpath=str(path), mode="w", **{"chunks": chunks, **BLOSC2[name]})


def write_strings(stem: Path, data: NDArray[Any]) -> None:
    """Write strings of any length, which HDF5 alone of these formats has."""
    with h5py.File(stem.with_suffix(".h5"), "w") as file:
        file.create_dataset("data", data=data, dtype=h5py.string_dtype())
