"""Samples in memory, of every form that a batch has: arrays, masked arrays and sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import _import


def joined(parts: Sequence[Any]) -> Any:
    """Return the samples of several parts in one; a single part itself."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ma.MaskedArray):
        return np.ma.concatenate(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return _import("scipy.sparse").vstack(parts, format="csr")


class Behind:
    """New samples after the rest of an earlier read. Only a batch of both is copied."""

    def __init__(self, rest: Any, found: Any) -> None:
        self._rest, self._found = rest, found

    def part(self, start: int, stop: int | None) -> Any:
        """Return some of the samples."""
        before = self._rest.shape[0]
        stop = before + self._found.shape[0] if stop is None else stop
        if start >= before:
            return part_of(self._found, slice(start - before, stop - before))
        parts = [part_of(self._rest, slice(start, min(stop, before)))]
        if stop > before:
            parts.append(part_of(self._found, slice(0, stop - before)))
        return joined(parts)


def part_of(samples: Any, index: slice | npt.NDArray[np.bool_]) -> Any:
    """Return some of the samples: a view of a slice, also of sparse rows, which SciPy would copy."""
    if isinstance(samples, Behind) and isinstance(index, slice):
        return samples.part(index.start or 0, index.stop)
    if isinstance(samples, np.ndarray) or not isinstance(index, slice):
        return samples[index]
    start, stop, _ = index.indices(samples.shape[0])
    pointers = samples.indptr[start : stop + 1]
    elements = slice(pointers[0], pointers[-1])
    view = type(samples)((stop - start, samples.shape[1]), dtype=samples.dtype)
    view.data, view.indices = samples.data[elements], samples.indices[elements]
    view.indptr = pointers - pointers[0]
    return view


def nbytes_of(samples: Any) -> int:
    """Return the bytes of samples, with their masks, and with the text that is stored elsewhere."""
    if isinstance(samples, np.ma.MaskedArray):
        return samples.nbytes + np.ma.getmaskarray(samples).nbytes
    if not isinstance(samples, np.ndarray):
        return int(samples.data.nbytes + samples.indices.nbytes + samples.indptr.nbytes)
    if samples.dtype.kind == "T":
        return samples.nbytes + int(np.strings.str_len(samples).sum())
    if samples.dtype.kind == "O":
        return samples.nbytes + sum(len(item) for item in samples.flat if item is not None)
    return samples.nbytes
