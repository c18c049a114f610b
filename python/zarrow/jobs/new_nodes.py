"""Finds, creates and opens the nodes of a plan, in a remote store at once.

1. Nodes that exist, or that another process creates at the same time, are left to the plan, which creates
   nodes one after the other.
2. An array gets the documents of its sample in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from zarrow._zarrow import Array, Group, _is_remote
from zarrow.api import concurrent_calls
from zarrow.api.node_batch import NodeBatch
from zarrow.errors import NodeExistsError, UnsupportedError
from zarrow.groups.places import node_at
from zarrow.jobs import ledger_states as states
from zarrow.jobs.work import New

_Result = TypeVar("_Result")


def existing(
    news: Sequence[New], *, groups: Sequence[tuple[Any, str]] = (), are_kept: bool = False
) -> list[New]:
    """Return the nodes that exist, or have another node in their place.

    Parameters
    ----------
    news
        The nodes to create.
    groups
        Stores and paths of groups to create, or to keep.
    are_kept
        Whether existing nodes stay.

    Raises
    ------
    NodeExistsError
        An array is in the place of a group; or a node that stays is an array in the place of a group, or a
        group in the place of an array.
    """
    places = [*((new.store, new.path) for new in news), *groups]
    nodes = _each([partial(node_at, *place) for place in places], places[0][0] if places else None)
    for at, (place, node) in enumerate(zip(places, nodes, strict=True)):
        if node is None or (at < len(news) and not are_kept):
            continue
        is_group = at >= len(news) or isinstance(news[at].sample, Group)
        if isinstance(node, Group) != is_group:
            raise states.other_kind(*place, is_group)
    return [new for new, node in zip(news, nodes, strict=False) if node is not None]


def opened(news: Sequence[New]) -> list[Array]:
    """Open the arrays that a plan created, to write them: see `New.opened`."""
    return _each([new.opened for new in news], news[0].store if news else None)


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


def _each(calls: Sequence[Callable[[], _Result]], store: Any) -> list[_Result]:
    found: dict[int, _Result] = {}

    def call(at: int) -> None:
        found[at] = calls[at]()

    numbered = [partial(call, at) for at in range(len(calls))]
    if calls and _is_remote(store):
        concurrent_calls.run(numbered)
    else:
        for each in numbered:
            each()
    return [found[at] for at in range(len(calls))]
