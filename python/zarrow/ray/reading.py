"""Reads arrays of a store as rows of a dataset.

1. Arguments, rows and refusals are as in `ray.data.read_zarr`.
2. A task reads a range of blocks (`tiling`), one after the other. The rows of each are an Arrow table.
3. A task opens its arrays itself. If their metadata have changed since the dataset was made, it raises an
   error.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
import ray.data
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from zarrow._zarrow import Array, open
from zarrow.jobs.work import fixed_metadata, unchanged
from zarrow.ray.rows import aligned_rows, checked_shapes, item_nbytes, tile_shape
from zarrow.ray.sources import KEY, described, description, opened_store, selected
from zarrow.ray.tiling import Tiling

ChunkShapes = Mapping[str, Sequence[int]] | Sequence[int]


class ZarrDatasource(Datasource):  # type: ignore[misc]
    """A source for `ray.data.read_datasource`. `read_zarr` has the parameters."""

    def __init__(
        self,
        path: Any,
        filesystem: Any = None,
        chunk_shapes: ChunkShapes | None = None,
        array_paths: list[str] | None = None,
        allow_full_metadata_scan: bool = False,
        align_axis_0: bool = False,
        overlap: int = 0,
    ) -> None:
        super().__init__()
        self._path = str(path)
        shapes = checked_shapes(chunk_shapes)
        if isinstance(overlap, bool) or not isinstance(overlap, int) or overlap < 0:
            raise ValueError(f"overlap must be a non-negative integer, got {overlap!r}")
        if overlap and not align_axis_0:
            raise ValueError("overlap requires align_axis_0=True: rows of single chunks have no next row")
        self.store = opened_store(path, filesystem)
        root = open(self.store, mode="r")
        self.arrays = selected(root, array_paths, allow_full_metadata_scan)
        if not self.arrays:
            raise ValueError(f"No arrays discovered in Zarr store at {self._path!r}.")
        if isinstance(shapes, dict) and (unknown := sorted(set(shapes) - set(self.arrays))):
            raise ValueError(f"Unknown array path(s) in chunk_shapes: {unknown}")
        self._overlap = overlap
        self.description = description(root, self.arrays)
        tiles = {name: tile_shape(name, array, shapes) for name, array in self.arrays.items()}
        self._tilings = {
            name: Tiling.over(array.shape, tiles[name], array.write_unit, item_nbytes(array) or 1)
            for name, array in self.arrays.items()
        }
        self._rows = aligned_rows(self.arrays, tiles) if align_axis_0 else None

    @property
    def supports_distributed_reads(self) -> bool:
        """Whether other machines can read the store: not below `local://`."""
        return not self._path.startswith("local://")

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the bytes of all elements in memory, `None` if arrays have text or bytes of any length."""
        if self._rows is not None:
            return self._rows_nbytes(0, len(self._rows.blocks))
        sizes = [array.nbytes for array in self.arrays.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def stored_data_size(self) -> int:
        """Return the bytes of all arrays in the store. All chunks are listed."""
        return sum(array.nbytes_stored() for array in self.arrays.values())

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Return the tasks, each with the number of its rows and the size of its elements."""
        if self._rows is not None:
            return [
                self._task(
                    self._aligned_reader(self._rows, start, stop, per_task_row_limit),
                    self._rows.tiles_before(stop) - self._rows.tiles_before(start),
                    self._rows_nbytes(start, stop),
                    per_task_row_limit,
                )
                for start, stop in _ranges(len(self._rows.blocks), parallelism)
            ]
        tasks = []
        for name, array in self.arrays.items():
            tiling, nbytes = self._tilings[name], item_nbytes(array)
            for start, stop in _ranges(len(tiling.blocks), parallelism):
                elements = tiling.elements_before(stop) - tiling.elements_before(start)
                tasks.append(
                    self._task(
                        self._reader(name, start, stop, per_task_row_limit),
                        tiling.tiles_before(stop) - tiling.tiles_before(start),
                        None if nbytes is None else elements * nbytes,
                        per_task_row_limit,
                    )
                )
        return tasks

    def _task(
        self, read: Callable[[], Iterable[Any]], rows: int, nbytes: int | None, limit: int | None
    ) -> ReadTask:
        made = BlockMetadata(num_rows=rows, size_bytes=nbytes, input_files=(self._path,), exec_stats=None)
        return ReadTask(read, made, per_task_row_limit=limit)

    def _reader(
        self, name: str, start: int, stop: int, limit: int | None
    ) -> Callable[[], Iterator[pyarrow.Table]]:
        """Return a function that reads a range of blocks, one row for each tile."""
        array, tiling, text = self.arrays[name], self._tilings[name], self.description
        planned = fixed_metadata(array)

        def read_fn() -> Iterator[pyarrow.Table]:
            unchanged(array, planned, "dataset")
            left = limit
            for number in range(start, stop):
                region = tiling.blocks.region(number)
                tiles = list(itertools.islice(tiling.tiles(region), left))
                if not tiles:
                    return
                count = tiling.tiles_before(number + 1) - tiling.tiles_before(number)
                if len(tiles) == count:
                    read = [(array, region, [place for _, place in tiles])]
                else:
                    read = [(array, place, [place]) for _, place in tiles]
                rows = {
                    "array": [name] * len(tiles),
                    "chunk_index": [list(index) for index, _ in tiles],
                    "chunk_slices": [[[part.start, part.stop] for part in place] for _, place in tiles],
                    "chunk": [chunk for part in read for chunk in _chunks(*part)],
                }
                yield _table(rows, text)
                left = None if left is None else left - len(tiles)

        return read_fn

    def _aligned_reader(
        self, tiling: Tiling, start: int, stop: int, limit: int | None
    ) -> Callable[[], Iterator[pyarrow.Table]]:
        """Return a function that reads a range of blocks along axis 0, with a column for each array."""
        arrays, overlap, text = self.arrays, self._overlap, self.description
        planned = {name: fixed_metadata(array) for name, array in arrays.items()}
        (extent,) = tiling.blocks.shape

        def read_fn() -> Iterator[pyarrow.Table]:
            for name, array in arrays.items():
                unchanged(array, planned[name], "dataset")
            left = limit
            for number in range(start, stop):
                tiles = list(itertools.islice(tiling.tiles(tiling.blocks.region(number)), left))
                if not tiles:
                    return
                parts = [part for _, (part,) in tiles]
                places = [slice(part.start, min(part.stop + overlap, extent)) for part in parts]
                rows: dict[str, Any] = {
                    "t_start": [part.start for part in parts],
                    "t_stop": [part.stop for part in parts],
                }
                whole = (slice(places[0].start, places[-1].stop),)
                for name, array in arrays.items():
                    rows[name] = _chunks(array, whole, [(place,) for place in places])
                yield _table(rows, text)
                left = None if left is None else left - len(tiles)

        return read_fn

    def _rows_nbytes(self, start: int, stop: int) -> int | None:
        """Return the size of a range of blocks along axis 0, with the elements that rows repeat."""
        assert self._rows is not None
        (extent,), (step,), sizes = self._rows.blocks.shape, self._rows.tile, []
        first, last = self._rows.elements_before(start), self._rows.elements_before(stop)
        # All rows but the last ones of the array have the whole overlap.
        starts = range(first, last, step)
        count = max(0, min(len(starts), (extent - self._overlap - step - first) // step + 1))
        ends = sum(max(0, extent - min(place + step, extent)) for place in starts[count:])
        steps = last - first + count * self._overlap + ends
        for array in self.arrays.values():
            nbytes = item_nbytes(array)
            if nbytes is None:
                return None
            sizes.append(steps * math.prod(array.shape[1:]) * nbytes)
        return sum(sizes)


def read_zarr(
    path: Any,
    *,
    filesystem: Any = None,
    chunk_shapes: ChunkShapes | None = None,
    array_paths: list[str] | None = None,
    allow_full_metadata_scan: bool = False,
    align_axis_0: bool = False,
    overlap: int = 0,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    memory: float | None = None,
    label_selector: dict[str, str] | None = None,
    fallback_strategy: list[dict[str, Any]] | None = None,
    max_calls: int | None = None,
    resources: dict[str, float] | None = None,
    accelerator_type: str | None = None,
    runtime_env: dict[str, Any] | None = None,
    ray_remote_args: dict[str, Any] | None = None,
) -> ray.data.Dataset:
    """Return a dataset of the chunks of a store: as `ray.data.read_zarr`, for both versions of Zarr.

    Parameters
    ----------
    path
        A folder, a zip file or a URL (`s3://anonymous@bucket/...` without credentials), or a `CloudStore`.
        It is made absolute. `local://` reads on this machine only.
    filesystem
        A file system of pyarrow or fsspec that has the path. By default zarrow opens the path itself.
    chunk_shapes
        The shape of the rows' chunks along the first axes, or a dict of shapes by the paths of arrays. By
        default, or along the other axes, chunks of the array; in a sharded array, those in a shard.
    array_paths
        The arrays to read, by default all.
    allow_full_metadata_scan
        Whether to list all nodes of a group without consolidated metadata.
    align_axis_0
        Whether to give rows of a range of axis 0, `t_start` and `t_stop`, with a column for each array. By
        default a row is a chunk of an array: `array`, `chunk_index`, `chunk_slices` and `chunk`.
    overlap
        With `align_axis_0`: by how many elements of axis 0 the columns extend beyond `t_stop`.
    concurrency, override_num_blocks, num_cpus, num_gpus, memory, label_selector, fallback_strategy
        As in `ray.data.read_zarr`.
    max_calls, resources, accelerator_type, runtime_env, ray_remote_args
        As in `ray.data.read_zarr`.

    Returns
    -------
    ray.data.Dataset
        Its chunks are NumPy arrays. Text is an array of objects, and missing elements are None in one.
        Attributes and layouts are in the schema's metadata: see `metadata`.

    Raises
    ------
    ValueError
        An argument does not fit the arrays, an array is not found, or a path is needed.
    UnsupportedError
        The chunks of an array differ in shape, and `chunk_shapes` has no shape for all axes.
    NotFoundError, MetadataError, StoreError
        As `open`.

    Examples
    --------
    >>> import numpy, zarrow, zarrow.ray
    >>> zarrow.save("pairs.zarr", images=numpy.ones((6, 8, 8)), labels=numpy.arange(6))
    >>> zarrow.consolidate_metadata("pairs.zarr")
    >>> pairs = zarrow.ray.read_zarr("pairs.zarr", align_axis_0=True, chunk_shapes=[4])
    >>> [row["labels"].tolist() for row in pairs.sort("t_start").take_all()]
    [[0, 1, 2, 3], [4, 5]]
    """
    source = ZarrDatasource(
        path, filesystem, chunk_shapes, array_paths, allow_full_metadata_scan, align_axis_0, overlap
    )
    return ray.data.read_datasource(
        source,
        concurrency=concurrency,
        override_num_blocks=override_num_blocks,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        memory=memory,
        label_selector=label_selector,
        fallback_strategy=fallback_strategy,
        max_calls=max_calls,
        resources=resources,
        accelerator_type=accelerator_type,
        runtime_env=runtime_env,
        ray_remote_args=ray_remote_args,
    )


def metadata(dataset: Any) -> dict[str, Any]:
    """Return what a dataset, or its schema, says about the arrays that it was read from.

    Parameters
    ----------
    dataset
        A dataset of `read_zarr`, also after `map` and `filter`; or its `schema()`, which functions such as
        `map` replace. If a dataset was materialized, or made of several, Ray asks its first rows.

    Returns
    -------
    dict
        `"attributes"` of the group, and `"arrays"`: by path, a dict of `attributes`, `shape`, `dtype`,
        `chunks`, `shards`, `dimension_names` and `zarr_format`. It is empty if the schema does not say.

    Examples
    --------
    >>> import zarrow, zarrow.ray
    >>> _ = zarrow.create_array("rain.zarr", data=[1.5, 2.5], attributes={"units": "mm"})
    >>> rain = zarrow.ray.read_zarr("rain.zarr")
    >>> zarrow.ray.metadata(rain)["arrays"][""]["attributes"]
    {'units': 'mm'}
    """
    if not isinstance(dataset, ray.data.Dataset):
        return described(dataset)
    sources = list(sources_of(dataset))
    found: dict[str, Any] = (
        json.loads(sources[0].description) if len(sources) == 1 else described(dataset.schema())
    )
    return found


def sources_of(dataset: ray.data.Dataset) -> Iterator[ZarrDatasource]:
    """Yield the sources of zarrow that a dataset reads, and has not materialized."""
    for operator in dataset._logical_plan.dag.post_order_iter():
        source = getattr(operator, "datasource", None)
        if isinstance(source, ZarrDatasource):
            yield source


def _ranges(count: int, parallelism: int) -> list[tuple[int, int]]:
    """Divide blocks into contiguous ranges, at most as many as tasks are asked for."""
    tasks = max(1, min(parallelism, count))
    edges = [count * place // tasks for place in range(tasks + 1)]
    return [(start, stop) for start, stop in itertools.pairwise(edges) if start < stop]


def _chunks(array: Array, region: tuple[slice, ...], parts: Iterable[tuple[slice, ...]]) -> list[Any]:
    """Read a region once, and cut its parts out of it."""
    values: Any = np.asanyarray(array.read(region).numpy())
    if isinstance(values, np.ma.MaskedArray):
        # Tensors of Ray have no mask.
        values = np.ma.filled(values.astype(object), None)
    elif values.dtype.kind == "T":
        values = values.astype(object)
    elif not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return [
        values[tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, region, strict=True))]
        for part in parts
    ]


def _table(rows: Mapping[str, Any], text: bytes) -> pyarrow.Table:
    table = BlockAccessor.batch_to_arrow_block(rows)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: text})
