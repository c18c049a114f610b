"""What a sample is: a row, a window or a crop of an array.

1. A source reads the samples at given places into a batch. Places follow the storage, so that neighbouring
   places share chunks; numbers are the user's.
2. Random crops are stratified: the region is cut at chunk boundaries. Sample i of n is drawn from the cell
   that holds the fraction i/n of all corners. So places follow chunks, and one sample is uniform over the
   region.
"""

from __future__ import annotations

import copy
import itertools
import math
import operator
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array, CloudStore, Group, MemoryStore, _StageTimes, open, read_many
from zarrow.data.cache_size import CacheSize
from zarrow.data.element_sizes import element_nbytes, filled, has_fixed_size, numpy_form
from zarrow.data.permutation import Numbers, key, mixed
from zarrow.hints.parameters import says_parameters

# Of an epoch: random crops depend on both.
Draw: TypeAlias = tuple[int, int]
Out: TypeAlias = npt.NDArray[Any] | None
SizeOf: TypeAlias = Callable[[Array], tuple[int, ...]]

# More indices of windows, or chunks of a crop, are not counted one by one.
_MOST_COUNTED, _MOST_STEPS = 1 << 22, 512
Location: TypeAlias = str | os.PathLike[str] | MemoryStore | CloudStore


class Cost(NamedTuple):
    """Chunks that a read decodes, shards that have them, and the bytes of these chunks."""

    chunks: int
    shards: int
    nbytes: int


class Source:
    """Samples of one array; `Rows`, `Windows` and `Crops` are its kinds."""

    array: Array
    sample_shape: tuple[int, ...]
    count: int

    def __init__(self, array: Array) -> None:
        self.array = array
        self._element_nbytes = element_nbytes(array)

    @property
    def sample_nbytes(self) -> int:
        """Bytes of one sample: an estimate if elements differ in size."""
        return math.prod(self.sample_shape) * self._element_nbytes

    @property
    def has_fixed_size(self) -> bool:
        """Whether samples are read into given memory: elements have one size, and none is missing."""
        return has_fixed_size(self.array)

    def _arrays(self) -> tuple[Array, ...]:
        """Return the arrays that are read."""
        return (self.array,)

    def _replace_arrays(self, arrays: tuple[Array, ...]) -> None:
        """Read these arrays instead, which are equal."""
        (self.array,) = arrays

    @property
    def _nbytes(self) -> int:
        """Bytes of all decoded elements: an estimate if they differ in size."""
        return math.prod(self.array.shape) * self._element_nbytes

    def _cached(self, size: CacheSize) -> Self:
        """Return the same samples of arrays with a cache of decoded chunks."""
        arrays = self._arrays()
        made = copy.copy(self)
        whole = sum(array.nbytes or 0 for array in arrays)
        shares = [size if len(arrays) == 1 else size.share(array.nbytes or 0, whole) for array in arrays]
        made._replace_arrays(tuple(map(_with_cache, arrays, shares)))
        return made

    def _timed(self, times: _StageTimes) -> Self:
        """Return the same samples; `times` gets the time of their reads."""
        made = copy.copy(self)
        made._replace_arrays(tuple(map(times.measured, self._arrays())))
        return made

    def _filled(self, count: int) -> Any:
        """Return samples of fill values, in new memory."""
        return filled(self.array, (count, *self.sample_shape))

    def _summary(self) -> str:
        """Return a line for a report."""
        array = self.array
        return (
            f"{type(self).__name__} {self.sample_shape} of {array.dtype} {array.shape}, "
            f"chunks {array.chunks}, shards {array.shards}"
        )

    @property
    def _numbers(self) -> Numbers | None:
        """The number of the sample at each place, or None if it is the place."""
        return None

    def _definition(self) -> tuple[object, ...]:
        """Return what determines a sample beside the array and the sample's shape."""
        raise NotImplementedError

    def _blocks(self) -> tuple[int, int]:
        """Return the size of blocks of places that share chunks, and the start of one block."""
        raise NotImplementedError

    def _covering(self, block: int) -> int:
        """Return how many samples have as many bytes as the elements that a block of samples shares."""
        return block

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        """Read samples into memory of shape `(len(places), *sample_shape)`, or into new memory without `out`.

        New memory is an array of the form that `Array.read(...).numpy()` has.
        """
        raise NotImplementedError

    def _read_items(self, items: list[Any], out: Out) -> Any:
        """Read one selection for each sample."""
        if out is not None:
            return read_many(items, out=out)
        return numpy_form(read_many(items)) if items else self._filled(0)

    def _touched(self, places: Numbers, draw: Draw, size_of: SizeOf) -> list[int]:
        """Return how many chunks or shards one read of these samples needs, of each array."""
        raise NotImplementedError

    def _cost(self, places: Numbers, draw: Draw) -> Cost:
        """Return the cost of one read of these samples."""
        arrays = self._arrays()
        chunks = self._touched(places, draw, chunks_of)
        shards = (
            [0] if all(array.shards is None for array in arrays) else self._touched(places, draw, _shards)
        )
        nbytes = (
            count * math.prod(chunks_of(array)) * element_nbytes(array)
            for count, array in zip(chunks, arrays, strict=True)
        )
        return Cost(sum(chunks), sum(shards), sum(nbytes))

    def _chunks(self) -> tuple[int, ...]:
        return chunks_of(self.array)

    def _touched_along(self, axis: int, indices: Numbers, size_of: SizeOf) -> list[int]:
        """Return how many cells have these indices of an axis, with all cells along the other axes."""
        found = []
        for array in self._arrays():
            sizes, shape = size_of(array), array.shape
            others = math.prod(-(-shape[k] // sizes[k]) for k in range(len(shape)) if k != axis)
            found.append(len(np.unique(indices // sizes[axis])) * others)
        return found


@says_parameters
class Rows(Source):
    """One sample for each index along an axis, without that axis.

    Parameters
    ----------
    array
        The array, or its path.
    axis
        The axis of samples.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import data
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> data.Rows(temperature).count, data.Rows(temperature, axis=1).sample_shape
    (48, (48, 8))
    """

    def __init__(self, array: Array | Location, axis: int = 0) -> None:
        array = _opened(array)
        super().__init__(array)
        self.axis = _axis(array, axis)
        self.count = array.shape[self.axis]
        self.sample_shape = array.shape[: self.axis] + array.shape[self.axis + 1 :]

    def _definition(self) -> tuple[object, ...]:
        return "rows", self.axis

    def _blocks(self) -> tuple[int, int]:
        return self._chunks()[self.axis], 0

    def _read(self, places: Numbers, out: Out, draw: Draw) -> Any:
        selection = (*(slice(None),) * self.axis, places)
        if out is not None:
            return self.array.read(selection, out=np.moveaxis(out, 0, self.axis))
        return np.moveaxis(numpy_form(self.array.read(selection)), self.axis, 0)

    def _touched(self, places: Numbers, draw: Draw, size_of: SizeOf) -> list[int]:
        return self._touched_along(self.axis, places, size_of)


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
        array = _opened(array)
        super().__init__(array)
        self.axis = _axis(array, axis)
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
        array = _opened(array)
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


def opened(source: Any) -> Any:
    """Return the array or group of a path or a store, and anything else unchanged."""
    is_location = isinstance(source, str | os.PathLike | MemoryStore | CloudStore)
    return open(source, mode="r") if is_location else source


def _opened(array: Any) -> Array:
    """Return the array, or that of a path.

    Raises
    ------
    TypeError
        The path has a group, or the object is of another type.
    """
    array = opened(array)
    if isinstance(array, Array):
        return array
    hint = ""
    if isinstance(array, Group):
        hint = ": pass the group itself to zarrow.data.Plan, or the path of one of its arrays"
    elif _is_dataset_of_torch(array):
        hint = ": type torch.utils.data.DataLoader(dataset, batch_size=32)"
    elif hasattr(type(array), "__array__"):
        hint = ": type zarrow.create_array(zarrow.MemoryStore(), data=x)"
    raise TypeError(f"a source is a zarrow.Array, found {type(array).__name__}{hint}")


def _is_dataset_of_torch(source: Any) -> bool:
    torch = sys.modules.get("torch.utils.data")
    return torch is not None and isinstance(source, torch.Dataset)


def chunks_of(array: Array) -> tuple[int, ...]:
    """Return the chunk; for a rectilinear grid, chunks of about the average size."""
    if array.chunks is not None:
        return array.chunks
    sizes = array.metadata["chunk_grid"]["configuration"]["chunk_shapes"]
    return tuple(map(_average, array.shape, sizes))


def _shards(array: Array) -> tuple[int, ...]:
    """Return the shard; of an array without shards, one that has all."""
    return array.shards or tuple(max(1, extent) for extent in array.shape)


def _with_cache(array: Array, size: CacheSize) -> Array:
    """Return the array with a new cache of decoded chunks."""
    folder = size.folder if size.disk_nbytes else None
    return array._with_cache(size.memory_nbytes, folder, size.disk_nbytes)


def _average(extent: int, sizes: int | Sequence[int | Sequence[int]]) -> int:
    """Return the average chunk along an axis, of one size, or of sizes and pairs of a size and its count."""
    if isinstance(sizes, int):
        return sizes
    count = sum(1 if isinstance(size, int) else size[1] for size in sizes)
    return max(1, -(-extent // max(count, 1)))


def _axis(array: Array, axis: int) -> int:
    axis = operator.index(axis)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis {axis} is out of range for an array of {array.ndim} axes")
    return axis % array.ndim


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
