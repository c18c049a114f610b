"""Recognises store objects of zarr-python, obstore, fsspec, icechunk and VirtualiZarr, and mappings.

`engine_stores` finds stores that the engine reads itself. All others are called in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from zarrow import CloudStore, MemoryStore
    from zarrow.store_objects.store_adapter import StoreAdapter


def recognised(
    store: Any, source: Any, allow: tuple[str, ...], sole_writer: bool
) -> tuple[Path | CloudStore | MemoryStore | StoreAdapter, bool] | None:
    """Return the engine's form of `store`, which the user gave as `source`; None for other objects."""
    from zarrow.store_objects import engine_stores, obstore_store, zarr_store

    kind = type(store)
    if kind.__module__.startswith("zarr.") and kind.__name__ == "StorePath":
        raise TypeError(
            "a StorePath of zarr-python is a store and the path of a node: "
            f"zarrow.open(store_path.store, {str(store.path)!r})"
        )
    if kind.__module__.startswith("icechunk.") and kind.__name__.endswith("Session"):
        store = store.store
    found = engine_stores.resolve(store)
    if found is not None:
        return found
    if kind.__module__.startswith("virtualizarr.") and kind.__name__ == "ManifestStore":
        from zarrow.store_objects.manifest import ManifestAdapter

        return ManifestAdapter(store, source, allow), False
    if kind.__module__.startswith("zarr.") and kind.__name__ == "ObjectStore":
        return obstore_store.ObstoreAdapter(store.store, source), bool(store.read_only)
    if obstore_store.kind_of(store) is not None:
        return obstore_store.ObstoreAdapter(store, source), False
    abstract = sys.modules.get("zarr.abc.store")
    if type(store).__module__.startswith("icechunk.") and store.session.read_only:
        from zarrow.store_objects.icechunk_references import IcechunkAdapter

        return IcechunkAdapter(store, source), True
    if abstract is not None and isinstance(store, abstract.Store):
        return zarr_store.ZarrAdapter(store, source, sole_writer), bool(store.read_only)
    if isinstance(store, Mapping):
        return _mapping_adapter(store, source, sole_writer), False
    return None


def _mapping_adapter(store: Any, source: Any, sole_writer: bool) -> StoreAdapter:
    """Return the adapter of a mapping."""
    from zarrow.store_objects.mapping import DictAdapter, FsspecAdapter, MappingAdapter

    if type(store) is dict:
        _refuse_spec(store)
        return DictAdapter(store, source, True)
    if type(store).__module__ != "fsspec.mapping" or type(store).__name__ != "FSMap":
        return MappingAdapter(store, source, sole_writer)
    if getattr(store.fs, "asynchronous", False):
        blocking = _blocking(store.fs)
        store = type(store)(store.root, blocking, missing_exceptions=store.missing_exceptions)
    if type(getattr(store.fs, "references", None)).__name__ == "LazyReferenceMapper":
        from zarrow.store_objects.parquet_references import ParquetReferenceAdapter

        return ParquetReferenceAdapter(store, source)
    if type(getattr(store.fs, "references", None)) is dict:
        from zarrow.store_objects.kerchunk_references import KerchunkAdapter

        return KerchunkAdapter(store, source, sole_writer)
    return FsspecAdapter(store, source, sole_writer)


def _refuse_spec(store: dict[str, Any]) -> None:
    """Refuse a spec of tensorstore, which is no mapping of keys to bytes.

    Raises
    ------
    TypeError
        It is one; the message says what opens the same array.
    """
    inner = store.get("kvstore")
    if not isinstance(store.get("driver"), str) or not isinstance(inner, dict | str):
        return
    place = inner
    if isinstance(inner, dict):
        path = str(inner.get("path", ""))
        bucket = inner.get("bucket")
        scheme = {"gcs": "gs", "s3": "s3"}.get(str(inner.get("driver")), "")
        place = f"{scheme}://{bucket}/{path}" if bucket and scheme else inner.get("base_url", "") + path
    name = store.get("path")
    more = f", {name!r}" if isinstance(name, str) and name else ""
    if store.get("create"):
        mode = "w" if store.get("delete_existing") else "a" if store.get("open") else "w-"
        more += f', mode="{mode}", shape=..., dtype=...'
    raise TypeError(
        f"a spec of tensorstore is not a mapping of keys to bytes: type zarrow.open({place!r}{more}), "
        "which is no future: leave .result() out"
    )


def _blocking(fs: Any) -> Any:
    """Return a blocking file system of fsspec with the options of an asynchronous one.

    The methods of an asynchronous one work only in the caller's event loop, which may wait for them.

    Raises
    ------
    TypeError
        The file system cannot be created again from its options.
    """
    if not getattr(fs, "asynchronous", False):
        return fs
    if type(fs).__module__ == "fsspec.implementations.asyn_wrapper":
        return fs.sync_fs
    options = {word: _blocking(value) for word, value in fs.storage_options.items()}
    without = ("asynchronous", "loop")
    options = {word: value for word, value in options.items() if word not in without}
    try:
        return type(fs)(*map(_blocking, fs.storage_args), **options)
    except Exception as error:
        raise TypeError(
            f"{type(fs).__name__} is asynchronous, and creating a blocking one failed ({error}): pass a "
            "mapper of a file system without asynchronous=True"
        ) from error
