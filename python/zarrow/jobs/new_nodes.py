"""Finds, creates and opens the nodes of a plan, in a remote store at once.

1. Nodes that exist, or that another process creates at the same time, are left to the plan, which creates
   nodes one after the other.
2. An array gets the documents of its sample in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from zarrow._zarrow import Array, _is_remote, open
from zarrow.api import at_once
from zarrow.api.node_batch import NodeBatch
from zarrow.errors import NodeExistsError, NotFoundError, UnsupportedError
from zarrow.jobs.work import New

_Result = TypeVar("_Result")


def existing(news: Sequence[New]) -> list[New]:
    """Return the arrays that exist, or have another node in their place."""
    return [new for new, is_there in zip(news, _each(news, _exists), strict=True) if is_there]


def opened(news: Sequence[New]) -> list[Array]:
    """Open the arrays that a plan created, to write them: see `New.opened`."""
    return _each(news, New.opened)


def are_created(store: Any, groups: Mapping[str, tuple[int, Mapping[str, Any]]], news: Sequence[New]) -> bool:
    """Create groups and arrays together; return False if they are to be created one by one (step 1)."""
    formats = {version for version, _ in groups.values()} | {new.sample.zarr_format for new in news}
    is_other = any(type(new) is not New or new.store is not store for new in news)
    if is_other or len(formats) != 1 or not _is_remote(store):
        return False
    batch = NodeBatch(store, formats.pop())
    for path, (_, attributes) in groups.items():
        batch.add_group(path, attributes, keep=True)
    for new in news:
        batch.add_documents(new.path, new.documents_in_memory())
    try:
        batch.create()
    except (NodeExistsError, UnsupportedError):
        return False
    return True


def _exists(new: New) -> bool:
    try:
        open(new.store, new.path, mode="r")
    except NotFoundError:
        return False
    return True


def _each(news: Sequence[New], function: Callable[[New], _Result]) -> list[_Result]:
    found: dict[int, _Result] = {}

    def call(at: int) -> None:
        found[at] = function(news[at])

    calls = [partial(call, at) for at in range(len(news))]
    if news and _is_remote(news[0].store):
        at_once.run(calls)
    else:
        for each in calls:
            each()
    return [found[at] for at in range(len(news))]
