"""Chooses the block of an array that a unit reads or writes, within a limit of memory.

1. A block is a multiple of the write unit, so that units are written independently, and nothing is read that
   is replaced.
2. While memory is left, the block grows along the axis where this saves most of the repeated reads: a source
   chunk that spans several blocks is read for each of them.
3. It then grows along the last axes until it has enough bytes to occupy all threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from zarrow._zarrow import Array

# A block of this size occupies the threads of a process.
_ENOUGH_BYTES = 64 << 20

# The size that an element of text or bytes is assumed to have.
_VARIABLE_NBYTES = 64


def item_nbytes(array: Array) -> int:
    """Return the size of an element; of text, an estimate."""
    return _VARIABLE_NBYTES if array.nbytes is None or not array.size else array.nbytes // array.size


def reads_of_each_byte(
    shape: Sequence[int],
    block: Sequence[int],
    chunk: Sequence[int] | None,
    starts: Sequence[int] = (),
    steps: Sequence[int] = (),
) -> float:
    """Return how often an average stored byte is read, if each block reads whole chunks of the source.

    Of a selection of the source, `starts` and `steps` say where its elements are.
    """
    if chunk is None:
        return 1.0
    starts, steps = starts or (0,) * len(shape), steps or (1,) * len(shape)
    return math.prod(map(_reads_along, shape, block, chunk, starts, steps))


def choose(
    shape: Sequence[int],
    unit: Sequence[int],
    chunk: Sequence[int] | None,
    item_nbytes: int,
    memory_nbytes: int,
    starts: Sequence[int] = (),
    steps: Sequence[int] = (),
) -> tuple[int, ...]:
    """Return a block for an array of this shape, write unit and source chunk (steps 1 to 3)."""
    starts, steps = starts or (0,) * len(shape), steps or (1,) * len(shape)
    units = [max(1, min(step, extent)) for step, extent in zip(unit, shape, strict=True)]
    block = list(units)

    def grown(axis: int) -> list[int] | None:
        length = longer(block, axis, units[axis], shape[axis], memory_nbytes // item_nbytes)
        return None if length is None else [*block[:axis], length, *block[axis + 1 :]]

    if chunk is not None:
        while True:
            best, best_saved = None, 1.0
            for axis in range(len(block)):
                larger = grown(axis)
                if larger is None:
                    continue
                now, then = (
                    _reads_along(shape[axis], extent, chunk[axis], starts[axis], steps[axis])
                    for extent in (block[axis], larger[axis])
                )
                saved = now / then
                if saved > best_saved + 1e-9:
                    best, best_saved = larger, saved
            if best is None:
                break
            block = best
    for axis in reversed(range(len(block))):
        while math.prod(block) * item_nbytes < _ENOUGH_BYTES and (larger := grown(axis)) is not None:
            block = larger
    return tuple(block)


def longer(block: Sequence[int], axis: int, unit: int, extent: int, most: int) -> int | None:
    """Return twice the length of an axis of a block, or less if only that fits into `most` elements."""
    if block[axis] >= extent:
        return None
    now, all_units = block[axis] // unit, -(-extent // unit)
    length = most * block[axis] // math.prod(block)
    fitting = all_units if length >= extent else length // unit
    count = min(2 * now, all_units)
    if count > fitting:
        # As few parts as fit, of equal lengths.
        count = -(-all_units // -(-all_units // max(1, fitting)))
    return min(count * unit, extent) if count > now else None


def _reads_along(extent: int, block: int, chunk: int, start: int = 0, step: int = 1) -> float:
    """Return how often a chunk is read along one axis: the number of pairs of chunk and block that overlap.

    Ends of blocks and of chunks cut the axis into pieces, and each piece is one such pair.
    """
    if extent <= 0 or chunk <= 0:
        return 1.0
    # In elements of the source, from the first one that is read.
    last, block = (extent - 1) * step, block * step
    ends = (last + start % chunk) // chunk
    # Cuts that are ends of both are counted once.
    common = _common_cuts(last, block, chunk, start)
    return (1 + last // block + ends - common) / (1 + ends)


def _common_cuts(last: int, block: int, chunk: int, start: int) -> int:
    """Count the multiples of `block` from 1 to `last` where a chunk begins, in an array read from `start`."""
    divisor = math.gcd(block, chunk)
    if start % divisor:
        return 0
    period = chunk // divisor
    first = -start // divisor * pow(block // divisor, -1, period) % period or period
    count = last // block
    return 0 if first > count else (count - first) // period + 1
