"""Numbers the units of a plan. Only shapes are kept, so that 10^9 units take no more memory than one.

1. Each array is divided by a grid of blocks. Blocks at the end of an axis are smaller, and so are those that
   begin before the first element to write.
2. Arrays follow each other in the order of their paths, and the blocks of an array in C order.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex, overload


@dataclass(frozen=True, slots=True)
class Grid:
    """The blocks of an array."""

    shape: Sequence[int]
    block: tuple[int, ...]
    # The first element to write; by default that of the array.
    first: tuple[int, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of blocks along each axis."""
        return tuple(
            -(-extent // step) - first // step if first < extent else 0
            for extent, step, first in self._axes()
        )

    def _axes(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.shape, self.block, self.first or (0,) * len(self.block), strict=True)

    def __len__(self) -> int:
        return math.prod(self.counts)

    def region(self, number: int) -> tuple[slice, ...]:
        """Return the region of a block."""
        region = []
        for (extent, step, first), count in zip(
            reversed(list(self._axes())), reversed(self.counts), strict=True
        ):
            number, place = divmod(number, count)
            start = (first // step + place) * step
            region.append(slice(max(start, first), min(start + step, extent)))
        return tuple(reversed(region))


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a plan's work, which is done as a whole.

    Attributes
    ----------
    number : int
        Its number in the plan, from 0.
    path : str
        The path of the array, below the plan's group; "" for a plan of one array.
    region : tuple of slice
        The region of the array.
    """

    number: int
    path: str
    region: tuple[slice, ...]


class Units(Sequence[Unit]):
    """The units of a plan, in order (steps 1 and 2)."""

    def __init__(self, grids: Mapping[str, Grid]) -> None:
        self._grids = dict(sorted(grids.items()))
        self._paths = list(self._grids)
        self._ends = list(itertools.accumulate(len(grid) for grid in self._grids.values()))

    @property
    def grids(self) -> dict[str, Grid]:
        """The grid of each array, by its path."""
        return self._grids

    def ranges(self, paths: Container[str]) -> Iterator[tuple[int, int]]:
        """Yield the first number, and that after the last one, of the units of each of these arrays."""
        for path, start, stop in zip(self._paths, [0, *self._ends], self._ends, strict=False):
            if path in paths and stop > start:
                yield start, stop

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, number: SupportsIndex) -> Unit: ...
    @overload
    def __getitem__(self, number: slice) -> list[Unit]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> Unit | list[Unit]:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        index = operator.index(number)
        index += len(self) if index < 0 else 0
        if not 0 <= index < len(self):
            raise IndexError(f"the plan has {len(self)} units, got unit {number}")
        place = bisect.bisect_right(self._ends, index)
        path = self._paths[place]
        before = self._ends[place - 1] if place else 0
        return Unit(index, path, self._grids[path].region(index - before))

    def __repr__(self) -> str:
        return f"<{len(self)} units of {len(self._grids)} arrays>"
