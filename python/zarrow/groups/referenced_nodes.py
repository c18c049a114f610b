"""Finds arrays and groups by references from an object, such as a graph of dask.

1. References are followed as by the garbage collector, for many objects at once. This finds nodes in graphs
   and tasks of all kinds, and does not make the tasks of a layer.
2. Of a function, it follows defaults, closure, attributes, and the global nodes that the code names. It
   follows no modules, classes or objects of distributed: a future refers to its whole client.
3. Arrays and groups of zarr-python are opened by zarrow. Paths in texts are not found.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, TypeAlias

from zarrow._zarrow import Array, Group, Indexer, open
from zarrow.errors import NodeExistsError, ZarrowError
from zarrow.groups.places import is_within, place, place_of
from zarrow.store_objects import engine_stores

_Way: TypeAlias = "Callable[[Any], Array | Group | None] | None"
_LEAVES = (type, ModuleType, CodeType, FrameType, str, bytes, int, float, complex, type(None))


def nodes_of(value: Any) -> Iterator[Array | Group]:
    """Yield the nodes that an object refers to."""
    ways, seen, level = _Ways(), set(), [value]
    while level:
        containers: list[Any] = []
        for found in level:
            way = ways[type(found)]
            if way is None or id(found) in seen:
                continue
            seen.add(id(found))
            if way is not _follow:
                if (node := way(found)) is not None:
                    yield node
            elif type(found) is FunctionType:
                containers += found.__closure__ or ()
                containers += found.__defaults__ or (), found.__kwdefaults__ or {}, found.__dict__
                named = (found.__globals__.get(name) for name in found.__code__.co_names)
                containers.append([other for other in named if ways[type(other)] not in (None, _follow)])
            else:
                containers.append(found)
        level = gc.get_referents(*containers)


def check_apart(value: Any, what: str, store: Any, path: str) -> None:
    """Refuse to erase a path if an object reads a node there, above it or below it.

    Raises
    ------
    NodeExistsError
        It does.
    """
    node = _node_within(value, store, path)
    if node is not None:
        raise NodeExistsError(
            f"{what} reads {node.name!r} in {node.store}, which would be erased: write to another path, or "
            "persist it first",
            node=node,
        )


def _node_within(value: Any, store: Any, path: str) -> Array | Group | None:
    if isinstance(store, Group):
        store, path = store.__reduce__()[1][0], f"{store.path}/{path}"
    elif (resolved := engine_stores.resolve(store)) is not None:
        store = resolved[0]
    path = path.strip("/")
    where = place(store, path)
    for node in nodes_of(value):
        read = place_of(node)
        if where is None or read is None:
            # In store objects without a name. Nodes are equal if their store is the same.
            parts, others = _parts(path), _parts(node.path)
            shorter = min(len(parts), len(others))
            if parts[:shorter] == others[:shorter] and _open(store, node.path) == node:
                return node
        elif is_within(read, where) or is_within(where, read):
            return node
    return None


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _open(store: Any, path: str) -> Array | Group | None:
    """Open a node; None if it is gone."""
    try:
        return open(store, path, mode="r")
    except ZarrowError:
        return None


def _follow(_: Any) -> None:
    """Mark a class of objects to follow."""


def _itself(node: Array | Group) -> Array | Group:
    return node


def _opened(node: Any) -> Array | Group | None:
    """Return a node of zarr-python as one of zarrow."""
    return _open(node.store, node.path)


class _Ways(dict[type, _Way]):
    """How objects of each class are followed: `None` for those without references."""

    def __missing__(self, kind: type) -> _Way:
        module = str(kind.__module__)
        root = module.partition(".")[0]
        way: _Way = _follow
        if issubclass(kind, Array | Group):
            way = _itself
        elif issubclass(kind, Indexer):
            way = operator.attrgetter("array")
        elif module == "zarrow.xarray.arrays" and kind.__name__ == "ZarrowArray":
            way = operator.attrgetter("node")
        elif root == "zarr" and kind.__name__ in ("Array", "Group"):
            way = _opened
        elif issubclass(kind, _LEAVES) or root == "distributed":
            way = None
        self[kind] = way
        return way
