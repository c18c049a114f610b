"""Memory for frames that wait to be stored.

1. It is allocated once, for a number of frames that is a multiple of the array's write unit. The first place
   has the first frame of a write unit, so that each write unit is contiguous. Frames use the first places
   again and again, and more places only if the store falls behind: fresh memory costs more than a copy. The
   number of places in use is doubled; frames that wait at the first places then move behind the others.
2. Frames are numbered from the first one of this writer. Those below `stored` are in the store, and their
   places are free.
3. One append stores a run: all whole write units that wait, up to the end of the memory, but at most half of
   it, so that the other half fills meanwhile. Without compression, a run in a local store is 16 MiB or one
   write unit: more is no faster, and a producer that waits for a free place waits until a run ends. If
   another writer has appended in between, write units may begin elsewhere; the run then ends within one.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zarrow._zarrow import Array, MemoryStore, _is_remote, _RecycledMemory
from zarrow.api.creation import create_array
from zarrow.errors import DataTypeError, ShapeError, StaleHandleError, UnsupportedError
from zarrow.groups.places import refuse_read_only
from zarrow.stream.growth import Growth

# Frames of this size are stored at once, in a remote store to send few requests for metadata.
_ENOUGH_NBYTES, _ENOUGH_REMOTE_NBYTES = 4 << 20, 16 << 20

# Runs of uncompressed frames in a local store (step 3).
_MOST_NBYTES = 16 << 20

# Places of at least this size are in use, and at least four write units.
_LEAST_NBYTES, _LEAST_UNITS = 32 << 20, 4


class Ring:
    """Frames of one array that wait to be stored."""

    def __init__(self, array: Array, axis: int) -> None:
        self.array = array
        self.axis = checked_axis(array, axis)
        self.stored = 0
        # Where the first frame is, and how many places are in use. They change together.
        self._places_used = (0, 1)
        # How many places there are in all.
        self.most_places = 0
        # Held while places are added, and while frames become stored.
        self.moving = threading.Lock()
        if array.write_unit is None:
            raise UnsupportedError(
                f"array {array.path!r} in {array.store} has chunks of different shapes, which cannot be "
                "streamed: create it with equal chunks",
                node=array,
            )
        refuse_read_only(array)
        dtype = array.dtype
        if dtype.hasobject or dtype.kind == "T" or dtype.itemsize == 0 or "optional" in str(array.data_type):
            raise DataTypeError(
                f"array {array.path!r} in {array.store} has type {array.data_type!r}, but only elements of a "
                "fixed size are streamed: type array.append(values)",
                node=array,
            )
        self.unit: int = max(1, array.write_unit[self.axis])
        self.frame_shape = array.shape[: self.axis] + array.shape[self.axis + 1 :]
        self.frame_nbytes = max(1, math.prod(self.frame_shape) * dtype.itemsize)
        store = array.__reduce__()[1][0]
        is_remote = _is_remote(store)
        self.enough = _ENOUGH_REMOTE_NBYTES if is_remote else _ENOUGH_NBYTES
        is_copied = not is_remote and not array.compressors and not array.filters
        self._most_frames = _MOST_NBYTES // self.frame_nbytes if is_copied else sys.maxsize
        self._frames: np.ndarray[Any, Any] = np.empty(0, dtype)
        # Converts frames of other types.
        self._converter: Array | None = None
        self._converting = threading.Lock()
        # How many elements the array has before the first frame, and where that frame is in its write unit.
        self._before: int = array.shape[self.axis]
        self._at_begin = self._before
        self._growth = Growth(array, self.axis, self.unit)

    @property
    def arrays(self) -> list[Array]:
        """The arrays that grow."""
        return [self.array]

    def shapes(self, frames: int) -> list[tuple[Array, tuple[int, ...]]]:
        """Return each array that grows, and its shape with this number of frames."""
        array, axis = self.array, self.axis
        return [(array, (*array.shape[:axis], frames, *array.shape[axis + 1 :]))]

    @property
    def length(self) -> int:
        """The number of elements along the axis after the last append."""
        return self._before + self.stored

    @property
    def capacity(self) -> int:
        """The number of places in use."""
        return self._places_used[1]

    def nbytes(self, frames: int) -> int:
        """Return the size of the memory for at most this number of frames."""
        return self._places(frames) * self.frame_nbytes

    def allocate(self, frames: int, *, grows: bool = True) -> None:
        """Allocate memory for at most this number of frames (step 1)."""
        places, least = self._places(frames), self.unit * _LEAST_UNITS
        least = max(least, _LEAST_NBYTES // self.frame_nbytes)
        doublings = 0
        while grows and places >> (doublings + 1) >= least:
            doublings += 1
        used = (places >> doublings) // self.unit * self.unit
        self._places_used = (self._before % self.unit, used)
        self.most_places = used << doublings
        shape = list(self.frame_shape)
        shape.insert(self.axis, self.most_places)
        memory: Any = _RecycledMemory(self.most_places * self.frame_nbytes)
        self._frames = np.ndarray(shape, self.array.dtype, memory)

    def free(self, accepted: int, wanted: int) -> int:
        """Return the number of free places; add places for this many frames if possible (step 1)."""
        with self.moving:
            while True:
                (first, used), waiting = self._places_used, accepted - self.stored
                is_late = (first + accepted) % used == 0 and 2 * waiting > used
                if used == self.most_places or (wanted <= used - waiting and not is_late):
                    return used - waiting
                start = self._place(self.stored)
                behind = max(0, start + waiting - used)
                moved = self._along(self._frames, 0, behind)
                np.copyto(self._along(self._frames, used, used + behind), moved)
                self._places_used = ((start - self.stored) % (2 * used), 2 * used)

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
                node=self.array,
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
        most = min(self.most_places // 2, self._most_frames) // self.unit * self.unit
        place = self._place(self.stored)
        # Up to the edge of a write unit of this memory.
        to_end = min(self.capacity - place, max(self.unit, most) - place % self.unit)
        waiting = min(accepted - self.stored, to_end)
        whole = waiting - (self._before + self.stored + waiting) % self.unit
        return waiting if everything or (whole <= 0 and waiting == to_end) else max(0, whole)

    def is_half_full(self, accepted: int) -> bool:
        """Whether at least half of the places in use have frames that wait."""
        return 2 * (accepted - self.stored) >= self.capacity

    def store(self, count: int) -> int:
        """Append this number of frames to the array; return how many are stored then."""
        shape = self._growth.append(self.waiting(count))
        stored = self.stored + count
        # Another writer may have appended, too.
        self._before = shape[self.axis] - stored
        return stored

    def waiting(self, count: int) -> np.ndarray[Any, Any]:
        """Return the next frames to store, which are in one run. They stay in place until they are stored."""
        place = self._place(self.stored)
        return self._along(self._frames, place, place + count)

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
                "image, or several arrays together, have one writer at a time",
                node=self.array,
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
        first, used = self._places_used
        return (first + number) % used

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
            node=array,
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


def check_equal_lengths(rings: Mapping[str, Ring]) -> None:
    """Refuse arrays of different lengths: a frame would have another index in each.

    Raises
    ------
    ShapeError
        The arrays differ in length, for example because a writer of them was killed.
    """
    lengths = {name: ring.length for name, ring in rings.items()}
    least = min(lengths.values())
    if max(lengths.values()) == least:
        return
    longer = {name: ring for name, ring in rings.items() if ring.length > least}
    found = ", ".join(f"{length} in {name!r}" for name, length in lengths.items())
    calls = ", ".join(
        f"{(array.path or name)!r} by .resize({shape})"
        for name, ring in longer.items()
        for array, shape in ring.shapes(least)
    )
    raise ShapeError(
        f"the arrays have different numbers of frames: {found}. A killed writer leaves this, and all have "
        f"the frames of its last flush: drop the others, of {calls}",
        node=next(iter(longer.values())).array,
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
