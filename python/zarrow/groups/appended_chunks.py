"""Chunks behind the end of an array in a cloud, which lose no element of another writer.

1. Other writers that know claims wait for the claim on the array's document (`append_claims`).
2. `Array.append` grows first and knows no claims, and a claim can be lost during a long pause. Both may write
   elements where chunks are put. So a chunk is put only where none is, or where the chunk was read before the
   document was found unchanged: an array grows before other writers write its chunks.
3. Elements are encoded in memory, some at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from zarrow._zarrow import Array, MemoryStore, _ChunkParts, _StoredValues
from zarrow.api import concurrent_calls
from zarrow.groups.append_claims import ClaimedError
from zarrow.groups.array_documents import ArrayDocuments, key_of

# Elements of this size are encoded and put at once.
_BATCH_NBYTES = 64 << 20


class AppendedChunks:
    """Chunks of one array, along an axis with write units of a size."""

    def __init__(
        self, cloud: _StoredValues, documents: ArrayDocuments, array: Array, axis: int, unit: int
    ) -> None:
        self._cloud, self._documents = cloud, documents
        self._array, self._axis, self._unit = array, axis, unit

    def put(self, document: bytes, elements: Any, start: int) -> None:
        """Put the chunks of elements from a place on; the document has the new shape.

        Raises
        ------
        ClaimedError
            Another writer has changed the document.
        """
        axis, count, done = self._axis, elements.shape[self._axis], 0
        if not count:
            return
        frames = self._unit * max(1, _BATCH_NBYTES // max(1, elements.nbytes // count * self._unit))
        while done < count:
            # Up to the end of a write unit.
            step = min(count, (start + done) // frames * frames + frames - start) - done
            part = elements[(slice(None),) * axis + (slice(done, done + step),)]
            self._put(document, part, start + done)
            done += step

    def _put(self, document: bytes, elements: Any, start: int) -> None:
        first = min(-start % self._unit, elements.shape[self._axis])
        old: dict[str, tuple[bytes, str]] = {}
        if first:
            # The keys of the chunks at the end, which have other elements, too.
            edge = elements[(slice(None),) * self._axis + (slice(0, first),)]
            old = self._stored(list(self._encoded(document, edge, start, {})))
        chunks = self._encoded(document, elements, start, {key: value for key, (value, _) in old.items()})
        if first:
            self._expect_ours()
        refused = self._put_each(chunks, {key: version for key, (_, version) in old.items()})
        if refused:
            found = self._stored(refused)
            self._expect_ours()
            others = {key: chunks[key] for key in refused if found.get(key, (b"", ""))[0] != chunks[key]}
            if old.keys() & others or self._put_each(
                others, {key: version for key, (_, version) in found.items()}
            ):
                raise ClaimedError(())

    def _encoded(
        self, document: bytes, elements: Any, start: int, old: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Return the chunks of elements by key, merged with the stored chunks in `old`."""
        memory = MemoryStore()
        values = _StoredValues(memory, create=True)
        for key, value in old.items():
            values.set(key, value)
        shape = list(self._array.shape)
        shape[self._axis] = start + elements.shape[self._axis]
        array = _ChunkParts(memory, self._array.path, self._array.zarr_format, document).array(shape)
        # A chunk of fill values replaces one that a killed writer has left.
        array.write((slice(None),) * self._axis + (slice(start, None),), elements, write_empty_chunks=True)
        return memory.to_dict()

    def _stored(self, keys: list[str]) -> dict[str, tuple[bytes, str]]:
        """Return stored chunks with their versions."""
        found = self._cloud.get_versions(keys)
        return {key: value for key, value in zip(keys, found, strict=True) if value is not None}

    def _put_each(self, chunks: Mapping[str, bytes], versions: Mapping[str, str]) -> list[str]:
        """Put chunks on the condition that they have these versions, or are missing; return others' keys."""
        refused: list[str] = []

        def put(key: str) -> None:
            if self._cloud.set_if(key, chunks[key], versions.get(key)) is None:
                refused.append(key)

        concurrent_calls.run([partial(put, key) for key in chunks])
        return refused

    def _expect_ours(self) -> None:
        if not self._documents.is_ours(key_of(self._array)):
            raise ClaimedError(())
