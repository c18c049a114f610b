"""References of kerchunk in JSON, by the file system of fsspec that holds them.

1. The engine takes the references of an array at its first chunk, and reads their parts of files itself.
2. fsspec reads all other chunks: values within the references, whole files, and files in places that the
   engine does not know.
3. A change through a store of the same file system ends step 1: fsspec reads everything from then on.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrow._zarrow import _ChunkReferences, _References
from zarrow.store_objects.mapping import FsspecAdapter, MappingAdapter, bytes_of
from zarrow.store_objects.reference_objects import ReferenceObjects
from zarrow.store_objects.store_adapter import StoreLock

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest

# A chunk's coordinates and its part of a file: a URL, an offset and a size. None in place of a part that the
# engine cannot read.
Row = tuple[tuple[int, ...], tuple[Any, int, int] | None]

_DOCUMENTS = (".zarray", "zarr.json")

# As chunk keys have it: without leading zeros.
_NUMBER = re.compile("0|[1-9][0-9]*")

# The adapters of all open stores.
_ADAPTERS: weakref.WeakSet[ReferenceAdapter] = weakref.WeakSet()


class ReferenceAdapter(FsspecAdapter):
    """Asks a file system of references."""

    # Those for chunks with references need none of the threads.
    requests = 256

    def __init__(self, store: Any, source: Any, has_conditions: bool) -> None:
        super().__init__(store, source, has_conditions)
        self._known: _References | None = _References()
        self.references = self._known
        self._objects = ReferenceObjects(store.fs)
        self._arrays: dict[str, _ChunkReferences | None] = {}
        _ADAPTERS.add(self)

    def _forget(self) -> None:
        super()._forget()
        self._loading = StoreLock()

    def needs(self, mark: int, kind: str) -> bool:
        """Return whether the marked thread holds a lock of loading. Changes take the lock of each adapter."""
        adapters = list(_ADAPTERS) if kind in ("put", "delete") else [self]
        is_held = any(mark == id(adapter._loading) for adapter in adapters if adapter.fs is self.fs)
        return is_held or super().needs(mark, kind)

    def answer(self, request: _StoreRequest) -> None:
        """Answer by a reference (step 1), or as any file system."""
        if request.kind in ("get", "measure") and self._is_loaded(request.key):
            known = self._known
            if known is not None and known.answer(request):
                return
        super().answer(request)

    def _is_loaded(self, key: str) -> bool:
        """Load the references of the array that a key is in; tell whether there are any."""
        with self._loading:
            if self._known is None:
                return False
            try:
                self._load(key, self._known)
            except Exception:
                # References that cannot be understood: step 2.
                self._stop()
            return self._known is not None

    def put(self, request: _StoreRequest) -> None:
        """Set a value."""
        self._stop_all()
        super().put(request)
        # Another store may have loaded the old references during the change.
        self._stop_all()

    def delete(self, request: _StoreRequest) -> None:
        """Take values away."""
        self._stop_all()
        super().delete(request)
        self._stop_all()

    def _stop_all(self) -> None:
        """Step 3."""
        for adapter in list(_ADAPTERS):
            if adapter.fs is self.fs:
                if adapter._process != os.getpid():
                    # A lock that the parent of this process held is never released.
                    adapter._forget()
                with adapter._loading:
                    adapter._stop()

    def _stop(self) -> None:
        known, self._known = self._known, None
        if known is not None:
            for path in self._arrays:
                known.set_array(path, _ChunkReferences("", "", 0))

    def _load(self, key: str, known: _References) -> None:
        """Add the references of the array that a chunk is in, if they are new."""
        path, _, name = key.rpartition("/")
        if name.startswith(".z") or name == "zarr.json":
            return
        while path not in self._arrays:
            document = self._document(path)
            if document is not None:
                columns = _ChunkReferences(*key_encoding(document), len(document["shape"]))
                self._arrays[path] = columns
                known.set_array(path, columns)
                self._load_array(path, document, columns)
                return
            self._arrays[path] = None
            path = path.rpartition("/")[0]

    def _load_array(self, path: str, document: dict[str, Any], columns: _ChunkReferences) -> None:
        raise NotImplementedError

    def _document(self, path: str) -> dict[str, Any] | None:
        for name in _DOCUMENTS:
            key = f"{path}/{name}" if path else name
            try:
                document = json.loads(bytes(bytes_of(self.store[key])))
            except KeyError:
                continue
            if isinstance(document, dict) and "shape" in document:
                return document
        return None

    def _add(self, columns: _ChunkReferences, rows: Iterable[Row]) -> bool:
        """Add references; return whether the engine can read each chunk."""
        places, objects, offsets, sizes = [], [], [], []
        numbers: dict[Any, int | None] = {}
        is_whole = True
        for place, part in rows:
            if part is not None:
                url, offset, size = part
                if url not in numbers:
                    numbers[url] = self._objects.number_of(url, columns)
                number = numbers[url]
                if number is not None and offset >= 0 and size > 0:
                    places.append(place)
                    objects.append(number)
                    offsets.append(offset)
                    sizes.append(size)
                    continue
            is_whole = False
        if places:
            columns.add_chunks(
                np.array(places, np.uint32),
                np.array(objects, np.uint32),
                np.array(offsets, np.uint64),
                np.array(sizes, np.uint64),
            )
        return is_whole


class KerchunkAdapter(ReferenceAdapter):
    """Asks a file system with all references in a `dict`."""

    def __init__(self, store: Any, source: Any, has_conditions: bool) -> None:
        super().__init__(store, source, has_conditions)
        self._by_array: dict[str, list[tuple[str, Any]]] | None = None

    def measure(self, request: _StoreRequest) -> None:
        """Answer with the size of a value."""
        if isinstance(self.fs.references.get(self._path(request.key)), str | bytes):
            # fsspec gives the size of the text, which base64 may encode.
            MappingAdapter.measure(self, request)
        else:
            super().measure(request)

    def _load_array(self, path: str, document: dict[str, Any], columns: _ChunkReferences) -> None:
        if self._by_array is None:
            self._by_array = _by_array(self.fs.references)
        chunks = self._by_array.pop(self._path(path).strip("/"), [])
        if self._add(columns, _rows(chunks, document)):
            columns.complete()


def _by_array(references: dict[str, Any]) -> dict[str, list[tuple[str, Any]]]:
    """Return the names of values below each array, with their references."""
    arrays = {key.rpartition("/")[0] for key in references if key.rpartition("/")[2] in _DOCUMENTS}
    found: dict[str, list[tuple[str, Any]]] = {}
    for key, reference in list(references.items()):
        path = key
        while path:
            path = path.rpartition("/")[0]
            if path in arrays:
                break
        found.setdefault(path, []).append((key[len(path) :].lstrip("/"), reference))
    return found


def _rows(chunks: list[tuple[str, Any]], document: dict[str, Any]) -> Iterator[Row]:
    encoding, ndim = key_encoding(document), len(document["shape"])
    for name, reference in chunks:
        place = _coordinates(name, encoding, ndim)
        if place is not None:
            yield place, tuple(reference) if _is_part(reference) else None


def _is_part(reference: Any) -> bool:
    """Whether a reference is a URL, an offset and a size."""
    return (
        isinstance(reference, list | tuple)
        and len(reference) == 3
        and all(type(number) is int for number in reference[1:])
    )


def key_encoding(document: dict[str, Any]) -> tuple[str, str]:
    """Return the beginning of a chunk's key, and the separator of its numbers."""
    if document.get("zarr_format") == 2:
        return "", str(document.get("dimension_separator") or ".")
    encoding = document["chunk_key_encoding"]
    is_default = encoding["name"] == "default"
    separator = encoding.get("configuration", {}).get("separator", "/" if is_default else ".")
    return "c" if is_default else "", str(separator)


def _coordinates(name: str, encoding: tuple[str, str], ndim: int) -> tuple[int, ...] | None:
    """Return the coordinates in the name of a chunk; None for other names."""
    start, separator = encoding
    if not ndim:
        return () if name == (start or "0") else None
    if start:
        if not name.startswith(start + separator):
            return None
        name = name.removeprefix(start + separator)
    numbers = name.split(separator)
    if len(numbers) != ndim or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    return tuple(map(int, numbers))
