"""Samples in memory, of every form that a batch has: arrays, masked arrays and sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
