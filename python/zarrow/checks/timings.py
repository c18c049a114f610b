"""The results of a benchmark, and their table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from zarrow.api.progress import size


@dataclass(frozen=True, slots=True)
class Timing:
    """One measurement of a benchmark.

    Attributes
    ----------
    name : str
        `"open"`, `"first scan"`, `"scan"`, `"chunks"` or `"elements"`.
    threads : int
        Threads of the engine. Opens and reads of chunks and elements also have as many callers.
    seconds : float
        Wall time of all calls.
    latencies : tuple of float
        Seconds of each call of `open` or `read`, ascending.
    nbytes : int
        Bytes of the elements read.
    nbytes_stored : int or None
        Bytes read from the store's files, as Linux counts them for the process; None if unknown.
    nbytes_from_disk : int or None
        Bytes that the system fetched from the disk for them; None if unknown.
    """

    name: str
    threads: int
    seconds: float
    latencies: tuple[float, ...]
    nbytes: int
    nbytes_stored: int | None
    nbytes_from_disk: int | None

    @property
    def calls(self) -> int:
        """The number of calls."""
        return len(self.latencies)

    def percentile(self, percent: float) -> float:
        """Return the smallest latency that this percentage of calls did not exceed; NaN without any."""
        if not self.latencies:
            return math.nan
        return self.latencies[max(0, math.ceil(percent / 100 * len(self.latencies)) - 1)]

    def summary(self) -> dict[str, Any]:
        """Return the measurement for JSON."""
        return {
            "name": self.name,
            "threads": self.threads,
            "calls": self.calls,
            "seconds": self.seconds,
            "p50_seconds": self.percentile(50),
            "p99_seconds": self.percentile(99),
            "longest_seconds": self.percentile(100),
            "nbytes": self.nbytes,
            "nbytes_per_second": self._rate(self.nbytes),
            "nbytes_stored": self.nbytes_stored,
            "nbytes_stored_per_second": self._rate(self.nbytes_stored),
            "nbytes_from_disk": self.nbytes_from_disk,
        }

    def _rate(self, nbytes: int | None) -> float | None:
        return None if nbytes is None or self.seconds <= 0 else nbytes / self.seconds

    def cells(self) -> list[str]:
        """Return the cells of a line of the table."""
        elements, stored = self._rate(self.nbytes), self._rate(self.nbytes_stored)
        return [
            self.name,
            str(self.threads),
            str(self.calls),
            duration(self.percentile(50)),
            duration(self.percentile(99)),
            "-" if not self.nbytes or elements is None else size(round(elements)),
            "-" if stored is None else size(round(stored)),
            "-" if self.nbytes_from_disk is None else size(self.nbytes_from_disk),
        ]


_HEADER = ["", "threads", "calls", "p50", "p99", "elements/s", "stored/s", "from disk"]


@dataclass(slots=True)
class Benchmark:
    """What `bench` measured.

    Attributes
    ----------
    store, path : str
        The node.
    arrays : int
        Arrays that were read: the node, or all arrays below it.
    nbytes : int
        Bytes of all their elements.
    nbytes_sampled : int
        Bytes of the elements that the first scan read. Later measurements read elements of this sample.
    timings : list of Timing
        The measurements, in their order.
    """

    store: str
    path: str
    arrays: int
    nbytes: int
    nbytes_sampled: int = 0
    timings: list[Timing] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return the measurements for JSON."""
        return {
            "store": self.store,
            "path": f"/{self.path}",
            "arrays": self.arrays,
            "nbytes": self.nbytes,
            "nbytes_sampled": self.nbytes_sampled,
            "timings": [timing.summary() for timing in self.timings],
        }

    def __str__(self) -> str:
        arrays = "1 array" if self.arrays == 1 else f"{self.arrays} arrays"
        lines = [f"{arrays}, {size(self.nbytes)} of elements, {size(self.nbytes_sampled)} of them sampled"]
        lines += _table([_HEADER, *(timing.cells() for timing in self.timings)])
        return "\n".join([*lines, *self._notes()])

    def _notes(self) -> list[str]:
        """Say what the caches had."""
        first = next((timing for timing in self.timings if timing.name == "first scan"), None)
        if first is None:
            return []
        if first.nbytes_stored and first.nbytes_from_disk is not None:
            part = min(1.0, first.nbytes_from_disk / first.nbytes_stored)
            text = f"first scan: {part:.0%} of the stored bytes came from the disk, the rest from memory"
        else:
            text = "first scan: unknown how much a cache of the system or the server had"
        return [text, "later measurements read the same elements again: caches have what fits into them"]


def duration(seconds: float) -> str:
    """Return a time as text, in three digits."""
    if seconds >= 99.95:
        return f"{seconds:.0f} s"
    if seconds >= 0.9995:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 0.9995e-3 else f"{seconds * 1e6:.3g} µs"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with columns of equal widths, the first one aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
