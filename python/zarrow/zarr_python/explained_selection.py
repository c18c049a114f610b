"""Explains whether the engine reads and writes a selection, as `CodecPipeline.planned` decides."""

from __future__ import annotations

from typing import Any

import numpy as np
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.indexing import (
    BasicIndexer,
    CoordinateIndexer,
    MaskIndexer,
    OrthogonalIndexer,
    check_fields,
    is_pure_fancy_indexing,
    is_pure_orthogonal_indexing,
    pop_fields,
)

from zarrow.zarr_python.chunks import resolve_store
from zarrow.zarr_python.explanation import Explanation
from zarrow.zarr_python.fallback import FallbackError
from zarrow.zarr_python.pipeline import CodecPipeline


def explained(array: Any, selection: Any) -> Explanation:
    """Return the explanation for an asynchronous array."""
    pipeline = array.codec_pipeline
    if not isinstance(pipeline, CodecPipeline):
        kind = type(pipeline)
        why = (
            f"the array has another pipeline, {kind.__module__}.{kind.__qualname__}: "
            "enable zarrow before opening it"
        )
        return Explanation("zarr-python", "zarr-python", None, why)
    try:
        batch, shape, drop_axes = _batch(array, ... if selection is None else selection)
        elements = np.broadcast_to(np.zeros((), array.metadata.dtype.to_native_dtype()), shape)
        buffer = default_buffer_prototype().nd_buffer.from_ndarray_like(elements)
        if batch:
            pipeline.planned(batch, buffer, drop_axes)
        store = str(resolve_store(array.store))
    except FallbackError as error:
        return Explanation("zarr-python", "zarr-python", None, str(error))
    try:
        if batch:
            pipeline.writes(batch, buffer, drop_axes)
    except FallbackError as error:
        return Explanation("zarrow", "zarr-python", store, str(error))
    return Explanation("zarrow", "zarrow", store, None)


def _batch(array: Any, selection: Any) -> tuple[list[Any], tuple[int, ...], tuple[int, ...]]:
    """Return zarr-python's batch for a selection, the shape of its result, and the dropped axes."""
    metadata, prototype = array.metadata, default_buffer_prototype()
    grid = array._chunk_grid if hasattr(array, "_chunk_grid") else metadata.chunk_grid
    config = array.config if hasattr(array, "config") else array._config
    fields, selection = pop_fields(selection)
    if fields:
        check_fields(fields, metadata.dtype.to_native_dtype())
        raise FallbackError("zarr-python does not tell the pipeline which field it reads or writes")
    indexer = _indexer(selection, metadata.shape, grid)
    batch = []
    for position, *part in indexer:
        shape = grid[position].codec_shape if hasattr(grid, "__getitem__") else grid.chunk_shape
        spec = ArraySpec(shape, metadata.dtype, metadata.fill_value, config, prototype)
        batch.append((array.store_path / metadata.encode_chunk_key(position), spec, *part))
    return batch, tuple(indexer.shape), tuple(indexer.drop_axes)


def _indexer(selection: Any, shape: tuple[int, ...], grid: Any) -> Any:
    """Return the indexer of `zarr.Array.__getitem__`, or that of `oindex` for a mask along an axis."""
    if is_pure_fancy_indexing(selection, len(shape)):
        parts = [np.asarray(part) for part in (selection if isinstance(selection, tuple) else (selection,))]
        if parts[0].dtype != bool:
            return CoordinateIndexer(tuple(parts), shape, grid)
        if parts[0].shape == shape:
            return MaskIndexer(parts[0], shape, grid)
        return OrthogonalIndexer(selection, shape, grid)
    is_orthogonal = is_pure_orthogonal_indexing(selection, len(shape))
    return (OrthogonalIndexer if is_orthogonal else BasicIndexer)(selection, shape, grid)
