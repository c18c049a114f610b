"""Finds the stored arrays that a dask array reads, to refuse a write that would erase them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarr
from xarray.backends.zarr import ZarrArrayWrapper

from zarrow._zarrow import Array, CloudStore
from zarrow.store_objects import native
from zarrow.xarray.arrays import ZarrowArray


def sources_read(data: Any) -> Iterator[tuple[Path | CloudStore, str]]:
    """Return the stores and paths of the arrays that a dask array reads, by xarray or directly."""
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
            if store is not None:
                yield store[0], found.path
        elif isinstance(found, Array):
            if "://" not in found.store:
                yield Path(found.store), found.path
            elif isinstance(opened := found.__reduce__()[1][0], CloudStore):
                yield opened, found.path


def are_one_place(one: CloudStore, other: CloudStore) -> bool:
    """Whether two stores may have the same server and account."""
    places = [_server(store) for store in (one, other)]
    return all(
        len({place[option] for place in places if option in place}) < 2 for option in ("endpoint", "account")
    )


def _server(store: CloudStore) -> dict[str, str]:
    """Return the endpoint and the account in the options of a store, if they are there."""
    options = dict(store.__reduce__()[1][1] or {})
    options.update(options.pop("client_kwargs", None) or {})
    return {
        option: str(value).rstrip("/")
        for name, value in options.items()
        for option in ("endpoint", "account")
        if str(name).lower().endswith((option, f"{option}_url", f"{option}_name"))
    }
