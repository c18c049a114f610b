"""The required outcome of every hostile read: an error of the right class and kind, with its location."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hostile.encoders import Encoder
from hostile.process import Outcome, attempts
from hostile.stores import BYTES, Json, document, write

INTS = struct.pack("<4i", 1, 2, 3, 4)
# Memory for a read of 16 KiB: the stacks and the decompressors of two threads, and the file.
GROWTH = 16 << 20
NUMBERS = struct.pack("<4096i", *(number * number % 1000 + 1 for number in range(4096)))


def array_of(encoder: Encoder, count: int = 4096) -> Json:
    return document((count,), (count,), codecs=[BYTES, encoder.metadata])


def check(
    outcome: Outcome, folder: Path, error: str, *kinds: str, codec: str | None = None, chunk: Any = None
) -> None:
    """Assert that the outcome is this error in the array `a` of the store, in this chunk and codec."""
    assert (outcome.error, outcome.kind in kinds) == (error, True), outcome
    assert (outcome.store, outcome.path) == (str(folder), "a"), outcome
    assert outcome.codec == codec, outcome
    assert outcome.chunk == chunk, outcome
    for place in (str(folder), '"a"', codec, chunk):
        assert place is None or str(place) in outcome.message, outcome


def check_all(
    folder: Path,
    metadata: Json,
    chunks: Iterable[bytes],
    *kinds: str,
    codec: str | None,
    index: str = "...",
    error: str = "CodecError",
) -> None:
    """Assert that each of the chunks, in a separate store, causes this error."""
    stores = [write(folder / str(number), metadata, {"c/0": chunk}) for number, chunk in enumerate(chunks)]
    for store, outcome in zip(stores, attempts(stores, "a", index=index), strict=True):
        check(outcome, store, error, *kinds, codec=codec, chunk=[0])
