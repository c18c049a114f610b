"""Samples that are several neighbouring indices along an axis."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from zarrow._zarrow import Array
from zarrow.data.permutation import Numbers
from zarrow.data.sources import Draw, Location, Out, SizeOf, Source, checked_axis, opened_array
from zarrow.hints.parameters import says_parameters

# More indices are not counted one by one.
_MOST_COUNTED = 1 << 22


@says_parameters
class Windows(Source):
    """Samples of several neighbouring indices along an axis, which may span chunks.

    Sample `i` has the indices `offset + i * step + k * stride` for `k` in `range(length)`.

    Parameters
    ----------
    array
        The array, or its path.
    length
        The number of indices in a window.
    step
        Indices from one window's start to the next.
    stride
        Indices from one element of a window to the next.
    offset
        The start of the first window: for a target that follows its input.
    axis
        The axis of windows.

    Raises
    ------
    ValueError
        No window fits the array, or a number is out of range.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import data
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> data.Windows(temperature, 12, step=6).count
    7
    >>> data.Windows(temperature, 1, step=6, offset=12).sample_shape  # the hour after each of these
    (1, 6, 8)
    """

    def __init__(
        self,
        array: Array | Location,
        length: int,
        *,
        step: int = 1,
        stride: int = 1,
        offset: int = 0,
        axis: int = 0,
    ) -> None:
        array = opened_array(array)
        super().__init__(array)
        self.axis = checked_axis(array, axis)
        length, step, stride, offset = map(operator.index, (length, step, stride, offset))
        if max(length, step, stride, offset) > np.iinfo(np.int64).max:
            raise ValueError(f"length {length}, step {step}, stride {stride} or offset {offset} is too large")
        if length < 1 or step < 1 or stride < 1 or offset < 0:
            raise ValueError(
                f"length {length}, step {step} and stride {stride} must be at least 1, and offset {offset} "
                "must not be negative"
            )
        self.length, self.step, self.stride, self.offset = length, step, stride, offset
        extent, self._span = array.shape[self.axis], (length - 1) * stride + 1
        if offset + self._span > extent:
            raise ValueError(
                f"a window of {offset + self._span} indices does not fit axis {axis} of {extent}"
            )
        self.count = (extent - offset - self._span) // step + 1
        shape = list(array.shape)
        shape[self.axis] = length
        self.sample_shape = tuple(shape)

    def _definition(self) -> tuple[object, ...]:
        return "windows", self.axis, self.length, self.step, self.stride, self.offset

    def _blocks(self) -> tuple[int, int]:
        chunk = self._chunks()[self.axis]
        period = math.lcm(chunk, self.step)
        # A block ends at a chunk's end if this does not make it much larger than a chunk.
        size = period // self.step if period <= 16 * max(chunk, self.step) else max(1, chunk // self.step)
        first = -(-(-self.offset % chunk) // self.step)
        return size, first % size

    def _covering(self, block: int) -> int:
        return (block * self.step + self._span) // self.length

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        before = (slice(None),) * self.axis
        starts = (self.offset + places * self.step).tolist()
        items = [(self.array, (*before, slice(at, at + self._span, self.stride))) for at in starts]
        return self._read_items(items, out)

    def _touched(self, places: Numbers, draw: Draw, size_of: SizeOf) -> list[int]:
        starts = self.offset + places * self.step
        if len(places) * self.length <= _MOST_COUNTED:
            indices = starts[:, None] + np.arange(self.length) * self.stride
            return self._touched_along(self.axis, indices, size_of)
        # All between the ends of a window: more than there are if it has steps.
        size, starts = size_of(self.array)[self.axis], np.unique(starts)
        first, last = starts // size, (starts + self._span - 1) // size
        new = np.maximum(first, np.concatenate([[-1], last[:-1]]) + 1)
        return [
            count * int(np.maximum(last - new + 1, 0).sum())
            for count in self._touched_along(self.axis, np.zeros(1, np.int64), size_of)
        ]
