"""Chooses blocks to compute the levels of an image in, within a limit of memory.

1. A block of a level is a multiple of its write unit and of the factor, and is computed from whole blocks of
   the level before. At the end of an axis, a block is smaller.
2. Blocks of the first level are enlarged until one read occupies all threads.
3. A unit of a plan is the part of the first level below one block of level `depth`. Units are small enough
   to be repeated after a kill, and large enough to leave few elements for the levels above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zarrow.ome.downscaling import smaller

Shape = tuple[int, ...]

# A read of this size occupies the threads of a process.
_ENOUGH_BYTES = 64 << 20

# Units of at least this size are made larger only while there are many.
_UNIT_NBYTES = 256 << 20
_MANY_UNITS = 64


@dataclass(frozen=True)
class Blocks:
    """The blocks of each level.

    Attributes
    ----------
    shapes : tuple of tuple of int
        The shape of each level.
    blocks : tuple of tuple of int
        The shape of a block of each level.
    depth : int
        The last level that is computed from the first one; levels after it are computed from it.
    nbytes : int
        The size of the blocks of these levels, which are in memory together.
    """

    shapes: tuple[Shape, ...]
    blocks: tuple[Shape, ...]
    depth: int
    nbytes: int

    def unit(self, factors: Sequence[int]) -> Shape:
        """Return the shape of a unit on the first level (step 3)."""
        return _below(self.shapes[0], self.blocks[self.depth], factors, self.depth)


def shapes(shape: Shape, factors: Sequence[int], count: int) -> tuple[Shape, ...]:
    """Return the shapes of `count` levels."""
    found = [shape]
    while len(found) < count:
        found.append(smaller(found[-1], factors))
    return tuple(found)


def choose(
    found: Sequence[Shape],
    units: Sequence[Shape],
    factors: Sequence[int],
    item_nbytes: int,
    memory_nbytes: int,
    *,
    is_divided: bool = True,
) -> Blocks:
    """Return blocks for levels of these shapes and write units (steps 1 to 3).

    Without `is_divided`, one process computes all levels: only the memory limits `depth`.
    """

    def nbytes(blocks: Sequence[Shape], last: int) -> int:
        return item_nbytes * sum(map(math.prod, blocks[: last + 1]))

    def fits(blocks: Sequence[Shape], last: int) -> bool:
        is_enough = math.prod(blocks[0]) * item_nbytes <= _ENOUGH_BYTES
        return is_enough and nbytes(blocks, last) <= memory_nbytes

    least = _least(found, units, factors)
    blocks, depth = least, min(1, len(found) - 1)
    for top in range(1, len(found)):
        # The part of each level below one block of the level `top`.
        larger = [
            _below(found[level], least[top], factors, top - level) if level < top else least[level]
            for level in range(len(found))
        ]
        if not fits(larger, top):
            break
        blocks = larger
    for level in range(2, len(found)):
        unit = _below(found[0], blocks[level], factors, level)
        is_large = math.prod(unit) * item_nbytes > _UNIT_NBYTES and _count(found[0], unit) < _MANY_UNITS
        if (is_divided and is_large) or nbytes(blocks, level) > memory_nbytes:
            break
        depth = level
    for axis in reversed(range(len(found[0]))):
        while blocks[0][axis] < found[0][axis]:
            larger = [
                tuple(min(shape[at], (2 if at == axis else 1) * extent) for at, extent in enumerate(block))
                for shape, block in zip(found, blocks, strict=True)
            ]
            if not fits(larger, depth):
                break
            blocks = larger
    return Blocks(tuple(found), tuple(blocks), depth, nbytes(blocks, depth))


def _count(shape: Shape, block: Shape) -> int:
    return math.prod(-(-extent // step) for extent, step in zip(shape, block, strict=True))


def _least(found: Sequence[Shape], units: Sequence[Shape], factors: Sequence[int]) -> list[Shape]:
    """Return the smallest blocks (step 1)."""
    blocks: list[Shape] = []
    for level, (shape, unit) in enumerate(zip(found, units, strict=True)):
        block = []
        for axis, (extent, step, factor) in enumerate(zip(shape, unit, factors, strict=True)):
            if level and blocks[-1][axis] >= found[level - 1][axis]:
                # The whole axis is in one block of the level before.
                block.append(max(1, extent))
            else:
                finer = blocks[-1][axis] // factor if level else 1
                block.append(max(1, min(math.lcm(step, factor, finer), extent)))
        blocks.append(tuple(block))
    return blocks


def _below(shape: Shape, block: Shape, factors: Sequence[int], depth: int) -> Shape:
    """Return the part of a level of this shape below a block `depth` levels above."""
    return tuple(
        max(1, min(extent, step * factor**depth))
        for extent, step, factor in zip(shape, block, factors, strict=True)
    )
