"""Turns of appends to a table: one at a time, in threads, processes and on other machines.

1. In a folder, an append holds the lock of the group's folder (`folder_lock`), and those of the shapes of its
   arrays: appends to one of them wait, too.
2. Other stores have a lock for the threads of this process. Memory has locks of shapes.
3. In a cloud with conditional puts, an append claims the documents of its arrays (`append_claims`), so that
   other writers of these arrays wait. An append that has lost a claim is refused before it changes the table.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from zarrow._zarrow import Group, _StoredValues
from zarrow.groups.append_claims import ClaimedError, Claims, Turns
from zarrow.groups.array_documents import ArrayDocuments
from zarrow.groups.folder_lock import FolderLock

_Result = TypeVar("_Result")
# Appends to arrays with these documents; gets None for a store without conditional puts.
Append = Callable[[ArrayDocuments | None], _Result]
_in_process = threading.Lock()


def _renew_lock() -> None:
    global _in_process
    _in_process = threading.Lock()


# A child of a fork has no thread that would release the lock.
os.register_at_fork(after_in_child=_renew_lock)


def in_turn(group: Group, keys: Sequence[str], append: Append[_Result]) -> _Result:
    """Call `append` while no other append to the table runs."""
    store, path = group.__reduce__()[1][:2]

    def append_alone(values: _StoredValues) -> _Result:
        arrays = [key.rpartition("/")[0] for key in keys]
        return values.with_fixed_shapes(arrays, lambda: append(ArrayDocuments(values, keys)))

    if isinstance(store, str | Path) and Path(store, path).is_dir():
        with FolderLock(Path(store, path), at_once=True):
            # The folder may have been replaced during the wait.
            return append_alone(_StoredValues(store, create=False))
    with _in_process:
        values = _StoredValues(store, create=False)
        return append_alone(values) if values.is_local() else in_claimed_turn(values, keys, append)


def in_claimed_turn(values: _StoredValues, keys: Sequence[str], append: Append[_Result]) -> _Result:
    """Call `append` while the documents are claimed (step 3), again after a `ClaimedError`."""
    turns = Turns()
    while True:
        documents = ArrayDocuments(values, keys)
        if not documents.are_conditional:
            return append(None)
        try:
            with Claims(documents, turns) as documents.claims:
                documents.claims.begin(documents.contents, documents.others)
                documents.claims.take()
                return append(documents if documents.are_conditional else None)
        except ClaimedError as error:
            turns.wait(error)
