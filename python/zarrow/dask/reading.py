"""Reads arrays of a store as arrays of dask.

1. dask takes elements by its own functions, which its optimizations know, from an object that gives NumPy
   arrays.
2. Names of arrays depend on the store, the path and the metadata: equal arrays have equal names, also in
   other processes.
3. Blocks are write units, whole shards or chunks, unless others are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from dask.base import tokenize

from zarrow._zarrow import Array, _with_options
from zarrow.api.array_options import Store
from zarrow.api.opening import open_array
from zarrow.dask.libraries import Library, library_named
from zarrow.jobs.work import write_unit_of

if TYPE_CHECKING:
    import dask.array


class Elements:
    """An array of a store that gives NumPy arrays, which are views of zarrow's memory (step 1)."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return Elements, (self.array,)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the NumPy arrays."""
        return self.array.dtype

    def __getitem__(self, selection: Any) -> Any:
        return np.asanyarray(self.array[selection].numpy())

    def __dask_tokenize__(self) -> Any:
        array = self.array
        return (type(self).__qualname__, array.__reduce__()[1], json.dumps(array.metadata, sort_keys=True))


@overload
def from_zarr(
    url: Array | Store,
    component: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    chunks: Any = None,
    name: str | None = None,
    inline_array: bool = False,
    *,
    library: Literal["dask.array"] = "dask.array",
    **kwargs: Any,
) -> dask.array.Array: ...
@overload
def from_zarr(
    url: Array | Store,
    component: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    chunks: Any = None,
    name: str | None = None,
    inline_array: bool = False,
    *,
    library: Library,
    **kwargs: Any,
) -> Any: ...
def from_zarr(
    url: Array | Store,
    component: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    chunks: Any = None,
    name: str | None = None,
    inline_array: bool = False,
    *,
    library: Library = "dask.array",
    **kwargs: Any,
) -> Any:
    """Return an array of dask that reads an array of a store: as `dask.array.from_zarr`.

    Parameters
    ----------
    url, component
        An opened array; or a store, as `open_array` takes it, and a path in it.
    storage_options
        Credentials and other options of a cloud URL: see `CloudStore`.
    chunks
        Blocks, as dask takes them: `"auto"`, a shape, ... By default shards, or chunks without shards.
    name
        The name in dask's graph. By default, it is derived from the store, the path and the metadata.
    inline_array
        As in `dask.array.from_array`.
    library
        `"dask_array"` for an array of the package `dask-array`.
    kwargs
        Options of `open_array`.

    Raises
    ------
    NotFoundError, NodeTypeError, MetadataError
        As `open_array`.
    ImportError
        The library is not installed.

    Examples
    --------
    >>> import zarrow, zarrow.dask
    >>> zarrow.save("heights.zarr", [1.5, 2.5])
    >>> float(zarrow.dask.from_zarr("heights.zarr").sum().compute())
    4.0
    """
    if isinstance(url, Array):
        array = url if component is None else open_array(url, path=component)
    else:
        options = {"mode": "r", **kwargs}
        array = open_array(_with_options(url, storage_options), path=component or "", **options)
    elements = Elements(array)
    blocks = write_unit_of(array, "pass chunks=") if chunks is None else chunks
    if name is None:
        name = "from-zarr-" + tokenize(elements, blocks)
    meta = np.empty((0,) * array.ndim, array.dtype)
    return library_named(library).from_array(
        elements, blocks, name=name, inline_array=inline_array, asarray=False, meta=meta
    )
