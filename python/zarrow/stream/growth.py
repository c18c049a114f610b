"""Growth of an array: its chunks are stored first, so that readers see whole elements.

1. A folder or memory has locks, and `Array.append` does it.
2. In a cloud with conditional puts, the document is claimed (`append_turns`), so that other writers wait.
   Chunks are put behind the end (`appended_chunks`). Then the document gets the new shape, if no other writer
   has changed it; else the claim and the rest are repeated behind the present end.
3. Other stores have no conditional puts. There an array grows first, as by `Array.append`, which refuses a
   server that ignores conditions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, MemoryStore, _ChunkParts, _is_remote, _StoredValues
from zarrow.errors import StaleHandleError
from zarrow.groups.append_claims import ClaimedError
from zarrow.groups.append_turns import in_claimed_turn
from zarrow.groups.appended_chunks import AppendedChunks
from zarrow.groups.array_documents import ArrayDocuments, is_consolidated, key_of

if TYPE_CHECKING:
    import numpy.typing as npt


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
        chunks = AppendedChunks(cloud, documents, self._array, axis, self._unit)
        chunks.put(document, elements, start)
        if documents.replace({key: document}, []) is not None:
            raise ClaimedError(())
        return True

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
                f"array {array.path!r} in {array.store} was replaced: open it again", node=array
            )
