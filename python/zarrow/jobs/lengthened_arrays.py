"""The arrays that an append makes longer: all with the dimension, and the dimension's coordinate last."""

from __future__ import annotations

from collections.abc import Mapping

from zarrow._zarrow import Array, Group
from zarrow.errors import IndexingError, ShapeError
from zarrow.jobs.data_variables import is_index
from zarrow.jobs.members import members_of


def growing(target: Array | Group, axis: int | str) -> dict[str, tuple[Array, int]]:
    """Return these arrays by their paths, and the number of their axis.

    Raises
    ------
    IndexingError
        There is no such axis.
    ShapeError
        An array has two axes of this name.
    TypeError
        The axis of a group has no name.
    """
    if isinstance(target, Array):
        return {"": (target, _axis_of(target, axis))}
    if not isinstance(axis, str):
        raise TypeError(
            f'axis={axis!r} is for arrays: of a group, pass the name of a dimension, such as "time"'
        )
    arrays, _ = members_of(target)
    found = {
        path: (array, _axis_of(array, axis))
        for path, array in arrays.items()
        if axis in (array.dimension_names or ())
    }
    if not found:
        raise IndexingError(
            f"no array below group {target.path!r} in {target.store} has a dimension {axis!r}",
            kind="out_of_bounds",
            node=target,
        )
    return dict(sorted(found.items(), key=lambda item: is_index(item[0], item[1][0])))


def common_extent(arrays: Mapping[str, tuple[Array, int]], count: int) -> int:
    """Return the extent of arrays along their axes, before an append of `count` elements.

    If some arrays have the new elements already, `finish` was interrupted, and the same plan does the rest.

    Raises
    ------
    ShapeError
        They have different extents.
    """
    extents = {path: array.shape[axis] for path, (array, axis) in arrays.items()}
    start = min(extents.values())
    if not {start, start + count}.issuperset(extents.values()):
        raise ShapeError(f"the arrays have different extents along the dimension: {extents}")
    return start


def _axis_of(array: Array, axis: int | str) -> int:
    names = array.dimension_names or ()
    if isinstance(axis, str) and names.count(axis) > 1:
        raise ShapeError(
            f"array {array.path!r} in {array.store} has the dimension {axis!r} twice, and an append makes "
            "one axis longer: append to arrays alone, and pass the number of the axis",
            node=array,
        )
    if isinstance(axis, str) and axis in names:
        return names.index(axis)
    if isinstance(axis, str) or not -array.ndim <= axis < array.ndim:
        raise IndexingError(
            f"axis {axis!r} is out of bounds for an array with {array.ndim} axes"
            + (f", named {', '.join(map(str, names))}" if names else ""),
            kind="out_of_bounds",
            node=array,
        )
    return axis % array.ndim
