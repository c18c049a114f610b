"""Parts of tensors of a GPU by lists, masks and arrays of integers, as NumPy takes them.

1. The index is completed: `...` is spelt out, a mask becomes its true positions, and integers beside arrays
   become arrays without axes.
2. Slices and new axes give a view. The axes indexed by arrays are moved to the front, and merged.
3. Rows along the merged axis are taken, or put, on the device; only the positions come from the CPU.
4. The axes of the arrays' shape go to the place of the first array if the arrays are neighbours, else to the
   front.

Source: NumPy, "Advanced indexing".
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from zarrow import _zarrow
from zarrow._zarrow import DeviceTensor
from zarrow.arrays import swaps
from zarrow.device_tensor.methods import on_device_of
from zarrow.errors import ExchangeError, IndexingError


def part(tensor: Any, index: Any) -> Any:
    """Take a part."""
    rows = _rows(tensor, index, is_read=True)
    return _in_place(rows, rows.along._take(rows.positions)._reshape([*rows.shape, *rows.along.shape[1:]]))


def assign(tensor: Any, index: Any, value: Any) -> None:
    """Write a value to a part."""
    whole, tensor = tensor, tensor._on_device()
    if _is_basic(index):
        place = tensor[index]
        if place.size:
            values = on_device_of(tensor, _exchanged(whole, place, value))
            place._assign(_without_leading_ones(values, place.ndim))
        return
    swaps.forget()
    if tensor.readonly:
        raise ExchangeError("the memory is read-only", kind="read_only")
    rows = _rows(tensor, index, is_read=False)
    values = on_device_of(tensor, value)
    extents = rows.along.shape[1:] if rows.apart is None else rows.along.shape[len(rows.apart.arrays) :]
    shape = [*rows.shape, *extents]
    values = _without_leading_ones(values, len(shape))
    values = values._broadcast_to(_moved(shape, rows))
    first = list(range(rows.front, rows.front + len(rows.shape)))
    rest = [axis for axis in range(values.ndim) if axis not in first]
    values = values._transpose([*first, *rest]).reshape([len(rows.positions), *extents])
    if rows.apart is None:
        rows.along._put(rows.positions, values)
    elif values.size:
        # The values may be elements of the same memory.
        _put_apart(rows.apart, values._copy(False))


def _exchanged(tensor: Any, target: Any, value: Any) -> Any:
    """Return the elements to write; the value may be a part of the same memory (`zarrow.arrays.swaps`)."""
    is_part = isinstance(value, DeviceTensor) and value is not tensor
    if not is_part or tensor.readonly or not tensor._may_overlap(value):
        swaps.forget()
        return value
    return swaps.exchanged(_part(target), _part(value), value._assignments, target.copy)


def _part(tensor: Any) -> swaps.Part:
    return swaps.Part(tensor._address, tensor.shape, tensor.strides, tensor.dtype, tensor)


def _without_leading_ones(values: Any, count: int) -> Any:
    """Drop leading axes of one element until `count` axes are left, as NumPy does in assignments."""
    extra = values.ndim - count
    if extra > 0 and all(extent == 1 for extent in values.shape[:extra]):
        return values._reshape(list(values.shape[extra:]))
    return values


def _put_apart(apart: _Apart, values: Any) -> None:
    """Write rows if the axes of the arrays do not merge: for each position of the first axes, a row.

    Nothing else is written: other threads may write to the neighbouring elements.
    """
    np = _zarrow._import("numpy")
    *outer, last = (np.ravel(array) for array in apart.arrays)
    places = np.ravel_multi_index(outer, apart.view.shape[: len(outer)])
    order = np.argsort(places, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
        along = apart.view[tuple(int(array[chosen[0]]) for array in outer)]
        along._put(np.ascontiguousarray(last[chosen], np.int64), values._take(chosen))


class _Apart(NamedTuple):
    """Axes indexed by arrays, in front of a view, if strides do not allow them to merge."""

    view: Any
    # The positions along each of them, from 0.
    arrays: list[Any]


class _Rows(NamedTuple):
    """Rows along the first axis of `along`."""

    along: Any
    positions: Any
    # Shape of the index's arrays, and its first axis in the result.
    shape: tuple[int, ...]
    front: int
    # Set if the axes do not merge: reads use the copy in `along`, and writes go to the view itself.
    apart: _Apart | None


def _is_basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return all(
        item is None
        or item is ...
        or isinstance(item, slice)
        or (hasattr(item, "__index__") and not isinstance(item, bool) and not getattr(item, "shape", ()))
        for item in items
    )


def _rows(tensor: Any, index: Any, is_read: bool) -> _Rows:
    np = _zarrow._import("numpy")
    items, is_split = _whole(np, tensor, index)
    # Step 2: a view with all axes; axes indexed by arrays are whole.
    view = tensor[tuple(slice(None) if isinstance(item, np.ndarray) else item for item in items)]
    listed = [axis for axis, item in enumerate(items) if isinstance(item, np.ndarray)]
    try:
        arrays = np.broadcast_arrays(*(items[axis] for axis in listed))
    except ValueError as error:
        raise IndexingError(str(error)) from None
    extents = [view.shape[axis] for axis in listed]
    for axis, array, extent in zip(_axes(items, listed), arrays, extents, strict=True):
        outside = array[(array < -extent) | (array >= extent)]
        if outside.size:
            raise IndexingError(f"index {outside[0]} is out of bounds for axis {axis} with size {extent}")
    shape = arrays[0].shape
    wrapped = [
        np.where(array < 0, array + extent, array) for array, extent in zip(arrays, extents, strict=True)
    ]
    positions = np.ravel_multi_index(wrapped, extents) if math.prod(extents) else np.zeros(shape, np.int64)
    rest = [axis for axis in range(view.ndim) if axis not in listed]
    turned = view._transpose([*listed, *rest])
    lengths = [math.prod(extents), *(view.shape[axis] for axis in rest)]
    apart = None
    try:
        along = turned._reshape(lengths)
    except ExchangeError:
        apart = _Apart(turned, wrapped)
        along = turned._copy(False)._reshape(lengths) if is_read else turned
    is_run = not is_split and listed == list(range(listed[0], listed[0] + len(listed)))
    return _Rows(
        along,
        np.ascontiguousarray(positions.reshape(-1), np.int64),
        shape,
        listed[0] if is_run else 0,
        apart,
    )


def _axes(items: list[Any], listed: list[int]) -> list[int]:
    """Return the axes of the tensor at these places of a completed index; new axes do not count."""
    return [sum(item is not None for item in items[:place]) for place in listed]


def _whole(np: Any, tensor: Any, index: Any) -> tuple[list[Any], bool]:
    """Step 1. Also returns whether `...`, possibly of no axis, is between arrays."""
    _refuse_fields(index)
    items: list[Any] = []
    masks: list[tuple[int, tuple[int, ...]]] = []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is ... or isinstance(item, slice):
            items.append(item)
            continue
        array = np.asarray(item.cpu() if hasattr(item, "cpu") else item)
        if array.size == 0 and array.dtype.kind == "f":  # an empty list
            array = array.astype(np.int64)
        if array.dtype.kind == "b":
            if array.ndim == 0:
                raise IndexingError("True and False are not indices: a mask needs at least one axis")
            masks.append((len(items), array.shape))
            items.extend(np.nonzero(array))
        elif array.dtype.kind in "iu":
            items.append(array.astype(np.int64))
        else:
            raise IndexingError(
                f"cannot index by {type(item).__name__}: expected integers, slices, None, lists or masks"
            )
    given = sum(item is not None and item is not ... for item in items)
    missing = tensor.ndim - given
    if missing < 0:
        raise IndexingError(f"too many indices: the array has {tensor.ndim} axes, {given} were indexed")
    places = [number for number, item in enumerate(items) if item is ...]
    if len(places) > 1:
        raise IndexingError("an index has one `...` at most")
    at_end = places[0] if places else len(items)
    before, after = items[:at_end], items[at_end + 1 :]
    is_split = all(any(isinstance(item, np.ndarray) for item in side) for side in (before, after))
    whole = [*before, *[slice(None)] * missing, *after]
    for place, shape in masks:
        ahead = whole[: place if place <= at_end else place - 1 + missing]
        _check_mask(tensor, shape, sum(item is not None for item in ahead))
    return whole, is_split


def _refuse_fields(index: Any) -> None:
    """Refuse names, which take fields of structures in NumPy."""
    names = index if isinstance(index, list | tuple) else (index,)
    name = next((item for item in names if isinstance(item, str)), None)
    if name is not None:
        raise IndexingError(
            f"fields of structures are selected during the read: type array.read({name!r}, device=...), "
            f"or .cpu()[{name!r}] for a copy on the CPU"
        )


def _check_mask(tensor: Any, shape: tuple[int, ...], axis: int) -> None:
    """Refuse a mask that differs in shape from its axes, which begin at `axis`."""
    expected = tensor.shape[axis : axis + len(shape)]
    if expected != shape:
        raise IndexingError(f"a mask of shape {shape}, expected {expected}")


def _moved(shape: list[int], rows: _Rows) -> list[int]:
    """Return the shape of the result; `shape` has the axes of the arrays in front."""
    count = len(rows.shape)
    first, rest = shape[:count], shape[count:]
    return [*rest[: rows.front], *first, *rest[rows.front :]]


def _in_place(rows: _Rows, taken: Any) -> Any:
    """Step 4."""
    axes = list(range(taken.ndim))
    return taken._transpose(_moved(axes, rows)) if rows.front else taken
