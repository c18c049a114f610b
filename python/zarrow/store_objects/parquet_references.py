"""References of kerchunk in Parquet files, by the file system of fsspec that reads them.

1. The engine takes the references of a Parquet file at the first of its chunks, and reads their parts of
   files itself. fsspec reads all other chunks.
2. fsspec takes every name below an array for a chunk, unless it begins with `.z`: `x/zarr.json` raises.
3. pandas 3 has NaN where a file has no path or no bytes, and fsspec takes it for either: a chunk without a
   reference raises, and so do all chunks of a file with a column of bytes.
4. After either error, this module reads the columns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrow._zarrow import _import
from zarrow.store_objects.kerchunk_references import ReferenceAdapter, Row
from zarrow.store_objects.mapping import bytes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zarrow._zarrow import _ChunkReferences, _References, _StoreRequest

_CHUNK = re.compile(r"\d+(\.\d+)*")
_COLUMNS = ("path", "offset", "size", "raw")
_ERRORS = (TypeError, ValueError)


class ParquetReferenceAdapter(ReferenceAdapter):
    """Asks a file system of references in Parquet files."""

    def __init__(self, store: Any, source: Any) -> None:
        super().__init__(store, source, False)
        self.is_writable = False
        self._files: set[tuple[str, int]] = set()

    def _load(self, key: str, known: _References) -> None:
        super()._load(key, known)
        path, _, name = key.rpartition("/")
        columns = self._arrays.get(path)
        if columns is None or not _CHUNK.fullmatch(name):
            return
        full = self._path(key)
        record, _, ndim = self.fs.references._key_to_record(full)
        file = (full.rpartition("/")[0], record)
        if file not in self._files and ndim:
            self._files.add(file)
            self._add(columns, self._rows(*file, len(name.split("."))))

    def _load_array(self, path: str, document: dict[str, Any], columns: _ChunkReferences) -> None:
        """Leave the rows to the first chunk of each file."""

    def _rows(self, field: str, record: int, ndim: int) -> Iterator[Row]:
        references = self.fs.references
        columns = references.open_refs(field, record)
        grid = tuple(references._get_chunk_sizes(field))
        if columns is None or len(grid) != ndim or not {"path", "offset", "size"} <= columns.keys():
            return
        first = record * references.record_size
        count = min(len(columns["path"]), int(np.prod(grid)) - first)
        places = np.stack(np.unravel_index(np.arange(first, first + count), grid), axis=1).tolist()
        raws = columns.get("raw", [None] * count)
        rows = zip(places, columns["path"], columns["offset"], columns["size"], raws, strict=False)
        for place, url, offset, size, raw in rows:
            if isinstance(url, str) and (raw is None or raw != raw):
                yield tuple(place), (url, int(offset), int(size))

    def get(self, request: _StoreRequest) -> None:
        """Answer with a value, or with a range."""
        try:
            super().get(request)
        except _ERRORS:
            start, stop = request.range or (0, None)
            value = self._value(self._path(request.key), start, stop)
            if value is None:
                request.missing()
            else:
                request.found(value, start, len(value) if request.range is None else None)

    def measure(self, request: _StoreRequest) -> None:
        """Answer with the size of a value."""
        try:
            super().measure(request)
        except _ERRORS:
            assert request.range is not None
            reference = self._reference(self._path(request.key))
            if reference is None:
                request.missing()
                return
            url, _, size, raw = reference
            if raw is not None:
                size = len(bytes_of(raw))
            elif size is None:
                size = self._file_system(url).size(url)
            request.found(b"", request.range[0], int(size))

    def list(self, request: _StoreRequest) -> None:
        """Answer with the keys below a prefix."""
        try:
            super().list(request)
        except _ERRORS as error:
            text = f"fsspec cannot list the chunks of {request.key!r} in these Parquet files"
            raise OSError(text) from error

    def _value(self, path: str, start: int, stop: int | None) -> bytes | memoryview | None:
        """Return the bytes of a chunk from `start` to `stop`, None if it has no reference."""
        reference = self._reference(path)
        if reference is None:
            return None
        url, offset, size, raw = reference
        if raw is not None:
            return bytes_of(raw)[start:stop]
        if size is not None:
            stop = offset + (size if stop is None else min(stop, size))
            start = offset + min(start, size)
        return bytes_of(self._file_system(url).cat_file(url, start=start or None, end=stop))

    def _file_system(self, url: str) -> Any:
        protocol, _ = _import("fsspec.core").split_protocol(url)
        return self.fs.fss[protocol]

    def _reference(self, path: str) -> tuple[Any, ...] | None:
        """Return the columns of a chunk's row, None without a reference."""
        field, _, name = path.rpartition("/")
        if not _CHUNK.fullmatch(name):
            return None
        references = self.fs.references
        record, row, _ = references._key_to_record(path)
        columns = references.open_refs(field, record)
        found = [columns[name][row] if name in columns else None for name in _COLUMNS]
        # NaN alone is not itself.
        url, offset, size, raw = [None if value is None or value != value else value for value in found]
        if url is None and raw is None:
            return None
        # A reference to a whole file has neither.
        is_part = bool(offset) or bool(size)
        return url, int(offset or 0), int(size or 0) if is_part else None, raw
