"""Reads an array while it grows, by asking for its metadata at intervals."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zarrow._zarrow import Array
from zarrow.errors import StaleHandleError

if TYPE_CHECKING:
    from zarrow import DecodedArray


def follow(
    array: Array,
    axis: int = 0,
    *,
    start: int | None = None,
    interval: float = 0.1,
    idle: float | None = None,
) -> Iterator[DecodedArray]:
    """Yield the elements that are appended to an array, each once, as soon as readers see them.

    Parameters
    ----------
    array
        An array that another process or thread appends to. Its shape changes, as by `array.refresh()`.
    axis
        The axis that grows.
    start
        The first element along the axis; by default, the end of the array now.
    interval
        Seconds between two looks at the metadata.
    idle
        Seconds without a new element after which the iterator ends; by default, it does not end.

    Yields
    ------
    Tensor, VariableArray or masked array
        As `array[...]`: all new elements along the axis.

    Raises
    ------
    StaleHandleError
        The array was made smaller.
    NotFoundError, StoreError, CodecError
        The array was erased, or cannot be read.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.stream import follow
    >>> log = zarrow.create_array("log.zarr", data=[1.5, 2.5])
    >>> for values in follow(zarrow.open("log.zarr"), start=0, idle=0):
    ...     values.tolist()
    [1.5, 2.5]
    """
    if not interval >= 0:
        raise ValueError(f"interval is {interval!r}, expected seconds, such as 0.1")
    array.refresh()
    axis = range(array.ndim)[axis]
    done = array.shape[axis] if start is None else start
    last = time.monotonic()
    while True:
        length = array.shape[axis]
        if length < done:
            raise StaleHandleError(
                f"array {array.path!r} in {array.store} has {length} elements along axis {axis}, but {done} "
                "were there before: it was made smaller",
                kind="stale_handle",
                store=array.store,
                path=array.path,
            )
        if length > done:
            elements: DecodedArray = array[(slice(None),) * axis + (slice(done, length),)]
            yield elements
            done, last = length, time.monotonic()
        elif idle is not None and time.monotonic() - last >= idle:
            return
        else:
            time.sleep(interval)
        array.refresh()
