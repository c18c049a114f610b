"""VirtualiZarr's `ManifestStore`: chunks that are parts of other files, by references.

1. Documents, and chunks that the manifest has within itself, are answered from memory.
2. A chunk is a part of an object, by URL, offset and length. The engine reads it from the store that the
   registry of the manifest has for this URL, with the configuration of that store.
3. A manifest may come from a stranger, and could name any file of this machine, or any host that it
   reaches. So only URLs are read that begin with one that the caller allowed, compared by scheme, host and
   whole segments of the path.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from zarrow._zarrow import _import, _ReferenceTarget
from zarrow.store_objects.obstore_store import ObstoreAdapter, kind_of
from zarrow.store_objects.store_adapter import StoreAdapter, below, fail

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
        self._targets: dict[int, tuple[Any, _ReferenceTarget]] = {}
        self._places: dict[str, tuple[_ReferenceTarget, str]] = {}

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Answer from memory, or have another store answer."""
        for request in requests:
            try:
                if request.kind == "list":
                    request.listed(*below(self._keys(), request.key, request.recursive))
                else:
                    self._answer(request)
            except Exception as error:
                fail(request, error)

    def _answer(self, request: _StoreRequest) -> None:
        node, rest = self._node(request.key)
        if rest == _DOCUMENT:
            _answer_with(request, _document(node))
            return
        index = None if node is self.group or hasattr(node, "groups") else _chunk_index(node, rest)
        if index is None:
            request.missing()
            return
        manifest = node.manifest
        # Older versions of VirtualiZarr have no chunks within a manifest.
        within = getattr(manifest, "_inlined", {})
        if index in within:
            _answer_with(request, bytes(within[index]))
            return
        url = str(manifest._paths[index])
        if url in (_NOTHING, _WITHIN):
            request.missing()
            return
        target, key = self._place_of(url)
        target.answer(request, key, int(manifest._offsets[index]), int(manifest._lengths[index]))

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
        """Step 2."""
        known = self._places.get(url)
        if known is not None:
            return known
        place = _place(url)
        if not any(_is_within(place, allowed) for allowed in self.allowed):
            scheme, host, _ = place
            raise PermissionError(
                f"a reference leads to {url}, which is not allowed: "
                f"zarrow.PythonStore(store, allow=[{f'{scheme}://{host}/'!r}]) allows this host, "
                "and a longer URL a folder"
            )
        store, _ = self.registry.resolve(url)
        target = self._target(store)
        known = self._places[url] = (target, _key(store, url))
        return known

    def _target(self, store: Any) -> _ReferenceTarget:
        """Return the engine's side of a store of the registry, which is kept alive beside it."""
        known = self._targets.get(id(store))
        if known is None:
            # A folder is asked by requests too.
            asks = kind_of(store) == "LocalStore"
            target = _ReferenceTarget(ObstoreAdapter(store, store) if asks else store)
            known = self._targets[id(store)] = (store, target)
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


def _answer_with(request: _StoreRequest, value: bytes) -> None:
    nbytes, start, stop = len(value), 0, len(value)
    if request.suffix is not None:
        start = max(0, nbytes - request.suffix)
    elif request.range is not None:
        start, stop = request.range
    request.found(value[start:stop], start, nbytes)


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
        raise ValueError(f'a reference is a URL without a query, such as "s3://bucket/file.nc", got {url!r}')
    if any(unquote(segment) in (".", "..") or "/" in unquote(segment) for segment in segments):
        raise ValueError(f"a reference leads out of a folder: {url!r}")
    return parts.scheme.lower(), parts.netloc, segments


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
