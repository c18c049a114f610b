"""Arrays that `zarrow.xarray.to_zarr` writes elements to, before or after their documents are stored.

1. An array is made of its document, which may not be stored yet.
2. Elements are cast as zarr-python casts them.
3. What the engine does not write, zarr-python's own array does.
4. A target pickles to the store, the path and the document, for tasks of dask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrow._zarrow import MemoryStore, _ChunkParts
from zarrow.api.regions import expect_block
from zarrow.errors import ZarrowError
from zarrow.xarray.staged_store import Location
from zarrow.zarr_python.chunks import document
from zarrow.zarr_python.fallback import FallbackError, check_codecs

# Orders of the chunks in a shard that the engine writes; zarr-python gives no meaning to its default.
_ORDERS = (None, "morton", "lexicographic", "unordered")


class ChunkTarget:
    """An array to write elements to."""

    def __init__(
        self,
        location: Location,
        path: str,
        zarr_format: int,
        described: bytes,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        write_empty_chunks: bool,
        replace_edges: bool,
    ) -> None:
        self._state = (
            location,
            path,
            zarr_format,
            described,
            shape,
            dtype,
            write_empty_chunks,
            replace_edges,
        )
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self._chunks: _ChunkParts | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Step 4."""
        if isinstance(self._state[0], MemoryStore):
            raise TypeError("a MemoryStore cannot be written by other processes: write to a folder or a URL")
        return ChunkTarget, self._state

    def __setitem__(self, region: Any, value: Any) -> None:
        shape, dtype, write_empty_chunks, replace_edges = self._state[4:]
        elements = cast(value, dtype)
        expect_block(elements.shape, region, shape, store=str(self._state[0]), path=self._state[1])
        if not elements.size:
            return
        self._parts().write(
            shape,
            "basic",
            [(region if region != () else ..., elements)],
            write_empty_chunks=write_empty_chunks,
            replace_edges=replace_edges,
        )

    def __getitem__(self, region: Any) -> np.ndarray[Any, Any]:
        """Read elements back, for dask's option `return_stored`."""
        found: Any = self._parts().array(self.shape)[region]
        return np.asarray(found)

    def _parts(self) -> _ChunkParts:
        if self._chunks is None:
            self._chunks = _ChunkParts(*self._state[:4])
        return self._chunks


def target_of(location: Location, array: Any, *, replace_edges: bool) -> Any:
    """Return where to write the elements of an array of zarr-python: the array itself in step 3.

    With `replace_edges`, a chunk that extends past the end of the array is replaced without reading it.
    """
    metadata = array.metadata
    config = array.async_array.config if hasattr(array, "async_array") else array._async_array._config
    try:
        check_codecs(metadata)
        for codec in () if metadata.zarr_format == 2 else metadata.codecs:
            if getattr(codec, "subchunk_write_order", None) not in _ORDERS:
                return array
        described = document(metadata)
        _ChunkParts(MemoryStore(), array.path, metadata.zarr_format, described)
    except (FallbackError, ZarrowError, TypeError, ValueError):
        return array
    return ChunkTarget(
        location,
        array.path,
        metadata.zarr_format,
        described,
        tuple(array.shape),
        array.dtype,
        bool(config.write_empty_chunks),
        replace_edges,
    )


def write_unit(array: Any) -> tuple[int, ...] | None:
    """Return the shape of a shard, or of a chunk without shards; None for a rectilinear grid."""
    try:
        unit: tuple[int, ...] = array.shards or array.chunks
    except NotImplementedError:
        return None
    return unit


def cast(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return elements of the type of the array (step 2)."""
    elements: np.ndarray[Any, Any] = np.asarray(value)
    if elements.dtype.name != dtype.name:
        elements = elements.astype(dtype, order="A")
    return elements
