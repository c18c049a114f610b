"""A row: one measurement, and the bars that zarrow has to meet there."""

from dataclasses import dataclass
from typing import Any

from benches.selections import Selection


@dataclass(frozen=True)
class Row:
    """One measurement, made with every peer that can take part."""

    name: str
    title: str
    task: str
    """Name of a function in `benches.tasks`."""
    data: str = "small"
    """The set that is read."""
    selections: tuple[Selection, ...] = ()
    """What is read, one after the other; all of the array where there is nothing here."""
    limit: str | None = None
    """What the limit is made of: `decode`, `files` or `write` (see `limit` in the examples of the crate)."""
    ahead: float | None = None
    """How many times faster than the fastest other Zarr reader zarrow is to be."""
    of_limit: float | None = None
    """The share of the limit's speed that zarrow is to reach."""
    to_peer: tuple[str, float] | None = None
    """A peer, and how many times its time zarrow may take at most."""
    seconds: float | None = None
    """What zarrow may take at most."""
    peak: float | None = None
    """The bytes that zarrow may have resident at most, over what was resident before."""
    ours: str = "zarrow"
    """The way of using zarrow that the bars are about."""
    kept: int = 1
    """How many results one run holds at once, each in memory of its own; none is recycled from run to run."""
    index: Any = None
    """What lists, points, changes and the reads behind an opening are made with."""
    cold: bool = False
    """Whether the page cache is dropped before each read."""
    late: int = 0
    """By how many milliseconds each answer is late, of a store by HTTP; 0 reads files."""
    cpus: int | None = None
    """To how many CPUs the process is bound."""
    series: str | None = None
    """What the row is a point of, and"""
    x: float = 0
    """where on its axis the point lies."""
    units: float = 1
    """By how much a series divides the time."""

    @property
    def reads(self) -> int:
        """How many reads one run has: times are for one of them."""
        return self.kept * (max(1, len(self.selections)) if self.task == "read" else 1)
