"""The shape of rows: a tile of each array, or a range of axis 0 that all arrays share.

Arguments and refusals are as in `ray.data.read_zarr`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from zarrow._zarrow import Array
from zarrow.errors import UnsupportedError
from zarrow.ray.sources import normalized
from zarrow.ray.tiling import Tiling


def checked_shapes(shapes: Any) -> tuple[int, ...] | dict[str, tuple[int, ...]] | None:
    """Return the shapes of rows that a user gave, for all arrays or by name."""
    if shapes is None:
        return None
    if isinstance(shapes, Mapping):
        return {normalized(name): _checked_shape(f"chunk_shapes[{name!r}]", shapes[name]) for name in shapes}
    return _checked_shape("chunk_shapes", shapes)


def _checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    if (
        not isinstance(shape, tuple | list)
        or not shape
        or not all(isinstance(e, numbers.Integral) and not isinstance(e, bool) and int(e) > 0 for e in shape)
    ):
        raise ValueError(
            f"{name} must be a non-empty sequence of positive integers (list or tuple), got {shape!r}"
        )
    return tuple(map(int, shape))


def tile_shape(name: str, array: Array, shapes: Any) -> tuple[int, ...]:
    """Return the shape of an array's rows."""
    prefix: tuple[int, ...] = (shapes.get(name, ()) if isinstance(shapes, dict) else shapes) or ()
    if len(prefix) > array.ndim:
        raise ValueError(
            f"chunk_shapes override for array {name!r} has {len(prefix)} axes but array of shape "
            f"{array.shape!r} has rank {array.ndim}. Each chunk_shapes override may not be longer than its "
            "target array's rank."
        )
    if array.chunks is None and len(prefix) < array.ndim:
        raise UnsupportedError(
            f"the chunks of array {array.path!r} in {array.store} differ in shape: pass chunk_shapes with "
            f"{array.ndim} axes",
            node=array,
        )
    return (*prefix, *(array.chunks or prefix)[len(prefix) :])


def aligned_rows(arrays: Mapping[str, Array], tiles: Mapping[str, tuple[int, ...]]) -> Tiling:
    """Return the rows along axis 0 that all arrays share."""
    if scalars := sorted(name for name, array in arrays.items() if not array.ndim):
        raise ValueError(
            "align_axis_0=True requires every selected array to have at least one axis, but these are 0-D "
            f"(scalar): {scalars}. Drop them with array_paths=[...]."
        )
    if taken := sorted({"t_start", "t_stop"} & set(arrays)):
        raise ValueError(
            f"arrays {taken} have names of columns: drop them with array_paths=[...], or read without "
            "align_axis_0"
        )
    extents = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(extents.values())) > 1:
        raise ValueError(
            f"All selected arrays must share shape[0] when align_axis_0=True. Got: {extents}. Pass a "
            "shape-compatible subset via array_paths=[...]."
        )
    steps = {name: tiles[name][0] for name in arrays}
    if len(set(steps.values())) > 1:
        raise ValueError(
            f"Aligned arrays must share the same axis-0 chunk size. Got: {steps}. Pass chunk_shapes=[N] (or "
            "a per-array chunk_shapes dict that resolves all aligned arrays to the same axis-0 prefix) to "
            "re-tile them."
        )
    units = [array.write_unit for array in arrays.values()]
    unit = math.lcm(*(unit[0] for unit in units if unit is not None))
    nbytes = sum(math.prod(array.shape[1:]) * (item_nbytes(array) or 1) for array in arrays.values())
    return Tiling.over((next(iter(extents.values())),), (next(iter(steps.values())),), (unit,), nbytes)


def item_nbytes(array: Array) -> int | None:
    """Return the size of an element in memory, `None` for text and bytes of any length."""
    return None if array.nbytes is None else array.dtype.itemsize
