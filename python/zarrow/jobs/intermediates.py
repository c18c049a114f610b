"""Places of intermediate arrays: beside the target of a copy in two passes."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from zarrow._zarrow import _StoredValues
from zarrow.api.array_options import Store
from zarrow.errors import NotFoundError
from zarrow.jobs.ledger import beside

if TYPE_CHECKING:
    from zarrow.jobs.ledger import Ledger

_ENDING = ".intermediate"


def store_beside(target: Store) -> Store | None:
    """Return the store of intermediate arrays for a target; `None` if it has no place beside it."""
    return beside(target, _ENDING)


def forget_intermediates(ledger: Ledger, target: Store, paths: Collection[str]) -> None:
    """Erase intermediate arrays of other plans for a target, and the ledgers of their first passes."""
    store = store_beside(target)
    if store is not None:
        ledger.erase_others(str(store), paths)
        erase(store, paths)


def erase(store: Store, paths: Collection[str]) -> None:
    """Erase intermediate arrays, documents first, and groups above them that have no other member."""
    with contextlib.suppress(NotFoundError):
        values = _StoredValues(store, create=False)
        for path in paths:
            values.erase(_document_of(path))
            values.erase_prefix(path)
            for above in _above(path):
                if values.list(above) == ["zarr.json"]:
                    values.erase(_document_of(above))
    if isinstance(store, str) and "://" not in store:
        for path in paths:
            for folder in [path, *_above(path)]:
                with contextlib.suppress(OSError):
                    Path(store, folder).rmdir()


def _document_of(path: str) -> str:
    return f"{path}/zarr.json" if path else "zarr.json"


def _above(path: str) -> Iterator[str]:
    """Yield the paths above a node, up to the root."""
    while path:
        path = path.rpartition("/")[0]
        yield path
