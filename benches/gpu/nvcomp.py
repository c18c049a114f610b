"""nvCOMP alone: one batch decompresses frames that are already on the device.

This is the limit for every reader that decompresses there: nothing is read, copied, shuffled or placed.
Uncompressed streams of blosc need no decompression.

Source: the headers of nvCOMP 5.1 to 6.0.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zarrow
from benches.gpu.frames import frames
from zarrow.gpu import nvcomp_libraries

FORMATS = {"zstd": "Zstd", "lz4": "LZ4", "blosc-zstd": "Zstd", "blosc-lz4": "LZ4", "gzip": "Gzip"}
# Alignment of frames: more than any format requires.
ALIGNMENT = 16


class Options(ctypes.Structure):
    """`nvcompBatched...DecompressOpts_t`: 64 bytes, zero for the defaults."""

    _fields_ = (("words", ctypes.c_int * 16),)


class Batch:
    """Frames on the device, with the memory for their decompressed bytes."""

    def __init__(self, library: Any, path: Path, row: str) -> None:
        name = FORMATS.get(row.removeprefix("sharded-"))
        if name is None:
            raise ValueError(f"{row} is not compressed")
        found = frames(path, row)
        self.count, self.nbytes = len(found), sum(frame.nbytes for frame in found)
        largest = max(frame.nbytes for frame in found)
        content, starts = _side_by_side([frame.content for frame in found])
        sizes = np.array([frame.nbytes for frame in found], np.uint64)
        places = _places(sizes)
        self._stored = zarrow.gpu.asarray(content)
        self._decoded = zarrow.gpu.Tensor._empty((int(places[-1] + sizes[-1]),), "u1")
        self._tables = [
            zarrow.gpu.asarray(table)
            for table in (
                starts + np.uint64(_address(self._stored)),
                np.array([len(frame.content) for frame in found], np.uint64),
                sizes,
                places + np.uint64(_address(self._decoded)),
            )
        ]
        self._lengths = zarrow.gpu.asarray(np.zeros(self.count, np.uint64))
        self._statuses = zarrow.gpu.asarray(np.full(self.count, -1, np.int32))
        self._sizes = sizes
        self._decompress = getattr(library, f"nvcompBatched{name}DecompressAsync")
        nbytes = self._temporary_nbytes(library, name, largest)
        self._temporary = zarrow.gpu.Tensor._empty((max(nbytes, 1),), "u1")
        self._temporary_size = nbytes

    def _temporary_nbytes(self, library: Any, name: str, largest: int) -> int:
        size = ctypes.c_size_t()
        arguments = [
            ctypes.c_size_t(self.count),
            ctypes.c_size_t(largest),
            Options(),
            ctypes.byref(size),
            ctypes.c_size_t(self.nbytes),
        ]
        # Since version 6 the function has another name, and takes a stream.
        ask = getattr(library, f"nvcompBatched{name}DecompressGetTempSizeAsync", None)
        if ask is None:
            ask = getattr(library, f"nvcompBatched{name}DecompressGetTempSize")
            arguments.append(_stream(self._stored))
        _check(ask(*arguments))
        return size.value

    def decompress(self) -> None:
        """Decompress all frames, and wait."""
        stored, lengths, sizes, places = (ctypes.c_void_p(_address(table)) for table in self._tables)
        _check(
            self._decompress(
                stored,
                lengths,
                sizes,
                ctypes.c_void_p(_address(self._lengths)),
                ctypes.c_size_t(self.count),
                ctypes.c_void_p(_address(self._temporary)),
                ctypes.c_size_t(self._temporary_size),
                places,
                Options(),
                ctypes.c_void_p(_address(self._statuses)),
                _stream(self._stored),
            )
        )
        zarrow.gpu.synchronize("cuda:0")

    def check(self) -> None:
        """Raise if a frame of the batch failed."""
        statuses, lengths = self._statuses.cpu().numpy(), self._lengths.cpu().numpy()
        if statuses.any() or not np.array_equal(lengths, self._sizes):
            raise RuntimeError(f"nvCOMP failed for {np.count_nonzero(statuses)} of {self.count} frames")


def _places(sizes: Any) -> Any:
    """Return contiguous, aligned offsets."""
    ends = np.cumsum(-(-sizes.astype(np.int64) // ALIGNMENT) * ALIGNMENT)
    return np.concatenate([[0], ends[:-1]]).astype(np.uint64)


def _side_by_side(parts: list[bytes]) -> tuple[Any, Any]:
    """Copy parts into one buffer; return it with the offset of each part."""
    places = _places(np.array([len(part) for part in parts]))
    content = np.zeros(int(places[-1]) + len(parts[-1]), np.uint8)
    for part, place in zip(parts, places.tolist(), strict=True):
        content[place : place + len(part)] = np.frombuffer(part, np.uint8)
    return content, places


def _address(tensor: Any) -> int:
    return int(tensor.__cuda_array_interface__["data"][0])


def _stream(tensor: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.__cuda_array_interface__["stream"])


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"nvCOMP answered {status} (nvcompStatus_t)")


def decompressor() -> Callable[[Path], object]:
    """Decompress an array on the device; the first call for an array copies it there."""
    library = ctypes.CDLL(nvcomp_libraries.found_in_wheels()[0])
    batches: dict[Path, Batch] = {}

    def read(path: Path) -> object:
        is_first = path not in batches
        if is_first:
            batches.clear()
            batches[path] = Batch(library, path, path.parent.name.rpartition("-")[0])
        batches[path].decompress()
        if is_first:
            batches[path].check()
        return batches[path]

    return read
