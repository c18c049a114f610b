"""Stores of zarr-python, and other libraries' subclasses, asked by their own methods.

1. They are asked on the event loop of zarr-python, if it has one: resources that a store opened there (a
   session of HTTP, say) belong to that loop, and a store may be used by both libraries.
2. Several ranges of one value are asked for at once, if a store has `get_ranges`.
3. These stores have no versions, and no puts on the condition that a value still exists. If this
   process is the only writer, zarrow provides both itself: a version is a digest of the value, and puts to
   one key follow one another. Such stores are those in memory, sessions of icechunk, and what the caller
   declares so.
4. icechunk has no consolidated metadata, and zarr-python refuses to write them there. A session becomes
   read-only by its commit, also for the handles opened before.
"""

from __future__ import annotations

import asyncio
import json
import sys
import weakref
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import
from zarrow.store_objects.mapping import bytes_of, version_of
from zarrow.store_objects.store_adapter import AsyncAdapter, fail, mark_loop

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest

# Locks of keys by their hash, for each loop.
_LOCK_COUNT = 64
_LOCKS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, list[asyncio.Lock]] = weakref.WeakKeyDictionary()

# Number of sizes requested at once.
_SIZES_AT_ONCE = 64


def _lock(key: str) -> asyncio.Lock:
    """Return the lock of a key."""
    locks = _LOCKS.setdefault(asyncio.get_running_loop(), [])
    if not locks:
        locks.extend(asyncio.Lock() for _ in range(_LOCK_COUNT))
    return locks[hash(key) % _LOCK_COUNT]


class ZarrAdapter(AsyncAdapter):
    """Asks a store of zarr-python."""

    tells_size = False

    def __init__(self, store: Any, source: Any, sole_writer: bool) -> None:
        super().__init__(source, store)
        self.store = store
        self.is_writable = bool(store.supports_writes) and not store.read_only
        home = type(store).__module__
        self.is_icechunk = is_icechunk = home.startswith("icechunk.")
        in_memory = home.startswith("zarr.storage.") and type(store).__name__ in (
            "MemoryStore",
            "ManagedMemoryStore",
        )
        self.has_conditions = sole_writer or is_icechunk or in_memory
        # icechunk takes chunks of arrays that it knows; others, and what wraps a store, may be like it.
        self.needs_documents_first = not home.startswith("zarr.storage.") or hasattr(store, "_store")
        self.forks = not is_icechunk and not _needs_loop(store)
        self.abstract: Any = _import("zarr.abc.store")
        self.buffers: Any = _import("zarr.core.buffer").default_buffer_prototype()
        mark_loop(self.started_loop())

    def started_loop(self) -> asyncio.AbstractEventLoop | None:
        """Return zarr-python's loop if it has one. If its thread is refused, it keeps a dead loop."""
        loops = getattr(sys.modules.get("zarr.core.sync"), "loop", None)
        return loops[0] if loops else None

    def own_loop(self) -> asyncio.AbstractEventLoop | None:
        """Step 1."""
        sync = sys.modules.get("zarr.core.sync")
        get_loop = getattr(sync, "_get_loop", None)
        if get_loop is None:
            return None
        loop: asyncio.AbstractEventLoop = get_loop()
        return loop

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Step 2."""
        if not hasattr(self.store, "get_ranges"):
            super().submit(requests)
            return
        ranges: dict[str, list[_StoreRequest]] = {}
        others = []
        for request in requests:
            if request.kind == "get" and request.range is not None:
                ranges.setdefault(request.key, []).append(request)
            else:
                others.append(request)
        own = asyncio.get_running_loop()
        loop = self.own_loop() or own
        for batch in ranges.values():
            if len(batch) == 1:
                others.extend(batch)
            else:
                # No request has this number: if one is cancelled, the others go on.
                self.begin(-1 - batch[0].number, self._get_ranges(batch), own, loop)
        super().submit(others)

    async def _get_ranges(self, batch: list[_StoreRequest]) -> None:
        """Answer with several ranges of one value, without merging them further."""
        kind = self.abstract.RangeByteRequest
        try:
            ranges = [kind(*request.range) for request in batch]  # type: ignore[misc]
            groups = self.store.get_ranges(
                batch[0].key,
                ranges,
                prototype=self.buffers,
                max_concurrency=len(batch),
                max_gap_bytes=0,
                max_coalesced_bytes=1,
            )
            async for group in groups:
                for number, value in group:
                    request = batch[number]
                    assert request.range is not None
                    if value is None:
                        request.missing()
                    else:
                        request.found(bytes_of(value), request.range[0])
        except BaseException as error:
            is_missing = isinstance(error, BaseExceptionGroup) and error.split(FileNotFoundError)[1] is None
            for request in batch:
                if is_missing:
                    request.missing()
                else:
                    fail(request, error)
            if isinstance(error, asyncio.CancelledError):
                raise

    async def get(self, request: _StoreRequest) -> None:
        """Answer with a value, or with a range."""
        byte_range = None if request.range is None else self.abstract.RangeByteRequest(*request.range)
        value = await self.store.get(request.key, self.buffers, byte_range)
        if value is None:
            request.missing()
            return
        found = bytes_of(value)
        if request.range is None:
            request.found(found, 0, len(found))
        else:
            request.found(found, request.range[0])

    async def measure(self, request: _StoreRequest) -> None:
        """Answer with the size of a value, and with its version if the store has conditions."""
        assert request.range is not None
        if self.has_conditions:
            try:
                value = await self.store.get(request.key, self.buffers)
            except Exception as error:
                # The engine may ask for the path of a node, which icechunk takes for no key.
                if "invalid zarr key" not in str(error):
                    raise
                value = None
            if value is None:
                request.missing()
                return
            found = bytes_of(value)
            request.found(b"", request.range[0], len(found), version_of(found))
            return
        try:
            nbytes = await self.store.getsize(request.key)
        except FileNotFoundError:
            request.missing()
            return
        request.found(b"", request.range[0], int(nbytes))

    async def _keys(self, prefix: str) -> list[str]:
        """List the keys below a prefix."""
        try:
            keys = [key async for key in self.store.list_prefix(prefix)]
        except Exception as error:
            # icechunk lists the keys of a node, and refuses prefixes within an array.
            if not prefix or "bad key prefix" not in str(error):
                raise
            above = prefix.rstrip("/").rpartition("/")[0]
            keys = await self._keys(f"{above}/" if above else "")
        return [key for key in keys if key.startswith(prefix)]

    async def list(self, request: _StoreRequest) -> None:
        """Answer with the entries below a prefix."""
        start = f"{request.key}/" if request.key else ""
        if not request.recursive:
            # A store does not say which names are values and which are prefixes.
            names = [name.rstrip("/") async for name in self.store.list_dir(request.key)]
            request.listed([(start + name, 0) for name in names if name], [])
            return
        keys = await self._keys(start)
        turns = asyncio.Semaphore(_SIZES_AT_ONCE)

        async def size(key: str) -> int:
            async with turns:
                try:
                    return int(await self.store.getsize(key))
                except FileNotFoundError:
                    return 0

        sizes = await asyncio.gather(*map(size, keys))
        request.listed(list(zip(keys, sizes, strict=True)), [])

    async def put(self, request: _StoreRequest) -> None:
        """Set a value, if its condition holds (step 3)."""
        if self.is_icechunk and request.key.endswith("zarr.json") and _is_consolidated(request.body):
            request.unsupported("icechunk has no consolidated metadata: leave consolidation out")
            return
        value = self.buffers.buffer.from_bytes(request.body)
        if not self.has_conditions:
            await self._set(request.key, value)
            request.changed_it()
            return
        async with _lock(request.key):
            if request.if_absent or request.if_version is not None:
                found = await self.store.get(request.key, self.buffers)
                version = None if found is None else version_of(bytes_of(found))
                if version != request.if_version:
                    request.conflict()
                    return
            await self._set(request.key, value)
        request.changed_it()

    async def delete(self, request: _StoreRequest) -> None:
        """Take values away."""
        if not self.store.supports_deletes:
            request.unsupported(f"{self.name} cannot delete values")
            return
        for key in request.keys:
            async with _lock(key):
                try:
                    await self.store.delete(key)
                except Exception as error:
                    if self.is_icechunk and self.store.session.read_only:
                        raise _read_only() from error
                    # Older versions of icechunk raise if the key does not exist, or cannot exist.
                    if not isinstance(error, KeyError) and "invalid chunk index" not in str(error):
                        raise
        request.changed_it()

    async def _set(self, key: str, value: Any) -> None:
        """Set a value, with a remedy if a session has been committed (step 4)."""
        try:
            await self.store.set(key, value)
        except Exception as error:
            if self.is_icechunk and self.store.session.read_only:
                raise _read_only() from error
            raise


def _read_only() -> PermissionError:
    return PermissionError(
        "the session of icechunk is read-only, as after its commit: open the node again in a new session, "
        "from repository.writable_session(branch)"
    )


def _is_consolidated(document: bytes) -> bool:
    """Whether a document of a group contains consolidated metadata."""
    if b'"consolidated_metadata"' not in document:
        return False
    metadata = json.loads(document)
    return isinstance(metadata, dict) and metadata.get("consolidated_metadata") is not None


def _needs_loop(store: Any) -> bool:
    """Whether a store holds resources of an event loop, which a forked child does not have."""
    inner = getattr(store, "_store", None)
    if inner is not None and inner is not store and hasattr(inner, "supports_writes"):
        return _needs_loop(inner)
    fs = getattr(store, "fs", None)
    return bool(getattr(fs, "async_impl", False)) and not hasattr(fs, "sync_fs")
