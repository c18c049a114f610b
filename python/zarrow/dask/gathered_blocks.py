"""Gathers the blocks of dask that share a write unit, so that one task encodes each chunk or shard.

1. An edge between two blocks is moved to the next multiple of the write unit, counted from the start of the
   target array. If edges meet, their blocks become one.
2. The first and the last edge are kept: at both ends of a region, a write unit may be written in part.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dask.array


def aligned(
    blocks: Sequence[Sequence[int]], unit: Sequence[int], starts: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Return blocks along each axis with edges between write units (steps 1 and 2).

    Parameters
    ----------
    blocks
        Lengths of blocks along each axis, as `dask.array.Array.chunks`.
    unit
        The shape of a write unit.
    starts
        Where the first block starts along each axis.
    """
    return tuple(map(_along, blocks, unit, starts))


def _along(blocks: Sequence[int], unit: int, start: int) -> tuple[int, ...]:
    total = sum(blocks)
    edges = list(itertools.accumulate(blocks))
    if all((start + edge) % unit == 0 for edge in edges[:-1]):
        return tuple(blocks)
    moved = {min(-(-(start + edge) // unit) * unit - start, total) for edge in edges}
    return tuple(end - begin for begin, end in itertools.pairwise(sorted({0, *moved, total})))


def gathered(source: dask.array.Array, unit: Sequence[int] | None, starts: Sequence[int]) -> dask.array.Array:
    """Return an array of dask with blocks that end between write units: dask gathers the elements.

    Without a `unit`, as for chunks of different shapes, return the source.
    """
    blocks = source.chunks if unit is None else aligned(source.chunks, unit, starts)
    if blocks == source.chunks:
        return source
    moved: dask.array.Array = source.rechunk(blocks)  # type: ignore[no-untyped-call]
    return moved
