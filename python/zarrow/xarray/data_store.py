"""A group of a store as xarray's `AbstractDataStore`, for reading.

1. If the metadata are consolidated, they are one document: nothing is listed. Otherwise each level of the
   hierarchy is listed and opened at once.
2. A member that cannot be opened is an error, unless it is among `drop_variables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import xarray
from xarray.backends.common import AbstractDataStore
from xarray.core.utils import FrozenDict

from zarrow import Array, Group, open
from zarrow._zarrow import _members_or_errors
from zarrow.errors import NodeTypeError
from zarrow.groups.descent import Way
from zarrow.hints.calling_line import warn
from zarrow.store_objects.icechunk_sessions import session_of
from zarrow.xarray.first_reads import FirstReads
from zarrow.xarray.variables import variable_of

# Groups that are listed at once.
_THREADS = 64


class ZarrowStore(AbstractDataStore):
    """A group that is open for reading."""

    def __init__(
        self,
        group: Group,
        members: Mapping[str, Any],
        *,
        drop_variables: str | Iterable[str] | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        prefers_shards: bool = True,
        first_reads: FirstReads | None = None,
    ) -> None:
        dropped = [drop_variables] if isinstance(drop_variables, str) else drop_variables
        self._group = group
        self._members = members
        self._dropped = frozenset(dropped or ())
        self._is_v3 = group.zarr_format == 3
        self._fill_value_is_mask = use_zarr_fill_value_as_mask
        if use_zarr_fill_value_as_mask is None:
            self._fill_value_is_mask = not self._is_v3
        self._prefers_shards = prefers_shards
        self.first_reads = first_reads or FirstReads()
        self._variables: dict[str, xarray.Variable] | None = None

    @property
    def group(self) -> Group:
        """The group in the store."""
        return self._group

    def get_variables(self) -> Any:
        """Return the variables of the group by name."""
        if self._variables is None:
            self._variables = self._make_variables()
        return FrozenDict(self._variables)

    def _make_variables(self) -> dict[str, xarray.Variable]:
        found: dict[str, xarray.Variable] = {}
        for name, member in self._members.items():
            if name in self._dropped:
                continue
            if isinstance(member, Exception):
                raise member
            if isinstance(member, Array):
                found[name] = variable_of(
                    member,
                    is_v3=self._is_v3,
                    fill_value_is_mask=bool(self._fill_value_is_mask),
                    prefers_shards=self._prefers_shards,
                    first_reads=self.first_reads,
                )
        return found

    def get_attrs(self) -> Any:
        """Return the attributes of the dataset."""
        attributes = self._group._attributes()
        return {name: value for name, value in attributes.items() if not name.lower().startswith("_nc")}

    def get_dimensions(self) -> Any:
        """Return the size of each dimension."""
        sizes: dict[Any, int] = {}
        for variable in self.get_variables().values():
            sizes.update(variable.sizes)
        return sizes


def is_place_of_zarr(store: Any) -> bool:
    """Return whether an object of zarr-python stands for a store and a path in it."""
    kind = type(store)
    return kind.__module__.startswith("zarr.") and kind.__name__ in ("Group", "StorePath")


def open_group(
    store: Any,
    group: str | None,
    *,
    mode: str,
    consolidated: bool | None,
    storage_options: Mapping[str, Any] | None,
    zarr_format: int | None,
) -> Group:
    """Open the group of a dataset, by the root's consolidated metadata if possible (step 1).

    An opened group of zarrow is not opened again, but refreshed: its arrays are listed anew, and its
    attributes name the coordinates. A group or `StorePath` of zarr-python stands for its store and path.
    """
    path = (group or "").strip("/")
    if isinstance(store, Array | Group):
        above = _expect_group(store)
        above.refresh()
        return _expect_group(above[path] if path else above)
    if is_place_of_zarr(store):
        path = "/".join(filter(None, (store.path, path)))
        store = store.store
    options: dict[str, Any] = {
        "mode": mode,
        "storage_options": storage_options or None,
        "zarr_format": zarr_format,
    }
    session = session_of(store)
    if not getattr(store if session is None else session.store, "supports_consolidated_metadata", True):
        consolidated = False
    if consolidated is False:
        found = open(store, path, **options)
        return _expect_group(found)._without_consolidated()
    root = _expect_group(open(store, **options))
    if not root._is_consolidated():
        if consolidated:
            raise ValueError(
                f"the metadata of {root.store} are not consolidated: leave consolidated out, or call "
                "zarrow.consolidate_metadata(store)"
            )
        warn(
            "Failed to open Zarr store with consolidated metadata, but successfully read with "
            "non-consolidated metadata: to silence this warning, call zarrow.consolidate_metadata(store), or "
            "pass consolidated=False",
            RuntimeWarning,
        )
    return _expect_group(root[path]) if path else root


def _expect_group(node: Any) -> Group:
    if not isinstance(node, Group):
        raise NodeTypeError(
            f"{node.path!r} is an array, expected a group: pass group= with the path of its group, or read "
            "it by zarrow.open",
            node=node,
        )
    return node


def members(group: Group) -> dict[str, Any]:
    """Return the members of a group by name, with an exception in place of an unreadable one."""
    return dict(_members_or_errors(group))


def groups_below(group: Group) -> dict[str, tuple[Group, dict[str, Any]]]:
    """Return a group and all groups below it, each with its members, by path: `"/"`, `"/a"`, `"/a/b"`."""
    found = {"/": (group, members(group))}
    level = dict(found)
    ways = {"/": Way().to(group)}
    # Folders and consolidated metadata are listed faster in one thread.
    waits = group._is_remote() and not group._is_consolidated()
    with ThreadPoolExecutor(_THREADS if waits else 1) as threads:
        while level:
            below = {
                f"{path.rstrip('/')}/{name}": member
                for path, (_, listed) in level.items()
                for name, member in listed.items()
                if isinstance(member, Group)
            }
            ways = {path: ways[path.rpartition("/")[0] or "/"].to(member) for path, member in below.items()}
            listed_below = threads.map(members, below.values()) if waits else map(members, below.values())
            level = dict(zip(below, zip(below.values(), listed_below, strict=True), strict=True))
            found.update(level)
    # Depth first, as xarray's own engine orders them.
    return {path: found[path] for path in sorted(found, key=lambda path: path.split("/"))}
