"""The chunks that a variable prefers in dask: shards, or large parts of shards."""

from __future__ import annotations

import math
from typing import TypeAlias

from zarrow._zarrow import Array

Extents: TypeAlias = tuple[int | tuple[int, ...], ...]

# Parts grow up to this size, which is dask's `array.chunk-size`.
_PREFERRED_NBYTES = 1 << 27
# A limit against hostile metadata: tried divisors of a shard.
_DIVISORS = 1 << 12


def preferred_chunks(array: Array, chunks: Extents, shards: Extents | None) -> Extents:
    """Return the extents to read at once: shards, or large parts of shards."""
    if shards is None or array.shards is None or array.chunks is None:
        return shards or chunks
    parts = list(array.chunks)
    nbytes = math.prod(parts) * max(array.dtype.itemsize, 1)
    for axis in reversed(range(array.ndim)):
        times = array.shards[axis] // parts[axis]
        fit = max(_PREFERRED_NBYTES // max(nbytes, 1), 1)
        largest = min(times, fit)
        candidates = range(largest, max(largest - _DIVISORS, 0), -1)
        grown = next((count for count in candidates if times % count == 0), 1)
        parts[axis] *= grown
        nbytes *= grown
    return tuple(parts)
