"""Writes datasets and trees: xarray and zarr-python prepare everything in memory, then the engine stores it.

1. xarray's own code makes documents and checks on a `StagedStore`. Nothing is stored until it has ended, so
   that a refused write changes nothing.
2. Then chunks are written, and documents after them: a killed append leaves the arrays as they were. With
   `compute=False`, documents are stored at once, because xarray promises so.
3. With `safe_chunks=False`, several blocks of dask may share a chunk or shard. They are gathered
   (`zarrow.dask.gathered_blocks`), and one task encodes it.
4. Stores that the engine does not write, and chunked arrays that are not of dask, are left to xarray's own
   code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray
from xarray.backends import writers
from xarray.backends.common import _normalize_path
from xarray.namedarray.parallelcompat import get_chunked_array_type
from xarray.namedarray.pycompat import is_chunked_array

from zarrow._zarrow import CloudStore, Group, MemoryStore, _StoredValues, _with_options
from zarrow.api import concurrent_calls
from zarrow.api.node_batch import is_small
from zarrow.api.progress import Progress, reporting
from zarrow.api.regions import shape_of
from zarrow.api.reported_amounts import Amount
from zarrow.errors import UnsupportedError, ZarrowError
from zarrow.groups.append_claims import ClaimedError, Claims, Turns
from zarrow.groups.folder_lock import FolderLock
from zarrow.groups.places import joined, refuse_read_only, refuse_references, store_of
from zarrow.store_objects.icechunk_sessions import session_of

if TYPE_CHECKING:
    from zarrow.xarray.staged_store import Location, StagedStore

# xarray's own functions, which `zarrow.xarray.enable` replaces.
stock_to_zarr: Callable[..., Any] = writers.to_zarr
stock_datatree_to_zarr: Callable[..., Any] = writers._datatree_to_zarr

# Schemes of URLs that the engine writes.
_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl")

# Versions of the stores of this process's last writes: the documents of a version are requested at once. A
# wrong guess costs a round trip. So the documents of both versions are requested if the version is unknown
# and there are few variables: a host first gets 64 requests, and each variable has four documents.
_VERSIONS: dict[str, int] = {}
_MOST_VERSIONS = 1000
_MOST_OF_BOTH_VERSIONS = 12

Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"] | None


def to_zarr(
    obj: xarray.Dataset | xarray.DataArray | xarray.DataTree,
    store: Any = None,
    mode: Literal["w", "w-", "a", "a-", "r+"] | None = None,
    group: str | None = None,
    encoding: Mapping[Any, Any] | None = None,
    *,
    compute: bool = True,
    consolidated: bool | None = None,
    append_dim: Hashable | None = None,
    region: Region = None,
    safe_chunks: bool = True,
    align_chunks: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    write_empty_chunks: bool | None = None,
    chunkmanager_store_kwargs: dict[str, Any] | None = None,
    write_inherited_coords: bool = False,
    progress: Progress | bool | None = None,
) -> Any:
    """Write a Dataset, a DataArray or a DataTree as `Dataset.to_zarr` does with the same arguments.

    Everything is checked before the store is changed: after an error in the arguments, in encodings or in
    metadata, each byte of the store is as before. Chunks are written before metadata, and consolidated
    metadata last.

    Parameters
    ----------
    obj
        What to write.
    write_inherited_coords
        Of a tree: whether to write inherited coordinates with each group, too.
    store, mode, group, encoding, compute, consolidated, append_dim, region, safe_chunks, align_chunks, \
    storage_options, zarr_format, write_empty_chunks, chunkmanager_store_kwargs
        As for `xarray.Dataset.to_zarr`. `store` can also be an opened group, a `CloudStore` or a
        `MemoryStore` of zarrow, or a session of icechunk, which has no consolidated metadata. In an opened
        group, `zarr_format` is the group's by default.
    progress
        Called with the stored bytes and all bytes of the variables; or True for a bar in a terminal
        or a notebook. dask has a bar of its own for each task: `dask.diagnostics.ProgressBar`. Without
        reports: stores that xarray's own code writes, and tasks of `compute=False`.

    Returns
    -------
    xarray.backends.ZarrStore or dask.delayed.Delayed
        As `xarray.Dataset.to_zarr`.

    Raises
    ------
    ValueError, TypeError, KeyError, FileExistsError, FileNotFoundError
        As `xarray.Dataset.to_zarr`.
    ReadOnlyError
        `store` is a group that was opened to be read.
    UnsupportedError
        `consolidated` was given with a session of icechunk.
    StoreError, OutOfMemoryError
        The store failed, or memory ran out, while chunks or documents were stored.

    Examples
    --------
    >>> import xarray, zarrow
    >>> rain = xarray.Dataset({"rain": ("day", [1.0, 2.0])}, coords={"day": [1, 2]})
    >>> _ = zarrow.xarray.to_zarr(rain, "rain.zarr", consolidated=False)
    >>> more = rain.assign_coords(day=[3, 4])
    >>> _ = zarrow.xarray.to_zarr(more, "rain.zarr", append_dim="day", consolidated=False)
    >>> zarrow.open("rain.zarr")["day"][...].tolist()
    [1, 2, 3, 4]
    """
    if isinstance(store, Group):
        refuse_read_only(store)
        zarr_format = zarr_format or store.zarr_format
        store, group = store_of(store), joined(store.path, (group or "").strip("/")) or None
    session = session_of(store)
    if session is not None:
        # xarray and zarr-python take the session's store alone.
        store = session.store
        if consolidated:
            raise UnsupportedError("icechunk has no consolidated metadata: leave consolidated out")
        consolidated = False
    refuse_references(store)
    given: dict[str, Any] = {
        "store": store,
        "group": group,
        "encoding": encoding,
        "compute": compute,
        "append_dim": append_dim,
        "region": region,
        "safe_chunks": safe_chunks,
        "align_chunks": align_chunks,
        "storage_options": storage_options,
        "zarr_format": zarr_format,
        "write_empty_chunks": write_empty_chunks,
        "chunkmanager_store_kwargs": chunkmanager_store_kwargs,
    }
    if isinstance(obj, xarray.DataTree):
        given |= {
            "mode": "w-" if mode is None else mode,
            "consolidated": True if consolidated is None else consolidated,
            "write_inherited_coords": write_inherited_coords,
        }
        with reporting(progress, "to_zarr") as report:
            return datatree_to_zarr(obj, progress=report, **given)
    if write_inherited_coords:
        raise TypeError(f"write_inherited_coords is for a DataTree, got a {type(obj).__name__}: leave it out")
    if isinstance(obj, xarray.DataArray):
        obj = _dataset_of(obj)
    if not isinstance(obj, xarray.Dataset):
        raise TypeError(f"expected a Dataset, a DataArray or a DataTree, got {type(obj).__name__}")
    with reporting(progress, "to_zarr") as report:
        return dataset_to_zarr(obj, mode=mode, consolidated=consolidated, progress=report, **given)


def _dataset_of(array: xarray.DataArray) -> xarray.Dataset:
    """Return a dataset for an array, as `DataArray.to_zarr` makes it."""
    from xarray.backends.api import DATAARRAY_NAME, DATAARRAY_VARIABLE

    if array.name is None:
        return array.to_dataset(name=DATAARRAY_VARIABLE)
    if array.name in array.coords or array.name in array.dims:
        dataset = array.to_dataset(name=DATAARRAY_VARIABLE)
        dataset.attrs[DATAARRAY_NAME] = array.name
        return dataset
    return array.to_dataset()


def dataset_to_zarr(
    dataset: xarray.Dataset,
    store: Any = None,
    mode: Any = None,
    group: str | None = None,
    encoding: Mapping[Any, Any] | None = None,
    *,
    is_unchanged: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Write a dataset, with the arguments of `xarray.backends.writers.to_zarr`.

    If `is_unchanged`, the caller expects xarray's own code, which also gets what the engine refuses.
    """
    given = {"mode": mode, "group": group, "encoding": encoding, **options}
    location = _location(store, options.get("storage_options"))
    if location is None or not _is_of_dask([dataset]):
        return stock_to_zarr(dataset, store=store, **given)
    stock = partial(stock_to_zarr, dataset, store=store, **given) if is_unchanged else None
    return _write(
        location, {**given, "progress": progress}, partial(_Write.prepare_dataset, dataset=dataset), stock
    )


def datatree_to_zarr(
    tree: xarray.DataTree,
    store: Any,
    mode: Any = "w-",
    encoding: Mapping[str, Any] | None = None,
    group: str | None = None,
    write_inherited_coords: bool = False,
    *,
    is_unchanged: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Write a tree, with the arguments of `xarray.backends.writers._datatree_to_zarr`."""
    given = {
        "mode": mode,
        "encoding": encoding,
        "group": group,
        "write_inherited_coords": write_inherited_coords,
        **options,
    }
    location = _location(store, options.get("storage_options"))
    if location is None or not _is_of_dask(node.dataset for node in tree.subtree):
        return stock_datatree_to_zarr(tree, store, **given)
    stock = partial(stock_datatree_to_zarr, tree, store, **given) if is_unchanged else None
    prepare = partial(_Write.prepare_tree, tree=tree)
    return _write(location, {**given, "progress": progress}, prepare, stock)


def _write(
    location: Location,
    given: Mapping[str, Any],
    prepare: Callable[[_Write], None],
    stock: Callable[[], Any] | None,
) -> Any:
    """Prepare a write and store it, when no other writer has claimed its documents.

    `stock` writes what the engine refuses.
    """
    turns = Turns()
    while True:
        write = _Write(location, turns, **given)
        try:
            with write.lock, write.claims:
                try:
                    prepare(write)
                except ZarrowError:
                    if stock is None:
                        raise
                    write.claims.release()
                    return stock()
                return write.store_alone()
        except ClaimedError as error:
            turns.wait(error)


def _location(store: Any, storage_options: Mapping[str, Any] | None) -> Location | None:
    """Return the store as the engine writes it; None if it does not (step 4)."""
    from zarrow.store_objects import engine_stores

    if isinstance(store, CloudStore | MemoryStore):
        return None if storage_options else store
    store = _normalize_path(store)
    if isinstance(store, str):
        return _location_of_text(store, storage_options)
    if store is None or storage_options:
        return None
    found = engine_stores.resolve(store)
    if found is None or found[1]:
        return None
    return _folder(found[0]) if isinstance(found[0], Path) else found[0]


def _location_of_text(store: str, storage_options: Mapping[str, Any] | None) -> Location | None:
    scheme, separator, rest = store.partition("://")
    if "::" in store:
        return None
    if not separator:
        return None if storage_options else _folder(Path(store))
    if scheme == "file":
        return None if storage_options else _folder(Path(rest))
    if scheme not in _SCHEMES:
        return None
    try:
        found = _with_options(store, storage_options or {})
        return found if isinstance(found, CloudStore) else CloudStore(store)
    except (ZarrowError, TypeError, ValueError):
        return None


def _folder(path: Path) -> Path | None:
    """Return a folder, absolute for tasks in other processes; None for an archive or a file."""
    is_other = path.suffix == ".zip" or (path.exists() and not path.is_dir())
    return None if is_other else path.absolute()


def _remember_version(store: str, version: int) -> None:
    _VERSIONS[store] = version
    if len(_VERSIONS) > _MOST_VERSIONS:
        _VERSIONS.pop(next(iter(_VERSIONS)), None)


def _is_of_dask(datasets: Any) -> bool:
    """Whether dask computes all chunked variables (step 4)."""
    for dataset in datasets:
        chunked = [
            variable._data for variable in dataset.variables.values() if is_chunked_array(variable._data)
        ]
        if any(type(get_chunked_array_type(data)).__name__ != "DaskManager" for data in chunked):
            return False
    return True


class _Collector:
    """Takes the place of xarray's `ArrayWriter`: it collects elements, and stores none."""

    def __init__(self) -> None:
        self.added: list[tuple[Any, Any, tuple[slice, ...]]] = []

    def add(self, source: Any, target: Any, region: Any = None) -> None:
        """Collect the elements of an array of zarr-python."""
        self.added.append((source, target, tuple(region or ())))


class _Write:
    """One call of `to_zarr`."""

    def __init__(
        self,
        location: Location,
        turns: Turns,
        *,
        mode: Any = None,
        group: str | None = None,
        encoding: Mapping[Any, Any] | None = None,
        compute: bool = True,
        consolidated: bool | None = None,
        append_dim: Hashable | None = None,
        region: Region = None,
        safe_chunks: bool = True,
        align_chunks: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        zarr_format: int | None = None,
        write_empty_chunks: bool | None = None,
        chunkmanager_store_kwargs: dict[str, Any] | None = None,
        write_inherited_coords: bool = False,
        progress: Progress | None = None,
    ) -> None:
        from zarrow.xarray.staged_store import StagedStore

        self._location = location
        self._group = group
        self._append_dim = append_dim
        # The arrays that grow.
        self._grown: list[str] = []
        self._has_region = region is not None
        self._encoding = encoding or {}
        self._compute = compute
        self._store_options = chunkmanager_store_kwargs
        self._zarr_format = zarr_format
        self._inherits = write_inherited_coords
        self._amount = Amount(progress)
        self._collector = _Collector()
        self._staged: StagedStore = StagedStore(location)
        # Regions are written at the same time: only changed documents need the lock.
        self.lock = FolderLock(location if isinstance(location, Path) else None, at_once=region is None)
        self.claims = Claims(self._staged, turns)
        self._in_memory: list[tuple[np.ndarray[Any, Any], Any, tuple[slice, ...]]] = []
        self._chunked: list[tuple[Any, Any, tuple[slice, ...]]] = []
        self._opened: Any = None
        self._mode = mode
        self._is_new = mode in ("w", "w-") or (mode is None and append_dim is None and region is None)
        self._opening: dict[str, Any] = {
            "mode": mode,
            "group": group,
            "consolidated": consolidated,
            "append_dim": append_dim,
            "region": region,
            "safe_chunks": safe_chunks,
            "align_chunks": align_chunks,
            "zarr_format": zarr_format,
            "write_empty_chunks": write_empty_chunks,
        }

    def prepare_dataset(self, dataset: xarray.Dataset) -> None:
        """Make all documents and checks of a dataset (`xarray.backends.writers.to_zarr`)."""
        writers._validate_dataset_names(dataset)
        group = (self._group or "").strip("/")
        self._prefetch(group, [str(name) for name in dataset.variables])
        if self._append_dim is not None:
            grown = [
                str(name) for name, variable in dataset.variables.items() if self._append_dim in variable.dims
            ]
            self._grown = [joined(group, name) for name in grown]
            if self._staged.is_remote:
                self.claims.begin(*self._staged.claims_of(group, grown))
        opened, consolidates = self._open()
        dataset = opened._validate_and_autodetect_region(dataset)
        opened._validate_encoding(self._encoding)
        self._stage(dataset, opened, self._encoding)
        self._check(opened, consolidates)

    def prepare_tree(self, tree: xarray.DataTree) -> None:
        """Make all documents and checks of a tree (`xarray.backends.writers._datatree_to_zarr`)."""
        if self._group is not None:
            raise NotImplementedError("specifying a root group for the tree has not been implemented")
        if self._append_dim is not None:
            raise NotImplementedError(
                "specifying ``append_dim`` with ``DataTree.to_zarr`` has not been implemented"
            )
        if unknown := set(self._encoding) - set(tree.groups):
            raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")
        nodes = [
            (path, node, node.to_dataset(inherit=self._inherits or node is tree))
            for path, node in tree.subtree_with_keys
        ]
        self._prefetch("", [])
        root, consolidates = self._open()
        for path, node, dataset in nodes:
            opened = root if node is tree else root.get_child_store(path)
            dataset = opened._validate_and_autodetect_region(dataset)
            opened._validate_encoding(self._encoding)
            self._stage(dataset, opened, self._encoding.get(node.path))
        self._check(root, consolidates)

    def _prefetch(self, group: str, names: list[str]) -> None:
        """Request at once what xarray asks for one by one."""
        # The content of a replaced store is not needed, nor are members of a new group.
        if self._mode == "w" and not group:
            return
        known = self._zarr_format or _VERSIONS.get(repr(self._staged))
        guessed = (2, 3) if len(names) <= _MOST_OF_BOTH_VERSIONS else (3,)
        versions = () if self._is_new else (known,) if known else guessed
        is_listed = not self._is_new and (self._mode in ("a", "a-") or self._append_dim is not None)
        self._staged.prefetch(group, names, versions, is_listed=is_listed)

    def _open(self) -> tuple[Any, bool]:
        """Return xarray's store over the staged changes, and whether to consolidate in the end."""
        opened = writers.get_writable_zarr_store(self._staged, **self._opening)
        # Of a tree, xarray consolidates after each group.
        consolidates, opened._consolidate_on_close = opened._consolidate_on_close, False
        return opened, consolidates

    def _stage(self, dataset: xarray.Dataset, opened: Any, encoding: Any) -> None:
        # As in `xarray.backends.writers.to_zarr`.
        for variable in dataset.variables.values():
            if variable.size == 0:
                variable.load()
        dump: Any = writers.dump_to_store
        dump(dataset, opened, self._collector, encoding=encoding)

    def _check(self, opened: Any, consolidates: bool) -> None:
        """Consolidate, and check elements."""
        import zarr

        from zarrow.xarray.chunk_targets import cast, target_of, write_unit
        from zarrow.xarray.codec_trial import try_codecs
        from zarrow.xarray.erased_sources import sources_read

        self._opened = opened
        _remember_version(repr(self._staged), opened.zarr_group.metadata.zarr_format)
        self._staged.check_paths()
        self._check_extents()
        if consolidates:
            zarr.consolidate_metadata(self._staged, zarr_format=opened.zarr_group.metadata.zarr_format)
        for source, array, region in self._collector.added:
            wanted, shape = shape_of(region, array.shape), tuple(source.shape)
            if shape != wanted:
                raise ValueError(
                    f"variable {array.basename!r} has shape {shape}, but its region of the array has {wanted}"
                )
            if not self._staged.has_array(array.path):
                raise ValueError(
                    f"another variable would be stored in the folder of {array.path!r}: rename one of the two"
                )
            is_new = self._staged.is_new(array.path)
            if is_new:
                try_codecs(array)
            # Of a region, elements that others have appended to the last chunk stay.
            target = target_of(self._location, array, replace_edges=is_new or not self._has_region)
            if is_chunked_array(source):
                # Arrays without chunks are in memory from here on.
                for store, path in sources_read(source):
                    if self._staged.erases(store, path):
                        name = store if isinstance(store, Path) else store.name
                        raise ValueError(
                            f"variable {array.basename!r} is computed from '{name}/{path}', which this write "
                            "erases; load the dataset first, or write to another place"
                        )
                from zarrow.dask.gathered_blocks import gathered

                starts = [part.start or 0 for part in region]
                self._chunked.append((gathered(source, write_unit(array), starts), target, region))
            else:
                self._in_memory.append((cast(source, array.dtype), target, region))

    def _check_extents(self) -> None:
        """Refuse an append to arrays of different extents, as after an interrupted append."""
        if self._append_dim is None:
            return
        extents: dict[str, int] = {}
        for source, array, region in self._collector.added:
            grown = [
                part.start or 0
                for part, extent in zip(region, source.shape, strict=True)
                if part.start is not None and part.stop is None
            ]
            if grown and not self._staged.is_new(array.path):
                extents[array.basename] = grown[0]
        if len(set(extents.values())) > 1:
            raise ValueError(
                f"arrays have different extents along {self._append_dim!r}, as after an append that was "
                f"interrupted: {extents}; resize them to the same extent first"
            )

    def store_alone(self) -> Any:
        """Store. In a folder, other writers that append to the same arrays wait."""
        grown = [path for path in self._grown if not self._staged.is_new(path)]
        if self._staged.is_remote or not grown:
            return self.store()
        return _StoredValues(self._location, create=False).with_fixed_shapes(grown, self.store)

    def store(self) -> Any:
        """Store the prepared chunks and documents (step 2)."""
        self._amount.expect(sum(source.nbytes for source, _, _ in (*self._in_memory, *self._chunked)))
        self._amount.begin(0)
        if self._staged.changed():
            self.lock.take()
        if not self._staged.is_remote:
            self._staged.check_unchanged()
        self.claims.expect_none(self._staged.others_on_changed())
        self.claims.take()
        # A missing folder is locked when it exists, and a new one that replaces an erased one, too.
        self._staged.erase()
        self._staged.create()
        if self._staged.changed():
            self.lock.take()
        if not self._compute:
            self.claims.keep()
            if not (self._is_new and self._staged.is_remote):
                self._staged.check_unchanged()
            self._staged.commit()
        self._staged.go_direct()
        together: list[Callable[[], object]] = []
        alone: list[tuple[int, Callable[[], object]]] = []
        for elements, target, region in self._in_memory:
            write: Callable[[], object] = partial(_set, target, region, elements)
            if self._staged.is_remote and is_small(elements):
                together.append(write)
            else:
                alone.append((elements.nbytes, write))
        for nbytes, write in alone:
            self._amount.begin(nbytes)
            write()
            self._amount.finish()
        stored = self._store_chunked() if self._chunked else None
        self.claims.keep()
        # With the last chunks, because a server takes a round trip. A new place has nothing to compare.
        checks = [] if self._is_new and self._staged.is_remote else [self._staged.check_unchanged]
        concurrent_calls.run([*together, *checks])
        if self._compute:
            self._staged.commit(is_append=self._append_dim is not None)
            self._amount.finish_all()
            return self._opened
        from dask.delayed import delayed

        return delayed(_finished)(stored)

    def _store_chunked(self) -> Any:
        """Store arrays of dask. As in xarray's `ArrayWriter` there is no lock: tasks share no chunks."""
        sources, targets, regions = map(list, zip(*self._chunked, strict=True))
        manager: Any = get_chunked_array_type(*sources)
        return manager.store(
            sources,
            targets,
            lock=None,
            compute=self._compute,
            flush=True,
            regions=regions,
            **(self._store_options or {}),
        )


def _set(target: Any, region: tuple[slice, ...], elements: np.ndarray[Any, Any]) -> None:
    target[region or ...] = elements


def _finished(_writes: Any) -> None:
    """End a delayed write."""
