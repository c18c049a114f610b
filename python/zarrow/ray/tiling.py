"""Divides an array into tiles, the rows of a dataset, and groups tiles into blocks that are read at once.

1. A block is the smallest group of tiles that ends where write units end, so that each shard or chunk is read
   by one task. If such a block is too large, a block is one tile.
2. Blocks follow each other in C order, and so do the tiles of a block.
3. How many tiles and elements a range of blocks has is computed from shapes. No list is made, since
   there may be 10^9 chunks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zarrow.jobs.units import Grid

Region = tuple[slice, ...]

# A block of this size is read at once, and is in memory twice: as elements, and as rows.
_BLOCK_NBYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Tiling:
    """The tiles of an array, in blocks."""

    tile: tuple[int, ...]
    blocks: Grid

    @classmethod
    def over(
        cls, shape: tuple[int, ...], tile: tuple[int, ...], unit: Sequence[int] | None, item_nbytes: int
    ) -> Tiling:
        """Return the tiles of an array with this write unit (step 1)."""
        block = tile if unit is None else tuple(map(math.lcm, tile, unit))
        if math.prod(map(min, block, shape)) * item_nbytes > _BLOCK_NBYTES:
            block = tile
        return cls(tile, Grid(shape, block))

    def tiles_before(self, number: int) -> int:
        """Return how many tiles the blocks before a block have (step 3)."""
        return self._before(number, self.tile)

    def elements_before(self, number: int) -> int:
        """Return how many elements the blocks before a block have (step 3)."""
        return self._before(number, (1,) * len(self.tile))

    def tiles(self, region: Region) -> Iterator[tuple[tuple[int, ...], Region]]:
        """Yield the index and the region of each tile of a block."""
        along = [
            [
                (start // step, slice(start, min(start + step, part.stop)))
                for start in range(part.start, part.stop, step)
            ]
            for part, step in zip(region, self.tile, strict=True)
        ]
        for places in itertools.product(*along):
            yield tuple(place for place, _ in places), tuple(part for _, part in places)

    def _before(self, number: int, steps: Sequence[int]) -> int:
        """Return how many steps all blocks before a block have together."""
        counts, extents, blocks = self.blocks.counts, self.blocks.shape, self.blocks.block
        if not number:
            return 0
        total, below = 0, 1
        # From the last axis to the first one: `total` is within the axes so far, `below` their whole extent.
        for axis in reversed(range(len(counts))):
            number, place = (0, number) if axis == 0 else divmod(number, counts[axis])
            edges = [min((place + more) * blocks[axis], extents[axis]) for more in (0, 1)]
            start, stop = (-(-edge // steps[axis]) for edge in edges)
            total = start * below + (stop - start) * total
            below *= -(-extents[axis] // steps[axis])
        return total if counts else number
