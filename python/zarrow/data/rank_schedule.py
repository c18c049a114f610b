"""Divides the positions of an epoch among ranks: contiguous, with equally many steps on each.

1. An epoch, or the rest of one, is a list of ranges of positions. Their concatenation is divided: each rank
   gets one contiguous part, in order.
2. All batches are full, except the last ones: `"share"` spreads the remaining samples over the last step of
   all ranks, or over the last two steps if there are fewer samples than ranks. `"pad"` repeats samples from
   the beginning, and `"drop"` leaves the last samples out. `"pad_ranks"` and `"drop_ranks"` do so only until
   all ranks have equally many samples, as PyTorch's `DistributedSampler`: the last batches are smaller.
3. After any step, the unread ranges form the list for another division.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Last: TypeAlias = Literal["share", "pad", "drop", "pad_ranks", "drop_ranks"]
LASTS: tuple[Last, ...] = get_args(Last)
Ranges: TypeAlias = tuple[tuple[int, int], ...]

# A batch is a list of ranges, one for each time that all samples repeat.
_REPEATS_BITS = 20


@dataclass(frozen=True, slots=True)
class Schedule:
    """The batches of each rank, as ranges of positions."""

    ranges: Ranges
    world: int
    batch_size: int
    last: Last

    def __post_init__(self) -> None:
        if self.world < 1 or self.batch_size < 1 or self.last not in LASTS:
            raise ValueError(
                f"the state is damaged: {self.world} ranks, batch_size {self.batch_size}, last={self.last!r}"
            )
        total = self._total
        if self.last == "pad" and 0 < total << _REPEATS_BITS < self.batch_size:
            raise ValueError(
                f"a batch of {self.batch_size} would repeat {total} samples too often: "
                "pass a smaller batch_size"
            )
        if self.last == "share" and total:
            full, rest = divmod(total, self.world * self.batch_size)
            if total < self.world or (full and 0 < rest < self.world and self.batch_size == 1):
                raise ValueError(
                    f"{total} samples cannot be shared in equally many batches of at most {self.batch_size} "
                    f'on {self.world} ranks: pass last="pad" or last="drop"'
                )

    @property
    def _total(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    @property
    def _each(self) -> int:
        """Number of samples of each rank; under `"share"` the most of any."""
        unit = self.batch_size if self.last in ("pad", "drop") else 1
        parts, rest = divmod(self._total, self.world * unit)
        return (parts + (rest > 0 and not self.last.startswith("drop"))) * unit

    @property
    def steps(self) -> int:
        """Number of batches of each rank."""
        return -(-self._each // self.batch_size)

    def size(self, rank: int, step: int) -> int:
        """Return the number of samples of a batch."""
        return self._first(rank, step + 1) - self._first(rank, step)

    def batch(self, rank: int, step: int) -> Ranges:
        """Return the positions of a batch."""
        begin = self._begin(rank)
        return self._slice(begin + self._first(rank, step), begin + self._first(rank, step + 1))

    def rest(self, rank: int, step: int) -> Ranges:
        """Return the positions of a rank from a step to the end of the epoch."""
        begin = self._begin(rank)
        return self._slice(begin + self._first(rank, step), begin + self._first(rank, self.steps))

    def remaining(self, steps: Sequence[int]) -> Ranges:
        """Return the unread positions after these steps of the ranks (step 3)."""
        total = self._total
        found: list[tuple[int, int]] = []
        ends = [self._begin(rank) + self._first(rank, self.steps) for rank in range(self.world)]
        for rank, step in enumerate(steps):
            start = self._begin(rank) + self._first(rank, step)
            found += self._slice(min(start, total), min(ends[rank], total))
        found += self._slice(min(ends[-1], total), total)
        return _merged(found)

    def _first(self, rank: int, step: int) -> int:
        """Return how many samples of a rank precede a step."""
        if self.last != "share":
            return min(step * self.batch_size, self._each)
        full, rest = divmod(self._total, self.world * self.batch_size)
        if not rest or step <= full - (rest < self.world):
            return step * self.batch_size
        # The last step, or the last two.
        shared = full if rest >= self.world else full - 1
        total = self._total - shared * self.world * self.batch_size
        own = total // self.world + (rank < total % self.world)
        late = step - shared
        return shared * self.batch_size + (own if late == full + 1 - shared else -(-own // 2) if late else 0)

    def _begin(self, rank: int) -> int:
        """Return the rank's first position in the concatenated ranges."""
        if self.last != "share":
            return rank * self._each
        base, larger = divmod(self._total, self.world)
        return rank * base + min(rank, larger)

    def _slice(self, start: int, stop: int) -> Ranges:
        """Return a part of the concatenated ranges, which begin again after their end."""
        total = self._total
        found: list[tuple[int, int]] = []
        while start < stop:
            base, skipped = start // total * total, 0
            for first, last in self.ranges:
                low = max(start - base, skipped)
                high = min(stop - base, skipped + last - first)
                if low < high:
                    found.append((first + low - skipped, first + high - skipped))
                skipped += last - first
            start = base + total
        return tuple(found)


def _merged(ranges: Sequence[tuple[int, int]]) -> Ranges:
    """Join ranges that follow each other."""
    found: list[tuple[int, int]] = []
    for start, stop in ranges:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], stop)
        elif start < stop:
            found.append((start, stop))
    return tuple(found)


def ranges_of(parts: Iterable[Sequence[int]], count: int) -> Ranges:
    """Return ranges from a stored state of `count` samples.

    Raises
    ------
    ValueError
        A range is no pair, or is outside of the samples, or shares samples with another one.
    """
    ranges = tuple((operator.index(part[0]), operator.index(part[-1])) for part in parts if len(part) == 2)
    ends = [0, *(end for part in sorted(ranges) for end in part), count]
    if not ranges or sorted(ends) != ends:
        raise ValueError(
            f"the state is damaged: ranges {ranges[:4]} of {count} samples are empty, overlap or exceed them"
        )
    return ranges
