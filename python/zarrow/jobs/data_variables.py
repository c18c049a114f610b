"""Tells the data variables of a group from coordinates.

Coordinates are an array with the name of its only dimension, and what the attributes `coordinates` and
`grid_mapping` of CF name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from zarrow._zarrow import Array, Group


def chosen(
    arrays: Mapping[str, Array], groups: Mapping[str, Group], names: Sequence[str] | None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the data variables, or the named arrays, and all others.

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


def _coordinates(arrays: Mapping[str, Array], groups: Mapping[str, Group]) -> set[str]:
    """Return the paths of coordinates."""
    found = {path for path, array in arrays.items() if is_index(path, array)}
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


def is_index(path: str, array: Array) -> bool:
    """Return whether an array has the name of its only dimension."""
    return array.dimension_names == (path.rpartition("/")[2],)
