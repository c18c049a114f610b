"""The same arrays in single-file formats: the alternatives to Zarr, each written by its own library.

HDF5 has no built-in zstd: it compresses the zstd sets with gzip.
"""

from pathlib import Path
from typing import Any

import blosc2
import h5py
import numpy as np
from numpy.typing import NDArray

# The formats of each set, with their compression.
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
    """Write an array to `stem` in each format that has the named set."""
    name = stem.name
    if name in NPY:
        np.save(stem.with_suffix(".npy"), data)
    if name in HDF5:
        write_hdf5(stem.with_suffix(".h5"), data, chunks, name)
    if name in BLOSC2:
        write_blosc2(stem.with_suffix(".b2nd"), data, chunks, name)


def write_hdf5(path: Path, data: NDArray[Any], chunks: tuple[int, ...], name: str) -> None:
    """Write an array, compressed as the named set is in HDF5."""
    with h5py.File(path, "w") as file:
        file.create_dataset("data", data=data, chunks=chunks, **HDF5[name])


def write_blosc2(path: Path, data: NDArray[Any], chunks: tuple[int, ...], name: str) -> None:
    """Write an array, compressed as the named set is in blosc2."""
    blosc2.asarray(data, urlpath=str(path), mode="w", **{"chunks": chunks, **BLOSC2[name]})


def write_strings(stem: Path, data: NDArray[Any]) -> None:
    """Write variable-length strings; only HDF5 among these formats supports them."""
    with h5py.File(stem.with_suffix(".h5"), "w") as file:
        file.create_dataset("data", data=data, dtype=h5py.string_dtype())
