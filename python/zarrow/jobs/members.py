"""The arrays of the groups that a plan reads and writes. An array is a group of one.

The function of a plan computes the data variables (`data_variables.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zarrow._zarrow import Array, Group
from zarrow.errors import ShapeError
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


def _same_shape(arrays: tuple[Array, ...]) -> tuple[Array, ...]:
    for array in arrays:
        if array.shape != arrays[0].shape:
            raise ShapeError(f"the sources of a plan have one shape, got {arrays[0].shape} and {array.shape}")
    return arrays
