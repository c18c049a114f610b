"""A buffer class of zarr-python: large results are in memory that the engine recycles.

1. The kernel clears fresh memory page by page when it is first touched, which takes longer than the read of
   uncompressed elements. The engine keeps the memory of large arrays that were freed, for the next ones: see
   `zarrow.set_memory_cache`.
2. An array is a `numpy.ndarray` over this memory. The memory is kept until the array and all its views are
   gone.
3. Everything else is NumPy's own: arrays smaller than a huge page, elements that are Python objects, and
   buffers that begin with zeros.
4. zarr-python reads the indices of nested shards into its own class, and checks that this class equals the
   one of the settings. So the classes are equal: both hold arrays of NumPy.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal, Self

import numpy as np
from zarr.core.buffer.cpu import NDBuffer as HostNDBuffer
from zarr.registry import register_ndbuffer

from zarrow._zarrow import _RecycledMemory

_LEAST_NBYTES = 2 << 20


_BaseType: Any = type(HostNDBuffer)


class _EqualToBase(_BaseType):  # type: ignore[misc]
    """A class that equals zarr-python's own (step 4)."""

    def __eq__(self, other: object) -> bool:
        return other is HostNDBuffer or other is self

    def __hash__(self) -> int:
        return hash(HostNDBuffer)


class NDBuffer(HostNDBuffer, metaclass=_EqualToBase):
    """Elements for zarr-python, on the CPU, in memory that the engine recycles."""

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"] = "C") -> Self:
        """Make a buffer with uninitialized elements."""
        dtype = np.dtype(dtype)
        nbytes = prod(shape) * dtype.itemsize
        if nbytes < _LEAST_NBYTES or dtype.hasobject or dtype.kind == "T":
            return super().empty(shape, dtype, order)
        memory: Any = _RecycledMemory(nbytes)
        data: Any = np.ndarray(shape, dtype, memory, order=order)
        # Like its base class: the constructor may drop the factor of a time unit.
        return cls(data.view(dtype) if dtype.kind in "mM" else data)


# zarr-python finds a buffer by the name of its class.
NDBuffer.__module__ = "zarrow.zarr_python"
register_ndbuffer(NDBuffer)
