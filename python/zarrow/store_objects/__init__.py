"""Store objects of other libraries, and mappings of keys to bytes, as stores of the engine.

1. Stores that the engine can read itself are resolved to it (`native`): a folder, a zip archive, a
   `CloudStore` of the same configuration. A configuration that cannot be mapped in full is not guessed.
2. References of a manifest become places in stores (`manifest`). Only places that the caller allowed are
   read.
3. Everything else is asked in Python, by an asker (`asker`): a zarr-python store (`zarr_store`), an obstore
   store (`obstore_store`), a file system of fsspec or a mapping (`mapping`). A separate thread hands each
   asker its waiting requests (`event_loop`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from zarrow import CloudStore, MemoryStore
    from zarrow.store_objects.asker import Asker

__all__ = ["resolve"]


def resolve(store: Any) -> tuple[Path | CloudStore | MemoryStore | Asker, bool] | None:
    """Return the engine's form of a store object, and whether it is read-only; None for other objects."""
    from zarrow.store_objects.asker import Asker
    from zarrow.store_objects.python_store import PythonStore

    if isinstance(store, Asker):
        return store, False
    if isinstance(store, PythonStore):
        return _resolved(store.store, store, store.allow, store.sole_writer)
    return _resolved(store, store, (), False)


def _resolved(
    store: Any, source: Any, allow: tuple[str, ...], sole_writer: bool
) -> tuple[Path | CloudStore | MemoryStore | Asker, bool] | None:
    """Resolve `store`, which the user gave as `source`."""
    from zarrow.store_objects import mapping, native, obstore_store, zarr_store

    kind = type(store)
    if kind.__module__.startswith("zarr.") and kind.__name__ == "StorePath":
        raise TypeError(
            "a StorePath of zarr-python is a store and the path of a node: "
            f"zarrow.open(store_path.store, {str(store.path)!r})"
        )
    if kind.__module__.startswith("icechunk.") and kind.__name__.endswith("Session"):
        store = store.store
    found = native.resolve(store)
    if found is not None:
        return found
    if kind.__module__.startswith("virtualizarr.") and kind.__name__ == "ManifestStore":
        from zarrow.store_objects.manifest import ManifestAsker

        return ManifestAsker(store, source, allow), False
    if kind.__module__.startswith("zarr.") and kind.__name__ == "ObjectStore":
        return obstore_store.ObstoreAsker(store.store, source), bool(store.read_only)
    if obstore_store.kind_of(store) is not None:
        return obstore_store.ObstoreAsker(store, source), False
    abstract = sys.modules.get("zarr.abc.store")
    if abstract is not None and isinstance(store, abstract.Store):
        return zarr_store.ZarrAsker(store, source, sole_writer), bool(store.read_only)
    asker = mapping.asker(store, source, sole_writer)
    return None if asker is None else (asker, False)
