"""Store objects of other libraries, and mappings of keys to bytes, as stores of the engine.

1. Stores that the engine can read itself are resolved to it (`native`): a folder, a zip archive, a
   `CloudStore` of the same configuration. A configuration that cannot be mapped in full is not guessed.
2. References of a manifest become places in stores (`manifest`). Only places that the caller allowed are
   read.
3. For everything else an adapter calls the object (`store_adapter`): a zarr-python store (`zarr_store`), an
   obstore store (`obstore_store`), a file system of fsspec or a mapping (`mapping`). A separate thread hands
   each adapter its waiting requests (`event_loop`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from zarrow import CloudStore, MemoryStore
    from zarrow.store_objects.store_adapter import StoreAdapter

__all__ = ["resolve"]


def resolve(store: Any) -> tuple[Path | CloudStore | MemoryStore | StoreAdapter, bool] | None:
    """Return the engine's form of a store object or of references, and whether it is only read; else None."""
    from zarrow.store_objects.python_store import PythonStore
    from zarrow.store_objects.recognition import recognised
    from zarrow.store_objects.store_adapter import StoreAdapter

    if isinstance(store, str):
        from zarrow.store_objects.kerchunk_documents import adapter

        return adapter(store), True
    if isinstance(store, StoreAdapter):
        return store, False
    if isinstance(store, PythonStore):
        return recognised(store.store, store, store.allow, store.sole_writer)
    return recognised(store, store, (), False)
