"""A store of zarr-python that stages changes in memory, so that a refused write changes no stored byte.

1. xarray's own code prepares a write on this store: it makes the documents as in any other store, and every
   check of xarray and zarr-python is made. Changes are staged: reads see them, the store beneath does not.
2. `erase`, `commit` and `go_direct` change the store beneath, when no more errors of the caller are possible.
3. Documents at the root that describe others, such as consolidated metadata, are written last.
4. What the store beneath lacks is known from its listings, without a request for each document.
5. Each document is stored on the condition that it has not changed since it was read: in a remote store by
   conditional puts, in a local one under the locks of the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

from zarrow._zarrow import CloudStore, MemoryStore, _StoredValues
from zarrow.api import concurrent_calls
from zarrow.errors import NotFoundError, StoreError, UnsupportedError, ZarrowError
from zarrow.groups import append_claims as claims
from zarrow.groups.places import joined, may_be_one_server

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype

Location: TypeAlias = Path | CloudStore | MemoryStore

# Requests to a remote store at the same time.
_THREADS = 64
# Small puts: a batch of them takes one round trip.
_DOCUMENTS_AT_ONCE = 256

_OF_ARRAYS = ("zarr.json", ".zarray")
_OF_NODES = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
_DOCUMENTS = frozenset((*_OF_NODES, ".zmetadata"))
# xarray reads the first and the last element of times, one by one.
_KEPT_NBYTES = 1 << 20

# Step 3.
_LAST = frozenset(("zarr.json", ".zmetadata"))


@dataclass(slots=True)
class _State:
    """Staged changes, and cached answers of the store beneath."""

    staged: dict[str, bytes | None] = field(default_factory=dict)
    erased: list[str] = field(default_factory=list)
    known: dict[str, bytes | None] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    # Chunks that were read: of coordinates.
    chunks: dict[str, bytes] = field(default_factory=dict)
    # In a remote store: the versions of values, None for missing ones (step 5).
    versions: dict[str, str | None] = field(default_factory=dict)
    # Claims on documents: of other writers, and the last ones of this write (`zarrow.groups.append_claims`).
    others: dict[str, bytes] = field(default_factory=dict)
    own: dict[str, bytes] = field(default_factory=dict)
    values: _StoredValues | None = None
    is_direct: bool = False


class StagedStore(Store):
    """Staged changes over a store of the engine."""

    supports_writes: bool = True
    supports_deletes: bool = True
    supports_listing: bool = True
    supports_partial_writes: bool = False  # type: ignore[assignment]

    def __init__(self, location: Location) -> None:
        super().__init__(read_only=False)
        self.location = location
        self._state = _State()
        self._threads: ThreadPoolExecutor | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StagedStore) and other._state is self._state

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        # As the location: messages of zarr-python show it.
        return repr(str(self.location))

    def __str__(self) -> str:
        # As zarr-python's stores, for messages.
        return f"file://{self.location}" if isinstance(self.location, Path) else str(self.location)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for arrays that zarr-python writes in another process, when documents are stored."""
        return _direct, (self.location,)

    def with_read_only(self, read_only: bool = False) -> StagedStore:
        """Return the same store and changes, for reading only if `read_only`."""
        other = StagedStore(self.location)
        other._read_only = read_only
        other._state = self._state
        return other

    # Reading

    def _values(self) -> _StoredValues | None:
        """Return the store beneath; None for a folder that does not exist yet."""
        if self._state.values is None:
            try:
                self._state.values = _StoredValues(self.location, create=False)
            except NotFoundError:
                return None
        return self._state.values

    def _created_values(self) -> _StoredValues:
        if self._state.values is None:
            self._state.values = _StoredValues(self.location, create=True)
        return self._state.values

    @property
    def is_remote(self) -> bool:
        """Whether requests take time."""
        values = self._values()
        return values is not None and not values.is_local()

    def prefetch(self, group: str, names: list[str], versions: tuple[int, ...], *, is_listed: bool) -> None:
        """Request the documents of a group, of groups above and of arrays in it, and list it, at once.

        `is_listed` requests the documents of all members after that.
        """
        values = self._values()
        if values is None or values.is_local():
            return
        parts = group.split("/") if group else []
        above = ["/".join(parts[:count]) for count in range(len(parts) + 1)]
        keys = [joined(path, name) for path in above for name in _OF_NODES]
        keys += [".zmetadata", *self._documents(group, names, versions)]

        def get(wanted: list[str]) -> None:
            self._state.known.update(zip(wanted, self._get_each(values, wanted), strict=True))

        def names_below() -> None:
            self._state.names[group] = values.list(group)

        concurrent_calls.run([partial(get, keys), names_below])
        if is_listed:
            known = {key for key, value in self._state.known.items() if value is not None}
            is_v2 = joined(group, ".zgroup") in known
            rest = [
                key
                for name in self._state.names[group]
                for key in self._documents(group, [name], (2,) if is_v2 else (3,))
                if name not in _DOCUMENTS and key not in self._state.known
            ]
            if rest:
                get(rest)

    def _get_each(self, values: _StoredValues, keys: list[str]) -> list[bytes | None]:
        """Request values at once, documents without claims."""
        if values.is_local():
            return values.get_each(keys)
        state, found = self._state, list[bytes | None]()
        for key, answer in zip(keys, values.get_versions(keys), strict=True):
            value, state.versions[key] = (None, None) if answer is None else answer
            state.others.pop(key, None)
            if value is not None and key.rsplit("/", 1)[-1] in _DOCUMENTS:
                value, number = claims.split(value)
                if number != state.own.get(key):
                    # Another writer has replaced the own claim.
                    state.own.pop(key, None)
                    if number is not None:
                        state.others[key] = number
            found.append(value)
        return found

    @staticmethod
    def _documents(group: str, names: list[str], versions: tuple[int, ...]) -> list[str]:
        """Return the keys of the documents of members of a group."""
        found = []
        for name in names:
            path = joined(group, name)
            if 3 in versions:
                found.append(f"{path}/zarr.json")
            if 2 in versions:
                found += [f"{path}/.zarray", f"{path}/.zattrs", f"{path}/.zgroup"]
        return found

    def _is_absent(self, key: str) -> bool:
        """Whether listings show that there is nothing at a key or below it (step 4)."""
        if not key:
            return self._state.names.get("") == []
        parts = key.split("/")
        for count, part in enumerate(parts):
            names = self._state.names.get("/".join(parts[:count]))
            if names is not None and part not in names:
                return True
        return False

    def _is_erased(self, key: str) -> bool:
        return any(
            not prefix or key == prefix or key.startswith(f"{prefix}/") for prefix in self._state.erased
        )

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        """Call a function of the store beneath, in a thread if it waits for a server."""
        if not self.is_remote:
            return function(*arguments)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "zarrow-documents")
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def _value(self, key: str) -> bytes | None:
        state = self._state
        if key in state.staged:
            return state.staged[key]
        if self._is_erased(key):
            return None
        if key in state.known:
            return state.known[key]
        if key in state.chunks:
            return state.chunks[key]
        values = self._values()
        if values is None or self._is_absent(key) or not self._may_be_value(key):
            return None
        found: bytes | None = (await self._in_thread(self._get_each, values, [key]))[0]
        if key.rsplit("/", 1)[-1] in _DOCUMENTS:
            state.known[key] = found
        elif found is not None and len(found) <= _KEPT_NBYTES and not state.is_direct:
            state.chunks[key] = found
        return found

    def _may_be_value(self, key: str) -> bool:
        """Whether a key is not a folder."""
        return not isinstance(self.location, Path) or (self.location / key).is_file()

    async def _names(self, prefix: str) -> set[str]:
        """List the names directly below a prefix."""
        state = self._state
        found: set[str] = set()
        if not self._is_erased(prefix):
            if prefix not in state.names:
                values = self._values()
                is_absent = values is None or (prefix != "" and self._is_absent(prefix))
                state.names[prefix] = [] if is_absent else await self._in_thread(values.list, prefix)  # type: ignore[union-attr]
            found.update(name for name in state.names[prefix] if not self._is_erased(joined(prefix, name)))
        start = f"{prefix}/" if prefix else ""
        for key, value in state.staged.items():
            if key.startswith(start):
                name, _, below = key.removeprefix(start).partition("/")
                if value is not None:
                    found.add(name)
                elif not below:
                    found.discard(name)
        return found

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return a value, or a byte range."""
        value = await self._value(key)
        if value is None:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(_part(value, byte_range))

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return parts of values."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether a key has a value."""
        return await self._value(key) is not None

    async def is_empty(self, prefix: str) -> bool:
        """Whether there are no values below a prefix; folders without files count as empty."""
        prefix = prefix.rstrip("/")
        for name in await self._names(prefix):
            key = joined(prefix, name)
            if self.is_remote or await self.exists(key) or not await self.is_empty(key):
                return False
        return True

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """List the names directly below a prefix."""
        for name in sorted(await self._names(prefix.rstrip("/"))):
            yield name

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """List all keys below a prefix."""
        prefix = prefix.rstrip("/")
        for name in sorted(await self._names(prefix)):
            key = joined(prefix, name)
            if await self.exists(key):
                yield key
            else:
                async for below in self.list_prefix(key):
                    yield below

    async def list(self) -> AsyncIterator[str]:
        """List all keys."""
        async for key in self.list_prefix(""):
            yield key

    # Staging

    async def set(self, key: str, value: Buffer) -> None:
        """Stage a value; after `go_direct`, store it."""
        self._check_writable()
        if self._state.is_direct:
            await self._in_thread(self._created_values().set, key, value.to_bytes())
            return
        _StoredValues.check_key(key)
        if key not in self._state.staged:
            # For `check_unchanged`.
            await self._value(key)
        self._state.staged[key] = value.to_bytes()

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Stage a value under a key without one."""
        if not await self.exists(key):
            await self.set(key, value)

    async def set_partial_values(self, key_start_values: Any) -> None:
        """Refuse: values are set as a whole."""
        raise NotImplementedError

    async def delete(self, key: str) -> None:
        """Stage that a key loses its value."""
        self._check_writable()
        if self._state.is_direct:
            await self._in_thread(self._created_values().erase, key)
            return
        self._state.staged[key] = None

    async def delete_dir(self, prefix: str) -> None:
        """Stage that all keys below a prefix lose their values."""
        self._check_writable()
        prefix = prefix.strip("/")
        start = f"{prefix}/" if prefix else ""
        for key in [key for key in self._state.staged if key.startswith(start)]:
            del self._state.staged[key]
        if not self._is_erased(prefix):
            self._state.erased.append(prefix)

    def erases(self, store: Path | CloudStore, path: str) -> bool:
        """Whether the changes erase an array."""
        if isinstance(self.location, Path) and isinstance(store, Path):
            erased = [(self.location / prefix).resolve() for prefix in self._state.erased]
            return any((store / path).resolve().is_relative_to(prefix) for prefix in erased)
        if isinstance(self.location, CloudStore) and isinstance(store, CloudStore):
            found = f"{joined(store.name.rstrip('/'), path)}/"
            name = self.location.name.rstrip("/")
            is_below = any(
                found.startswith(f"{name}/{prefix}".rstrip("/") + "/") for prefix in self._state.erased
            )
            return is_below and may_be_one_server(self.location, store)
        return False

    def is_new(self, path: str) -> bool:
        """Whether the changes create the array at a path."""
        state = self._state
        for name in ("zarr.json", ".zarray"):
            key = joined(path, name)
            if state.staged.get(key) is not None:
                return self._is_erased(key) or state.known.get(key) is None
        return False

    # Storing (step 2)

    def erase(self) -> None:
        """Erase what the changes erase."""
        state = self._state
        values = self._values()
        if values is not None:
            prefixes = [prefix for prefix in state.erased if not self._is_absent(prefix)]
            self._run([partial(values.erase_prefix, prefix) for prefix in prefixes])
        for key in [key for key in state.known if self._is_erased(key)]:
            state.known[key] = None
        for key in [key for key in state.versions if self._is_erased(key)]:
            state.versions[key] = None
        for prefix in [prefix for prefix in state.names if self._is_erased(prefix)]:
            state.names[prefix] = []
        state.erased = []

    def changed(self) -> Sequence[str]:
        """Return the keys of documents to store, members before their groups."""
        state = self._state
        changed = [
            key for key, value in state.staged.items() if key not in state.known or state.known[key] != value
        ]
        return sorted(changed, key=lambda key: (-key.count("/"), key))

    def has_array(self, path: str) -> bool:
        """Whether an array has a document after the changes, unless no change is about it."""
        keys = [joined(path, name) for name in ("zarr.json", ".zarray")]
        is_staged = any(self._state.staged.get(key) is not None for key in keys)
        return is_staged or not self._is_erased(keys[0])

    def check_paths(self) -> None:
        """Refuse a variable or a group with the name of a document, which the engine does not read."""
        documents = {key for key, value in self._state.staged.items() if value is not None}
        for key in documents:
            parts = key.split("/")
            for count, name in enumerate(parts[:-1], 1):
                if name not in _DOCUMENTS:
                    continue
                if isinstance(self.location, Path) and (parent := "/".join(parts[:count])) in documents:
                    raise FileExistsError(
                        f"cannot store {key!r}: {parent!r} is a document; rename the variable"
                    )
                raise UnsupportedError(
                    f"{name!r} is the name of a document, which zarrow does not read as a variable or group: "
                    "rename it"
                )

    def check_unchanged(self) -> None:
        """Refuse to replace documents that another writer has changed since they were read."""
        state, keys = self._state, self.changed()
        values = self._values()
        found: list[bytes | None] = [None] * len(keys)
        claimed = set(state.own)
        if values is not None:
            present = [key for key in keys if self._may_be_value(key)]
            stored = dict(zip(present, self._get_each(values, present), strict=True))
            found = [stored.get(key) for key in keys]
        for key, value in zip(keys, found, strict=True):
            is_lost = key in claimed and key not in state.own
            if (value != state.known.get(key) or is_lost) and not self._is_erased(key):
                raise self._changed(key)

    def _changed(self, key: str) -> StoreError:
        return StoreError(
            f"{key!r} in {str(self.location)!r} was changed by another writer during this write, and "
            "was not replaced; check the store, then repeat the write"
        )

    def commit(self, *, is_append: bool = False) -> None:
        """Store all documents together, but those of step 3 afterwards; restore the old ones after an error.

        In a local store, the engine compares them with those that were read, and stores them, under the
        locks of its own changes. In a remote store, an append stores all its documents at once: its chunks
        exist, so that readers of old and of new documents find them.
        """
        state, ordered = self._state, self.changed()
        last = [key for key in ordered if key in _LAST and not (is_append and self.is_remote)]
        if not self.is_remote:
            keys = [*(key for key in ordered if key not in last), *last]
            changes = [(key, state.known.get(key), state.staged[key]) for key in keys]
            if (changed := self._created_values().commit(changes)) is not None:
                raise self._changed(changed)
            self._forget()
            return
        stored: list[str] = []

        def store(key: str) -> None:
            self._store(key)
            stored.append(key)

        try:
            released = [partial(self.release, key) for key in state.own if key not in ordered]
            self._run([*(partial(store, key) for key in ordered if key not in last), *released])
            self._run([partial(store, key) for key in last])
        except BaseException:
            self._restore(stored)
            raise
        self._forget()

    def _forget(self) -> None:
        """Forget the stored changes and the documents read before."""
        state = self._state
        state.staged = {}
        state.known = {}
        state.names = {}

    def _restore(self, keys: Sequence[str]) -> None:
        """Restore documents as they were before an interrupted commit, where possible."""

        def restore(key: str) -> None:
            with contextlib.suppress(ZarrowError, OSError):
                self._put(key, self._state.known.get(key))

        self._run([partial(restore, key) for key in reversed(keys)])

    # Claims

    def claims_of(self, group: str, names: Iterable[str]) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return documents to claim for an append to arrays, and other writers' claims on them."""
        state = self._state
        keys = [joined(group, f"{name}/{of_array}") for name in names for of_array in _OF_ARRAYS]
        keys.append(".zmetadata")
        if b'"consolidated_metadata"' in (state.known.get("zarr.json") or b""):
            keys.append("zarr.json")
        found = {key: value for key in keys if (value := state.known.get(key)) is not None}
        return found, {key: number for key, number in state.others.items() if key in found}

    def others_on_changed(self) -> dict[str, bytes]:
        """Return other writers' claims on documents that the changes replace."""
        others = self._state.others
        return {key: others[key] for key in self.changed() if key in others and not self._is_erased(key)}

    def claim(self, key: str, number: bytes) -> bool:
        """Put a claim on a document, or replace the own one; return whether it was as known."""
        state = self._state
        document = claims.claimed(state.known[key] or b"", number)
        version = self._created_values().set_if(key, document, state.versions[key])
        if version is None:
            return False
        state.versions[key], state.own[key] = version, number
        return True

    def claimed_keys(self) -> Sequence[str]:
        """Return the keys of claimed documents."""
        return list(self._state.own)

    def release(self, key: str) -> None:
        """Remove the own claim from a document, also if another writer has changed the rest of it."""
        state = self._state
        if (values := self._values()) is not None and key in state.own:
            [document] = self._get_each(values, [key])
            if document is not None and key in state.own:
                self._put(key, document)

    def create(self) -> None:
        """Create the folder of the store if it is missing, for chunks that are written before documents."""
        self._created_values()

    def go_direct(self) -> None:
        """Store what zarr-python sets from now on: chunks of arrays that it writes itself."""
        self._state.is_direct = True
        self._state.chunks = {}

    def _store(self, key: str) -> None:
        self._put(key, self._state.staged[key])

    def _put(self, key: str, value: bytes | None) -> None:
        values, versions = self._created_values(), self._state.versions
        if value is None:
            values.erase(key)
            versions[key] = None
        else:
            version = values.set_if(key, value, versions.get(key))
            if version is None:
                raise self._changed(key)
            versions[key] = version
        self._state.own.pop(key, None)

    def _run(self, functions: Sequence[Callable[[], object]]) -> None:
        if self.is_remote:
            concurrent_calls.run(functions, _DOCUMENTS_AT_ONCE)
        else:
            for function in functions:
                function()


def _part(value: bytes, byte_range: ByteRequest | None) -> bytes:
    if isinstance(byte_range, RangeByteRequest):
        return value[byte_range.start : byte_range.end]
    if isinstance(byte_range, OffsetByteRequest):
        return value[byte_range.offset :]
    if isinstance(byte_range, SuffixByteRequest):
        return value[max(len(value) - byte_range.suffix, 0) :]
    return value


def _direct(location: Location) -> StagedStore:
    store = StagedStore(location)
    store.go_direct()
    return store
