"""Notices that an array was made smaller, replaced or erased while its samples are read.

1. The document of each array is read about once a second, and once more at the end.
2. If its bytes have changed, the metadata are compared. Attributes may change, and the array may grow.
3. Elements that were erased are read as fill values until then: zarr-python, for one, erases chunks before it
   stores the new shape.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Any

from zarrow._zarrow import Array, Group, _StoredValues, open
from zarrow.errors import NotFoundError, StaleHandleError, UnsupportedError
from zarrow.groups.array_documents import key_of

_SECONDS = 1.0


class CurrentArrays:
    """Arrays, with a look at their documents now and then."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._arrays = list(arrays)
        self._stores: list[tuple[_StoredValues, list[Array]]] | None = None
        # As they were at the latest check.
        self._documents: dict[tuple[int, str], bytes | None] = {}
        self._next = time.monotonic() + _SECONDS

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to a process."""
        return {**self.__dict__, "_stores": None, "_documents": {}}

    def check_now_and_then(self) -> None:
        """Check the arrays if the latest check is a second ago."""
        if time.monotonic() >= self._next:
            self.check()

    def is_local(self) -> bool:
        """Return whether reading a document sends no request."""
        return all(stored.is_local() for stored, _ in self._by_store())

    def check_beside_last_read(self) -> None:
        """Check the arrays if that sends requests, which take time."""
        if not self.is_local():
            self.check()

    def check_after_last_read(self) -> None:
        """Check the arrays if that sends no request."""
        if self.is_local():
            self.check()

    def check(self) -> None:
        """Compare the stored metadata of each array with its metadata when it was opened.

        Raises
        ------
        StaleHandleError
            An array was made smaller, replaced or erased.
        StoreError
            The store cannot be read.
        """
        self._next = time.monotonic() + _SECONDS
        for number, (stored, arrays) in enumerate(self._by_store()):
            keys = [key_of(array) for array in arrays]
            for array, key, document in zip(arrays, keys, stored.get_each(keys), strict=True):
                known = self._documents.get((number, key))
                if document is None and known is not None:
                    raise _stale(array, "was erased")
                # The consolidated metadata of a group above may be all that an array has.
                if document is None or document != known:
                    _check_node(array)
                self._documents[number, key] = document

    def _by_store(self) -> list[tuple[_StoredValues, list[Array]]]:
        """Return the arrays of each store: their documents are requested at once."""
        if self._stores is None:
            found: dict[Any, tuple[_StoredValues, list[Array]]] = {}
            # An object that is gone would leave its number to another one.
            stores = [array.__reduce__()[1][0] for array in self._arrays]
            for array, store in zip(self._arrays, stores, strict=True):
                name = store if isinstance(store, str) else id(store)
                if name not in found:
                    found[name] = _StoredValues(store, create=False), []
                found[name][1].append(array)
            self._stores = list(found.values())
        return self._stores


def _check_node(array: Array) -> None:
    """Open the node at the path of an array, and compare it with the array.

    Raises
    ------
    StaleHandleError
        The stored array is smaller, or has other metadata apart from attributes; or it was erased.
    """
    reduced: Any = array.__reduce__()
    load, arguments = reduced
    try:
        node = load(*arguments)
    except NotFoundError:
        node = _from_consolidated(*arguments[:2])
    if not isinstance(node, Array | Group):
        raise _stale(array, "was erased")
    if isinstance(node, Group) or len(node.shape) != array.ndim:
        raise _stale(array, "was replaced")
    if any(now < before for now, before in zip(node.shape, array.shape, strict=True)):
        raise _stale(array, f"was made smaller, from {array.shape} to {node.shape},")
    # The edges of chunks of different sizes grow with the shape.
    has_grown = node.shape != array.shape
    if _fixed(node, has_grown) != _fixed(array, has_grown):
        raise _stale(array, "was replaced")


def _stale(array: Array, problem: str) -> StaleHandleError:
    return StaleHandleError(
        f"array {array.path!r} of {array.store} {problem} since it was opened: open it again for a new plan",
        node=array,
    )


def _from_consolidated(store: Any, path: str) -> Array | Group | None:
    """Return the node in the consolidated metadata of a group above: a node may have no document.

    Where nothing is stored at its path, it was erased.
    """
    with contextlib.suppress(UnsupportedError):
        if not _StoredValues(store, create=False).list(path):
            return None
    names = path.split("/")
    for depth in range(len(names)):
        try:
            group = open(store, "/".join(names[:depth]), mode="r")
            if isinstance(group, Group) and group._is_consolidated():
                found: Array | Group = group["/".join(names[depth:])]
                return found
        except NotFoundError:
            continue
    return None


def _fixed(array: Array, has_grown: bool) -> dict[str, Any]:
    """Return the metadata that stay; if the array has grown, without the grid."""
    changing = {"attributes", "shape"} | ({"chunk_grid"} if has_grown else set())
    return {name: value for name, value in array.metadata.items() if name not in changing}
