"""A row: one measurement, and zarrow's bars for it."""

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
    """The set to read."""
    selections: tuple[Selection, ...] = ()
    """The selections, read one after the other; empty for all of the array."""
    limit: str | None = None
    """Kind of the limit: `decode`, `files` or `write` (see `limit` in the examples of the crate)."""
    ahead: float | None = None
    """Required speed, as a multiple of the fastest other Zarr reader's."""
    of_limit: float | None = None
    """Required share of the limit's speed."""
    to_peer: tuple[str, float] | None = None
    """A peer, and the maximum of zarrow's time as a multiple of the peer's."""
    seconds: float | None = None
    """Maximum of zarrow's time."""
    peak: float | None = None
    """Maximum of zarrow's resident bytes, minus the resident bytes before."""
    peers: tuple[str, ...] | None = None
    """The peers; by default all that have the data and a task."""
    ours: str = "zarrow"
    """The way of using zarrow that the bars apply to."""
    kept: int = 1
    """Number of results that one run holds at once, each in separate memory; none is recycled."""
    index: Any = None
    """Argument of tasks for lists, points, changes and openings."""
    cold: bool = False
    """Whether the page cache is dropped before each read."""
    late: int = 0
    """Delay of each answer in milliseconds, from a store by HTTP; 0 reads files."""
    counts_bytes: bool = False
    """Whether the table has the bytes that are read and written."""
    cpus: int | None = None
    """Number of CPUs that the process is bound to."""
    series: str | None = None
    """Series of the row, and"""
    x: float = 0
    """the row's position on the axis of the series."""
    units: float = 1
    """Divisor of the time in a series."""

    @property
    def reads(self) -> int:
        """Return the number of reads in a run: times are for one read."""
        return self.kept * (max(1, len(self.selections)) if self.task == "read" else 1)
