"""A lazy array of a dataset, which xarray's indexing classes wrap.

1. A read returns a NumPy view of the result's memory, without a copy.
2. It pickles by the store and the path, and opens the array at its first read in the other process.
3. The first reads of coordinates are one batch: see `zarrow.xarray.first_reads`.
4. Under `zarrow.xarray.load`, a read waits in a plan until the plan knows all reads: see `planned`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from xarray.backends.common import BackendArray
from xarray.core import indexing

from zarrow._zarrow import Array, MaskedTensor, MaskedVariable, Tensor, Variable
from zarrow.errors import UnsupportedError

if TYPE_CHECKING:
    from zarrow import DecodedArray, Indexer
    from zarrow.xarray.first_reads import FirstReads

# Whether asynchronous reads are requests to a plan (step 4).
planned: ContextVar[bool] = ContextVar("planned", default=False)


class Request:
    """An asynchronous read; the driver of the coroutine sends the answer."""

    __slots__ = ("item", "whole")

    def __init__(self, indexer: Array | Indexer, parts: tuple[Any, ...]) -> None:
        # An item of `zarrow.read_many`.
        self.item = (indexer, parts)
        # The array, if the read covers it.
        self.whole = indexer if isinstance(indexer, Array) and _is_whole(parts, indexer.shape) else None

    def fits(self, target: np.ndarray[Any, Any]) -> bool:
        """Whether the elements can be read into an array of the same shape."""
        indexer = self.item[0]
        return isinstance(indexer, Array) and indexer.dtype == target.dtype and target.dtype.kind in "biufc"

    def __await__(self) -> Generator[Request, Any, Any]:
        answer = yield self
        return answer


class ZarrowArray(BackendArray):
    """A `zarrow.Array` as a lazy array of xarray."""

    __slots__ = ("_array", "_first_reads", "_reopen", "dtype", "shape")

    def __init__(self, array: Array, dtype: np.dtype[Any]) -> None:
        self._array: Array | None = array
        self._reopen: tuple[Any, ...] = ()
        self._first_reads: FirstReads | None = None
        self.dtype = dtype
        self.shape = array.shape

    def __reduce__(self) -> tuple[Any, ...]:
        """Step 2."""
        reopen = self._reopen if self._array is None else self._array.__reduce__()[:2]
        return _restore, (reopen, self.dtype, self.shape)

    def __deepcopy__(self, memo: Any) -> ZarrowArray:
        """Return the array itself: it holds no elements, and does not change."""
        return self

    def join(self, first_reads: FirstReads, *, is_index: bool) -> None:
        """Let the first read be part of a batch, unless the array is too large (step 3)."""
        if first_reads.add(self, is_index=is_index):
            self._first_reads = first_reads

    @property
    def node(self) -> Array:
        """The array in the store."""
        if self._array is None:
            function, arguments = self._reopen
            self._array = function(*arguments)
        assert self._array is not None
        return self._array

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        first_reads = self._first_reads
        if first_reads is not None:
            whole = first_reads.values(self)
            if whole is not None:
                return self._from_memory(whole, key)
        # zarrow takes any step, so that xarray's `explicit_indexing_adapter` has nothing to do.
        return self._elements(self._indexer(key).read(key.tuple), key)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Read a selection; asynchronous reads overlap."""
        first_reads = self._first_reads
        if first_reads is not None:
            whole = first_reads.values(self, only_read=True)
            if whole is not None:
                return self._from_memory(whole, key)
        indexer = self._indexer(key)
        if planned.get():
            decoded = await Request(indexer, key.tuple)
        elif isinstance(indexer, Array):
            decoded = await indexer.read_async(key.tuple)
        else:
            decoded = await asyncio.to_thread(indexer.read, key.tuple)
        return self._elements(decoded, key)

    def _from_memory(self, whole: np.ndarray[Any, Any], key: indexing.ExplicitIndexer) -> Any:
        """Index the elements of the first read, which are kept until they were requested completely."""
        if _is_whole(key.tuple, self.shape):
            if self._first_reads is not None:
                self._first_reads.forget(self)
                self._first_reads = None
            return whole
        adapter: Any = indexing.NumpyIndexingAdapter
        selected = indexing.apply_indexer(adapter(whole), key)
        return np.array(selected)

    def _indexer(self, key: indexing.ExplicitIndexer) -> Array | Indexer:
        """Return what reads a key."""
        if all(isinstance(part, slice | int | np.integer) for part in key.tuple):
            return self.node
        return self.node.vindex if isinstance(key, indexing.VectorizedIndexer) else self.node.oindex

    def _elements(self, decoded: DecodedArray, key: indexing.ExplicitIndexer) -> np.ndarray[Any, Any]:
        """Return the elements as xarray expects them: of points, sliced axes come last."""
        values, parts = self.view(decoded), key.tuple
        points = [axis for axis, part in enumerate(parts) if not isinstance(part, slice)]
        count = len(parts) - len(points)
        if isinstance(key, indexing.VectorizedIndexer) and points and count:
            first, ndim = points[0], values.ndim - count
            # Otherwise they already come first.
            if points == list(range(first, first + len(points))):
                return np.moveaxis(values, range(first, first + ndim), range(ndim))
        return values

    def view(self, decoded: DecodedArray) -> np.ndarray[Any, Any]:
        """Return decoded elements of the array as NumPy's, without a copy."""
        if isinstance(decoded, MaskedTensor | MaskedVariable):
            raise UnsupportedError(
                f"{self.node.path!r} has the optional type {self.node.data_type}, which xarray does not "
                f"support: pass drop_variables=[{self.node.basename!r}], or read it by zarrow"
            )
        assert isinstance(decoded, Tensor | Variable)
        return decoded.numpy()


def _is_whole(parts: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Whether a key selects all elements in their order."""
    return all(
        isinstance(part, slice) and part.indices(extent) == (0, extent, 1)
        for part, extent in zip(parts, shape, strict=True)
    )


def _restore(reopen: tuple[Any, ...], dtype: np.dtype[Any], shape: tuple[int, ...]) -> ZarrowArray:
    """Return an array that opens its node at its first read (step 2)."""
    array = ZarrowArray.__new__(ZarrowArray)
    array._array = None
    array._reopen = reopen
    array._first_reads = None
    array.dtype = dtype
    array.shape = shape
    return array
