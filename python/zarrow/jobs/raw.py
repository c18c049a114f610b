"""Copies nodes byte for byte: their documents, and the stored values of their chunks.

1. A unit is a block of chunks, or of shards. Their keys follow from the metadata, without a list of the
   store. Missing chunks stay missing.
2. Of an array with chunks of different shapes, or with keys of an unknown encoding, all keys are listed, and
   are one unit.
3. A group has documents, which include consolidated metadata, and no units.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from zarrow._zarrow import Array, Group, MemoryStore, _StoredValues, open
from zarrow.api import concurrent_calls
from zarrow.api.creation import create_group
from zarrow.arrays.chunk_grid import grid_of, key_encoding
from zarrow.errors import NodeExistsError, UnsupportedError
from zarrow.groups.places import joined, node_at
from zarrow.jobs.units import Grid, Unit
from zarrow.jobs.work import Item, New, located
from zarrow.store_objects.icechunk_sessions import session_of

_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")

# Values that are in memory together.
_MOST = 64

_MEMORY_NBYTES = 64 << 20


@dataclass(frozen=True)
class RawNode(New):
    """A node that a plan creates with the documents of another one."""

    documents: Mapping[str, bytes]

    @cached_property
    def sample(self) -> Any:
        """The node, without elements, in memory."""
        store = MemoryStore()
        values = _StoredValues(store, create=True)
        for name, document in self.documents.items():
            values.set(name, document)
        return open(store, mode="r")

    def create(self, *, overwrite: bool = False) -> Any:
        """Store the documents, or keep equal ones.

        Raises
        ------
        NodeExistsError
            There is another node.
        """
        above = self.path.rpartition("/")[0]
        if self.path and node_at(self.store, above) is None:
            create_group(self.store, above, zarr_format=self.sample.zarr_format)
        values = _StoredValues(self.store, create=True)
        existing = documents_of(values, self.path)
        if overwrite and (
            isinstance(self.sample, Array) or isinstance(node_at(self.store, self.path), Array)
        ):
            values.erase_prefix(self.path)
        elif overwrite:
            for name in existing.keys() - self.documents.keys():
                values.erase(joined(self.path, name))
        elif existing and existing != self.documents:
            raise NodeExistsError(
                f"{self.path or 'the root'!r} has other metadata: pass overwrite=True to replace it",
                store=str(self.store),
                path=self.path,
            )
        for name, document in self.documents.items():
            values.set(joined(self.path, name), document)
        return open(self.store, self.path, mode="r+")


@dataclass(frozen=True)
class RawGroup(Item):
    """A group that is copied byte for byte (step 3)."""

    def grid(self, memory_nbytes: int) -> Grid:
        """Return no units."""
        return Grid((0,), (1,))

    def identity(self) -> dict[str, Any]:
        """Return the documents."""
        return {"documents": _identity(self.created)}

    def opened(self) -> None:
        """Return nothing: no unit needs the group."""

    @property
    def item_nbytes(self) -> int:
        """Zero: no elements are in memory."""
        return 0


@dataclass(frozen=True)
class RawArray(Item):
    """An array that is copied byte for byte."""

    def grid(self, memory_nbytes: int) -> Grid:
        """Return blocks of whole chunks or shards (steps 1 and 2)."""
        source = self.sources[0]
        if source.write_unit is None or key_encoding(source) is None:
            return Grid((1,), (1,))
        return super().grid(min(memory_nbytes, _MEMORY_NBYTES))

    @property
    def item_nbytes(self) -> int:
        """The bytes of an element: only stored values are in memory, which are hardly larger."""
        return max(1, super().item_nbytes // 2)

    def identity(self) -> dict[str, Any]:
        """Return the arrays, the metadata that must stay, and the documents."""
        return {**super().identity(), "documents": _identity(self.created)}

    def do(self, function: Callable[..., Any] | None, passes_unit: bool, unit: Unit, target: Any) -> object:
        """Copy the values of a unit."""
        source, new = self.sources[0], self.created[0]
        read = _StoredValues(located(source.__reduce__()[1][0]), create=False)
        write = _StoredValues(new.store, create=False)
        largest = source.write_unit and math.prod(source.write_unit) * self.item_nbytes
        count = max(1, min(_MOST, _MEMORY_NBYTES // largest)) if largest else 1
        left = self._keys(read, unit)
        while keys := list(itertools.islice(left, count)):
            values = read.get_each([joined(source.path, key) for key in keys])
            stored = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
            puts = [functools.partial(write.set, joined(new.path, key), value) for key, value in stored]
            if write.is_local():
                for put in puts:
                    put()
            else:
                concurrent_calls.run(puts)
        return None

    def _keys(self, values: _StoredValues, unit: Unit) -> Iterator[str]:
        """Yield the keys of a unit below the array (steps 1 and 2)."""
        source, encoding = self.sources[0], key_encoding(self.sources[0])
        if encoding is None or source.write_unit is None:
            yield from (key for key in _listed(values, source.path, "") if key not in _DOCUMENTS)
            return
        first, separator = encoding
        ranges = [
            range(part.start // step, min(-(-part.stop // step), count))
            for part, step, count in zip(unit.region, source.write_unit, grid_of(source), strict=True)
        ]
        for place in itertools.product(*ranges):
            yield separator.join([*first, *map(str, place)]) or "0"


def check_raw(target: Any, path: str, options: Mapping[str, Any]) -> None:
    """Refuse options of a copy byte for byte that are not None, and targets that cannot hold one.

    Raises
    ------
    UnsupportedError
        The target is a session of icechunk.
    ValueError
        An option was given.
    """
    if session_of(target) is not None:
        raise UnsupportedError("icechunk has no copies byte for byte: leave out raw", path=path)
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"a copy byte for byte takes no {name}: leave out {name}, or raw")


def raw_items(
    arrays: Mapping[str, Array], groups: Mapping[str, Group], store: Any, path: str
) -> dict[str, Item]:
    """Return the items of a copy byte for byte: groups first, so that arrays are created below them."""
    items: dict[str, Item] = {}
    nodes: Sequence[tuple[str, Any]] = [*sorted(groups.items()), *arrays.items()]
    for below, node in nodes:
        values = _StoredValues(located(node.__reduce__()[1][0]), create=False)
        new = RawNode(node, store, joined(path, below), {}, documents_of(values, node.path))
        items[below] = RawArray((node,), new) if isinstance(node, Array) else RawGroup((), new)
    return items


def documents_of(values: _StoredValues, path: str, names: Sequence[str] = _DOCUMENTS) -> dict[str, bytes]:
    """Return the documents of a node by their names."""
    found = values.get_each([joined(path, name) for name in names])
    return {name: value for name, value in zip(names, found, strict=True) if value is not None}


def _identity(created: tuple[New, ...]) -> list[list[str]]:
    return [
        [name, hashlib.sha256(document).hexdigest()]
        for new in created
        if isinstance(new, RawNode)
        for name, document in new.documents.items()
    ]


def _listed(values: _StoredValues, path: str, prefix: str) -> Iterator[str]:
    """Yield all keys below a path."""
    for name in values.list(joined(path, prefix)):
        key = joined(prefix, name)
        below = values.list(joined(path, key))
        if below:
            yield from _listed(values, path, key)
        else:
            yield key
