"""Reads the lazy views of zarr-indexing: `LazyArray(array).with_reader(zarrow.zarr_python.reader)`.

A view's transform says for each axis of the array which positions each axis of the result selects.

1. Usually each axis of the result belongs to one axis of the array: one read of slices and lists fills the
   result in place, through a view of it with the array's axes.
2. Axes of the result that select nothing repeat its elements.
3. Everything else is a list of points.

Source: zarr-indexing 0.3, `reader.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, _import
from zarrow.errors import UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_POINTS = 1 << 20


class Reader:
    """A reader of zarr-indexing's lazy views: each part is one read of the engine.

    It reads arrays of zarrow, and arrays of zarr-python by their own pipeline: the engine's, after `enable`.
    """

    def read_into(self, source: Any, context: Any, out: npt.NDArray[Any], /) -> None:
        """Fill `out` with the elements that the transform of a context selects."""
        if not out.size:
            return
        transform = context.transform
        shape = tuple(transform.domain.shape)
        maps = list(transform.output)
        axes = [_result_axis(each) for each in maps]
        used = [axis for axis in axes if axis is not None]
        if any(map(_has_several_axes, maps)) or len(set(used)) < len(used):
            _read_points(source, maps, shape, out)
            return
        repeated = [axis for axis in range(out.ndim) if axis not in used]
        # With an ellipsis, NumPy gives a view even for one element.
        first = out[(*(slice(0, 1 if axis in repeated else None) for axis in range(out.ndim)), ...)]
        start: tuple[Any, ...] = (0,) * len(repeated)
        view = first.transpose([*used, *repeated])[(..., *start)]
        selection: list[Any] = []
        flips: list[Any] = []
        for each, axis in zip(maps, axes, strict=True):
            selected, flip = _along(each, 1 if axis is None else shape[axis])
            selection.append(selected)
            flips.append(None if axis is None else flip)
        _read(source, tuple(selection), view[(*flips, ...)])
        if any(out.shape[axis] > 1 for axis in repeated):
            out[...] = first


def _has_several_axes(each: Any) -> bool:
    """Return whether several axes of the result select positions along one axis of the array."""
    return hasattr(each, "index_array") and sum(extent != 1 for extent in each.index_array.shape) > 1


def _result_axis(each: Any) -> int | None:
    """Return the axis of the result that selects along an axis of the array, or None."""
    if hasattr(each, "index_array"):
        return next((axis for axis, extent in enumerate(each.index_array.shape) if extent != 1), None)
    axis: int | None = getattr(each, "input_dimension", None)
    return axis


def _along(each: Any, count: int) -> tuple[Any, slice]:
    """Return the selection along an axis of the array, and a slice that puts its positions in order."""
    if hasattr(each, "index_array"):
        return each.offset + each.stride * each.index_array.reshape(-1), slice(None)
    stride = getattr(each, "stride", 0)
    if stride == 0 and count > 1:
        return _import("numpy").full(count, each.offset), slice(None)
    last = each.offset + stride * (count - 1)
    if stride < 0:
        return slice(last, each.offset + 1, -stride), slice(None, None, -1)
    return slice(each.offset, last + 1, max(stride, 1)), slice(None)


def _read(source: Any, selection: tuple[Any, ...], out: npt.NDArray[Any]) -> None:
    """Read slices and lists of positions, combined, into memory with the array's axes."""
    is_basic = all(isinstance(selected, slice) for selected in selection)
    if isinstance(source, Array):
        indexed: Any = source if is_basic else source.oindex
        try:
            indexed.read(selection, out=out)
        except UnsupportedError:  # text, and elements that may be missing
            out[...] = _import("numpy").asarray(indexed.read(selection))
        return
    name = "get_basic_selection" if is_basic else "get_orthogonal_selection"
    getattr(source, name)(selection, out=_buffer(out))


def _read_points(source: Any, maps: list[Any], shape: tuple[int, ...], out: npt.NDArray[Any]) -> None:
    """Step 3, some points at a time."""
    np = _import("numpy")
    for begin in range(0, math.prod(shape), _POINTS):
        places = np.unravel_index(np.arange(begin, min(begin + _POINTS, math.prod(shape))), shape)
        points = tuple(_points(each, places) for each in maps)
        if isinstance(source, Array):
            out[places] = source.vindex[points]
        else:
            out[places] = source.get_coordinate_selection(points)


def _points(each: Any, places: tuple[npt.NDArray[np.intp], ...]) -> Any:
    if hasattr(each, "index_array"):
        index = [
            place if extent != 1 else 0 for place, extent in zip(places, each.index_array.shape, strict=True)
        ]
        return each.offset + each.stride * (each.index_array[tuple(index)] + 0 * places[0])
    if hasattr(each, "input_dimension"):
        return each.offset + each.stride * places[each.input_dimension]
    return each.offset + 0 * places[0]


def _buffer(out: npt.NDArray[Any]) -> Any:
    """Return memory as zarr-python takes it."""
    from zarr.core.buffer import default_buffer_prototype

    return default_buffer_prototype().nd_buffer.from_numpy_array(out)


reader = Reader()
