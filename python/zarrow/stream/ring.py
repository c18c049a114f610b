"""Memory for frames that wait to be stored.

1. It is allocated once, for a number of frames that is a multiple of the array's write unit. The first place
   has the first frame of a write unit, so that each write unit is contiguous.
2. Frames are numbered from the first one of this writer. Those below `stored` are in the store, and their
   places are free.
3. One append stores a run: all whole write units that wait, up to the end of the memory. If another
   writer has appended in between, write units may begin elsewhere; the run then ends within one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zarrow._zarrow import Array
from zarrow.errors import DataTypeError, ShapeError, UnsupportedError


class Ring:
    """Frames of one array that wait to be stored."""

    def __init__(self, array: Array, axis: int) -> None:
        self.array = array
        self.axis = _checked_axis(array, axis)
        self.stored = 0
        self.capacity = 0
        if array.write_unit is None:
            raise UnsupportedError(
                f"array {array.path!r} in {array.store} has chunks of different shapes, which cannot be "
                "streamed: create it with equal chunks",
                kind="unsupported",
                store=array.store,
                path=array.path,
            )
        dtype = array.dtype
        if dtype.hasobject or dtype.kind == "T" or dtype.itemsize == 0 or "optional" in str(array.data_type):
            raise DataTypeError(
                f"array {array.path!r} in {array.store} has type {array.data_type!r}, but only elements of a "
                "fixed size are streamed: type array.append(values)",
                kind="data_type",
                store=array.store,
                path=array.path,
            )
        self.unit: int = max(1, array.write_unit[self.axis])
        self.frame_shape = array.shape[: self.axis] + array.shape[self.axis + 1 :]
        self.frame_nbytes = max(1, math.prod(self.frame_shape) * dtype.itemsize)
        self._frames: np.ndarray[Any, Any] = np.empty(0, dtype)
        # How many elements the array has before the first frame, and where that frame is in its write unit.
        self._before: int = array.shape[self.axis]
        self._first = self._before % self.unit

    @property
    def smallest(self) -> int:
        """The fewest frames that let one write unit fill while another is stored."""
        return 2 * self.unit

    def allocate(self, frames: int) -> None:
        """Allocate memory for at most this number of frames (step 1)."""
        self.capacity = max(self.smallest, frames // self.unit * self.unit)
        shape = list(self.frame_shape)
        shape.insert(self.axis, self.capacity)
        self._frames = np.empty(shape, self.array.dtype)

    def checked(self, values: Any) -> np.ndarray[Any, Any]:
        """Return one frame or several as an array with the axis of frames.

        Raises
        ------
        ShapeError
            The shape is not that of a frame, or of frames along the axis.
        DataTypeError, OverflowError
            The elements cannot be converted to the array's type without a change of kind.
        """
        found = _on_host(values, self.array.dtype)
        if found.ndim == len(self.frame_shape):
            found = np.expand_dims(found, self.axis)
        expected = self.frame_shape
        if found.shape[: self.axis] + found.shape[self.axis + 1 :] != expected or found.ndim <= self.axis:
            raise ShapeError(
                f"got values of shape {np.shape(values)}, expected a frame of shape {expected}, or several "
                f"along axis {self.axis} (array {self.array.path!r} in {self.array.store})",
                kind="shape",
                store=self.array.store,
                path=self.array.path,
            )
        if not np.can_cast(found.dtype, self._frames.dtype, "same_kind"):
            raise DataTypeError(
                f"cannot store {found.dtype} values in an array of {self._frames.dtype}: convert them first "
                f"by values.astype() (array {self.array.path!r} in {self.array.store})",
                kind="data_type",
                store=self.array.store,
                path=self.array.path,
            )
        return found

    def put(self, first: int, frames: np.ndarray[Any, Any]) -> None:
        """Copy frames into the places of the numbers from `first`, which must be free."""
        count, done = frames.shape[self.axis], 0
        while done < count:
            place = self._place(first + done)
            step = min(count - done, self.capacity - place)
            target = self._along(self._frames, place, place + step)
            np.copyto(target, self._along(frames, done, done + step), casting="same_kind")
            done += step

    def run(self, accepted: int, *, everything: bool) -> int:
        """Return the number of frames in the next run, if this many were accepted (step 3)."""
        to_end = self.capacity - self._place(self.stored)
        waiting = min(accepted - self.stored, to_end)
        whole = waiting - (self._before + self.stored + waiting) % self.unit
        return waiting if everything or (whole <= 0 and waiting == to_end) else max(0, whole)

    def is_half_full(self, accepted: int) -> bool:
        """Whether at least half of the places have frames that wait."""
        return 2 * (accepted - self.stored) >= self.capacity

    def store(self, count: int) -> int:
        """Append this number of frames to the array; return how many are stored then."""
        place = self._place(self.stored)
        shape = self.array.append(self._along(self._frames, place, place + count), self.axis)
        stored = self.stored + count
        # Another writer may have appended, too.
        self._before = shape[self.axis] - stored
        return stored

    def _place(self, number: int) -> int:
        return (self._first + number) % self.capacity

    def _along(self, frames: np.ndarray[Any, Any], start: int, stop: int) -> np.ndarray[Any, Any]:
        selection = (slice(None),) * self.axis + (slice(start, stop),)
        found: np.ndarray[Any, Any] = frames[selection]
        return found


def _checked_axis(array: Array, axis: int) -> int:
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(
            f"axis {axis} does not exist: array {array.path!r} has {array.ndim} axes (in {array.store})",
            kind="shape",
            store=array.store,
            path=array.path,
        )
    return axis % array.ndim


def _on_host(values: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return values as an array of NumPy, which shares their memory if they are on the CPU."""
    if isinstance(values, np.ndarray | np.generic):
        return np.asarray(values)
    device = getattr(values, "__dlpack_device__", None)
    if device is not None and device()[0] != 1:
        from zarrow import gpu

        found: np.ndarray[Any, Any] = gpu.asarray(values).cpu().numpy()
        return found
    found = np.asarray(values)
    # Integers of Python fit any type that has their value.
    is_of_python = not hasattr(values, "dtype") and found.dtype.kind == "i" and dtype.kind in "iu"
    return np.asarray(values, dtype) if is_of_python else found
