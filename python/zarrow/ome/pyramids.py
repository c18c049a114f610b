"""Computes the levels of an OME-Zarr image from its first one.

1. The first level is read once. A block stays in memory until its part of each coarser level is computed,
   so that memory is bounded by one block of each level.
2. The work is a plan of `zarrow.jobs`: its units compute the levels up to some depth. The others have few
   elements, and are computed when the plan is finished.
3. Whole write units are stored, and nothing is read that is replaced.
4. The metadata are stored last: before, the levels are not part of an image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrow._zarrow import Array, Group, open
from zarrow.errors import NodeTypeError, NotFoundError, UnsupportedError
from zarrow.jobs import new_nodes
from zarrow.jobs.units import Grid, Unit
from zarrow.jobs.work import Item, New, fixed_metadata, identity_of
from zarrow.ome import blocks
from zarrow.ome.downscaling import Method, downscale
from zarrow.ome.reading import content_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from zarrow.api.array_options import Store
    from zarrow.ome.blocks import Blocks, Shape

Region = tuple[slice, ...]


@dataclass(frozen=True)
class Cascade:
    """Levels that are computed from one that is read."""

    source: Array
    targets: Sequence[Array | None]
    blocks: Blocks
    factors: tuple[int, ...]
    method: Method

    def compute(self, level: int, region: Region) -> npt.NDArray[Any]:
        """Compute and store a region of a level, and return its elements (steps 1 and 3)."""
        if level == 0:
            values: npt.NDArray[Any] = self.source.read(region).numpy()
        else:
            values = np.empty([part.stop - part.start for part in region], self.source.dtype)
            for finer in self._blocks_below(level, region):
                found = self.compute(level - 1, finer)
                place = tuple(
                    slice(part.start // factor - whole.start, -(-part.stop // factor) - whole.start)
                    for part, factor, whole in zip(finer, self.factors, region, strict=True)
                )
                downscale(found, self.factors, self.method, values[place])
        target = self.targets[level]
        if target is not None:
            target[region] = values
        return values

    def _blocks_below(self, level: int, region: Region) -> Iterator[Region]:
        """Yield the blocks of the level before that a region needs."""
        below = [
            slice(part.start * factor, min(part.stop * factor, extent))
            for part, factor, extent in zip(region, self.factors, self.blocks.shapes[level - 1], strict=True)
        ]
        grid = Grid(tuple(part.stop - part.start for part in below), self.blocks.blocks[level - 1])
        for number in range(len(grid)):
            yield tuple(
                slice(whole.start + part.start, whole.start + part.stop)
                for whole, part in zip(below, grid.region(number), strict=True)
            )


@dataclass(frozen=True)
class Pyramid(Item):
    """The levels of an image as an item of a plan: the first source is the first level.

    Attributes
    ----------
    levels : tuple of New
        The arrays to create: the levels after the first one, or all levels for a copy of the first.
    factors : tuple of int
        The elements along each axis that become one.
    group_path : str
        The path of the image.
    """

    levels: tuple[New, ...]
    factors: tuple[int, ...]
    method: Method
    memory_nbytes: int
    count: int
    store: Store
    group_path: str

    @property
    def created(self) -> tuple[New, ...]:
        """The arrays that the plan creates."""
        return self.levels

    @property
    def copies_first(self) -> bool:
        """Whether the first level is created, too."""
        return len(self.levels) == self.count

    @cached_property
    def chosen(self) -> Blocks:
        """The blocks of the units."""
        first = self._read_unit()
        if self.copies_first:
            first = tuple(map(math.lcm, first, self._write_unit(self.levels[0].sample)))
        units = (first, *(self._write_unit(new.sample) for new in self.levels[-(self.count - 1) :]))
        return self._choose(self.sources[0].shape, units[: self.count])

    def grid(self, memory_nbytes: int) -> Grid:
        """Return the units: parts of the first level."""
        return Grid(self.sources[0].shape, self.chosen.unit(self.factors))

    def identity(self) -> dict[str, Any]:
        """Return the arrays, the metadata that must stay, and the levels to compute."""
        return {
            "sources": [identity_of(source) for source in self.sources],
            "levels": [[new.path, fixed_metadata(new.sample)] for new in self.levels],
            "method": self.method,
            "factors": list(self.factors),
            "depth": self.chosen.depth,
        }

    def opened(self) -> tuple[Array | None, ...]:
        """Open the levels, to write them; None for a first level that is only read."""
        created = tuple(new_nodes.opened(self.levels))
        return created if self.copies_first else (None, *created)

    def before_erasing(self) -> None:
        """Take the levels that will be erased out of the metadata of an existing image (step 4)."""
        try:
            group = open(self.store, self.group_path, mode="r+")
        except NotFoundError:
            return
        if not isinstance(group, Group):
            raise NodeTypeError(
                f"{group.path!r} is an array, expected the group of an image: choose another path", node=group
            )
        content = dict(content_of(group))
        images = content.pop("multiscales", None)
        if images is None:
            return
        if not self.copies_first:
            # The plan has checked the metadata.
            first, *others = images
            content["multiscales"] = [{**first, "datasets": first["datasets"][:1]}, *others]
        is_inner = isinstance(group.attrs.get("ome"), Mapping)
        group.attrs.put({**group.attrs, "ome": content} if is_inner else content)

    def do(self, function: Any, passes_unit: bool, unit: Unit, target: Any) -> object:
        """Compute the parts of the levels from a unit of the first level (step 2)."""
        depth = self.chosen.depth
        if any(level is not None for level in target[: depth + 1]):
            cascade = Cascade(self.sources[0], target, self.chosen, self.factors, self.method)
            power = [factor**depth for factor in self.factors]
            region = tuple(
                slice(part.start // step, -(-part.stop // step))
                for part, step in zip(unit.region, power, strict=True)
            )
            cascade.compute(depth, region)
        return None

    def finish(self, target: Any) -> None:
        """Compute the levels that units do not reach (step 2)."""
        first = self.chosen.depth
        while first + 1 < self.count:
            arrays = [self.sources[0] if level is None else level for level in target[first:]]
            units = [self._write_unit(array) for array in arrays]
            found = self._choose(arrays[0].shape, units, is_divided=False)
            cascade = Cascade(arrays[0], [None, *arrays[1:]], found, self.factors, self.method)
            grid = Grid(found.shapes[found.depth], found.blocks[found.depth])
            for number in range(len(grid)):
                cascade.compute(found.depth, grid.region(number))
            first += found.depth

    def _choose(self, shape: Shape, units: Sequence[Shape], *, is_divided: bool = True) -> Blocks:
        item_nbytes = self.sources[0].dtype.itemsize
        shapes = blocks.shapes(shape, self.factors, len(units))
        found = blocks.choose(
            shapes, units, self.factors, item_nbytes, self.memory_nbytes, is_divided=is_divided
        )
        if found.nbytes > self.memory_nbytes:
            raise ValueError(
                f"memory_nbytes is {self.memory_nbytes}, but blocks of the first levels take {found.nbytes} "
                f"bytes: {found.blocks[: found.depth + 1]}; pass more memory, or smaller chunks or shards"
            )
        return found

    def _read_unit(self) -> Shape:
        """Return the shape of a chunk that is read once: a shard if several of them fit into memory."""
        source = self.sources[0]
        unit, item_nbytes = self._write_unit(source), source.dtype.itemsize
        if source.chunks is not None and math.prod(unit) * item_nbytes > self.memory_nbytes // 4:
            return source.chunks
        return unit

    def _write_unit(self, array: Array) -> Shape:
        unit = array.write_unit
        if unit is None:
            raise UnsupportedError(
                f"array {array.path!r} in {array.store} has chunks of different shapes, which plans do not "
                "divide",
                node=array,
            )
        return unit

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "chosen"}
