"""Says what a plan does before it begins: units, memory, and how often stored bytes are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zarrow.api.progress import size

if TYPE_CHECKING:
    from zarrow.jobs.units import Grid
    from zarrow.jobs.work import Item

# Stored bytes that are read more often are worth a remark.
_MOST_READS = 1.2

_MOST_MEMORY = 1 << 44


def described(path: str, item: Item, grid: Grid, memory_nbytes: int) -> str:
    """Return a line about an array, which says how much memory would avoid repeated reads."""
    text = (
        f"  {path or '(array)'}: {len(grid)} units of {grid.block}, {size(item.unit_nbytes(grid))} in memory"
    )
    reads = item.reads_of_each_byte(grid)
    for source, times in zip(item.sources, reads, strict=True):
        text += f", each byte of {source.path or source.store!r} is read {times:.2f} times"
    if max(reads, default=1) <= _MOST_READS:
        return text
    memory = max(memory_nbytes, item.unit_nbytes(grid))
    while memory < _MOST_MEMORY and max(reads) > _MOST_READS:
        memory *= 2
        reads = item.reads_of_each_byte(item.grid(memory))
    return f"{text} ({max(reads):.2f} times with {size(memory)} of memory)"


def summary(item: Item, grid: Grid) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "units": len(grid),
        "block": list(grid.block),
        "memory_nbytes": item.unit_nbytes(grid),
        "reads_of_each_byte": item.reads_of_each_byte(grid),
    }
