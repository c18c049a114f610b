"""The compiled part of zarrow: everything here is public as `zarrow.*`."""

import os
from collections.abc import Sequence
from typing import Any

from zarrow._array import Array, _Index
from zarrow._decoded_array import DecodedArray
from zarrow._group import Group
from zarrow._masked_tensor import MaskedTensor
from zarrow._masked_variable import MaskedVariable
from zarrow._tensor import Tensor
from zarrow._tree import Tree
from zarrow._variable import Variable
from zarrow.limits import DecodeLimits

__all__ = [
    "Array",
    "DecodedArray",
    "Group",
    "MaskedTensor",
    "MaskedVariable",
    "Tensor",
    "Tree",
    "Variable",
    "__version__",
    "num_threads",
    "open",
    "read_many",
    "release_memory",
    "set_memory_cache",
    "set_num_threads",
]

__version__: str

def open(
    store: str | os.PathLike[str],
    path: str = "",
    *,
    cache_bytes: int = 0,
    limits: DecodeLimits | None = None,
) -> Any:
    """Open the array or group at a path of a store, which is a folder or a file:// URL.

    Metadata is read, chunks are not. Versions 2 and 3 of Zarr are told apart by what is there.

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL. It may lie anywhere inside a larger hierarchy.
    path
        Where in the store to look; `""` is its root.
    cache_bytes
        Bytes of decoded chunks that each array keeps, the least recently used going first: for reads that
        overlap. A chunk that was written anew since is decoded anew. 0 keeps none.
    limits
        What is refused as hostile, for all that is opened from here.

    Returns
    -------
    Array or Group
        Typed as `Any`, so that `zarrow.open(...)["name"][0:10]` passes a type checker.

    Raises
    ------
    NotFoundError
        There is neither an array nor a group (a `FileNotFoundError`).
    MetadataError
        The metadata is malformed, or beyond the limits (a `ValueError`).
    UnsupportedError
        The URL is of another scheme (a `NotImplementedError`).

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open("data.zarr")
    >>> root["temperature"].shape
    (48, 6, 8)
    """

def read_many(items: Sequence[tuple[Array, _Index]], *, out: Any = None) -> Any:
    """Read many selections at once, each chunk that they need decoded once.

    That holds however many of the selections need the chunk, as random crops do that overlap: the core of a
    loop that trains on batches.

    Parameters
    ----------
    items
        An array and a selection of it for each item, of one or several arrays. Selections are those of
        `Array.__getitem__`. Items of one array share its chunks where they are given the same Array object.
    out
        Memory to read into instead, of shape `(len(items), ...)`: what `Array.read` says of its `out` holds
        here. Where `items` is empty it is not looked at.

    Returns
    -------
    Tensor, Variable, MaskedTensor or MaskedVariable
        In new memory: item `i` is at position `i` of a new first axis, where all items have one shape and one
        data type, and strings one fill value.
    list
        An array for each item where they differ, empty where there is no item.
    object
        `out` itself, where it was given.

    Raises
    ------
    IndexingError
        A selection lies outside its array; the items differ in shape and `out` was given (an `IndexError`).
    CodecError, OutOfMemoryError, StoreError, KeyboardInterrupt
        As `Array.read`. The first error stops all; some of the elements of `out` may have been written then.
    ValueError, TypeError, ExchangeError
        `out` is not memory for the batch, as `Array.read` says.
    UnsupportedError
        `out` was given, and the items differ in type, are strings, or may be missing (a
        `NotImplementedError`).

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> crops = [(temperature, np.s_[day : day + 2, :4, :4]) for day in (0, 1, 30)]
    >>> batch = zarrow.read_many(crops)
    >>> batch.shape, batch[1, 0, 0, 0].item()
    ((3, 2, 4, 4), 48.0)
    >>> [rows.shape for rows in zarrow.read_many([(temperature, np.s_[:, 0, 0]), (temperature, 0)])]
    [(48,), (6, 8)]
    """

def set_num_threads(count: int) -> None:
    """Set how many threads a read may use, the calling one among them.

    The environment variable `ZARROW_NUM_THREADS` sets it from outside.

    Raises
    ------
    ValueError
        The count is 0.
    """

def num_threads() -> int:
    """Tell how many threads a read may use, the calling one among them."""

def set_memory_cache(nbytes: int) -> None:
    """Set how many bytes of dropped results are kept for the next ones; 0 keeps none.

    The first touch of fresh memory costs as much as half of an uncompressed read. A loop that reads, uses
    and drops results of about one size gets the memory of the one before. Only results of 2 MiB and more
    are kept, 512 MiB of them unless this says otherwise, and what is kept now and is more than `nbytes` is
    freed. What such memory held is never seen: a result is filled before it is given.

    Raises
    ------
    OverflowError
        The count is negative.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.set_memory_cache(64 << 20)
    >>> zarrow.set_memory_cache(512 << 20)
    """

def release_memory() -> int:
    """Free the memory of dropped results that is kept for the next ones, and tell how many bytes it was.

    Results that are still in use are not touched.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.release_memory() >= 0
    True
    >>> zarrow.release_memory()
    0
    """
