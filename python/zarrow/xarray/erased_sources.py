"""Finds the stored arrays that a dask array reads, to refuse a write that would erase them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from zarrow._zarrow import CloudStore
from zarrow.groups.referenced_nodes import nodes_of


def sources_read(data: Any) -> Iterator[tuple[Path | CloudStore, str]]:
    """Return the stores and paths of the arrays that a dask array reads, by xarray or directly."""
    for node in nodes_of(data):
        store = node.__reduce__()[1][0]
        if isinstance(store, CloudStore):
            yield store, node.path
        elif isinstance(store, str) and "://" not in store:
            yield Path(store), node.path
