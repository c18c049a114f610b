"""Copying the metadata of all nodes below a group into the group's own.

1. The engine reads and copies the documents under the group's lock, in one call that reports nothing.
2. So `progress` counts the nodes first: they are listed group by group, and each group's members are read at
   once. The group's own document is the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrow._zarrow import Group, _members_or_errors, open
from zarrow.api.array_options import Store
from zarrow.api.creation import _require_group
from zarrow.api.progress import Progress, reporting
from zarrow.groups.descent import Way

_consolidate = Group.consolidate_metadata


def consolidate_metadata(
    store: Store,
    path: str = "",
    *,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | bool | None = None,
) -> Group:
    """Copy the metadata of everything below a group into the group's own, and open the group.

    Opening the group then takes one request for everything below it. zarrow updates the copies when it
    creates, changes or erases a node below the group, if the store was opened at the group or above it. Other
    programs may leave them stale; consolidate again to update them. In version 3 the copies are in the
    group's `zarr.json`, as in zarr-python, in version 2 in `.zmetadata`.

    Parameters
    ----------
    store, path, storage_options
        As for `open`.
    progress
        A function that is called with how many documents of nodes are read, and how many are known so far;
        or True for a bar in a terminal or a notebook. All nodes are then read once more, before the group is
        locked. The last call comes when the copies are stored. An exception in the function ends the call.

    Returns
    -------
    Group

    Raises
    ------
    UnsupportedError
        The store is a session of icechunk, which has no consolidated metadata; or a node below has another
        Zarr version than the group.
    NotFoundError, NodeTypeError, ReadOnlyError, StoreError
        As `open`.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.consolidate_metadata("data.zarr")
    >>> root["model/pressure"].shape
    (2, 2)
    """
    group = (
        store if isinstance(store, Group) and not path else open(store, path, storage_options=storage_options)
    )
    if not isinstance(group, Group):
        _require_group(group)
    group.consolidate_metadata(progress=progress)
    return group


def consolidate_group(self: Group, *, progress: Progress | bool | None = None) -> None:
    """Copy the metadata of everything below a group into the group's own."""
    with reporting(progress, "consolidate", "{} documents".format) as report:
        count = 0 if report is None else _read_members(self, report)
        _consolidate(self)
        if report is not None:
            report(count + 1, count + 1)


def _read_members(group: Group, report: Progress) -> int:
    """Read all nodes below a group, and return their number (step 2)."""
    count = 0
    waiting = [(group, Way().to(group))]
    while waiting:
        node, way = waiting.pop()
        members = [member for _, member in _members_or_errors(node._without_consolidated())]
        count += len(members)
        waiting += [(member, way.to(member)) for member in members if isinstance(member, Group)]
        report(count, count + len(waiting) + 1)
    return count
