"""Batches of zarr-python as selections of the engine.

An entry of a batch names a chunk, the part of the chunk, and its place in the result.

1. The indexers of zarr-python give one part for each chunk. Chunks that share a position along an axis
   share their part of this axis. Such a batch is one selection: slices, or a list of positions for each axis.
2. Points are one list of positions for all axes.
3. Any other batch of slices and integers, such as many runs of one chunk, is a selection for each entry.
4. A mask along an axis stands for the list of its true positions.

Places of a batch in the result are slices. The engine checks that they are disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrow.zarr_python.fallback import FallbackError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zarrow.zarr_python.chunks import Chunks

# A chunk's place in the grid, the chosen part, and the place in the result.
_Entry = tuple[tuple[int, ...], Any, Any]

_WHOLE = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Selections of an array, and the places of their elements in the result."""

    kind: str
    parts: list[tuple[Any, Any]]
    # An extent of the array along each axis that contains all parts.
    stops: tuple[int, ...]

    def memory(self, result: np.ndarray[Any, Any]) -> list[tuple[Any, np.ndarray[Any, Any]]]:
        """Return each selection and its part of the result."""
        # With an ellipsis, NumPy gives a view even for one element.
        return [(index, result[(*place, ...)]) for index, place in self.parts]


def plan(
    chunks: Chunks, entries: Sequence[_Entry], drop_axes: tuple[int, ...], shape: tuple[int, ...]
) -> Plan:
    """Return the selections of a batch, for a result of this shape.

    Raises
    ------
    FallbackError
        The batch has another form.
    """
    if not isinstance(entries[0][2], tuple):
        return _points(chunks, entries, shape)
    if len(entries) == 1:
        found = _one(chunks, entries[0], drop_axes, shape)
        if found is not None:
            return found
    first = _part(entries[0])
    result_axis: list[int | None] = []
    for axis, item in enumerate(first):
        is_dropped = axis in drop_axes or isinstance(item, int | np.integer)
        result_axis.append(None if is_dropped else sum(other is not None for other in result_axis))
    if sum(axis is not None for axis in result_axis) != len(shape):
        raise FallbackError("the result has axes that the array lacks")
    found = _product(chunks, entries, result_axis, shape)
    return _each(chunks, entries, result_axis) if found is None else found


def _one(chunks: Chunks, entry: _Entry, drop_axes: tuple[int, ...], shape: tuple[int, ...]) -> Plan | None:
    """Return the selection of one chunk's part by slices and integers; None for others.

    Most small reads have this form, which the steps for all forms would take longer than the read itself.
    """
    position, part, place = entry
    if drop_axes or type(part) is not tuple or len(place) != len(shape):
        return None
    index: list[slice | int] = []
    stops = []
    for axis, item in enumerate(part):
        start = chunks.start(axis, position[axis])
        if type(item) is slice:
            begin, end, step = item.indices(chunks.extent(axis, position[axis]))
            if step < 1 or begin >= end:
                return None
            index.append(slice(start + begin, start + end, step))
            stops.append(start + end)
        elif type(item) is int:
            index.append(start + item)
            stops.append(start + item + 1)
        else:
            return None
    return Plan("basic", [(tuple(index), place)], tuple(stops))


def without_masks(part: Any) -> Any:
    """Return a part of a chunk with lists of positions in place of masks (step 4)."""
    if isinstance(part, tuple):
        if len(part) == 1 and type(part[0]) is slice:
            return part
        return tuple(map(without_masks, part)) if any(map(_is_mask, part)) else part
    return np.flatnonzero(part) if _is_mask(part) else part


def _is_mask(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype == bool


def _part(entry: _Entry) -> tuple[Any, ...]:
    return entry[1] if isinstance(entry[1], tuple) else (entry[1],)


def _product(
    chunks: Chunks,
    entries: Sequence[_Entry],
    result_axis: list[int | None],
    shape: tuple[int, ...],
) -> Plan | None:
    """Step 1; None for a batch of another form."""
    axes: list[dict[int, tuple[Any, Any]]] = [{} for _ in result_axis]
    for entry in entries:
        position, place = entry[0], entry[2]
        part = _part(entry)
        for axis, (number, item) in enumerate(zip(position, part, strict=True)):
            own = result_axis[axis]
            where = None if own is None else place[own]
            known = axes[axis].setdefault(number, (item, where))
            # The indexers repeat the same objects.
            if (known[0] is not item and not _same(known[0], item)) or (
                known[1] is not where and not _same(known[1], where)
            ):
                return None
    count = len(entries)
    if prod(map(len, axes)) != count or (count > 1 and len({entry[0] for entry in entries}) != count):
        return None
    index, places, is_basic = [], [], True
    for axis, own in enumerate(result_axis):
        extent = None if own is None else shape[own]
        selected = _axis(chunks, axis, axes[axis], extent)
        if selected is None:
            return None
        index.append(selected[0])
        is_basic &= not isinstance(selected[0], np.ndarray)
        if own is not None:
            places.append(selected[1])
    stops = tuple(_stop(item) for item in index)
    return Plan("basic" if is_basic else "orthogonal", [(tuple(index), tuple(places))], stops)


def _same(one: Any, other: Any) -> bool:
    """Whether two parts of an axis are equal."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _axis(
    chunks: Chunks, axis: int, parts: dict[int, tuple[Any, Any]], extent: int | None
) -> tuple[Any, Any] | None:
    """Return the selection along an axis and its place in the result; None if it is not one selection."""
    numbers = sorted(parts)
    if extent is None:
        if len(numbers) != 1:
            return None
        item = np.ravel(parts[numbers[0]][0])
        return (chunks.start(axis, numbers[0]) + int(item[0]), None) if item.size == 1 else None
    if all(isinstance(item, slice) and isinstance(where, slice) for item, where in parts.values()):
        run = _run(chunks, axis, numbers, parts, extent)
        if run is not None:
            return run
    positions = np.full(extent, -1, np.intp)
    count = 0
    for number in numbers:
        item, where = parts[number]
        if isinstance(item, slice):
            item = np.arange(*item.indices(chunks.extent(axis, number)))
        item = np.ravel(item)
        count += item.size
        where = where if isinstance(where, slice) else np.ravel(where)
        positions[where] = item + chunks.start(axis, number)
    # Each position of the result is given once.
    if count != extent or (positions < 0).any():
        return None
    return positions, _WHOLE


def _run(
    chunks: Chunks, axis: int, numbers: list[int], parts: dict[int, tuple[Any, Any]], extent: int
) -> tuple[slice, slice] | None:
    """Return evenly spaced positions as one slice, and their contiguous place; None for others."""
    first, last, step, begin, end = 0, 0, 1, 0, -1
    for number in numbers:
        item, where = parts[number]
        start, stop, own = item.indices(chunks.extent(axis, number))
        place, place_end, place_step = where.indices(extent)
        count = len(range(start, stop, own))
        if own < 1 or place_step != 1 or count != place_end - place or count == 0:
            return None
        start += chunks.start(axis, number)
        if end < 0:
            first, step, begin = start, own, place
        elif place != end or own != step or start != last + step:
            return None
        last, end = start + (count - 1) * own, place_end
    return slice(first, last + 1, step), slice(begin, end)


def _each(chunks: Chunks, entries: Sequence[_Entry], result_axis: list[int | None]) -> Plan:
    """Step 3."""
    parts: list[tuple[Any, Any]] = []
    stops = [0] * len(result_axis)
    # The chunk of the last entry along each axis: many runs of one chunk follow each other.
    numbers: list[int | None] = [None] * len(result_axis)
    starts, extents = [0] * len(result_axis), [0] * len(result_axis)
    for entry in entries:
        index: list[Any] = []
        for axis, (number, item) in enumerate(zip(entry[0], _part(entry), strict=True)):
            if number != numbers[axis]:
                numbers[axis] = number
                starts[axis], extents[axis] = chunks.start(axis, number), chunks.extent(axis, number)
            selected: Any
            if isinstance(item, slice) and result_axis[axis] is not None:
                begin, stop, step = item.indices(extents[axis])
                if step < 1:
                    raise FallbackError("a slice with a negative step")
                stop += starts[axis]
                selected = slice(begin + starts[axis], stop, step)
            elif isinstance(item, int | np.integer) and result_axis[axis] is None:
                selected = starts[axis] + int(item)
                stop = selected + 1
            else:
                raise FallbackError("a selection by lists that is not the same for all chunks")
            index.append(selected)
            if stop > stops[axis]:
                stops[axis] = stop
        parts.append((tuple(index), entry[2]))
    return Plan("basic", parts, tuple(stops))


def _points(chunks: Chunks, entries: Sequence[_Entry], shape: tuple[int, ...]) -> Plan:
    """Step 2."""
    if len(shape) != 1:
        raise FallbackError("points in a result of several axes")
    axes = [np.full(shape[0], -1, np.intp) for _ in entries[0][0]]
    count = 0
    for position, items, where in entries:
        sizes = set()
        for axis, (number, item) in enumerate(zip(position, items, strict=True)):
            if not isinstance(item, np.ndarray) or item.ndim != 1:
                raise FallbackError("points that are not given by lists of integers")
            axes[axis][where] = item + chunks.start(axis, number)
            sizes.add(item.size)
        count += max(sizes, default=0)
    if not axes or count != shape[0] or any((positions < 0).any() for positions in axes):
        raise FallbackError("points that do not fill the result")
    return Plan("vectorized", [(tuple(axes), (_WHOLE,))], tuple(_stop(positions) for positions in axes))


def _stop(selected: Any) -> int:
    """Return the end of the selection along an axis."""
    if isinstance(selected, slice):
        return int(selected.stop)
    return int(selected.max()) + 1 if isinstance(selected, np.ndarray) else int(selected) + 1


def repeats(found: Plan) -> bool:
    """Whether a selection by lists may select a position twice."""
    if found.kind == "basic":
        return False
    lists = [item for item in found.parts[0][0] if isinstance(item, np.ndarray)]
    if found.kind == "orthogonal":
        return any(np.unique(positions).size != positions.size for positions in lists)
    return bool(np.unique(np.stack(lists), axis=1).shape[1] != lists[0].size)
