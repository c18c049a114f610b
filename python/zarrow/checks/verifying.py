"""Checks a store: counts the stored chunks, finds foreign files, and decodes the elements.

1. The keys of a store are listed once, level by level. Keys of nodes and of chunks in the grid are known, and
   so are folders on the way to them. Any other key is foreign.
2. Consolidated metadata are compared with the documents of the nodes, if all of these can be read. Different
   members or metadata are outdated.
3. The index of each stored shard says which of its inner chunks are stored.
4. Arrays with checksums are read, and with `deep` all arrays, in parts of whole chunks. This also checks
   lengths and indexes of shards. If a part fails, its chunks are read one by one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from zarrow._zarrow import Array, Group, _StoredValues
from zarrow.api import at_once
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress, reporting
from zarrow.arrays.chunk_grid import grid_of, stored_chunks
from zarrow.checks.nodes import chunks_in, nbytes_of, one_line, opened, parts
from zarrow.errors import LimitError, MetadataError, NotFoundError, OutOfMemoryError, ZarrowError
from zarrow.groups.descent import Way

DOCUMENTS = frozenset(("zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata"))


_CHECKSUMS = frozenset(("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"))


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A node or chunk that cannot be read.

    Attributes
    ----------
    path : str
        The path of the node, below the node given to `verify`.
    chunk : tuple of int or None
        The chunk's place in the grid, for a chunk in a shard that of the inner chunk; None for metadata. A
        shard whose index cannot be read has the place of its first inner chunk, unless the array is read.
    error : str
        The message of the error.
    kind : str
        The error's `kind`, such as `"checksum"`.
    """

    path: str
    chunk: tuple[int, ...] | None
    error: str
    kind: str


# Kinds of errors that say nothing of the stored bytes.
_NOT_OF_BYTES = frozenset(("out_of_memory", "io", "permission"))


@dataclass(slots=True)
class Verified:
    """What `verify` found.

    Attributes
    ----------
    arrays, groups : int
        Nodes that were opened.
    stored, missing : int
        Numbers of chunks, or of shards. Missing ones read as fill values.
    inner_stored, inner_missing : int
        Numbers of inner chunks of the stored shards, as far as their indexes could be read. Shards of unequal
        shapes, and shards that were compressed as a whole, are not counted.
    corrupt : list of Corrupt
        Chunks and metadata whose bytes are wrong.
    outdated : list of Corrupt
        Groups with consolidated metadata that differ from the nodes below.
    unread : list of Corrupt
        What could not be read for another reason, such as memory, a permission or the network.
    foreign : list of str
        Keys in the store that belong to no node: files, or folders with everything in them.
    """

    arrays: int = 0
    groups: int = 0
    stored: int = 0
    missing: int = 0
    inner_stored: int = 0
    inner_missing: int = 0
    corrupt: list[Corrupt] = field(default_factory=list)
    outdated: list[Corrupt] = field(default_factory=list)
    unread: list[Corrupt] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether all that was checked can be read, and consolidated metadata are up to date."""
        return not self.corrupt and not self.outdated and not self.unread

    def __str__(self) -> str:
        lines = [
            f"{self.arrays} arrays and {self.groups} groups: {self.stored} chunks stored, "
            f"{self.missing} missing, {len(self.corrupt)} corrupt, {len(self.foreign)} foreign keys"
            + (f", {self.inner_stored} inner chunks stored" if self.inner_stored else "")
            + (f", {self.inner_missing} missing" if self.inner_missing else "")
            + (f", {len(self.outdated)} outdated" if self.outdated else "")
            + (f", {len(self.unread)} not read" if self.unread else "")
        ]
        for word, faults in (
            ("corrupt", self.corrupt),
            ("outdated", self.outdated),
            ("not read", self.unread),
        ):
            for each in faults:
                place = "" if each.chunk is None else f" chunk {each.chunk}"
                lines.append(f"  {word:8} {one_line(each.path) or '/'}{place}: {one_line(each.error)}")
        lines += [f"  foreign  {one_line(key)}" for key in self.foreign]
        return "\n".join(lines)


def verify(
    node: Array | Group | Store, *, deep: bool = False, progress: Progress | bool | None = None
) -> Verified:
    """Check an array, or a group with everything below it.

    Parameters
    ----------
    node
        An opened array or group, or a store as `open` takes it.
    deep
        Read the elements of all arrays, which checks lengths and indexes of shards. By default only arrays
        whose codecs have checksums are read.
    progress
        Called with the bytes of elements that were read, and of all that are to be read; or True for a bar in
        a terminal or a notebook.

    Returns
    -------
    Verified
        Counts, corrupt chunks and foreign keys. A missing chunk is no error: it reads as fill values. If the
        metadata of a store's own node are broken, they are all that is checked.

    Raises
    ------
    NotFoundError, StoreError
        The node does not exist, or the store cannot be read.
    UnsupportedError
        The store cannot list its keys.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks import verify
    >>> zarrow.save("heights.zarr", [1.5, 2.5])
    >>> with open("heights.zarr/c/0", "r+b") as chunk:
    ...     _ = chunk.write(b"garbage")
    >>> verify("heights.zarr", deep=True).corrupt[0].chunk
    (0,)
    """
    try:
        checked = opened(node)
    except MetadataError as error:
        return Verified(corrupt=[Corrupt("", None, str(error), error.kind)])
    with reporting(progress, "verify") as report:
        return _verified(checked, deep, report)


def _verified(checked: Array | Group, deep: bool, progress: Progress | None) -> Verified:
    location, root = checked.__reduce__()[1][:2]
    values = _StoredValues(location, create=False)
    found = Verified()
    nodes = dict(walk(checked, found.corrupt))
    for path, member in nodes.items():
        if isinstance(member, Array):
            found.arrays += 1
            shards = _take_census(values, joined(root, path), member, found)
            is_read = deep or _has_checksums(member)
            _count_inner_chunks(path, member, shards, found, is_read, 1 if values.is_local() else 64)
        else:
            found.groups += 1
            _find_foreign(values, joined(root, path), member, found)
            if member._is_consolidated() and not found.corrupt:
                found.outdated += _outdated(path, member, nodes)
    arrays = {path: member for path, member in nodes.items() if isinstance(member, Array)}
    arrays = {path: array for path, array in arrays.items() if deep or _has_checksums(array)}
    total, done = sum(map(nbytes_of, arrays.values())), 0
    for path, array in arrays.items():
        for region in parts(array):
            found.corrupt += _corrupt_in(array, path, region)
            if progress is not None:
                extents = [part.stop - part.start for part in region]
                done += nbytes_of(array) * math.prod(extents) // max(1, array.size)
                progress(done, total)
    found.unread = [each for each in found.corrupt if each.kind in _NOT_OF_BYTES]
    found.corrupt = [each for each in found.corrupt if each.kind not in _NOT_OF_BYTES]
    return found


def joined(*names: str) -> str:
    """Return the path of names below each other."""
    return "/".join(name for name in names if name)


def walk(root: Array | Group, corrupt: list[Corrupt]) -> Iterator[tuple[str, Array | Group]]:
    """Yield a node and those below it; enter broken ones, and links to a group above, as corrupt."""
    waiting = [("", root, Way())]
    while waiting:
        path, node, above = waiting.pop()
        if not isinstance(node, Group):
            yield path, node
            continue
        try:
            way = above.to(node)
        except LimitError as error:
            corrupt.append(Corrupt(path, None, str(error), error.kind))
            continue
        yield path, node
        group = node._without_consolidated()
        members = []
        for name in sorted(group):
            below = joined(path, name)
            try:
                member = group[name]
            except NotFoundError:
                continue
            except ZarrowError as error:
                corrupt.append(Corrupt(below, None, str(error), error.kind))
                continue
            members.append((below, member, way))
        waiting += reversed(members)


def _find_foreign(values: _StoredValues, path: str, group: Group, found: Verified) -> None:
    """Enter the keys beside the members of a group (step 1)."""
    corrupt = {each.path.rpartition("/")[2] for each in found.corrupt}
    known = DOCUMENTS | set(group._without_consolidated()) | corrupt
    found.foreign += [joined(path, name) for name in sorted(values.list(path)) if name not in known]


def _outdated(path: str, group: Group, nodes: Mapping[str, Array | Group]) -> list[Corrupt]:
    """Return how the consolidated metadata of a group differ from the nodes below it (step 2)."""
    below = f"{path}/" if path else ""
    stored = {name: node for name, node in nodes.items() if name.startswith(below) and name != path}
    copied: dict[str, Array | Group] = {}
    waiting = [(path, group)]
    while waiting:
        above, node = waiting.pop()
        for name in node:
            try:
                member = node[name]
            except ZarrowError as error:
                return [Corrupt(path, None, f"consolidated metadata: {error}", error.kind)]
            copied[joined(above, name)] = member
            if isinstance(member, Group):
                waiting.append((joined(above, name), member))
    for name in sorted(copied.keys() ^ stored.keys()):
        verb = "lack" if name in stored else "have"
        return [Corrupt(path, None, f"consolidated metadata {verb} {name!r}", "metadata")]
    for name, member in copied.items():
        if _described(member) != _described(stored[name]):
            return [Corrupt(path, None, f"consolidated metadata of {name!r} differ from its own", "metadata")]
    return []


def _described(node: Array | Group) -> tuple[Any, ...]:
    """Return what the document of a node says."""
    return (node.metadata if isinstance(node, Array) else node.zarr_format, node._attributes())


def _take_census(values: _StoredValues, path: str, array: Array, found: Verified) -> list[tuple[int, ...]]:
    """Count the stored chunks of an array, and enter other keys (step 1). Return the places of its shards."""
    keys = stored_chunks(values, path, array)
    if keys is None:
        found.stored += array.nchunks_initialized
        return []
    stored, shards = 0, []
    for key, place in keys:
        if place is not None:
            stored += 1
            if array.shards is not None:
                shards.append(place)
        elif key not in DOCUMENTS:
            found.foreign.append(joined(path, key))
    found.stored += stored
    found.missing += math.prod(grid_of(array)) - stored
    return shards


def _count_inner_chunks(
    path: str, array: Array, shards: list[tuple[int, ...]], found: Verified, is_read: bool, most: int
) -> None:
    """Count the inner chunks of shards, `most` shards at once (step 3).

    If the array is not read later, a shard with a corrupt index is entered here.
    """
    lock = threading.Lock()

    def first_inner(place: tuple[int, ...]) -> tuple[int, ...]:
        extents = zip(place, array.shards or (), array.chunks or (), strict=True)
        return tuple(at * (shard // chunk) for at, shard, chunk in extents)

    def count(place: tuple[int, ...]) -> None:
        corrupt, counted = [], None
        try:
            counted = array._inner_chunks_of(place)
        except ZarrowError as error:
            if not is_read:
                corrupt = [Corrupt(path, first_inner(place), str(error), error.kind)]
        with lock:
            found.corrupt += corrupt
            if counted is not None:
                found.inner_stored += counted[0]
                found.inner_missing += counted[1] - counted[0]

    at_once.run((partial(count, place) for place in shards), most)


def _has_checksums(array: Array) -> bool:
    """Return whether chunks, or the inner chunks of shards at any depth, have checksums."""
    metadata = array.metadata
    waiting = [*metadata.get("codecs", ()), *(metadata.get("filters") or ()), metadata.get("compressor")]
    while waiting:
        codec = waiting.pop()
        if not isinstance(codec, dict):
            continue
        name = str(codec.get("name", codec.get("id"))).removeprefix("numcodecs.")
        options = codec.get("configuration", codec)
        if name in _CHECKSUMS or (name == "zstd" and options.get("checksum")):
            return True
        waiting += options.get("codecs", ())
    return False


def _corrupt_in(array: Array, path: str, region: tuple[slice, ...]) -> list[Corrupt]:
    """Return the chunks of a region that cannot be read (step 4)."""
    try:
        array.read(region)
    except ZarrowError as error:
        chunk = array.chunks
        if chunk is None or isinstance(error, OutOfMemoryError):
            return [Corrupt(path, error.chunk, str(error), error.kind)]
    else:
        return []
    corrupt = []
    for place, part in chunks_in(region, chunk):
        try:
            array.read(part)
        except ZarrowError as error:
            corrupt.append(Corrupt(path, place, str(error), error.kind))
    return corrupt
