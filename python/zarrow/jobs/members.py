"""Chooses the arrays of a group that the function of a plan computes or writes. An array is a group of one.

1. By default, these are all arrays but coordinates: an array with the name of its only dimension, and what
   the attributes `coordinates` and `grid_mapping` of CF name.
2. An append makes all arrays with a dimension longer, the dimension's coordinate last.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from zarrow._zarrow import Array, Group
from zarrow.errors import IndexingError, ShapeError
from zarrow.groups.places import refuse_read_only


def check_target(target: Any) -> None:
    """Refuse anything but an array or a group that can be written.

    Raises
    ------
    TypeError
        It is neither.
    ReadOnlyError
        It was opened with mode `"r"`, or its store is read-only.
    """
    if not isinstance(target, Array | Group):
        raise TypeError(
            f"expected an array or a group of a store as the target, got {type(target).__name__}: "
            "type zarrow.open(path, mode='r+')"
        )
    refuse_read_only(target)


def sources_of(sources: Any) -> tuple[Any, ...]:
    """Return arrays of one shape, or groups.

    Raises
    ------
    TypeError
        There is anything else, or both of them.
    ValueError
        The sequence is empty.
    ShapeError
        The arrays differ in shape.
    """
    nodes = (sources,) if isinstance(sources, Array | Group) else tuple(sources)
    if not nodes:
        raise ValueError("a plan reads at least one array, got none")
    for node in nodes:
        if not isinstance(node, Array | Group):
            raise TypeError(f"the sources of a plan are arrays of a store, got {type(node).__name__}")
        if isinstance(node, Array) != isinstance(nodes[0], Array):
            raise TypeError("the sources of a plan are arrays or groups, got both")
    return _same_shape(nodes) if isinstance(nodes[0], Array) else nodes


def members_of(node: Array | Group) -> tuple[dict[str, Array], dict[str, Group]]:
    """Return the arrays and groups below a node, by their paths; an array itself has the path ""."""
    nodes = {"": node, **(dict(node.members(max_depth=None)) if isinstance(node, Group) else {})}
    arrays = {path: found for path, found in nodes.items() if isinstance(found, Array)}
    return arrays, {path: found for path, found in nodes.items() if isinstance(found, Group)}


def chosen(
    arrays: Mapping[str, Array], groups: Mapping[str, Group], names: Sequence[str] | None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Divide arrays into those for the function and the others (step 1).

    Raises
    ------
    ValueError
        An array is missing.
    TypeError
        The names are one `str`.
    """
    if isinstance(names, str):
        raise TypeError(f"arrays is a list of names: pass arrays=[{names!r}]")
    if names is not None:
        wanted = {name.strip("/") for name in names}
        for name in sorted(wanted - arrays.keys()):
            known = ", ".join(sorted(arrays)) if groups else "no names: leave out arrays"
            raise ValueError(f"arrays has {name!r}, but the source has {known}")
    elif groups:
        wanted = arrays.keys() - _coordinates(arrays, groups)
    else:
        wanted = set(arrays)
    parts = (
        {path: array for path, array in arrays.items() if (path in wanted) is is_in}
        for is_in in (True, False)
    )
    first, second = parts
    return first, second


def together(others: Sequence[Any], wanted: Mapping[str, Array]) -> dict[str, tuple[Array, ...]]:
    """Join each array and its counterparts in the other sources: in groups, they have the same path.

    Raises
    ------
    ValueError
        A group has no such array.
    ShapeError
        The arrays differ in shape.
    """
    found = {}
    for path, array in wanted.items():
        same = [node.get(path) if isinstance(node, Group) else node for node in others]
        if not all(isinstance(each, Array) for each in same):
            raise ValueError(f"array {path!r} of the first source is missing in another one")
        found[path] = _same_shape((array, *same))
    return found


def growing(target: Array | Group, axis: int | str) -> dict[str, tuple[Array, int]]:
    """Return the arrays that an append makes longer, and the number of their axis (step 2).

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
            store=target.store,
            path=target.path,
        )
    return dict(sorted(found.items(), key=lambda item: _is_index(item[0], item[1][0])))


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
        raise ShapeError(f"the arrays have different extents along the dimension: {extents}", kind="shape")
    return start


def _axis_of(array: Array, axis: int | str) -> int:
    names = array.dimension_names or ()
    if isinstance(axis, str) and names.count(axis) > 1:
        raise ShapeError(
            f"array {array.path!r} in {array.store} has the dimension {axis!r} twice, and an append makes "
            "one axis longer: append to arrays alone, and pass the number of the axis",
            kind="shape",
            store=array.store,
            path=array.path,
        )
    if isinstance(axis, str) and axis in names:
        return names.index(axis)
    if isinstance(axis, str) or not -array.ndim <= axis < array.ndim:
        raise IndexingError(
            f"axis {axis!r} is out of bounds for an array with {array.ndim} axes"
            + (f", named {', '.join(map(str, names))}" if names else ""),
            kind="out_of_bounds",
            store=array.store,
            path=array.path,
        )
    return axis % array.ndim


def _same_shape(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    for array in arrays:
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"the sources of a plan have one shape, got {arrays[0].shape} and {array.shape}", kind="shape"
            )
    return arrays


def _coordinates(arrays: Mapping[str, Array], groups: Mapping[str, Group]) -> set[str]:
    """Return the paths of coordinates."""
    found = {path for path, array in arrays.items() if _is_index(path, array)}
    for above, given in [
        *((path, group.attrs) for path, group in groups.items()),
        *((path.rpartition("/")[0], array.attrs) for path, array in arrays.items()),
    ]:
        for name in ("coordinates", "grid_mapping"):
            text: Any = given.get(name)
            for each in text.split() if isinstance(text, str) else ():
                found.add(_named(each.rstrip(":"), above, arrays))
    return found


def _named(name: str, group: str, arrays: Mapping[str, Array]) -> str:
    """Return the path that a name of CF stands for: in a group, or else in the next one above that has it."""
    while True:
        path = posixpath.normpath(posixpath.join("/", group, name))[1:]
        if path in arrays or not group or "/" in name:
            return path
        group = posixpath.dirname(group)


def _is_index(path: str, array: Array) -> bool:
    """Return whether an array has the name of its only dimension."""
    return array.dimension_names == (path.rpartition("/")[2],)
