"""Says what a plan does before it begins: units, memory, passes, and how often stored bytes are read."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zarrow.api.progress import size
from zarrow.jobs.rechunking_cost import LEAST_NBYTES, MOST_READS

if TYPE_CHECKING:
    from zarrow.jobs.units import Grid
    from zarrow.jobs.work import Item

_MOST_MEMORY = 1 << 44


def described(path: str, item: Item, grid: Grid, memory_nbytes: int) -> str:
    """Return a line about an array, which says how much memory would avoid repeated reads."""
    text = (
        f"  {path or '(array)'}: {len(grid)} units of {grid.block}, {size(item.unit_nbytes(grid))} in memory"
    )
    reads = item.reads_of_each_byte(grid)
    for source, times in zip(item.read_arrays, reads, strict=True):
        is_own = any(source is each for each in item.sources)
        name = repr(source.path or source.store) if is_own else "the intermediate array"
        text += f", each byte of {name} is read {times:.2f} times"
    if max(reads, default=1) <= MOST_READS:
        return text
    memory = max(memory_nbytes, item.unit_nbytes(grid))
    while memory < _MOST_MEMORY and max(reads) > MOST_READS:
        memory *= 2
        reads = item.reads_of_each_byte(item.grid(memory))
    text += f" ({max(reads):.2f} times with {size(memory)} of memory)"
    costs = item.costs(memory_nbytes)
    if costs.keys() == {"one_pass", "two_passes"}:
        text += f"; one pass has {costs['one_pass']}, two passes {costs['two_passes']}"
        nbytes = item.shard_nbytes(memory_nbytes)
        if costs["two_passes"].moved < costs["one_pass"].moved and nbytes < LEAST_NBYTES:
            text += (
                f", but by shards of {size(nbytes)}: below {size(LEAST_NBYTES)}, only passes=2 chooses them"
            )
    return text


def why(path: str, item: Item, memory_nbytes: int) -> str:
    """Return a line about the reason for two passes."""
    costs = item.costs(memory_nbytes)
    return f"  {path or '(array)'}: two passes have {costs['two_passes']}, one pass {costs['one_pass']}"


def summary(item: Item, grid: Grid, memory_nbytes: int) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "units": len(grid),
        "block": list(grid.block),
        "memory_nbytes": item.unit_nbytes(grid),
        "reads_of_each_byte": item.reads_of_each_byte(grid),
        **{name: asdict(cost) for name, cost in item.costs(memory_nbytes).items()},
        **({"shard_nbytes": nbytes} if (nbytes := item.shard_nbytes(memory_nbytes)) else {}),
    }
