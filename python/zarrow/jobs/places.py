"""Finds out whether a plan would replace its own sources.

A place is a text: the real path of a folder or the URL of a store, and then the path of the node. Two names
of one folder have one place. Of a store object without a name, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from zarrow._zarrow import Array, CloudStore, Group
from zarrow.jobs.work import Item, New


def place(store: Any, path: str) -> str | None:
    """Return the place of a node; `None` in a store object without a name."""
    if isinstance(store, CloudStore):
        store = store.__reduce__()[1][0]
    if not isinstance(store, str):
        return None
    if store.startswith("file://"):
        store = unquote(store.removeprefix("file://").removeprefix("localhost"))
    if "://" not in store:
        # Folders on the way to a node may be links, too.
        return Path(store, path.strip("/")).resolve().as_posix()
    return "/".join(part for part in (store.rstrip("/"), path.strip("/")) if part)


def place_of(node: Array | Group) -> str | None:
    """Return the place of an opened node."""
    return place(node.__reduce__()[1][0], node.path)


def is_within(one: str, other: str | None) -> bool:
    """Return whether a node is another one, or below it."""
    return other is not None and (one == other or one.startswith(other + "/"))


def check_apart(items: Iterable[Item]) -> None:
    """Refuse arrays to create that would replace an array to read, or be below one.

    Raises
    ------
    ValueError
        There is such an array.
    """
    items = list(items)
    read = {found for item in items for source in item.sources if (found := place_of(source)) is not None}
    above = {folder for found in read for folder in _above(found)}
    for item in items:
        if not isinstance(item.target, New):
            continue
        created = place(item.target.store, item.target.path)
        if created is None:
            continue
        if created in read or created in above:
            raise ValueError(f"the plan would replace {created!r}, which it reads: choose another target")
        if any(folder in read for folder in _above(created)):
            raise ValueError(f"the plan would create {created!r} in an array: choose another target")


def _above(found: str) -> Iterator[str]:
    """Yield the places above a place."""
    while "/" in found:
        found = found.rpartition("/")[0]
        yield found
