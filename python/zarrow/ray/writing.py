"""Writes rows of a dataset into arrays of a store, by the rules of `zarrow.jobs`.

1. Arrays are created once, before the first task, and marked as unfinished by an attribute with the name of
   this write. Attributes, and then consolidated metadata, are written after the last task.
2. A row says where its elements belong. A task that runs again writes the same regions again.
3. Rows of a block that fill a write unit are written at once: the unit is encoded once, and not read. The
   engine keeps tasks apart that write parts of one unit, or refuses parts if the store cannot.
4. After a failure, arrays that this write created, and that still have its mark, are erased. If other files
   were in the folder of an array before, it stays, with its mark.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import ray.data
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink, WriteResult

from zarrow._zarrow import Array, MemoryStore, _StoredValues
from zarrow.api.consolidation import consolidate_metadata
from zarrow.api.creation import create_array
from zarrow.api.opening import open_array, open_group
from zarrow.errors import NodeExistsError, NotFoundError, ShapeError, StaleHandleError
from zarrow.groups.places import node_at, place, place_of
from zarrow.ray.reading import metadata, sources_of
from zarrow.ray.sources import normalized, opened_store
from zarrow.ray.tiling import Region

# The attribute that marks an array as unfinished (step 1).
MARK = "zarrow_ray_write"

# Columns of `read_zarr`.
_LONG = frozenset(("array", "chunk_slices", "chunk"))
_ALIGNED = frozenset(("t_start", "t_stop"))


class ZarrDatasink(Datasink[dict[str, int]]):  # type: ignore[misc]
    """A target for `Dataset.write_datasink`. `write_zarr` has the parameters."""

    def __init__(
        self,
        path: Any,
        arrays: Mapping[str, Mapping[str, Any]] | None,
        *,
        mode: Literal["w-", "w", "r+"] = "w-",
        filesystem: Any = None,
        consolidate: bool = True,
    ) -> None:
        if mode not in ("w-", "w", "r+"):
            raise ValueError(f"expected mode 'w-', 'w' or 'r+', got {mode!r}")
        if mode == "r+":
            if arrays is not None:
                raise ValueError("mode 'r+' writes existing arrays: leave out arrays, or pass mode='w'")
        elif not arrays:
            raise ValueError("no arrays to create: pass arrays={path: {'shape': ..., 'dtype': ...}}")
        self.store = opened_store(path, filesystem)
        self._is_local = str(path).startswith("local://")
        self._mode = mode
        self._consolidate = consolidate
        self._mark = secrets.token_hex(16)
        self._options = {normalized(name): dict(options) for name, options in (arrays or {}).items()}
        # Whether the place of an array had nothing else.
        self._created: dict[str, bool] = {}
        # All options are checked in memory before anything is erased or created.
        memory = MemoryStore()
        for name, options in self._options.items():
            create_array(memory, name, **options)
        if mode == "w-":
            for name in self._options:
                self._check_free(name)

    @property
    def supports_distributed_writes(self) -> bool:
        """Whether other machines can write the store: not below `local://`."""
        return not self._is_local

    def on_write_start(self, schema: Any = None) -> None:
        """Create the arrays, each with the mark of this write (step 1)."""
        for name, options in self._options.items():
            marked = {**options, "attributes": {MARK: self._mark}}
            # A node is replaced with everything below it.
            is_alone = node_at(self.store, name) is not None or self._is_empty(name)
            create_array(self.store, name, overwrite=self._mode == "w", **marked)
            self._created[name] = is_alone

    def write(self, blocks: Iterable[Any], ctx: Any) -> dict[str, int]:
        """Write the rows of blocks, and return how many elements of each array were written."""
        targets: dict[str, Array] = {}
        written: dict[str, int] = {}
        for block in blocks:
            parts: dict[str, dict[tuple[tuple[int, int], ...], Any]] = {}
            for row in BlockAccessor.for_block(block).iter_rows(public_row_format=False):
                for name, starts, values in self._places(row):
                    if name not in targets:
                        targets[name] = self._opened(name)
                    region = _region(targets[name], starts, values)
                    parts.setdefault(name, {})[region] = values
            for name, found in parts.items():
                for whole, values in _gathered(targets[name], found):
                    targets[name][whole] = values
                    written[name] = written.get(name, 0) + values.size
        return written

    def on_write_complete(self, write_result: WriteResult[dict[str, int]]) -> None:
        """Replace the marks by the attributes, and consolidate the metadata (step 1)."""
        for name in self._created:
            array = self._opened(name)
            # `create_array` may have set others, such as names of dimensions in version 2.
            kept = {key: value for key, value in array.attrs.items() if key != MARK}
            array.attrs = {**kept, **(self._options[name].get("attributes") or {})}
        if self._consolidate and self._created and "" not in self._created:
            consolidate_metadata(self.store)

    def on_write_failed(self, error: Exception) -> None:
        """Erase the arrays that this write created (step 4)."""
        for name in [name for name, is_alone in self._created.items() if is_alone]:
            with contextlib.suppress(NotFoundError, StaleHandleError):
                self._opened(name)
                if name:
                    del open_group(self.store, mode="r+")[name]
                else:
                    _StoredValues(self.store, create=False).erase_prefix("")
        self._created = {}

    def _opened(self, name: str) -> Array:
        """Open an array to write it.

        Raises
        ------
        StaleHandleError
            Another writer has replaced it.
        """
        array = open_array(self.store, name, mode="r+")
        if self._mode != "r+" and array.attrs.get(MARK) != self._mark:
            raise StaleHandleError(
                f"array {name!r} in {array.store} was replaced by another writer: write it again",
                store=array.store,
                path=name,
            )
        return array

    def _check_free(self, name: str) -> None:
        found = node_at(self.store, name)
        if found is not None:
            raise NodeExistsError(
                f"{repr(name) if name else 'the root'} of {found.store} exists: pass mode='w' to erase it, "
                "or 'r+' to write into it",
                store=found.store,
                path=name,
            )

    def _is_empty(self, name: str) -> bool:
        try:
            return not _StoredValues(self.store, create=False).list(name)
        except NotFoundError:
            return True

    def _places(self, row: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield the arrays of a row: the name, the starts along the first axes, and the elements."""
        columns = set(row)
        if columns >= _LONG:
            name = normalized(row["array"])
            if self._options and name not in self._options:
                raise ValueError(f"a row has array {name!r}, expected one of {sorted(self._options)}")
            yield name, [start for start, _ in row["chunk_slices"]], np.asarray(row["chunk"])
            return
        if not columns >= _ALIGNED:
            raise ValueError(
                f"a row has columns {sorted(columns)}, expected {sorted(_LONG)}, or {sorted(_ALIGNED)} and "
                "the names of arrays"
            )
        names = {normalized(column): column for column in columns - _ALIGNED}
        if self._options and set(names) != set(self._options):
            raise ValueError(
                f"a row has columns {sorted(names)} for arrays {sorted(self._options)}: drop or add columns, "
                "or pass others as arrays"
            )
        start, stop = int(row["t_start"]), int(row["t_stop"])
        for name, column in names.items():
            # Elements beyond the row's end belong to the next row.
            yield name, [start], np.asarray(row[column])[: stop - start]


def write_zarr(
    dataset: ray.data.Dataset,
    path: Any,
    arrays: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    mode: Literal["w-", "w", "r+"] = "w-",
    filesystem: Any = None,
    consolidate: bool = True,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
) -> None:
    """Write a dataset into arrays of a store.

    Parameters
    ----------
    dataset
        Rows with the columns of `read_zarr`: `array`, `chunk_slices` and `chunk`; or `t_start`, `t_stop` and
        a column for each array. Each row says where its elements belong, so that tasks can run in any order,
        and again. Other columns of the first form are ignored.
    path
        A folder or a URL, or a `CloudStore`. It is made absolute.
    arrays
        The arrays to create: for each path in the store a dict of options of `create_array`. Without
        `shape` or `dtype`, the array is as the one that the dataset was read from (see `metadata`), with
        these options, and default codecs. By default all these arrays are created.
    mode
        `"w-"` creates arrays, `"w"` also erases existing ones, and `"r+"` writes into existing arrays.
    filesystem
        As for `read_zarr`.
    consolidate
        Whether to consolidate the metadata of the group at the end.
    concurrency, ray_remote_args
        As in `Dataset.write_datasink`.

    Raises
    ------
    NodeExistsError
        There is a node, and the mode is `"w-"`.
    ValueError
        The layout of the arrays is unknown; or the dataset reads arrays that the mode `"w"` would erase.
    ShapeError
        A row has another shape than its place, or its place is outside of the array.
    StaleHandleError
        Another writer replaced an array.
    MetadataError, CodecError, StoreError
        As `create_array` and `Array.write`. Errors of tasks are causes of Ray's.

    Examples
    --------
    >>> import numpy, zarrow, zarrow.ray
    >>> zarrow.save("rain.zarr", numpy.ones((4, 6)))
    >>> def doubled(row):
    ...     return {**row, "chunk": row["chunk"] * 2}
    >>> rain = zarrow.ray.read_zarr("rain.zarr")
    >>> zarrow.ray.write_zarr(rain.map(doubled), "twice.zarr")
    >>> zarrow.open("twice.zarr")[0, :2].tolist()
    [2.0, 2.0]
    """
    if mode != "r+":
        arrays = _completed(dataset, arrays)
    sink = ZarrDatasink(path, arrays, mode=mode, filesystem=filesystem, consolidate=consolidate)
    if mode == "w":
        _check_apart(dataset, sink)
    dataset.write_datasink(sink, concurrency=concurrency, ray_remote_args=ray_remote_args)


def _completed(
    dataset: ray.data.Dataset, arrays: Mapping[str, Mapping[str, Any]] | None
) -> dict[str, dict[str, Any]]:
    """Return the options of arrays, completed from the arrays that the dataset was read from."""
    if arrays is not None and all({"shape", "dtype"} <= set(options) for options in arrays.values()):
        return {name: dict(options) for name, options in arrays.items()}
    known = metadata(dataset).get("arrays", {})
    if arrays is None:
        arrays = {name: {} for name in known}
    unknown = [name for name, given in arrays.items() if not {"shape", "dtype"} <= set(given)]
    if missing := sorted({normalized(name) for name in unknown} - set(known)):
        raise ValueError(f"the dataset was not read from arrays {missing}: pass their shape and dtype")
    completed = {}
    for name, options in arrays.items():
        found = known[normalized(name)] if name in unknown else {}
        if {"chunks", "shards"} & set(options):
            found = {key: value for key, value in found.items() if key not in ("chunks", "shards")}
        completed[name] = {**found, **options}
    return completed


def _check_apart(dataset: ray.data.Dataset, sink: ZarrDatasink) -> None:
    """Refuse to erase what the dataset reads."""
    erased = {place(sink.store, name) for name in sink._options} - {None}
    for source in sources_of(dataset):
        for array in source.arrays.values():
            if (found := place_of(array)) in erased:
                raise ValueError(f"the dataset reads {found!r}, which would be erased: choose another path")


def _region(array: Array, starts: list[Any], values: Any) -> tuple[tuple[int, int], ...]:
    """Return the start and the end of elements along each axis."""
    starts = [int(start) for start in starts] + [0] * (array.ndim - len(starts))
    if values.ndim != array.ndim or len(starts) != array.ndim:
        raise _refused(array, f"elements with shape {values.shape}, expected {array.ndim} axes")
    region = tuple((start, start + extent) for start, extent in zip(starts, values.shape, strict=True))
    if any(start < 0 or stop > extent for (start, stop), extent in zip(region, array.shape, strict=True)):
        raise _refused(array, f"elements of {region}, outside of its shape {array.shape}")
    return region


def _refused(array: Array, text: str) -> ShapeError:
    return ShapeError(f"a row has for array {array.path!r} in {array.store} {text}", node=array)


def _gathered(array: Array, parts: Mapping[tuple[tuple[int, int], ...], Any]) -> Iterator[tuple[Region, Any]]:
    """Yield regions and elements to write, of whole write units where parts fill them (step 3)."""
    unit = array.write_unit
    by_unit: dict[Any, list[tuple[tuple[tuple[int, int], ...], Any]]] = {}
    for region, values in parts.items():
        key: Any = region
        if unit is not None and all(
            stop <= (start // step + 1) * step for (start, stop), step in zip(region, unit, strict=True)
        ):
            key = tuple(start // step for (start, _), step in zip(region, unit, strict=True))
        by_unit.setdefault(key, []).append((region, values))
    for key, found in by_unit.items():
        whole = None if len(found) == 1 or unit is None else _filled(array, key, unit, found)
        if whole is not None:
            yield whole
            continue
        for region, values in found:
            yield tuple(itertools.starmap(slice, region)), values


def _filled(
    array: Array, key: Any, unit: tuple[int, ...], found: list[tuple[Any, Any]]
) -> tuple[Region, Any] | None:
    """Return a unit and its elements, `None` if its parts do not fill it."""
    bounds = [
        (place * step, min((place + 1) * step, extent))
        for place, step, extent in zip(key, unit, array.shape, strict=True)
    ]
    shape = tuple(stop - start for start, stop in bounds)
    if sum(values.size for _, values in found) < math.prod(shape):
        return None
    elements = np.empty(shape, np.result_type(*(values.dtype for _, values in found)))
    is_filled = np.zeros(shape, bool)
    for region, values in found:
        inside = tuple(
            slice(start - first, stop - first)
            for (start, stop), (first, _) in zip(region, bounds, strict=True)
        )
        elements[inside] = values
        is_filled[inside] = True
    return (tuple(itertools.starmap(slice, bounds)), elements) if is_filled.all() else None
