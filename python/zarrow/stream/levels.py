"""Lower resolutions of an image, computed while its frames are stored.

1. A frame of a level comes from a window of `step` frames of the finer level; `step` is 1 unless the axis
   that grows is reduced, too. `zarrow.ome.pyramid` computes the same elements from the stored first level.
2. Frames that were stored are passed on to the next level while they are in memory. Frames of a window that
   is not full are kept. `flush` stores an incomplete window, too, and its frame is replaced when the window
   has more frames.
3. So each level grows before the coarser one. After a kill the next writer reads the frames that a level
   lacks. It computes the last frame of each level again, which may be of an incomplete window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from zarrow._zarrow import Array, Group
from zarrow.errors import DataTypeError, ShapeError
from zarrow.ome.downscaling import Method, check_type, downscale, smaller
from zarrow.ome.reading import content_of, multiscales
from zarrow.stream.ring import Ring

if TYPE_CHECKING:
    import numpy.typing as npt

# Frames of this size are read at once to complete a level (step 3).
_READ_NBYTES = 16 << 20


class ImageRing(Ring):
    """Frames of the first level of an image, which pass through the others."""

    def __init__(self, image: Group, axis: int, method: Method | None) -> None:
        levels = multiscales(image).levels
        arrays = [level.array for level in levels]
        super().__init__(arrays[0], axis)
        found = _method(image, method) if len(levels) > 1 else "nearest"
        self._levels: list[_Level] = []
        finer: Ring = self
        for (above, level), array in zip(pairwise(levels), arrays[1:], strict=True):
            factors = list(map(_factor, level.scale, above.scale))
            finer = _Level(array, self.axis, factors, found, finer)
            self._levels.append(finer)

    @property
    def arrays(self) -> list[Array]:
        """The arrays that grow."""
        return [self.array, *(level.array for level in self._levels)]

    def shapes(self, frames: int) -> list[tuple[Array, tuple[int, ...]]]:
        """Return each array that grows, and its shape with this number of frames of the first level."""
        levels = [shape for level in self._levels for shape in level.shapes(frames)]
        return super().shapes(frames) + levels

    def nbytes(self, frames: int) -> int:
        """Return the size of the memory for at most this number of frames, and of the levels' memory."""
        return super().nbytes(frames) + sum(level.nbytes(frames) for level in self._levels)

    def allocate(self, frames: int, *, grows: bool = True) -> None:
        """Allocate memory for at most this number of frames, and for the levels."""
        super().allocate(frames, grows=grows)
        for level in self._levels:
            level.allocate(frames)

    def begin(self) -> None:
        """Compute frames that levels lack: of the coarsest level first, which needs those below (step 3)."""
        for level in reversed(self._levels):
            level.begin()

    def store(self, count: int) -> int:
        """Append frames to the first level, and pass them on (step 2)."""
        frames = self.waiting(count)
        stored = super().store(count)
        try:
            if self._levels:
                self.check_alone()
                self._levels[0].add(frames)
        finally:
            # These frames are stored, whatever becomes of the levels. Now their memory may be used again.
            with self.moving:
                self.stored = stored
        return stored

    def flush(self) -> None:
        """Store all frames of the levels, also of incomplete windows (step 2)."""
        incomplete: npt.NDArray[Any] | None = None
        for level in self._levels:
            incomplete = level.complete(incomplete)


class _Level(Ring):
    """Frames of a lower level, computed from the finer level's frames.

    The numbers of its frames include an incomplete one at the end, while `_is_incomplete`.
    """

    def __init__(self, array: Array, axis: int, factors: list[int], method: Method, finer: Ring) -> None:
        super().__init__(array, axis)
        check_type(array, method)
        self._factors, self._method = factors, method
        self._finer = finer
        self._coarser: _Level | None = None
        if isinstance(finer, _Level):
            finer._coarser = self
        self._step = factors[axis]
        # How many frames of the first level become one.
        self._share: int = self._step * (finer._share if isinstance(finer, _Level) else 1)
        self._accepted = 0
        self._window: npt.NDArray[Any] = np.empty(0)
        self._held = 0
        self._is_incomplete = False
        self._check_shape()

    def shapes(self, frames: int) -> list[tuple[Array, tuple[int, ...]]]:
        """Return the array, and its shape with this number of frames of the first level."""
        return super().shapes(-(-frames // self._share))

    def nbytes(self, frames: int) -> int:
        """Return the memory that this number of frames of the first level takes here, with a window."""
        return super().nbytes(-(-frames // self._share)) + self._step * self._finer.frame_nbytes

    def allocate(self, frames: int, *, grows: bool = False) -> None:
        """Allocate memory for at most this number of frames of the first level."""
        super().allocate(-(-frames // self._share), grows=grows)
        shape = list(self._finer.frame_shape)
        shape.insert(self.axis, self._step)
        self._window = np.empty(shape, self.array.dtype)

    def begin(self) -> None:
        """Compute the last stored frame again, and missing frames (step 3)."""
        first = max(0, self.length - 1)
        self._is_incomplete = self.length > 0
        finer = self._finer
        # The last frame of a lower level is computed again, and arrives then.
        stop = max(0, finer.length - 1) if isinstance(finer, _Level) else finer.length
        for frames in _read(finer, first * self._step, stop):
            self.add(frames)

    def store(self, count: int) -> int:
        """Append frames, and pass them on, unless the last one is incomplete."""
        frames = self.waiting(count)
        self.stored = super().store(count)
        self.check_alone()
        if self._coarser is not None and not self._is_incomplete:
            self._coarser.add(frames)
        return self.stored

    def add(self, frames: npt.NDArray[Any]) -> None:
        """Take frames of the finer level."""
        count = frames.shape[self.axis]
        done = min(self._step - self._held, count) if self._held else 0
        self._hold(frames, 0, done)
        if self._held == self._step:
            self._held = 0
            self._reduce(self._window)
        whole = (count - done) // self._step * self._step
        if whole:
            self._reduce(self._along(frames, done, done + whole))
        self._hold(frames, done + whole, count)

    def complete(self, finer: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        """Store all frames, and return that of an incomplete window; the finer level's belongs to it."""
        self._store(everything=True)
        held = self._held
        if finer is not None:
            self._hold(finer, 0, 1)
        count, self._held = self._held, held
        if not count:
            return None
        shape = list(self.frame_shape)
        shape.insert(self.axis, 1)
        frame = np.empty(shape, self.array.dtype)
        downscale(self._along(self._window, 0, count), self._factors, self._method, frame)
        if self._is_incomplete:
            self._replace_last(frame)
        else:
            self.put(self._accepted, frame)
            self._accepted += 1
            self._is_incomplete = True
            self.store(1)
        return frame

    def _hold(self, frames: npt.NDArray[Any], start: int, stop: int) -> None:
        """Keep frames of a window that is not full."""
        target = self._along(self._window, self._held, self._held + stop - start)
        np.copyto(target, self._along(frames, start, stop))
        self._held += stop - start

    def _reduce(self, frames: npt.NDArray[Any]) -> None:
        """Compute frames from whole windows."""
        count, done = frames.shape[self.axis] // self._step, 0
        while done < count:
            # All frames are stored if the last one is incomplete: its place is free.
            number = self._accepted - self._is_incomplete
            place = self._place(number)
            room = min(self.stored + self.capacity - self._accepted, self.capacity - place)
            step = 1 if self._is_incomplete else min(count - done, room)
            target = self._along(self._frames, place, place + step)
            windows = self._along(frames, done * self._step, (done + step) * self._step)
            downscale(windows, self._factors, self._method, target)
            if self._is_incomplete:
                self._replace_last(target)
                self._is_incomplete = False
                if self._coarser is not None:
                    self._coarser.add(target)
            else:
                self._accepted += step
            done += step
            self._store(everything=False)

    def _store(self, *, everything: bool) -> None:
        while count := self.run(self._accepted, everything=everything):
            self.store(count)

    def _replace_last(self, frame: npt.NDArray[Any]) -> None:
        self.array[(slice(None),) * self.axis + (slice(self.length - 1, self.length),)] = frame

    def _check_shape(self) -> None:
        """Refuse a level that does not belong to the finer one."""
        array, finer = self.array, self._finer
        expected = list(smaller(finer.array.shape, self._factors))
        found = list(array.shape)
        found[self.axis] = max(found[self.axis], expected[self.axis])
        if found != expected:
            raise ShapeError(
                f"level {array.basename!r} has shape {array.shape}, but {tuple(expected)} follows from shape "
                f"{finer.array.shape} of level {finer.array.basename!r} by the factors "
                f"{tuple(self._factors)}: compute it again by zarrow.ome.pyramid(image, overwrite=True), and "
                "open the image again",
                node=array,
            )
        if array.dtype != finer.array.dtype:
            raise DataTypeError(
                f"level {array.basename!r} has type {array.dtype}, but level {finer.array.basename!r} has "
                f"{finer.array.dtype}",
                node=array,
            )


def _read(ring: Ring, start: int, stop: int) -> Iterator[npt.NDArray[Any]]:
    """Yield stored frames, in whole write units."""
    step = max(1, _READ_NBYTES // (ring.frame_nbytes * ring.unit)) * ring.unit
    while start < stop:
        end = min(stop, (start // step + 1) * step)
        yield np.asarray(ring.array[(slice(None),) * ring.axis + (slice(start, end),)])
        start = end


def _factor(scale: float, finer: float) -> int:
    """Return how many elements become one: `zarrow.ome.save` stores the ratio of the rounded extents."""
    ratio = abs(scale / finer) if finer else 1.0
    nearest = round(ratio)
    return max(1, nearest if abs(ratio - nearest) < 0.1 else math.ceil(ratio))


def _method(image: Group, given: Method | None) -> Method:
    """Return how levels are computed: as the caller or the metadata say."""
    found = content_of(image)["multiscales"][0].get("type", "mean") if given is None else given
    if given is None and found not in get_args(Method):
        raise ValueError(
            f"the levels of {image.name!r} in {image.store} were computed by {found!r}, expected 'mean', "
            "'mode' or 'nearest': pass method="
        )
    return found
