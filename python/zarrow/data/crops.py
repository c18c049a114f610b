"""Samples that are boxes of an array.

Random crops are stratified: the region is cut at chunk boundaries. Sample i of n is drawn from the cell that
holds the fraction i/n of all corners. So places follow chunks, and one sample is uniform over the region.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array
from zarrow.data.permutation import Numbers, key, mixed
from zarrow.data.sources import Draw, Location, Out, SizeOf, Source, opened_array
from zarrow.hints.parameters import says_parameters

# More chunks of a crop are not counted one by one.
_MOST_STEPS = 512


@says_parameters
class Crops(Source):
    """Boxes of one shape at random corners, or at given ones.

    Parameters
    ----------
    array
        The array, or its path.
    shape
        The extent of a crop along each axis; None for the whole axis.
    count
        The number of random crops in an epoch. Each epoch draws other ones.
    corners
        The first element of each crop instead, of shape `(count, array.ndim)`.
    within
        The region of random crops: a slice without step for each axis, such as that of a training set.

    Raises
    ------
    ValueError
        A crop does not fit, or neither or both of `count` and `corners` are given.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> from zarrow import data
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> data.Crops(temperature, (8, None, 4), 1000, within=np.s_[:40]).sample_shape
    (8, 6, 4)
    >>> data.Crops(temperature, (8, 6, 4), corners=[(0, 0, 4), (40, 0, 0)]).count
    2
    """

    def __init__(
        self,
        array: Array | Location,
        shape: Sequence[int | None],
        count: int | None = None,
        *,
        corners: npt.ArrayLike | None = None,
        within: slice | tuple[slice, ...] = (),
    ) -> None:
        array = opened_array(array)
        super().__init__(array)
        if len(shape) != array.ndim:
            raise ValueError(f"crop {tuple(shape)} has {len(shape)} axes, but the array has {array.ndim}")
        if (count is None) == (corners is None):
            raise ValueError("pass either a count of random crops, or corners")
        self._region = _region(array, within)
        self.sample_shape = tuple(
            stop - start if extent is None else operator.index(extent)
            for extent, (start, stop) in zip(shape, self._region, strict=True)
        )
        fits = zip(self.sample_shape, self._region, strict=True)
        if any(extent < 1 or extent > stop - start for extent, (start, stop) in fits):
            raise ValueError(f"crop {self.sample_shape} does not fit the region {self._region}")
        self._grid = self._chunks()
        self._corners: Numbers | None = None
        self._order: Numbers | None = None
        if corners is None:
            self.count = operator.index(count or 0)
        else:
            given = np.array(corners)
            if given.dtype.kind not in "iu":
                raise TypeError(f"corners are integers, the first element of each crop, found {given.dtype}")
            self._take(given.astype(np.int64))
        if not 1 <= self.count < 1 << 48:
            raise ValueError(f"count is a number of crops, 1 or more, found {self.count}")

    def _definition(self) -> tuple[object, ...]:
        return "crops", self._region, None if self._corners is None else self._corners.tobytes().hex()

    def _take(self, corners: Numbers) -> None:
        """Check corners, and sort them by chunk."""
        if corners.ndim != 2 or corners.shape[1] != self.array.ndim:
            raise ValueError(f"corners have the shape {corners.shape}, not (count, {self.array.ndim})")
        last = np.array(self.array.shape) - self.sample_shape
        outside = np.flatnonzero(((corners < 0) | (corners > last)).any(axis=1))
        if len(outside):
            number = outside[0]
            raise ValueError(f"crop {number} at {tuple(corners[number].tolist())} does not fit the array")
        cells = corners // np.array(self._grid)
        self._order = np.lexsort(cells.T[::-1]).astype(np.int64) if cells.size else np.arange(len(corners))
        self._corners = corners
        self.count = len(corners)
        self._cells = max(1, len(np.unique(cells, axis=0)))

    def _aligned(self, first: Crops) -> Crops:
        """Return the same crops with the places of another source."""
        same = (self.count, self._corners is None) == (first.count, first._corners is None)
        if same and self._corners is None:
            same = (self._region, self.sample_shape) == (first._region, first.sample_shape)
        if not same:
            raise ValueError(
                "random crops of several arrays need the same shape, count and region: pass corners otherwise"
            )
        made = Crops.__new__(Crops)
        made.__dict__.update(self.__dict__, _grid=first._grid, _order=first._order)
        return made

    @property
    def _numbers(self) -> Numbers | None:
        return self._order

    @property
    def is_random(self) -> bool:
        """Whether each epoch draws other corners."""
        return self._corners is None

    def _at(self, places: Numbers, draw: Draw) -> Numbers:
        """Return the corners at places, one row each."""
        if self._corners is not None:
            return self._corners[places if self._order is None else self._order[places]]
        seeds = places.astype(np.uint64)
        position = (places + _fraction(mixed(seeds, key(*draw, "crop")))) / self.count
        found = np.empty((len(places), self.array.ndim), np.int64)
        for axis, (start, stop) in enumerate(self._region):
            corners, cell = stop - start - self.sample_shape[axis] + 1, self._grid[axis]
            at = np.minimum(start + position * corners, start + corners - 0.5)
            number = np.floor(at / cell)
            low = np.maximum(number * cell, start)
            width = np.minimum((number + 1) * cell, start + corners) - low
            position = np.clip((at - low) / width, 0, 1 - 2.0**-53)
            drawn = np.floor(_fraction(mixed(seeds, key(*draw, "crop", axis))) * width)
            found[:, axis] = low + np.minimum(drawn, width - 1)
        return found

    def _blocks(self) -> tuple[int, int]:
        if self._corners is not None:
            return max(1, self.count // self._cells), 0
        cells = 1
        for (start, stop), extent, cell in zip(self._region, self.sample_shape, self._grid, strict=True):
            cells *= (stop - extent) // cell - start // cell + 1
        return max(1, self.count // cells), 0

    def _covering(self, block: int) -> int:
        extents = zip(self._grid, self.sample_shape, strict=True)
        return math.prod(cell + extent for cell, extent in extents) // math.prod(self.sample_shape)

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        crops = [
            tuple(slice(at, at + extent) for at, extent in zip(corner, self.sample_shape, strict=True))
            for corner in self._at(places, draw).tolist()
        ]
        return self._read_items([(self.array, crop) for crop in crops], out)

    def _touched(self, places: Numbers, draw: Draw, size_of: SizeOf) -> list[int]:
        chunks = size_of(self.array)
        first = self._at(places, draw)
        last = (first + np.array(self.sample_shape) - 1) // np.array(chunks)
        first //= np.array(chunks)
        most = (last - first).max(axis=0, initial=0) + 1
        if math.prod(most.tolist()) > _MOST_STEPS:
            # More than there are: crops share chunks.
            return [int(np.minimum((last - first + 1).prod(axis=1).sum(), self._grid_size(chunks)))]
        grid = tuple(-(-extent // chunk) for extent, chunk in zip(self.array.shape, chunks, strict=True))
        found = [np.empty(0, np.int64)]
        for step in itertools.product(*map(range, most)):
            cells = first + np.array(step, np.int64)
            cells = cells[(cells <= last).all(axis=1)]
            found.append(
                np.unique(np.ravel_multi_index(tuple(cells.T), grid)) if grid else np.zeros(1, np.int64)
            )
        return [len(np.unique(np.concatenate(found)))]

    def _grid_size(self, chunks: tuple[int, ...]) -> int:
        """Return the number of chunks of the array."""
        return math.prod(-(-extent // chunk) for extent, chunk in zip(self.array.shape, chunks, strict=True))


def _region(array: Array, within: slice | tuple[slice, ...]) -> tuple[tuple[int, int], ...]:
    """Return start and stop along each axis."""
    parts = within if isinstance(within, tuple) else (within,)
    if len(parts) > array.ndim or not all(
        isinstance(part, slice) and part.step in (None, 1) for part in parts
    ):
        raise ValueError(f"within must have at most {array.ndim} slices without step, found {within!r}")
    parts += (slice(None),) * (array.ndim - len(parts))
    return tuple(part.indices(extent)[:2] for part, extent in zip(parts, array.shape, strict=True))


def _fraction(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return numbers of [0, 1)."""
    return np.asarray((hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53)
