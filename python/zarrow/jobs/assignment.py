"""Assigns the units of a plan to jobs: a pure function of the job's index and the count of jobs."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

Assignment: TypeAlias = Literal["contiguous", "spread"]


@dataclass(frozen=True, slots=True)
class Job:
    """One of `count` jobs of a plan: `Plan.job` makes it.

    Attributes
    ----------
    index : int
        From 0 to `count - 1`.
    count : int
        The number of jobs.
    assign : str
        `"contiguous"`: neighbouring units; `"spread"`: every `count`-th unit.
    """

    index: int
    count: int
    assign: Assignment

    def numbers(self, total: int) -> range:
        """Return the numbers of this job's units, of `total` units. The ranges of all jobs are disjoint."""
        if self.assign == "spread":
            return range(self.index, total, self.count)
        return range(total * self.index // self.count, total * (self.index + 1) // self.count)


def checked(index: SupportsIndex, count: SupportsIndex, assign: str) -> Job:
    """Return the job of these arguments.

    Raises
    ------
    TypeError
        The index or the count is no integer.
    ValueError
        The index is not below the count, or the assignment is unknown.
    """
    index, count = operator.index(index), operator.index(count)
    if count < 1:
        raise ValueError(f"a plan has at least one job, got count={count}")
    if not 0 <= index < count:
        raise ValueError(f"the index of a job is from 0 to {count - 1} (count - 1), got {index}")
    match assign:
        case "contiguous" | "spread":
            return Job(index, count, assign)
        case _:
            raise ValueError(f"expected assign 'contiguous' or 'spread', got {assign!r}")
