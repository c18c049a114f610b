"""The method of an Array that follows its growth. The code for it is imported when it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from zarrow._zarrow import Array
from zarrow.arrays.methods import add_method

if TYPE_CHECKING:
    from zarrow import DecodedArray


def add_to_class() -> None:
    """Give the class Array this method."""
    add_method(Array, follow.__name__, follow)


def follow(
    self: Array,
    axis: int = 0,
    *,
    start: int | None = None,
    interval: float = 0.1,
    idle: float | None = None,
    memory_nbytes: int = 256 << 20,
) -> Iterator[DecodedArray]:
    """Return an iterator over the elements that others append, each once, as `zarrow.stream.follow`.

    The shape of this array changes, as by `refresh`. Parameters and errors are the same.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("log.zarr", [1.5, 2.5])
    >>> for values in zarrow.open_array("log.zarr").follow(start=0, idle=0):
    ...     values.tolist()
    [1.5, 2.5]
    """
    from zarrow.stream import follow as following

    return following(self, axis, start=start, interval=interval, idle=idle, memory_nbytes=memory_nbytes)
