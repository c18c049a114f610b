"""Chooses whether an array is rechunked in one pass or in two, by the bytes that are read and written.

1. In one pass, a block of the target reads all source chunks that it touches: a chunk that touches many
   blocks is read many times.
2. In two passes, the first one reads blocks of whole source chunks, and stores each as a shard of an
   intermediate array. The second one reads, for each block of the target, inner chunks of many shards.
3. A block of a pass grows along the axes where blocks of the other pass are longer. The smaller of both
   lengths is that of an inner chunk, as in the algorithm of rechunker.
4. A shard and its encoded bytes are in memory at the same time, so a shard takes half of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zarrow.jobs import blocks

# Stored bytes that are read more often than this can make two passes worth it.
MOST_READS = 1.2

# Smaller shards cost more in requests than they save in bytes.
LEAST_NBYTES = 1 << 20

# Size of a chunk's entry in the index of a shard.
_INDEX_NBYTES = 16


@dataclass(frozen=True, slots=True)
class Cost:
    """How often each byte of an array is read and written, in all passes together.

    Attributes
    ----------
    reads, writes : float
        The bytes that are read or written, divided by the array's bytes.
    """

    reads: float
    writes: float

    @property
    def moved(self) -> float:
        """Both together."""
        return self.reads + self.writes

    def __str__(self) -> str:
        return f"{self.reads:.2f} reads and {self.writes:.2f} writes of each byte"


@dataclass(frozen=True, slots=True)
class Intermediate:
    """The chunks and shards of the array between two passes.

    Attributes
    ----------
    chunks, shards : tuple of int
        Shapes of inner chunks and of shards.
    nbytes : int
        Bytes of a shard's elements.
    cost : Cost
        The cost of both passes.
    """

    chunks: tuple[int, ...]
    shards: tuple[int, ...]
    nbytes: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Rechunking:
    """Shapes of a copy: of the array, the target's write unit and the source chunk; and its memory.

    `starts` and `steps` say where the elements are in the source.
    """

    shape: Sequence[int]
    unit: Sequence[int]
    chunk: Sequence[int]
    item_nbytes: int
    memory_nbytes: int
    starts: Sequence[int] = ()
    steps: Sequence[int] = ()

    def one_pass(self) -> Cost:
        """Return the cost of one pass (step 1)."""
        block = blocks.choose(
            self.shape, self.unit, self.chunk, self.item_nbytes, self.memory_nbytes, self.starts, self.steps
        )
        return Cost(blocks.reads_of_each_byte(self.shape, block, self.chunk, self.starts, self.steps), 1.0)

    def two_passes(self) -> Intermediate | None:
        """Return the array between two passes, with their cost (steps 2 to 4); `None` without elements."""
        if not math.prod(self.shape):
            return None
        # Source chunks and write units in elements of the copy.
        chunk = [
            max(1, min(-(-length // step), extent))
            for length, step, extent in zip(
                self.chunk, self.steps or (1,) * len(self.chunk), self.shape, strict=True
            )
        ]
        unit = [max(1, min(length, extent)) for length, extent in zip(self.unit, self.shape, strict=True)]
        most = self.memory_nbytes // self.item_nbytes
        read = _grown(chunk, unit, self.shape, most // 2)
        written = _grown(unit, read, self.shape, most)
        inner = tuple(map(min, read, written))
        shards = tuple(
            -(-length // short) * short if length >= extent else length // short * short
            for length, short, extent in zip(read, inner, self.shape, strict=True)
        )
        elements = math.prod(map(min, shards, self.shape))
        return Intermediate(inner, shards, elements * self.item_nbytes, self._cost(inner, shards))

    def _cost(self, inner: tuple[int, ...], shards: tuple[int, ...]) -> Cost:
        first = blocks.choose(
            self.shape, shards, self.chunk, self.item_nbytes, self.memory_nbytes // 2, self.starts, self.steps
        )
        second = blocks.choose(self.shape, self.unit, inner, self.item_nbytes, self.memory_nbytes)
        read = blocks.reads_of_each_byte(self.shape, first, self.chunk, self.starts, self.steps)
        read_again = blocks.reads_of_each_byte(self.shape, second, inner)
        # Each block of the second pass may read the indexes of its shards anew.
        index = _INDEX_NBYTES / (math.prod(inner) * self.item_nbytes)
        indexes = index * blocks.reads_of_each_byte(self.shape, second, shards)
        return Cost(read + read_again + indexes, 2.0 + index)


def _grown(block: Sequence[int], other: Sequence[int], shape: Sequence[int], most: int) -> list[int]:
    """Return a block that is longer along the axes where the other one is (step 3)."""
    units, grown = list(block), list(block)
    while True:
        shorter = [axis for axis in range(len(grown)) if grown[axis] < other[axis]]
        for axis in sorted(shorter, key=lambda axis: grown[axis] / other[axis]):
            longer = blocks.longer(grown, axis, units[axis], shape[axis], most)
            if longer is not None:
                grown[axis] = longer
                break
        else:
            return grown
