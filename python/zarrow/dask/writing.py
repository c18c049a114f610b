"""Writes arrays of dask to arrays of a store.

1. Everything is checked before an array is created or a task runs.
2. The edges of blocks are moved to edges of write units (`alignment`): a shard of several blocks is gathered
   in one task and encoded once. dask moves the elements between its workers.
3. No lock is held: tasks write different write units. At the ends of a region, other programs may write the
   same unit, and the engine keeps writers apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import dask.array
import numpy as np

from zarrow._zarrow import Array, MemoryStore, _with_options
from zarrow.api.array_options import Store
from zarrow.api.creation import create_array
from zarrow.api.opening import open_array
from zarrow.api.regions import expect_block
from zarrow.dask.gathered_blocks import gathered
from zarrow.dask.libraries import is_array, library_of
from zarrow.dask.reading import Elements
from zarrow.errors import DataTypeError, NodeExistsError, ShapeError
from zarrow.groups.places import refuse_read_only, store_of
from zarrow.groups.referenced_nodes import check_apart

Region = tuple[slice, ...]


def store(
    sources: dask.array.Array | Collection[dask.array.Array],
    targets: Array | Collection[Array],
    lock: Any = False,
    regions: Region | Collection[Region] | None = None,
    compute: bool = True,
    return_stored: bool = False,
    load_stored: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Write arrays of dask into existing arrays: as `dask.array.store`, without a lock.

    Parameters
    ----------
    sources
        One array of dask, or several.
    targets
        An `Array` for each source.
    lock
        As in `dask.array.store`. None is needed: tasks write different chunks or shards.
    regions
        The part of each target to write, with the shape of its source: one for all, or one for each.
    compute, return_stored, load_stored, kwargs
        As in `dask.array.store`.

    Raises
    ------
    ShapeError
        A source has another shape than its target or region, or an unknown one.
    ReadOnlyError
        A target was opened to be read.
    TypeError
        A target is no `Array`, or a source no array of dask.
    """
    if is_array(sources):
        sources, targets = [sources], [targets]  # type: ignore[list-item]
        regions = None if regions is None else [regions]  # type: ignore[list-item]
    sources, targets = list(sources), list(targets)  # type: ignore[arg-type]
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} sources for {len(targets)} targets")
    parts = [regions] * len(sources) if regions is None or isinstance(regions, tuple) else list(regions)
    if len(parts) != len(sources):
        raise ValueError(f"{len(parts)} regions for {len(sources)} sources")
    resolved = [
        _checked(source, target, region)
        for source, target, region in zip(sources, targets, parts, strict=True)
    ]
    moved = [
        _moved(source, target, region)
        for source, target, region in zip(sources, targets, resolved, strict=True)
    ]
    return library_of(moved).store(
        moved,
        [_Target(target) for target in targets],
        lock=lock,
        regions=resolved,
        compute=compute,
        return_stored=return_stored,
        load_stored=load_stored,
        **kwargs,
    )


def to_zarr(
    arr: dask.array.Array,
    url: Array | Store,
    component: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    region: Region | None = None,
    compute: bool = True,
    return_stored: bool = False,
    mode: Literal["r+", "a", "w", "w-"] = "a",
    zarr_array_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Write an array of dask into a new array, or into an `Array`: as `dask.array.to_zarr`.

    Parameters
    ----------
    arr
        The array. Its largest blocks are the chunks, unless you pass others.
    url, component
        Where the array is created: a store and a path in it. Or an `Array`, which is written.
    storage_options
        Credentials and other options of a cloud URL: see `CloudStore`.
    region
        The part of the `Array` that is written.
    compute, return_stored
        As in `dask.array.store`.
    mode
        `"w"` replaces an array; `"a"` and `"w-"` create it; `"r+"` writes an existing array.
    zarr_array_kwargs, kwargs
        Options of `create_array`; a mapping is how `dask_array.to_zarr` takes them.

    Raises
    ------
    NodeExistsError
        There is a node, and the mode is `"a"` or `"w-"`; or the array of dask reads the node that it would
        replace.
    ShapeError
        The shape is unknown, or another than that of the target or region.
    MetadataError, CodecError
        An option does not fit the array.

    Examples
    --------
    >>> import dask.array, zarrow, zarrow.dask
    >>> zarrow.dask.to_zarr(dask.array.ones((4, 4), chunks=2), "ones.zarr", shards=(4, 4))
    >>> zarrow.open("ones.zarr").shards
    (4, 4)
    """
    zarr_array_kwargs = {**(zarr_array_kwargs or {}), **kwargs}
    if isinstance(url, Array):
        if component is not None or zarr_array_kwargs:
            raise TypeError("an Array takes no component and no options of a new array")
        return store(arr, url, regions=region, compute=compute, return_stored=return_stored)
    if region is not None:
        raise ValueError("region is a part of an Array: pass the opened array as url")
    if mode not in ("a", "w", "w-", "r+"):
        raise ValueError(f"expected mode 'a', 'w', 'w-' or 'r+', got {mode!r}")
    _check_source(arr)
    opened = _with_options(url, storage_options)
    path = component or zarr_array_kwargs.pop("name", None) or ""
    if mode == "r+":
        target = open_array(opened, path=path, mode="r+")
    else:
        options = {
            "shape": arr.shape,
            "dtype": arr.dtype,
            "chunks": tuple(max(1, *lengths) for lengths in arr.chunks),
            "overwrite": mode == "w",
            **zarr_array_kwargs,
        }
        if tuple(np.atleast_1d(options["shape"])) != arr.shape and arr.ndim:
            raise ShapeError(f"shape is {options['shape']!r}, but the array of dask has {arr.shape}")
        # Options are checked on an array in memory, before anything is erased or created.
        _check_type(arr, create_array(MemoryStore(), **{**options, "overwrite": False}))
        if options["overwrite"]:
            check_apart(arr, "the array of dask", opened, path)
        with naming_mode():
            target = create_array(opened, path, **options)
    return store(arr, target, compute=compute, return_stored=return_stored)


@contextmanager
def naming_mode() -> Iterator[None]:
    """Let the error of an existing node say `mode="w"`, which these functions take."""
    try:
        yield
    except NodeExistsError as error:
        error.args = (f'{str(error).partition(": ")[0]}: mode="w" replaces it and all of its descendants',)
        raise


class _Target(Elements):
    """An array that tasks write."""

    __slots__ = ()

    def __setitem__(self, selection: Any, values: Any) -> None:
        array = self.array
        expect_block(np.shape(values), selection, array.shape, store=array.store, path=array.path)
        array[selection] = values

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(store_of(self.array), MemoryStore):
            raise TypeError(
                "other processes cannot write into a MemoryStore: use the scheduler 'threads', or a folder"
            )
        return _Target, (self.array,)


def _check_source(source: Any) -> None:
    if not is_array(source):
        raise TypeError(f"expected an array of dask, got {type(source).__name__}")
    if any(math.isnan(extent) for extent in source.shape):
        raise ShapeError("the array of dask does not know its shape: call compute_chunk_sizes() first")


def _checked(source: Any, target: Any, region: Region | None) -> Region | None:
    """Return the region with all its slices, after all checks (step 1)."""
    _check_source(source)
    if not isinstance(target, Array):
        raise TypeError(f"expected an Array of zarrow to write, got {type(target).__name__}")
    refuse_read_only(target)
    if region is None:
        shape: tuple[int, ...] = target.shape
    else:
        if len(region) > target.ndim or not all(isinstance(part, slice) for part in region):
            raise ShapeError(f"a region has a slice for each of {target.ndim} axes, got {region!r}")
        region = (*region, *[slice(None)] * (target.ndim - len(region)))
        ranges = [range(*part.indices(extent)) for part, extent in zip(region, target.shape, strict=True)]
        shape = tuple(map(len, ranges))
        region = tuple(slice(part.start, part.stop, part.step) for part in ranges)
        if any(part.step < 1 for part in region):
            raise ShapeError(f"a region has positive steps, got {region!r}")
    if source.shape != shape:
        raise ShapeError(
            f"the array of dask has shape {source.shape}, and array {target.path!r} in {target.store} has "
            f"{shape} to write",
            node=target,
        )
    _check_type(source, target)
    return region


def _check_type(source: dask.array.Array, target: Array) -> None:
    """Refuse numbers that a task could not store: the engine casts by NumPy's rule `"same_kind"`."""
    kinds = source.dtype.kind + target.dtype.kind
    if set(kinds) <= set("biufc") and not np.can_cast(source.dtype, target.dtype, "same_kind"):
        raise DataTypeError(
            f"the array of dask has type {source.dtype}, which is not stored as {target.dtype}: convert it "
            "by astype() first"
        )


def _moved(source: dask.array.Array, target: Array, region: Region | None) -> dask.array.Array:
    """Return the source with blocks that end between write units (step 2)."""
    parts = region or (slice(0, None, 1),) * target.ndim
    if any(part.step != 1 for part in parts):
        return source
    return gathered(source, target.write_unit, [part.start for part in parts])
