"""Graphs of dask over an array of many chunks: built and optimised, without a read."""

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benches.peers import Peer
from benches.row import Row
from benches.scale import Scale

PREFIX = "programs-graph-"
COUNTS = {"quick": 2_500, "normal": 100_000, "full": 1_000_000}
CHUNK = 4  # elements


def write(path: Path, count: int) -> None:
    """Create an array without stored chunks."""
    zarr.create_array(path, shape=(count * CHUNK,), chunks=(CHUNK,), dtype="u1")


def graphed(peer: Peer, row: Row, path: Path) -> Callable[[], tuple[float, Any]]:
    """Open the array for dask, add a number to it, and optimise the graph."""
    optimize: Any = importlib.import_module("dask").optimize

    def run() -> tuple[float, Any]:
        started = time.perf_counter()
        [graph] = optimize(peer.lazy(path) + 1)
        seconds = time.perf_counter() - started
        return seconds, np.array([graph.npartitions, len(dict(graph.dask)) >= graph.npartitions])

    return run


def graphs(scale: Scale) -> list[Row]:
    """Return the row of graphs."""
    count = COUNTS[scale.name]
    title = f"build and optimise a graph of {count:,} chunks"
    bars: dict[str, Any] = {"peers": ("dask", "zarrow"), "to_peer": ("dask", 1.1)}
    return [Row(f"{PREFIX}chunks", title, "graphed", f"{PREFIX}{count}", **bars)]
