"""Reads an array while it grows, by asking for its metadata at intervals.

In version 2, the metadata of a remote array are three documents. A look requests the one with the shape, and
the others when it has changed.
"""

from __future__ import annotations

import math
import operator
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, _is_remote, _StoredValues
from zarrow.api.array_options import Store
from zarrow.api.opening import open_array
from zarrow.errors import StaleHandleError
from zarrow.groups.array_documents import key_of
from zarrow.stream.ring import checked_axis

if TYPE_CHECKING:
    from zarrow import DecodedArray


def follow(
    array: Array | Store,
    axis: int = 0,
    *,
    start: int | None = None,
    interval: float = 0.1,
    idle: float | None = None,
    memory_nbytes: int = 256 << 20,
) -> Iterator[DecodedArray]:
    """Return an iterator over the elements that are appended to an array, each once.

    Parameters
    ----------
    array
        An array that another process or thread appends to, or its store or path. Its shape changes, as by
        `array.refresh()`.
    axis
        The axis that grows.
    start
        The first element along the axis; by default, the end of the array when `follow` is called.
    interval
        Seconds between two looks at the metadata.
    idle
        Seconds without a new element after which the iterator ends; by default, it does not end.
    memory_nbytes
        How many bytes are read at once, if the chunks are not larger.

    Yields
    ------
    Tensor, VariableArray or masked array
        As `array[...]`: new elements along the axis.

    Raises
    ------
    StaleHandleError
        The array was made smaller, or replaced by one with another shape of frames, type, chunks or codecs.
        Elements that were read at that moment are not yielded.
    ValueError
        `start` is not between 0 and the length of the array, or an option is not a number of this kind.
    NotFoundError, StoreError, CodecError
        The array was erased, or cannot be read; or it was opened by its own path, and its folder replaced.

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
    if idle is not None and not idle >= 0:
        raise ValueError(f"idle is {idle!r}, expected seconds, such as 10.0, or None")
    array = array if isinstance(array, Array) else open_array(array)
    array.refresh()
    source = _Source(array, checked_axis(array, axis), memory_nbytes)
    length = source.length
    if start is not None:
        try:
            start = operator.index(start)
        except TypeError:
            raise TypeError(f"start is the number of an element, such as 0, found {start!r}") from None
    if start is not None and not 0 <= start <= length:
        raise ValueError(
            f"start is {start}, expected a number from 0 to {length}, the length of array {array.path!r} "
            f"in {array.store} along axis {source.axis}"
        )
    return _parts(source, length if start is None else start, min(interval, threading.TIMEOUT_MAX), idle)


def _parts(source: _Source, done: int, interval: float, idle: float | None) -> Iterator[DecodedArray]:
    last = time.monotonic()
    while True:
        if source.length > done:
            elements, done = source.read(done)
            yield elements
            last = time.monotonic()
        else:
            pause = interval
            if idle is not None:
                left = last + idle - time.monotonic()
                if left <= 0:
                    return
                pause = min(interval, left)
            time.sleep(pause)
        source.look(done)


class _Source:
    """An array that grows, and what of it must stay."""

    def __init__(self, array: Array, axis: int, memory_nbytes: int) -> None:
        self._array = array
        self.axis = axis
        store = array.__reduce__()[1][0]
        is_split = array.zarr_format == 2 and _is_remote(store)
        self._values = _StoredValues(store, create=False) if is_split else None
        self._document: bytes | None = None
        self._fixed = self._found()
        frame = math.prod(array.shape[:axis] + array.shape[axis + 1 :]) * array.dtype.itemsize
        self._step: int = array.chunks[axis] if array.chunks is not None else 1
        self._count = max(1, memory_nbytes // max(1, frame * self._step)) * self._step

    @property
    def length(self) -> int:
        """The number of elements along the axis at the last look."""
        return self._array.shape[self.axis]

    def look(self, least: int) -> None:
        """Read the metadata, and check that the array still has this many elements.

        Raises
        ------
        StaleHandleError
            It has fewer, or is another array.
        """
        array = self._array
        if self._is_unchanged():
            return
        array.refresh()
        if self._found() != self._fixed:
            problem = "was replaced, or has another shape apart from that axis"
        elif self.length < least:
            problem = f"has {self.length} elements there, but had {least} before: it was made smaller"
        else:
            return
        raise StaleHandleError(
            f"array {array.path!r} in {array.store} was followed along axis {self.axis}, and {problem}: "
            "open and follow it again",
            node=array,
        )

    def read(self, start: int) -> tuple[DecodedArray, int]:
        """Read elements from `start`, whole chunks if there are more than fit, and return where they end."""
        stop = min(self.length, start + self._count)
        if stop < self.length:
            stop = max(start + 1, stop // self._step * self._step)
        elements: DecodedArray = self._array[(slice(None),) * self.axis + (slice(start, stop),)]
        # Elements that another process has cut off in between were read as fill values.
        self.look(stop)
        return elements, stop

    def _is_unchanged(self) -> bool:
        """Return whether the document with the shape is known to be that of the last look."""
        if self._values is None:
            return False
        (document,) = self._values.get_each([key_of(self._array)])
        before, self._document = self._document, document
        return document is not None and document == before

    def _found(self) -> dict[str, Any]:
        """Return the metadata that must stay."""
        found: dict[str, Any] = {
            key: value for key, value in self._array.metadata.items() if key not in ("attributes", "shape")
        }
        shape = list(self._array.shape)
        if self.axis < len(shape):
            shape[self.axis] = 0
        return found | {"shape": shape}
