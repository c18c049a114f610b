"""VirtualiZarr's `ManifestStore`: chunks that are parts of other files, by references.

1. Documents are answered from memory.
2. A chunk is a part of an object, by URL, offset and length, or is within the manifest. The engine reads it
   from the store that the registry of the manifest has for this URL, with the configuration of that store. It
   gets the references of an array when the first chunk is requested.
3. A manifest may come from a stranger, and could name any file of this machine, or any host that it
   reaches. So only URLs are read that begin with one that the caller allowed, compared by scheme, host and
   whole segments of the path.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np

from zarrow._zarrow import (
    _ChunkReferences,
    _import,
    _reference_target,
    _References,
    _ReferenceTarget,
)
from zarrow.store_objects.store_adapter import StoreAdapter, answer_with, below, fail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zarrow._zarrow import _StoreRequest

_DOCUMENT = "zarr.json"

# The path of an entry without a reference.
_NOTHING, _WITHIN = "", "__inlined__"


class ManifestAdapter(StoreAdapter):
    """Answers from a manifest."""

    requests = 256
    has_suffix = True

    def __init__(self, store: Any, source: Any, allow: tuple[str, ...]) -> None:
        super().__init__(source, store)
        self.group: Any = store._group
        self.registry: Any = store._registry
        self.allowed = [_place(url) for url in allow]
        self._known = self.references = _References()
        self._targets: dict[int, tuple[Any, _ReferenceTarget]] = {}
        # URLs that were refused, with the reasons, by the paths of arrays that the engine has references of.
        self._refused: dict[str, dict[str, Exception]] = {}

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Answer from memory, or have another store answer."""
        for request in requests:
            try:
                if request.kind == "list":
                    request.listed(*below(self._keys(), request.key, request.recursive))
                elif not self._known.answer(request):
                    self._answer(request)
            except Exception as error:
                fail(request, error)

    def _answer(self, request: _StoreRequest) -> None:
        node, rest = self._node(request.key)
        if rest == _DOCUMENT:
            answer_with(request, _document(node))
            return
        index = None if node is self.group or hasattr(node, "groups") else _chunk_index(node, rest)
        if index is None:
            request.missing()
            return
        path = request.key.removesuffix(rest).rstrip("/")
        if path not in self._refused:
            self._refused[path] = self._add_references(path, node)
            if self._known.answer(request):
                return
        url = str(node.manifest._paths[index])
        if url == _NOTHING:
            request.missing()
            return
        self._place_of(url)
        raise self._refused[path].get(url) or ValueError(
            f"the manifest has changed: open it again to read {url}"
        )

    def _add_references(self, path: str, array: Any) -> dict[str, Exception]:
        """Step 2; return the URLs that may not be read."""
        manifest = array.manifest
        start, separator = _encoding(array)
        columns = _ChunkReferences(start, separator, manifest._paths.ndim)
        # Older versions of VirtualiZarr have no chunks within a manifest.
        within = getattr(manifest, "_inlined", {})
        names = manifest._paths
        is_elsewhere = (names != _NOTHING) & (names != _WITHIN)
        rows, coordinates = np.flatnonzero(is_elsewhere), np.argwhere(is_elsewhere)
        urls = [str(url) for url in names.ravel()[rows]]
        objects, refused = self._objects_of(set(urls), columns)
        known = [place for place, url in enumerate(urls) if url in objects]
        columns.add_chunks(
            np.ascontiguousarray(coordinates[known], np.uint32),
            np.array([objects[urls[place]] for place in known], np.uint32),
            manifest._offsets.ravel()[rows[known]].astype(np.uint64),
            manifest._lengths.ravel()[rows[known]].astype(np.uint64),
        )
        if within:
            first = columns.add_bytes([bytes(value) for value in within.values()])
            columns.add_chunks(
                np.array(list(within), np.uint32).reshape(len(within), names.ndim),
                np.arange(first, first + len(within), dtype=np.uint32),
                np.zeros(len(within), np.uint64),
                np.array([len(value) for value in within.values()], np.uint64),
            )
        if not refused:
            columns.complete()
        self._known.set_array(path, columns)
        return refused

    def _objects_of(
        self, urls: set[str], columns: _ChunkReferences
    ) -> tuple[dict[str, int], dict[str, Exception]]:
        """Return the numbers of objects by their URLs, and the URLs that may not be read."""
        objects, refused = {}, {}
        for url in urls:
            try:
                target, key = self._place_of(url)
                objects[url] = columns.add_objects(target, [key])
            except Exception as error:
                refused[url] = error
        return objects, refused

    def _node(self, key: str) -> tuple[Any, str]:
        """Return the deepest group or array on the way to a key, and the rest of the key."""
        node, rest = self.group, key
        while hasattr(node, "groups"):
            name, _, after = rest.partition("/")
            if not after or (name not in node.arrays and name not in node.groups):
                break
            node, rest = node[name], after
        return node, rest

    def _place_of(self, url: str) -> tuple[_ReferenceTarget, str]:
        """Return the store of a URL's object and its key in it, if it is allowed (step 3)."""
        place = _place(url)
        if not any(_is_within(place, allowed) for allowed in self.allowed):
            scheme, host, _ = place
            raise PermissionError(
                f"a reference leads to {shown(url)}, which is not allowed: "
                f"zarrow.PythonStore(store, allow=[{f'{scheme}://{_public(host)}/'!r}]) allows this host, "
                "and a longer URL a folder"
            )
        store, _ = self.registry.resolve(url)
        return self._target(store), _key(store, url)

    def _target(self, store: Any) -> _ReferenceTarget:
        """Return the engine's side of a store of the registry, which is kept alive beside it."""
        known = self._targets.get(id(store))
        if known is None:
            known = self._targets[id(store)] = (store, _reference_target(store))
        return known[1]

    def _keys(self) -> Iterator[tuple[str, int]]:
        """Return all keys with their sizes."""
        nodes = [("", self.group)]
        while nodes:
            prefix, node = nodes.pop()
            yield prefix + _DOCUMENT, len(_document(node))
            if hasattr(node, "groups"):
                nodes.extend((f"{prefix}{name}/", node[name]) for name in node)
                continue
            manifest = node.manifest
            for index in product(*map(range, manifest._paths.shape)):
                if manifest._paths[index] != _NOTHING:
                    yield prefix + _chunk_key(node, index), int(manifest._lengths[index])


def _document(node: Any) -> bytes:
    prototype = _import("zarr.core.buffer").default_buffer_prototype()
    document: bytes = node.metadata.to_buffer_dict(prototype=prototype)[_DOCUMENT].to_bytes()
    return document


def _encoding(array: Any) -> tuple[str, str]:
    """Return the prefix of a chunk's key before the numbers, and the separator between the numbers."""
    encoding = array.metadata.chunk_key_encoding
    separator: str = getattr(encoding, "separator", "/")
    return ("" if getattr(encoding, "name", "default") == "v2" else "c"), separator


def _chunk_key(array: Any, index: tuple[int, ...]) -> str:
    start, separator = _encoding(array)
    if not index:
        return start or "0"
    numbers = separator.join(map(str, index))
    return f"{start}{separator}{numbers}" if start else numbers


def _chunk_index(array: Any, key: str) -> tuple[int, ...] | None:
    """Return the position of a chunk in the grid; None for any other key."""
    start, separator = _encoding(array)
    shape = array.manifest._paths.shape
    if not shape:
        return () if key == (start or "0") else None
    numbers = key.removeprefix(start + separator if start else "").split(separator)
    if len(numbers) != len(shape) or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    index = tuple(map(int, numbers))
    inside = all(number < extent for number, extent in zip(index, shape, strict=True))
    return index if inside and _chunk_key(array, index) == key else None


def _place(url: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the scheme, the host and the path of a URL.

    Raises
    ------
    ValueError
        The text is not a URL, or could lead to another place than it appears to.
    """
    parts = urlsplit(url)
    segments = tuple(segment for segment in parts.path.split("/") if segment)
    if not parts.scheme or parts.query or parts.fragment or "\\" in url:
        raise ValueError(
            f'a reference is a URL without a query, such as "s3://bucket/file.nc", got {shown(url)!r}'
        )
    if any(unquote(segment) in (".", "..") or "/" in unquote(segment) for segment in segments):
        raise ValueError(f"a reference leads out of a folder: {shown(url)!r}")
    return parts.scheme.lower(), parts.netloc, segments


def _public(host: str) -> str:
    """Return a host without a user and a password."""
    return host.rpartition("@")[2]


def shown(url: str) -> str:
    """Return a URL for a message: without a user, a password or a signature."""
    parts = urlsplit(url)
    query = "?…" if parts.query else ""
    return f"{parts.scheme}://{_public(parts.netloc)}{parts.path}{query}" if parts.netloc else url


def _is_within(place: tuple[str, str, tuple[str, ...]], allowed: tuple[str, str, tuple[str, ...]]) -> bool:
    """Step 3."""
    return place[:2] == allowed[:2] and place[2][: len(allowed[2])] == allowed[2]


def _key(store: Any, url: str) -> str:
    """Return the key of a URL's object in the store that the registry has for it, as VirtualiZarr does."""
    path = urlsplit(url).path.lstrip("/")
    if getattr(store, "prefix", None):
        prefix = str(store.prefix).lstrip("/")
    elif hasattr(store, "url"):
        prefix = urlsplit(store.url).path.lstrip("/")
    else:
        prefix = ""
    return path.removeprefix(prefix).lstrip("/")
