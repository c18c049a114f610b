"""Read-only sessions of icechunk: icechunk names the chunks, and the engine reads them.

1. A snapshot never changes. icechunk lists the references of an array in batches, and the engine keeps
   them.
2. Listing stops when it has cost about as much as asking icechunk for the wanted chunks. So one chunk of a
   huge array takes no list of all chunks, and a read of many chunks soon has all references.
3. If listing has not reached a chunk, or failed, icechunk itself reads the chunk. It reads virtual chunks
   too, since it checks whether their files have changed.
4. Before the first chunk, the engine looks for one object in the place that the session names. If it finds
   none, icechunk reads everything.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrow._zarrow import _ChunkReferences, _reference_target, _References, _ReferenceTarget
from zarrow.store_objects.icechunk_storage import place_of_chunks
from zarrow.store_objects.store_adapter import fail
from zarrow.store_objects.zarr_store import ZarrAdapter

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest

# References listed for each chunk that is asked of icechunk (step 2), and the most of one array.
_REFERENCES_A_CHUNK = 1024
_MOST_REFERENCES = 1 << 22

# Kinds of references, as icechunk numbers them.
_NATIVE, _INLINE = 1, 3

_DOCUMENT = "zarr.json"

# The attribute of a store that keeps its adapter.
_KEPT = "_zarrow_adapter"


class IcechunkAdapter(ZarrAdapter):
    """Asks a read-only session."""

    requests = 256

    def __init__(self, store: Any, source: Any) -> None:
        super().__init__(store, source, False)
        self._known = self.references = _References()
        self._lists: dict[str, _ReferenceList] = {}
        self._target: _ReferenceTarget | None = None
        self._is_looked_for = False
        self._looking = asyncio.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _nothing, ()

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Begin a coroutine for the chunks of each array that has more references."""
        others: list[_StoreRequest] = []
        wanted: dict[str, list[_StoreRequest]] = {}
        for request in requests:
            path = self._array_of(request) if request.kind in ("get", "measure") else None
            if path is not None:
                wanted.setdefault(path, []).append(request)
            elif not self._known.answer(request):
                # It was submitted before its reference was listed.
                others.append(request)
        own = asyncio.get_running_loop()
        loop = self.own_loop() or own
        for path, chunks in wanted.items():
            # No request has this number: if one is cancelled, the others go on.
            number = -1 - chunks[0].number
            self.begin(number, self._answer_chunks(self._lists[path], chunks), own, loop)
        if others:
            super().submit(others)

    def _array_of(self, request: _StoreRequest) -> str | None:
        """Return the path of the array above a key, if more of its references can be listed."""
        path = request.key
        while path:
            path = path.rpartition("/")[0]
            found = self._lists.get(path)
            if found is not None:
                is_document = request.key.endswith(_DOCUMENT)
                return None if found.has_ended or is_document else path
        return None

    async def get(self, request: _StoreRequest) -> None:
        """Answer with a value, and note the arrays."""
        path, _, name = request.key.rpartition("/")
        if name != _DOCUMENT or request.range is not None or path in self._lists:
            await super().get(request)
            return
        value = await self.store.get(request.key, self.buffers)
        if value is None:
            request.missing()
            return
        document = value.to_bytes()
        fields = json.loads(document)
        if fields.get("node_type") == "array":
            self.note_array(path, len(fields["shape"]))
        request.found(document, 0, len(document))

    def note_array(self, path: str, ndim: int) -> None:
        """Begin the list of an array's references."""
        # Two threads may have asked for the same document.
        if path in self._lists:
            return
        # icechunk has no chunks under other keys.
        columns = _ChunkReferences("c", "/", ndim)
        self._lists[path] = _ReferenceList(
            columns, self.store.array_chunk_iterator(f"/{path}", _REFERENCES_A_CHUNK)
        )
        self._known.set_array(path, columns)

    async def _answer_chunks(self, listed: _ReferenceList, requests: list[_StoreRequest]) -> None:
        try:
            await listed.extend(len(requests), self)
            left = [each for each in requests if each.is_wanted and not self._known.answer(each)]
        except BaseException as error:
            for request in requests:
                fail(request, error)
            raise
        super().submit(left)

    async def target(self, name: str) -> _ReferenceTarget | None:
        """Return the place of chunks, once it was seen to have the object `name` (step 4)."""
        async with self._looking:
            if not self._is_looked_for:
                self._target = await asyncio.to_thread(_find, self.store.session, name)
                self._is_looked_for = True
        return self._target


def from_store(store: Any) -> IcechunkAdapter:
    """Return the adapter of a read-only store of icechunk: all of its arrays share the lists of references.

    The store keeps it, so that both are collected together. A pickle of the store leaves it out.
    """
    kept: IcechunkAdapter | None = vars(store).get(_KEPT)
    if kept is None:
        kept = vars(store).setdefault(_KEPT, IcechunkAdapter(store, store))
        if kept is None:  # of a pickle
            kept = vars(store)[_KEPT] = IcechunkAdapter(store, store)
    return kept


def _nothing() -> None:
    return None


def _find(session: Any, name: str) -> _ReferenceTarget | None:
    place = place_of_chunks(session)
    if place is None:
        return None
    try:
        target = _reference_target(*place, is_immutable=True)
        return target if target.contains(name) else None
    except Exception:
        # Whatever prevents this, icechunk may still read.
        return None


class _ReferenceList:
    """The references of an array, as far as they were listed."""

    def __init__(self, columns: _ChunkReferences, batches: Any) -> None:
        self.columns = columns
        self.has_ended = False
        self._batches = batches
        self._wanted = self._listed = 0
        self._listing: asyncio.Task[None] | None = None

    async def extend(self, count: int, adapter: IcechunkAdapter) -> None:
        """List references for `count` requests more (step 2).

        A separate task lists them: icechunk loses a batch if the wait for it is cancelled.
        """
        self._wanted += count * _REFERENCES_A_CHUNK
        while not self.has_ended and self._listed < self._wanted:
            if self._listing is None or self._listing.done():
                self._listing = asyncio.create_task(self._list(adapter))
            await asyncio.shield(self._listing)

    async def _list(self, adapter: IcechunkAdapter) -> None:
        try:
            while not self.has_ended and self._listed < self._wanted:
                batch = await anext(self._batches, None)
                self.has_ended = batch is None or not await self._add(batch, adapter)
        except BaseException as error:
            # icechunk may still answer for each chunk, or has a better error.
            self.has_ended = True
            if not isinstance(error, Exception):
                raise

    async def _add(self, batch: tuple[Any, ...], adapter: IcechunkAdapter) -> bool:
        """Add a batch; return whether to go on."""
        coordinates, kinds, names, offsets, sizes, within = batch
        self._listed += len(kinds)
        objects = np.zeros(len(kinds), np.uint32)
        native = np.flatnonzero(kinds == _NATIVE)
        if native.size:
            target = await adapter.target(names[native[0]])
            if target is None:
                return False
            first = self.columns.add_objects(target, [names[row] for row in native])
            objects[native] = np.arange(first, first + native.size)
        inline = np.flatnonzero(kinds == _INLINE)
        if inline.size:
            first = self.columns.add_bytes([within[int(row)] for row in inline])
            objects[inline] = np.arange(first, first + inline.size)
        known = np.flatnonzero((kinds == _NATIVE) | (kinds == _INLINE))
        if known.size:
            columns = (coordinates, objects, offsets, sizes)
            self.columns.add_chunks(*(np.ascontiguousarray(column[known]) for column in columns))
        return len(self.columns) < _MOST_REFERENCES
