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
