"""Memory of batches, used again as soon as no array shares it.

An array over such memory has a lease as its base. NumPy, PyTorch and JAX keep the base alive as long as any
view or tensor exists, so the lease ends after all of them. No lock is taken: a lease may end in any thread,
and in a forked child.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import _RecycledMemory

Memory: TypeAlias = npt.NDArray[np.uint8]


class _Lease:
    """Lends memory to one array and its views, and returns it to the ring."""

    __slots__ = ("__array_interface__", "_memory", "_ring")

    def __init__(self, memory: Memory, ring: Ring) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory, self._ring = memory, ring

    def __del__(self) -> None:
        self._ring._take_back(self._memory)


class Ring:
    """Pieces of memory of one size.

    Parameters
    ----------
    nbytes
        The size of a piece.
    kept
        How many unused pieces are kept.
    allocate
        Returns new memory of a size: pinned memory, for example.
    """

    def __init__(self, nbytes: int, kept: int, allocate: Callable[[int], Any] | None = None) -> None:
        self._nbytes = nbytes
        self._free: deque[Memory] = deque(maxlen=kept)
        self._closed = False
        self._allocate = allocate or _recycled

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return an array of uninitialized elements, which are at most one piece of memory."""
        nbytes = math.prod(shape) * dtype.itemsize
        if not nbytes:
            return np.empty(shape, dtype)
        # A first batch alone, or the end of an epoch: a piece would be another one that the kernel provides.
        if self._allocate is _recycled and 2 * nbytes < self._nbytes:
            return _recycled(nbytes).view(dtype).reshape(shape)
        try:
            memory = self._free.popleft()
        except IndexError:
            memory = _checked(np.asarray(self._allocate(self._nbytes)), self._nbytes)
        array = np.asarray(_Lease(memory, self))
        return array[:nbytes].view(dtype).reshape(shape)

    def close(self) -> None:
        """Free the unused pieces, and each other piece as soon as no array shares it."""
        self._closed = True
        self._free.clear()

    def _take_back(self, memory: Memory) -> None:
        self._free.append(memory)
        if self._closed:
            self._free.clear()


def _checked(given: npt.NDArray[Any], nbytes: int) -> Memory:
    """Return the bytes of memory that `allocate` gave.

    Raises
    ------
    ValueError
        It is read-only, too small, or no memory.
    """
    # NumPy copies `bytes` into an array without axes.
    if given.dtype.hasobject or given.ndim == 0 or given.nbytes < nbytes or not given.flags.writeable:
        raise ValueError(
            f"allocate({nbytes}) must return as many writable bytes, found {given.dtype} {given.shape}"
            f"{'' if given.flags.writeable else ', read-only'}"
        )
    return given.view(np.uint8).reshape(-1)


def _recycled(nbytes: int) -> Memory:
    """Return memory that an earlier read or epoch has freed, or new memory."""
    memory: Any = _RecycledMemory(nbytes)
    return np.frombuffer(memory, np.uint8)
