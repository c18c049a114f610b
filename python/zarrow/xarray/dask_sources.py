"""Finds the stored arrays that a dask array reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarr
from xarray.backends.zarr import ZarrArrayWrapper

from zarrow._zarrow import Array
from zarrow.store_objects import native
from zarrow.xarray.arrays import ZarrowArray


def folders_read(data: Any) -> Iterator[Path]:
    """Return the folders of the arrays that a dask array reads, by xarray or directly."""
    for task in dict(data.dask).values():
        found: Any = getattr(task, "value", task)
        # Classes of xarray's that wrap lazy arrays.
        while not isinstance(found, ZarrowArray | ZarrArrayWrapper) and hasattr(found, "array"):
            found = found.array
        if isinstance(found, ZarrowArray):
            found = found.node
        if isinstance(found, ZarrArrayWrapper):
            found = found._array
        if isinstance(found, zarr.Array):
            store = native.resolve(found.store)
            if store is not None and isinstance(store[0], Path):
                yield store[0] / found.path
        elif isinstance(found, Array) and "://" not in found.store:
            yield Path(found.store) / found.path
