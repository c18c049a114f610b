"""What all kinds of samples share: `Rows`, `Windows` and `Crops` have a file each.

A source reads the samples at given places into a batch. Places follow the storage, so that neighbouring
places share chunks; numbers are the user's.
"""

from __future__ import annotations

import copy
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
from zarrow.data.permutation import Numbers

# Of an epoch: random crops depend on both.
Draw: TypeAlias = tuple[int, int]
Out: TypeAlias = npt.NDArray[Any] | None
SizeOf: TypeAlias = Callable[[Array], tuple[int, ...]]

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


def opened(source: Any) -> Any:
    """Return the array or group of a path or a store, and anything else unchanged."""
    is_location = isinstance(source, str | os.PathLike | MemoryStore | CloudStore)
    return open(source, mode="r") if is_location else source


def opened_array(array: Any) -> Array:
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


def checked_axis(array: Array, axis: int) -> int:
    """Return the number of an axis, which may be counted from the end."""
    axis = operator.index(axis)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis {axis} is out of range for an array of {array.ndim} axes")
    return axis % array.ndim
