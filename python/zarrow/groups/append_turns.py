"""Turns of appends to a table: one at a time, in threads, processes and on other machines.

1. In a folder, an append holds the lock of the group's folder (`folder_lock`).
2. Other stores have a lock for the threads of this process.
3. In a cloud with conditional puts, an append claims the group's document (`append_claims`), so that appends
   by other processes wait. An append that has lost its claim is refused before it changes the table.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from zarrow._zarrow import Group, _StoredValues
from zarrow.errors import StaleHandleError
from zarrow.groups.append_claims import ClaimedError, Claims, Turns, claimed, split
from zarrow.groups.folder_lock import FolderLock

_Result = TypeVar("_Result")
# Refuses to change documents after the turn has ended; None for a store without conditional puts.
Check = Callable[[], None] | None
_in_process = threading.Lock()


def _renew_lock() -> None:
    global _in_process
    _in_process = threading.Lock()


# A child of a fork has no thread that would release the lock.
os.register_at_fork(after_in_child=_renew_lock)


def in_turn(group: Group, append: Callable[[Check], _Result]) -> _Result:
    """Call `append` while no other append to the table runs; it gets the check of its turn."""
    store, path = group.__reduce__()[1][:2]
    if isinstance(store, str | Path) and Path(store, path).is_dir():
        with FolderLock(Path(store, path), at_once=True):
            return append(lambda: None)
    with _in_process:
        values = _StoredValues(store, create=False)
        if values.is_local():
            return append(lambda: None)
        return _in_claimed_turn(group, values, append)


def _in_claimed_turn(group: Group, values: _StoredValues, append: Callable[[Check], _Result]) -> _Result:
    key = "/".join(filter(None, (group.path, "zarr.json" if group.zarr_format == 3 else ".zgroup")))
    turns = Turns()
    while True:
        document = _Document(values, key)
        if not document.version:
            return append(None)
        others = {} if document.other is None else {key: document.other}
        try:
            with Claims(document, turns) as claims:
                claims.begin({key: document.content}, others)
                claims.take()
                return append(document.check)
        except ClaimedError as error:
            turns.wait(error)


class _Document:
    """A document with its version and claims, as `Claims` takes it."""

    def __init__(self, values: _StoredValues, key: str) -> None:
        self._values, self._key = values, key
        self._own: bytes | None = None
        self._read()

    def _read(self) -> None:
        [found] = self._values.get_versions([self._key])
        value, self.version = (b"", "") if found is None else found
        self.content, self.other = split(value)

    def claim(self, key: str, number: bytes) -> bool:
        """Put a claim on the document, or replace the own one."""
        version = self._values.set_if(key, claimed(self.content, number), self.version)
        if version is None:
            return False
        self.version, self._own = version, number
        return True

    def claimed_keys(self) -> list[str]:
        """Return the key, if the document is claimed."""
        return [] if self._own is None else [self._key]

    def release(self, key: str) -> None:
        """Remove the own claim."""
        self._read()
        if self.other == self._own:
            self._values.set_if(key, self.content, self.version)
        self._own = None

    def check(self) -> None:
        """Refuse to go on if another writer has changed the document.

        Raises
        ------
        StaleHandleError
            It has.
        """
        [found] = self._values.get_versions([self._key])
        if found is None or found[1] != self.version:
            raise StaleHandleError(
                f"{self._key!r} was changed by another writer during the append: repeat it",
                kind="stale_handle",
            )
