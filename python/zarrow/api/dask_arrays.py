"""The method of an Array that makes an array of dask. dask is imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from zarrow._zarrow import Array
from zarrow.arrays.methods import add_method

if TYPE_CHECKING:
    import dask.array


def add_to_class() -> None:
    """Give the class Array this method."""
    add_method(Array, to_dask.__name__, to_dask)


def to_dask(
    self: Array, chunks: Any = None, *, library: Literal["dask.array", "dask_array"] = "dask.array"
) -> dask.array.Array:
    """Return an array of dask that reads this one, as `zarrow.dask.from_zarr`. Nothing is read yet.

    Parameters
    ----------
    chunks
        Blocks, as dask takes them: `"auto"`, a shape, ... By default shards, or chunks without shards.
    library
        `"dask_array"` for an array of the package `dask-array`, with the same methods.

    Raises
    ------
    UnsupportedError
        The chunks differ in shape: pass `chunks`.
    ImportError
        The library is not installed.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> temperature.to_dask().chunks
    ((24, 24), (6,), (8,))
    >>> float(temperature.to_dask(chunks=(12, 6, 8)).max().compute())
    2303.0
    """
    from zarrow.dask import from_zarr

    found: dask.array.Array = from_zarr(self, chunks=chunks, library=library)
    return found
