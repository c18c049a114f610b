"""Encodes one element for a trial: a codec may refuse elements, and then nothing of the array is stored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Codecs that encode any elements of the types they accept.
_SAFE = frozenset(
    (
        # of zarr-python
        "BytesCodec",
        "BloscCodec",
        "Crc32cCodec",
        "GzipCodec",
        "ShardingCodec",
        "TransposeCodec",
        "VLenBytesCodec",
        "VLenUTF8Codec",
        "ZstdCodec",
        # of numcodecs
        "BZ2",
        "Blosc",
        "GZip",
        "LZ4",
        "LZMA",
        "VLenBytes",
        "VLenUTF8",
        "Zlib",
        "Zstd",
    )
)


def try_codecs(array: Any) -> None:
    """Encode one element in memory, if a codec might refuse the elements of a new array."""
    metadata = array.metadata
    if metadata.zarr_format == 2:
        used = [codec for codec in (*(metadata.filters or ()), metadata.compressor) if codec is not None]
    else:
        used = list(metadata.codecs)
    if all(type(codec).__name__ in _SAFE for codec in used) or not math.prod(array.shape):
        return
    from zarr import Array
    from zarr.core.array import AsyncArray
    from zarr.storage import MemoryStore as TrialStore
    from zarr.storage import StorePath

    trial = Array(AsyncArray(metadata, StorePath(TrialStore(), array.path)))
    trial[(0,) * array.ndim] = np.zeros((), array.dtype)[()]
