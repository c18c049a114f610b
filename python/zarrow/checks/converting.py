"""Converts a store of version 2 to version 3 in place: documents are written, and chunks stay.

1. All documents of version 3 are made in memory, from the documents of version 2. If one of the nodes
   cannot be converted, nothing is written.
2. Documents are written from the deepest nodes to the root. Until that of the root is written, the store
   opens as version 2, and then as version 3. After a kill, another call writes the rest.
3. Documents of version 2 are removed from the root to the deepest nodes, when all of version 3 are stored.
4. Codecs, chunks and their keys stay the same. Names of dimensions, and the fill value of xarray, move to
   their places in version 3 (`labels`). A null fill value becomes that of `create_array`.
5. Links are followed within the store only: another store may have writers that this conversion would break.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from zarrow._zarrow import Array, Group, MemoryStore, _StoredValues, open
from zarrow.api.array_options import Store
from zarrow.api.creation import _create_described, create_group, layout_of
from zarrow.api.progress import Progress, reporting
from zarrow.checks.nodes import one_line
from zarrow.checks.verified import Corrupt
from zarrow.checks.verifying import walk
from zarrow.errors import ZarrowError
from zarrow.groups.places import is_within, joined, place
from zarrow.interchange import labels
from zarrow.jobs.raw import documents_of

_OF_NODES = (".zarray", ".zgroup")
_VERSION_2 = (*_OF_NODES, ".zattrs", ".zmetadata")
_VERSION_3 = "zarr.json"


@dataclass(slots=True)
class Converted:
    """Result of `convert`. With `dry_run`, it lists the same changes, but none was made.

    Attributes
    ----------
    written : list of str
        Nodes that got a document of version 3, in the order of writing.
    unchanged : list of str
        Nodes that had one already.
    removed : list of str
        Keys of version 2 that were removed.
    refused : dict of str to str
        Nodes that cannot be converted, with reasons. If there is one, nothing was changed.
    dry_run : bool
        Whether nothing was changed.
    """

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every node can be converted."""
        return not self.refused

    def __str__(self) -> str:
        if self.refused:
            lines = [f"{len(self.refused)} nodes cannot be converted, so nothing was changed"]
            lines += [
                f"  {one_line(path) or '/'}: {one_line(reason)}" for path, reason in self.refused.items()
            ]
            return "\n".join(lines)
        would = "would be " if self.dry_run else ""
        text = f"{len(self.written)} nodes {would}converted, {len(self.unchanged)} were already version 3"
        return f"{text}, {len(self.removed)} keys of version 2 {would}removed"


def convert(
    store: Store, *, remove_v2: bool = False, dry_run: bool = False, progress: Progress | bool | None = None
) -> Converted:
    """Convert a store from version 2 to version 3 in place, without touching chunks.

    Stop other writers of the store first. After a kill, the store opens as version 2 or as version 3, and
    another call does the rest. Consolidated metadata are kept, in the form of version 3.

    Parameters
    ----------
    store
        The store, as `open` takes it.
    remove_v2
        Also remove the documents of version 2. Otherwise they stay, and become stale with the next change.
    dry_run
        Change nothing, and return what would be changed.
    progress
        Called with the number of documents that were written or removed, and of all; or True for a bar in a
        terminal or a notebook.

    Returns
    -------
    Converted
        The converted nodes and the removed keys; if a node cannot be converted, only the reasons.

    Raises
    ------
    NotFoundError, MetadataError, StoreError
        The store cannot be opened.
    ReadOnlyError
        The store cannot be written.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks import convert
    >>> _ = zarrow.create_array("old.zarr", "x", data=[1.5, 2.5], zarr_format=2)
    >>> print(convert("old.zarr", remove_v2=True))
    2 nodes converted, 0 were already version 3, 2 keys of version 2 removed
    >>> zarrow.open("old.zarr")["x"].zarr_format
    3
    """
    with reporting(progress, "convert", "{} documents".format) as report:
        return _convert(store, remove_v2, dry_run, report)


def _convert(store: Store, remove_v2: bool, dry_run: bool, progress: Progress | None) -> Converted:
    converted = Converted(dry_run=dry_run)
    root = open(store, mode="r" if dry_run else "r+")
    location, above = root.__reduce__()[1][:2]
    values = _StoredValues(location, create=False)
    corrupt: list[Corrupt] = []
    paths = [path for path, _ in walk(root, corrupt)]
    converted.refused = {each.path: each.error for each in corrupt}
    converted.refused.update(_links_to_others(location, above, paths))
    found = [documents_of(values, joined(above, path)) for path in paths]
    stored = dict(zip(paths, found, strict=True))
    made: dict[str, bytes] = {}
    if root.zarr_format == 2 and not converted.refused:
        made = _converted(stored, converted.refused)
    if root.zarr_format == 3:
        for path in paths:
            if _VERSION_3 not in stored[path]:
                converted.refused[path] = "has version 2 below a group of version 3: convert it by itself"
    if remove_v2 and (parent := _group_above(location, above)) is not None:
        converted.refused[""] = f"the group above it, {parent}, has version 2 and would lose it: convert that"
    if converted.refused:
        return converted
    written = [path for path in reversed(paths) if path in made]
    for path in paths:
        if path not in written and _VERSION_3 in stored[path]:
            converted.unchanged.append(path)
    keys = []
    if remove_v2:
        for path in paths:
            if path in made or _VERSION_3 in stored[path]:
                keys += [joined(path, name) for name in _VERSION_2 if name in stored[path]]
    total = len(written) + len(keys)
    for number, path in enumerate(written):
        if not dry_run:
            values.set(joined(above, path, _VERSION_3), made[path])
        converted.written.append(path)
        if progress is not None:
            progress(number + 1, total)
    for number, key in enumerate(keys):
        if not dry_run:
            values.erase(joined(above, key))
        converted.removed.append(key)
        if progress is not None:
            progress(len(written) + number + 1, total)
    return converted


def _links_to_others(location: Any, above: str, paths: list[str]) -> dict[str, str]:
    """Return the nodes that links place outside the store, with reasons to refuse them (step 5)."""
    root = place(location, above)
    refused = {}
    for path in paths:
        there = place(location, joined(above, path))
        if there is not None and not is_within(there, root):
            refused[path] = f"a link leads out of the store, to {there}: convert that by itself"
    return refused


def _converted(stored: dict[str, dict[str, bytes]], refused: dict[str, str]) -> dict[str, bytes]:
    """Return the documents to write, by the paths of their nodes; enter nodes that cannot be converted."""
    old, new = MemoryStore(), MemoryStore()
    before, after = (_StoredValues(store, create=True) for store in (old, new))
    converted = [path for path, documents in stored.items() if any(name in documents for name in _OF_NODES)]
    for path, documents in stored.items():
        for name, document in documents.items():
            if name in _VERSION_2 and name != ".zmetadata":
                before.set(joined(path, name), document)
    for path in converted:
        try:
            _convert_node(open(old, path, mode="r"), new, path)
        except (ZarrowError, TypeError, ValueError) as error:
            refused[path] = str(error)
    if refused:
        return {}
    for path in stored.keys() - set(converted):
        # Consolidated metadata include the nodes of version 3.
        after.set(joined(path, _VERSION_3), stored[path][_VERSION_3])
    for path in reversed(converted):
        if ".zmetadata" in stored[path]:
            open(new, path).consolidate_metadata()
    documents_made = after.get_each([joined(path, _VERSION_3) for path in converted])
    to_write: dict[str, bytes] = {}
    for path, made in zip(converted, documents_made, strict=True):
        existing = stored[path].get(_VERSION_3)
        if existing is None and made is not None:
            to_write[path] = made
        elif existing != made and not _is_equal(existing or b"", made or b""):
            refused[path] = (
                "zarr.json differs from the metadata of version 2 beside it: remove the stale one, "
                "zarr.json or .zarray, .zgroup and .zattrs"
            )
    return to_write


def _is_equal(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def _convert_node(node: Array | Group, new: MemoryStore, path: str) -> None:
    """Create a node of version 3 (step 4)."""
    if isinstance(node, Group):
        create_group(new, path, attributes=node.attrs.asdict())
        return
    options: dict[str, Any] = labels.taken(node, 3, layout_of(node, 2))
    array = _create_described(new, path, "none", {"zarr_format": 3}, shape=node.shape, **options)
    if (array.chunks, array.shards, array.data_type) != (node.chunks, None, node.data_type):
        raise ValueError(f"version 3 stores it with chunks {array.chunks} and type {array.data_type}")
    names = [[codec["name"] for codec in each.metadata["codecs"]] for each in (node, array)]
    if names[0] != names[1]:
        raise ValueError(f"version 3 stores it with codecs {names[1]}, and not {names[0]}")


def _group_above(location: Any, path: str) -> str | None:
    """Return the store of a group of version 2 above a node."""
    above = location.rstrip("/").rpartition("/")[0] if isinstance(location, str) and not path else None
    if path:
        above, parent = location, path.rpartition("/")[0]
    else:
        parent = ""
    if not above:
        return None
    try:
        group = open(above, parent, mode="r")
    except (ZarrowError, OSError, ValueError):
        return None
    return group.store if isinstance(group, Group) and group.zarr_format == 2 else None
