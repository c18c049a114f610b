"""What the engine leaves to zarr-python's own pipeline.

Only codecs, data types and grids of zarr-python itself are resolved: another class of the same name may
behave differently.
"""

from __future__ import annotations

from typing import Any


class FallbackError(Exception):
    """zarr-python's own pipeline has to read or write this; the message says why."""


def check_codecs(metadata: Any) -> None:
    """Refuse classes of other packages.

    Raises
    ------
    FallbackError
        A codec, the data type, the chunk grid or the chunk key encoding is not one of zarr-python.
    """
    codecs = _codecs(metadata)
    parts = [metadata.dtype, *codecs]
    if metadata.zarr_format == 3:
        parts += [metadata.chunk_grid, metadata.chunk_key_encoding]
        if getattr(metadata, "storage_transformers", ()):
            raise FallbackError("storage transformers")
    for part in parts:
        kind = type(part)
        if not kind.__module__.startswith(("zarr.", "numcodecs.")):
            raise FallbackError(f"{kind.__module__}.{kind.__qualname__} is not a class of zarr-python")


def _codecs(metadata: Any) -> list[Any]:
    """Return all codecs, those inside shards too."""
    if metadata.zarr_format == 2:
        return [codec for codec in (*(metadata.filters or ()), metadata.compressor) if codec is not None]
    found: list[Any] = []
    waiting: list[Any] = list(metadata.codecs)
    while waiting:
        codec = waiting.pop()
        found.append(codec)
        waiting += [*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ())]
    return found
