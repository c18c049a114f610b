"""Stub of `write_many`."""

from collections.abc import Iterable
from typing import Any, Literal

from zarrow.api.progress import Progress
from zarrow.arrays._array import Array, _Index
from zarrow.arrays._indexer import Indexer

def write_many(
    items: Iterable[tuple[Array | Indexer, _Index, Any]],
    *,
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
    durability: Literal["none", "file", "full"] | None = None,
    write_empty_chunks: bool = False,
    progress: Progress | bool | None = None,
) -> None:
    """Write to selections of many arrays, with the chunks of all arrays in flight together.

    In a remote store this takes the round trips of one write. In a folder the items are written one after the
    other, each on all cores.

    Parameters
    ----------
    items
        An array, a selection and the values for each item. Selections are as in `Array.__getitem__` except
        fields, or as in `oindex`, `vindex` or `blocks` if the item has one of these in place of the array.
        Values are as in `Array.write`; they are not copied, so do not write to their memory during the call.
        In a remote store, items that overlap are written in any order.
    casting, durability, write_empty_chunks
        As in `Array.write`, for all items.
    progress
        Called with the bytes of the values that are written, and of all, or True for a bar. Values without
        `nbytes` count as nothing. The items are then written in batches of some 64 MiB, and large values as
        by `Array.write`: batches before an invalid item are written.

    Raises
    ------
    IndexingError, ShapeError, DataTypeError, OverflowError
        An item is not valid, as in `Array.write`. Nothing is written.
    TypeError
        An item is not a tuple of an array, a selection and values.
    CodecError, ReadOnlyError, StoreError, KeyboardInterrupt
        As `Array.write`. The first error stops all; some chunks of any item may already be new.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.create_group("new.zarr")
    >>> rain = root.create_array("rain", shape=(4, 2), dtype="f4")
    >>> days = root.create_array("days", shape=4, dtype="i4")
    >>> zarrow.write_many([(rain, 0, [0.5, 1.5]), (days, ..., [1, 2, 3, 4])])
    >>> rain[0].tolist(), days[-1].item()
    ([0.5, 1.5], 4)
    >>> import numpy as np
    >>> zarrow.write_many([(rain, 1, np.ones(2)), (days, 0, np.int32(5))], progress=print)
    0 20
    20 20
    """
