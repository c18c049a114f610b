"""Copies arrays and groups, within a store or between stores.

1. An array keeps its elements, data type, chunks, shards, codecs, fill value, axis names and attributes, but
   gets the format version of the target group; `labels` converts its names and attributes.
2. It is read part by part, and replaces an existing array in one step.
3. A group keeps its attributes and members. All members are listed before the first is written, so that a
   group can be copied into itself.
4. A member that cannot be opened is an error before anything is written, since its original may be erased
   after the copy. A member that another program erases at the same time is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from zarrow._zarrow import Array, Group, _members_or_errors
from zarrow.api.array_options import Store
from zarrow.api.creation import _create, layout_of
from zarrow.errors import NotFoundError
from zarrow.groups.descent import nodes_below


def copy_array(array: Array, target: Store | Group, path: str, zarr_format: int) -> None:
    """Copy an array to a path of a store or a group (steps 1 and 2).

    Raises
    ------
    NodeExistsError
        There is a group.
    """
    layout = layout_of(array, zarr_format)
    _create(target, path, "none", {"zarr_format": zarr_format}, data=array, overwrite="array", **layout)


def copy_group(group: Group, target: Group, path: str) -> None:
    """Copy everything below a group into the group at a path, which keeps its other members (steps 3, 4)."""
    below = list(nodes_below(group, members=_members))
    copy = target.require_group(path) if path else target
    copy.attrs.update(group.attrs)
    for name, member in below:
        if isinstance(member, Array):
            copy_array(member, copy, name, copy.zarr_format)
        else:
            copy.require_group(name).attrs.update(member.attrs)


def _members(group: Group) -> Iterator[tuple[str, Array | Group]]:
    """Yield the members of a group, without those erased since it was listed (step 4)."""
    for name, member in _members_or_errors(group):
        if isinstance(member, Array | Group):
            yield name, member
        elif not isinstance(member, NotFoundError):
            raise member
