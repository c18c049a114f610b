"""References of kerchunk in Parquet files, by the file system of fsspec that reads them.

1. fsspec takes every name below an array for a chunk, unless it begins with `.z`: `x/zarr.json` raises.
2. pandas 3 has NaN where a file has no path or no bytes, and fsspec takes it for either: a chunk without a
   reference raises, and so do all chunks of a file with a column of bytes.
3. After either error, this module reads the columns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import
from zarrow.store_objects.mapping import FsspecAdapter, bytes_of

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest

_CHUNK = re.compile(r"\d+(\.\d+)*")
_COLUMNS = ("path", "offset", "size", "raw")
_ERRORS = (TypeError, ValueError)


class ParquetReferenceAdapter(FsspecAdapter):
    """Asks a file system of references in Parquet files."""

    def __init__(self, store: Any, source: Any) -> None:
        super().__init__(store, source, False)
        self.is_writable = False

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
