"""Sources of a plan by name: of a path, a group, a dict or a sequence, and of the fields chosen from them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from zarrow._zarrow import Array, Group
from zarrow.data.crops import Crops
from zarrow.data.nodes import SOLE, members_of, source_of
from zarrow.data.rows import Rows
from zarrow.data.sources import Location, Source, opened
from zarrow.errors import NotFoundError
from zarrow.hints.close_names import close_name

Node: TypeAlias = Array | Source | Group
Sources: TypeAlias = Node | Location | Mapping[str, Node] | Sequence[Node]
Fields: TypeAlias = str | Sequence[str] | Mapping[str, str]

_NAMES_LISTED = 20


def sources_of(sources: Sources, fields: Fields | None) -> tuple[dict[str, Source], bool]:
    """Return sources by name, and whether a batch is a tuple of them.

    Raises
    ------
    NotFoundError
        A field is missing.
    """
    sources = opened(sources)
    if fields is not None:
        return _checked(_chosen(sources, fields)), isinstance(fields, list | tuple)
    if isinstance(sources, Group):
        return _checked(members_of(sources)), False
    if isinstance(sources, Mapping):
        return _checked(sources), False
    if isinstance(sources, list | tuple):
        return _checked({str(at): source for at, source in enumerate(sources)}), True
    sole: Any = sources
    return _checked({SOLE: sole}), False


def _chosen(sources: Sources, fields: Fields) -> Mapping[str, Node]:
    """Return the fields of a group or a dict, by their names in a batch."""
    if not isinstance(sources, Group | Mapping):
        found = type(sources).__name__
        raise TypeError(f"fields are names of a group or a dict of arrays, found {found}: leave fields= out")
    if isinstance(fields, str):
        return {SOLE: _member(sources, fields)}
    if isinstance(fields, Mapping):
        members = _members(sources, list(fields.values()))
        return {name: members[field] for name, field in fields.items()}
    if not isinstance(fields, list | tuple):
        raise TypeError(
            f"fields is {type(fields).__name__}, expected a name, a list of names or a dict of names: type "
            'fields=["x", "y"]'
        )
    chosen = _members(sources, fields)
    if len(chosen) < len(fields):
        raise ValueError(f"fields {list(fields)} has a name twice")
    return chosen


def _members(sources: Group | Mapping[str, Node], fields: Sequence[str]) -> dict[str, Node]:
    """Return members by name, after one round of requests if they are in a group."""
    if isinstance(sources, Group) and all(isinstance(field, str) for field in fields):
        with contextlib.suppress(KeyError):
            return dict(zip(fields, sources._get_each(list(fields)), strict=True))
    return {field: _member(sources, field) for field in fields}


def _member(sources: Group | Mapping[str, Node], field: str) -> Node:
    if not isinstance(field, str):
        raise TypeError(f"a field is a name, found {type(field).__name__}: pass arrays as the first argument")
    try:
        return sources[field]
    except KeyError:
        names = sorted(map(str, sources))
    hint = close_name(field, names) or f"there are {', '.join(names[:_NAMES_LISTED])}"
    store, path = (str(sources.store), sources.path) if isinstance(sources, Group) else (None, None)
    raise NotFoundError(f"no field {field!r}: {hint}", store=store, path=path)


def _checked(named: Mapping[str, Node]) -> dict[str, Source]:
    """Return a source for each node. Crops have the same corners, and other arrays a row for each crop."""
    if not named:
        raise ValueError("a plan needs at least one array")
    found = {
        name: source if isinstance(source, Source) else source_of(source) for name, source in named.items()
    }
    crops = [source for source in found.values() if isinstance(source, Crops)]
    if crops:
        first = max(crops, key=lambda source: source.sample_nbytes)
        return {name: _beside_crops(name, source, first) for name, source in found.items()}
    return found


def _beside_crops(name: str, source: Source, crops: Crops) -> Source:
    """Return a source with the places of crops."""
    if isinstance(source, Crops):
        return source._aligned(crops)
    if not isinstance(source, Rows) or crops.is_random:
        raise ValueError(
            f"{name!r} is not of crops: crops are combined with crops, and at given corners with an array "
            "that has a row for each"
        )
    if source.count != crops.count:
        raise ValueError(f"{name!r} has {source.count} rows, but there are {crops.count} corners of crops")
    return source._with_order(crops._order)
