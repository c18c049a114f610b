"""Growth of an array: its chunks are stored first, so that readers see whole elements.

1. A folder or memory has locks, and `Array.append` does it.
2. In a cloud with conditional puts, the document is claimed (`append_turns`), so that other writers wait.
   Chunks are encoded in memory and put behind the end. Then the document gets the new shape, if no other
   writer has changed it; else the claim and the rest are repeated behind the present end.
3. `Array.append` grows first and knows no claims. It may write elements where chunks are put. So a chunk is
   put only where none is, or where the chunk was read before the document was found unchanged: an array grows
   before other writers write its chunks.
4. Other stores have no conditional puts. There an array grows first, as by `Array.append`, which refuses a
   server that ignores conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, MemoryStore, _ChunkParts, _is_remote, _StoredValues
from zarrow.api import at_once
from zarrow.errors import StaleHandleError
from zarrow.groups.append_claims import ClaimedError
from zarrow.groups.append_turns import in_claimed_turn
from zarrow.groups.array_documents import ArrayDocuments, is_consolidated, key_of

if TYPE_CHECKING:
    import numpy.typing as npt

# Elements of this size are encoded and put at once.
_BATCH_NBYTES = 64 << 20


class Growth:
    """Appends to one array along an axis."""

    def __init__(self, array: Array, axis: int, unit: int) -> None:
        self._array, self._axis, self._unit = array, axis, unit
        self._store = array.__reduce__()[1][0]
        self._cloud = _StoredValues(self._store, create=False) if _is_remote(self._store) else None
        self._is_consolidated: bool | None = None

    def append(self, elements: npt.NDArray[Any]) -> tuple[int, ...]:
        """Append elements, and return the new shape."""
        if self._cloud is None:
            return self._array.append(elements, self._axis)
        grow = partial(self._grow, self._cloud, elements)
        if not in_claimed_turn(self._cloud, [key_of(self._array)], grow):
            return self._array.append(elements, self._axis)
        self._array.refresh()
        if self._is_consolidated is None:
            self._is_consolidated = is_consolidated(self._store, self._array.path)
        if self._is_consolidated:
            # Consolidated metadata of groups above follow a change of attributes.
            self._array.attrs.update({})
        return self._array.shape

    def _grow(
        self, cloud: _StoredValues, elements: npt.NDArray[Any], documents: ArrayDocuments | None
    ) -> bool:
        """Store elements, then the shape (step 2); return False in another store."""
        if documents is None:
            return False
        key, axis = key_of(self._array), self._axis
        self._check(documents.contents[key], documents.shape(key))
        start, count = documents.shape(key)[axis], elements.shape[axis]
        document = documents.longer(key, axis, count)
        frames = self._unit * max(1, _BATCH_NBYTES // max(1, elements.nbytes // count * self._unit))
        done = 0
        while done < count:
            # Up to the end of a write unit.
            step = min(count, (start + done) // frames * frames + frames - start) - done
            part = elements[(slice(None),) * axis + (slice(done, done + step),)]
            self._put(cloud, documents, document, part, start + done)
            done += step
        if documents.replace({key: document}, []) is not None:
            raise ClaimedError(())
        return True

    def _put(
        self,
        cloud: _StoredValues,
        documents: ArrayDocuments,
        document: bytes,
        elements: npt.NDArray[Any],
        start: int,
    ) -> None:
        """Put the chunks of elements behind the end (step 3)."""
        first = min(-start % self._unit, elements.shape[self._axis])
        old: dict[str, tuple[bytes, str]] = {}
        if first:
            # The keys of the chunks at the end, which have other elements, too.
            edge = elements[(slice(None),) * self._axis + (slice(0, first),)]
            old = self._stored(cloud, list(self._encoded(document, edge, start, {})))
        chunks = self._encoded(document, elements, start, {key: value for key, (value, _) in old.items()})
        if first:
            self._expect_ours(documents)
        refused = self._put_each(cloud, chunks, {key: version for key, (_, version) in old.items()})
        if refused:
            found = self._stored(cloud, refused)
            self._expect_ours(documents)
            others = {key: chunks[key] for key in refused if found.get(key, (b"", ""))[0] != chunks[key]}
            if old.keys() & others or self._put_each(
                cloud, others, {key: version for key, (_, version) in found.items()}
            ):
                raise ClaimedError(())

    def _encoded(
        self, document: bytes, elements: npt.NDArray[Any], start: int, old: Mapping[str, bytes]
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

    @staticmethod
    def _stored(cloud: _StoredValues, keys: list[str]) -> dict[str, tuple[bytes, str]]:
        """Return stored chunks with their versions."""
        found = cloud.get_versions(keys)
        return {key: value for key, value in zip(keys, found, strict=True) if value is not None}

    @staticmethod
    def _put_each(
        cloud: _StoredValues, chunks: Mapping[str, bytes], versions: Mapping[str, str]
    ) -> list[str]:
        """Put chunks on the condition that they have these versions, or are missing; return others' keys."""
        refused: list[str] = []

        def put(key: str) -> None:
            if cloud.set_if(key, chunks[key], versions.get(key)) is None:
                refused.append(key)

        at_once.run([partial(put, key) for key in chunks])
        return refused

    @staticmethod
    def _expect_ours(documents: ArrayDocuments) -> None:
        if not documents.are_ours():
            raise ClaimedError(())

    def _check(self, document: bytes, shape: list[int]) -> None:
        """Refuse another array in the place of this one.

        Raises
        ------
        StaleHandleError
            It has other frames, another type, or other chunks or codecs.
        """
        array = self._array
        found = _ChunkParts(MemoryStore(), array.path, array.zarr_format, document).array(shape)
        now, before = ({**each.metadata, "attributes": {}, "shape": []} for each in (found, array))
        shape[self._axis : self._axis + 1] = array.shape[self._axis : self._axis + 1]
        if now != before or tuple(shape) != array.shape:
            raise StaleHandleError(
                f"array {array.path!r} in {array.store} was replaced: open it again",
                kind="stale_handle",
                store=array.store,
                path=array.path,
            )
