"""Mappings of keys to bytes, and fsspec's mappings of file systems that the engine does not read itself.

1. A `dict` is asked on the thread that takes the requests: one after the other, which allows conditional
   puts.
2. Any other mapping may block, and is asked in threads. It has no conditions, unless the caller declares to
   be the only writer: then its puts follow one another.
3. A mapping returns whole values only, and ranges are cut out here; a file system of fsspec reads ranges
   itself.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from zarrow.store_objects.store_adapter import StoreLock, ThreadAdapter, answer_with, below, mark_loop

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest


def bytes_of(value: Any) -> bytes | memoryview:
    """Return the bytes of a store's answer."""
    if isinstance(value, bytes):
        return value
    if hasattr(value, "as_numpy_array"):  # a buffer of zarr-python
        value = value.as_numpy_array()
    try:
        view = memoryview(value)
        return view if view.format == "B" and view.ndim == 1 else view.cast("B")
    except (TypeError, ValueError):
        found = type(value).__qualname__
        raise TypeError(f"the store answered with an object of type {found}, expected bytes") from None


def version_of(value: bytes | memoryview) -> str:
    """Distinguish a value from its replacements."""
    return hashlib.blake2b(value, digest_size=32).hexdigest()


class MappingAdapter(ThreadAdapter):
    """Asks a mapping in threads."""

    # A shard's index is cut out of the whole shard.
    has_suffix = True

    def __init__(self, store: Mapping[str, Any], source: Any, has_conditions: bool) -> None:
        super().__init__(source, store)
        self.store = store
        self.is_writable = isinstance(store, MutableMapping)
        self.has_conditions = has_conditions

    def _forget(self) -> None:
        super()._forget()
        self._lock = StoreLock()

    def needs(self, mark: int, kind: str) -> bool:
        """Return whether the marked thread holds the lock of changes."""
        return mark == id(self._lock)

    def get(self, request: _StoreRequest) -> None:
        """Answer with a value, or with a range."""
        try:
            value = bytes_of(self.store[request.key])
        except KeyError:
            request.missing()
            return
        answer_with(request, value)

    def measure(self, request: _StoreRequest) -> None:
        """Answer with the size of a value, and with its version if the store has conditions."""
        try:
            value = bytes_of(self.store[request.key])
        except KeyError:
            request.missing()
            return
        assert request.range is not None
        version = version_of(value) if self.has_conditions else None
        request.found(b"", request.range[0], len(value), version)

    def list(self, request: _StoreRequest) -> None:
        """Answer with the keys below a prefix."""
        keys = [key for key in list(self.store) if isinstance(key, str)]
        # Sizes are needed only if all values are listed.
        sizes = [(key, len(bytes_of(self.store[key])) if self._is_sized(request, key) else 0) for key in keys]
        request.listed(*below(sizes, request.key, request.recursive))

    @staticmethod
    def _is_sized(request: _StoreRequest, key: str) -> bool:
        return request.recursive and (not request.key or key.startswith(f"{request.key}/"))

    def put(self, request: _StoreRequest) -> None:
        """Set a value, if its condition is met."""
        store: Any = self.store
        with self._lock:
            if request.if_absent or request.if_version is not None:
                try:
                    found = version_of(bytes_of(store[request.key]))
                except KeyError:
                    found = None
                if found != request.if_version:
                    request.conflict()
                    return
            self._set(request.key, request.body)
        request.changed_it()

    def _set(self, key: str, value: bytes) -> None:
        store: Any = self.store
        store[key] = value

    def delete(self, request: _StoreRequest) -> None:
        """Take values away."""
        store: Any = self.store
        with self._lock:
            for key in request.keys:
                store.pop(key, None)
        request.changed_it()


class DictAdapter(MappingAdapter):
    """Step 1."""

    requests = 256

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Answer all requests at once."""
        for request in requests:
            self.answer(request)


class FsspecAdapter(MappingAdapter):
    """Asks a file system of fsspec for ranges."""

    def __init__(self, store: Any, source: Any, has_conditions: bool) -> None:
        super().__init__(store, source, has_conditions)
        self.has_suffix = self.tells_size = False
        self.fs: Any = store.fs
        # fsspec's own event loop does not exist in a forked child.
        self.forks = not getattr(store.fs, "async_impl", False)
        self._loops = list(_loops(store.fs))
        for loop in self._loops:
            mark_loop(loop)
        self.missing: tuple[type[Exception], ...] = store.missing_exceptions

    def needs(self, mark: int, kind: str) -> bool:
        """Return whether the marked thread runs a loop of the file system, or holds the lock."""
        return any(mark == id(loop) for loop in self._loops) or super().needs(mark, kind)

    def _path(self, key: str) -> str:
        path: str = self.store._key_to_str(key)  # type: ignore[attr-defined]
        return path

    def _set(self, key: str, value: bytes) -> None:
        try:
            super()._set(key, value)
        except IsADirectoryError:
            # Some file systems keep folders of values that were deleted.
            path = self._path(key)
            if self.fs.find(path):
                raise
            self.fs.rm(path, recursive=True)
            super()._set(key, value)

    def get(self, request: _StoreRequest) -> None:
        """Answer with a value, or with a range."""
        start, stop = request.range or (0, None)
        try:
            value = self.fs.cat_file(self._path(request.key), start=start or None, end=stop)
        except self.missing:
            request.missing()
            return
        value = bytes_of(value)
        request.found(value, start, len(value) if request.range is None else None)

    def measure(self, request: _StoreRequest) -> None:
        """Answer with the size of a value."""
        if self.has_conditions:
            super().measure(request)
            return
        try:
            info = self.fs.info(self._path(request.key))
        except self.missing:
            request.missing()
            return
        if info.get("type", "file") != "file":
            request.missing()
            return
        if info.get("size") is None:
            super().measure(request)
            return
        assert request.range is not None
        request.found(b"", request.range[0], int(info["size"]))

    def list(self, request: _StoreRequest) -> None:
        """Answer with the entries below a prefix, without reading the folders below it."""
        own: Any = self.store
        root = (self._path(request.key) if request.key else own.root).rstrip("/")
        try:
            # The file system's cached listings may be older than the last writes.
            self.fs.invalidate_cache()
            if request.recursive:
                found = self.fs.find(root, detail=True).values()
            else:
                found = self.fs.ls(root, detail=True)
        except self.missing:
            request.listed([], [])
            return
        values, prefixes = [], []
        start = f"{request.key}/" if request.key else ""
        # At the root of a file system, names begin with or without a slash.
        above = f"{root}/" if root else ""
        for info in found:
            name = info["name"].rstrip("/") if root else info["name"].strip("/")
            if not name.startswith(above) or not name:
                continue
            key = start + name.removeprefix(above)
            if info.get("type") == "directory":
                prefixes.append(key)
            else:
                values.append((key, int(info.get("size") or 0)))
        request.listed(values, prefixes)


def _loops(system: Any) -> Iterator[asyncio.AbstractEventLoop]:
    """Return the loops of an asynchronous file system, and of the file systems that it calls."""
    for _ in range(16):
        loop = getattr(system, "_loop", None)
        if isinstance(loop, asyncio.AbstractEventLoop):
            yield loop
        system = getattr(system, "fs", None)
