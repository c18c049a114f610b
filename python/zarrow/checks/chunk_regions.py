"""Regions of whole chunks that fit into memory, and the chunks in a region."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from zarrow._zarrow import Array
from zarrow.jobs import blocks
from zarrow.jobs.units import Grid

# Elements that are in memory at a time.
_MEMORY_NBYTES = 64 << 20


def parts(array: Array) -> Iterator[tuple[slice, ...]]:
    """Yield regions of whole chunks or shards, which fit into memory together with their chunks."""
    unit = array.write_unit
    if unit is None:
        # Chunks of different shapes: slices of the first axis.
        unit = (1, *array.shape[1:])
    block = blocks.choose(array.shape, unit, None, max(1, blocks.item_nbytes(array)), _MEMORY_NBYTES)
    grid = Grid(array.shape, block)
    return (grid.region(number) for number in range(len(grid)))


def chunks_in(
    region: tuple[slice, ...], chunk: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield the chunks that meet a region: their places in the grid, and the regions they have in common."""
    ranges = [
        range(part.start // step, -(-part.stop // step)) for part, step in zip(region, chunk, strict=True)
    ]
    # `itertools.product` keeps all numbers of each range in memory: the first may be a long one.
    places = (
        ((first, *rest) for first in ranges[0] for rest in itertools.product(*ranges[1:])) if ranges else [()]
    )
    for place in places:
        yield (
            place,
            tuple(
                slice(max(part.start, index * step), min(part.stop, (index + 1) * step))
                for part, index, step in zip(region, place, chunk, strict=True)
            ),
        )
