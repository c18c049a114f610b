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
import operator
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from zarrow._zarrow import Array, MemoryStore
from zarrow.api.creation import create_array
from zarrow.errors import DataTypeError, ShapeError, StaleHandleError, UnsupportedError
from zarrow.groups.places import refuse_read_only
from zarrow.stream.growth import Growth

# Memory beyond may never be used, and may be more than the machine has.
_TOUCHED_NBYTES = 1 << 30


class Ring:
    """Frames of one array that wait to be stored."""

    def __init__(self, array: Array, axis: int) -> None:
        self.array = array
        self.axis = checked_axis(array, axis)
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
        refuse_read_only(array)
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
        # Converts frames of other types.
        self._converter: Array | None = None
        self._converting = threading.Lock()
        # How many elements the array has before the first frame, and where that frame is in its write unit.
        self._before: int = array.shape[self.axis]
        self._first = self._before % self.unit
        self._at_begin = self._before
        self._growth = Growth(array, self.axis, self.unit)

    @property
    def arrays(self) -> list[Array]:
        """The arrays that grow."""
        return [self.array]

    @property
    def length(self) -> int:
        """The number of elements along the axis after the last append."""
        return self._before + self.stored

    def nbytes(self, frames: int) -> int:
        """Return the size of the memory for at most this number of frames."""
        return self._places(frames) * self.frame_nbytes

    def allocate(self, frames: int) -> None:
        """Allocate memory for at most this number of frames (step 1)."""
        self.capacity = self._places(frames)
        shape = list(self.frame_shape)
        shape.insert(self.axis, self.capacity)
        self._frames = np.empty(shape, self.array.dtype)
        # The first round of frames would wait for each page of the system.
        touched = self._frames.reshape(-1)[: _TOUCHED_NBYTES // self.array.dtype.itemsize]
        touched[...] = np.zeros((), self.array.dtype)

    def checked(self, values: Any) -> np.ndarray[Any, Any]:
        """Return one frame or several as an array with the axis of frames.

        Raises
        ------
        ShapeError
            The shape is not that of a frame, or of frames along the axis.
        DataTypeError, OverflowError
            The elements cannot be converted to the array's type.
        """
        found = _on_host(values)
        given = found.shape if isinstance(found, np.ndarray) else np.shape(found)
        is_frame = len(given) == len(self.frame_shape)
        shape = (*given[: self.axis], 1, *given[self.axis :]) if is_frame else given
        if len(shape) <= self.axis or shape[: self.axis] + shape[self.axis + 1 :] != self.frame_shape:
            raise ShapeError(
                f"got values of shape {given}, expected a frame of shape {self.frame_shape}, or several "
                f"along axis {self.axis} (array {self.array.path!r} in {self.array.store})",
                kind="shape",
                store=self.array.store,
                path=self.array.path,
            )
        is_plain = isinstance(found, np.ndarray) and not isinstance(found, np.ma.MaskedArray)
        if not is_plain or not _is_copied(found.dtype, self._frames.dtype):
            found = self._converted(found, given)
        return np.expand_dims(found, self.axis) if is_frame else found

    def _converted(self, values: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return values in the type of the array, which the engine converts and checks as in `append`."""
        with self._converting:
            if self._converter is None or self._converter.shape != shape:
                chunks = tuple(max(1, extent) for extent in shape)
                self._converter = create_array(
                    MemoryStore(), shape=shape, chunks=chunks, dtype=self._frames.dtype, compressors=None
                )
            try:
                self._converter[...] = values
            except Exception as error:
                error.add_note(f"a frame for array {self.array.path!r} in {self.array.store}")
                raise
            found: np.ndarray[Any, Any] = np.asarray(self._converter[...])
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
        shape = self._growth.append(self._along(self._frames, place, place + count))
        stored = self.stored + count
        # Another writer may have appended, too.
        self._before = shape[self.axis] - stored
        return stored

    def check_alone(self) -> None:
        """Refuse elements of another writer.

        Raises
        ------
        StaleHandleError
            Another writer has appended, or made the array smaller.
        """
        if self._before != self._at_begin:
            raise StaleHandleError(
                f"another writer changed the length of array {self.array.path!r} in {self.array.store}: an "
                "image has one writer at a time",
                kind="stale_handle",
                store=self.array.store,
                path=self.array.path,
            )

    def begin(self) -> None:
        """Prepare for the first frame (in the thread that stores)."""

    def flush(self) -> None:
        """Store what depends on the frames, which are all stored (in the thread that stores)."""

    def _places(self, frames: int) -> int:
        """Return the number of places for at most this many frames, but two write units or more.

        Two let one write unit fill while another is stored.
        """
        return max(2 * self.unit, frames // self.unit * self.unit)

    def _place(self, number: int) -> int:
        return (self._first + number) % self.capacity

    def _along(self, frames: np.ndarray[Any, Any], start: int, stop: int) -> np.ndarray[Any, Any]:
        selection = (slice(None),) * self.axis + (slice(start, stop),)
        found: np.ndarray[Any, Any] = frames[selection]
        return found


def checked_axis(array: Array, axis: int) -> int:
    """Return the number of an axis, which may count from the last one."""
    try:
        axis = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis is the number of an axis, 0 or 1 or -1, found {axis!r}") from None
    if not -array.ndim <= axis < array.ndim:
        raise ShapeError(
            f"axis {axis} does not exist: array {array.path!r} has {array.ndim} axes (in {array.store})",
            kind="shape",
            store=array.store,
            path=array.path,
        )
    return axis % array.ndim


def check_distinct(arrays: Iterable[tuple[str, Array]]) -> None:
    """Refuse an array that is given twice, since its frames would be mixed."""
    names: dict[object, str] = {}
    for name, array in arrays:
        where = f"{array.store}/{array.path}"
        # Stores in memory share a name.
        is_named = "://" in where or Path(where).exists()
        place = os.path.realpath(where) if is_named else id(array)
        if (first := names.setdefault(place, name)) != name:
            raise ValueError(
                f"{first!r} and {name!r} are the same array {array.path!r} in {array.store}: pass it once"
            )


def _is_copied(given: np.dtype[Any], own: np.dtype[Any]) -> bool:
    """Whether NumPy converts elements as `append` does: without a loss, or to another precision of floats."""
    if given.kind in "biufc" and own.kind in "biufc":
        is_rounded = own.kind in "fc" and np.can_cast(given, own, "same_kind")
        return is_rounded or np.can_cast(given, own, "safe")
    return given.kind not in "OT" and np.can_cast(given, own, "equiv")


def _on_host(values: Any) -> Any:
    """Return an array that shares the memory of the values, or the values if the engine must convert them."""
    if isinstance(values, np.ndarray):
        return values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if isinstance(values, np.generic | float | complex | bool):
        return np.asarray(values)
    device = getattr(values, "__dlpack_device__", None)
    if device is None:
        return values
    if device()[0] != 1:
        from zarrow import gpu

        return gpu.asarray(values).cpu().numpy()
    try:
        return np.from_dlpack(values)
    except (TypeError, ValueError, RuntimeError, BufferError):
        # Such as a type that DLPack or NumPy lacks.
        return values
