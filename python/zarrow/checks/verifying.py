"""Checks a store: counts the stored chunks, finds foreign files, and decodes the elements.

1. The keys of a store are listed once, level by level. Keys of nodes and of chunks in the grid are known, and
   so are folders on the way to them. Any other key is foreign.
2. Consolidated metadata are compared with the documents of the nodes, if all of these can be read. Different
   members or metadata are outdated.
3. The index of each stored shard says which of its inner chunks are stored.
4. Arrays with checksums are read, and with `deep` all arrays, in parts of whole chunks. This also checks
   lengths and indexes of shards. If a part fails, its chunks are read one by one.
5. Other processes may change the store meanwhile. What seems wrong is looked at again: a node that was
   erased or replaced is not corrupt, and a chunk of an array that grows is not foreign.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from zarrow._zarrow import Array, Group, _StoredValues, open
from zarrow.api import concurrent_calls
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress, reporting
from zarrow.arrays.chunk_grid import grid_of, stored_chunks
from zarrow.checks.chunk_regions import chunks_in, parts
from zarrow.checks.nodes import nbytes_of, opened
from zarrow.checks.verified import Corrupt, Verified
from zarrow.errors import LimitError, MetadataError, NotFoundError, OutOfMemoryError, ZarrowError
from zarrow.groups.descent import Way
from zarrow.groups.places import joined
from zarrow.jobs.work import fixed_metadata

DOCUMENTS = frozenset(("zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata"))


_CHECKSUMS = frozenset(("crc32c", "crc32", "adler32", "fletcher32", "jenkins_lookup3"))


# Kinds of errors that say nothing of the stored bytes.
_NOT_OF_BYTES = frozenset(("out_of_memory", "io", "permission"))

# How often an array is checked while others change it.
_TRIES = 3


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
    found, broken = Verified(), list[Corrupt]()
    nodes = dict(walk(checked, broken))
    groups = {path: node for path, node in nodes.items() if isinstance(node, Group)}
    arrays = {path: node for path, node in nodes.items() if isinstance(node, Array)}
    foreign = {path: _foreign(values, joined(root, path), group, broken) for path, group in groups.items()}
    outdated = [
        each
        for path, group in groups.items()
        if group._is_consolidated() and not broken
        for each in _outdated(path, group, nodes)
    ]
    total = sum(nbytes_of(array) for array in arrays.values() if deep or _has_checksums(array))
    done = 0

    def advance(nbytes: int) -> None:
        nonlocal done
        done = min(total, done + nbytes)
        if progress is not None:
            progress(done, total)

    parts_of: dict[str, Verified | None] = {
        path: _checked_array(values, location, (root, path), array, deep, advance)
        for path, array in arrays.items()
    }
    # What seems wrong is looked at again (step 5).
    for each in broken:
        is_same = each.kind == "limit" or _is_broken(location, joined(root, each.path))
        (found.corrupt.append(each) if is_same else found.changed.append(each.path))
    for path, group in groups.items():
        found.groups += 1
        if names := foreign[path]:
            again = _foreign(values, joined(root, path), group, broken)
            found.foreign += [joined(root, path, name) for name in names if name in again]
    if outdated:
        found.outdated = _still_outdated(outdated, location, root)
    for path, part in parts_of.items():
        if part is None:
            found.changed.append(path)
        else:
            part.foreign = _still_foreign(values, location, joined(root, path), part.foreign)
            found.add(part)
    found.unread = [each for each in found.corrupt if each.kind in _NOT_OF_BYTES]
    found.corrupt = [each for each in found.corrupt if each.kind not in _NOT_OF_BYTES]
    return found


def _checked_array(
    values: _StoredValues,
    location: Store,
    place: tuple[str, str],
    array: Array,
    deep: bool,
    advance: Callable[[int], None],
) -> Verified | None:
    """Check an array at a place: the root that is checked, and the path below it.

    If another process replaces it, check it again, at most three times. Return `None` if it is erased.
    """
    path, below = joined(*place), place[1]
    for _ in range(_TRIES):
        found, is_read = Verified(arrays=1), deep or _has_checksums(array)
        shards = _take_census(values, path, array, found)
        _count_inner_chunks(below, array, shards, found, is_read, 1 if values.is_local() else 64)
        for region in parts(array) if is_read else ():
            found.corrupt += _corrupt_in(array, below, region)
            extents = [part.stop - part.start for part in region]
            advance(nbytes_of(array) * math.prod(extents) // max(1, array.size))
        is_missed = any(each.kind == "not_found" for each in found.corrupt)
        if not (found.corrupt or found.missing or found.foreign):
            return found
        try:
            now = open(location, path, mode="r")
        except NotFoundError:
            # Consolidated metadata alone may have named the node that was passed to `verify`.
            return found if not (below or is_missed) else None
        except ZarrowError:
            return found
        if not isinstance(now, Array):
            return None
        if not is_missed and fixed_metadata(now) == fixed_metadata(array):
            return found
        array = now
    return None


def _is_broken(location: Store, path: str) -> bool:
    try:
        open(location, path, mode="r")
    except NotFoundError:
        return False
    except ZarrowError:
        return True
    return False


def _still_foreign(values: _StoredValues, location: Store, path: str, keys: list[str]) -> list[str]:
    """Return the keys below an array that are still foreign: a writer may make it longer or shorter."""
    if not keys:
        return []
    again = Verified()
    try:
        array = open(location, path, mode="r")
        if isinstance(array, Array):
            _take_census(values, path, array, again)
    except ZarrowError:
        return []
    foreign = set(again.foreign)
    return [key for key in keys if key in foreign]


def _still_outdated(outdated: list[Corrupt], location: Store, root: str) -> list[Corrupt]:
    """Return the groups that are still outdated."""
    try:
        nodes = dict(walk(open(location, root, mode="r"), []))
    except NotFoundError:
        return []
    groups = {each.path: nodes.get(each.path) for each in outdated}
    return [
        each
        for path, group in groups.items()
        if isinstance(group, Group) and group._is_consolidated()
        for each in _outdated(path, group, nodes)
    ]


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


def _foreign(values: _StoredValues, path: str, group: Group, broken: Sequence[Corrupt]) -> list[str]:
    """Return the names beside the members of a group (step 1)."""
    names = {each.path.rpartition("/")[2] for each in broken}
    # Names come first: a node that is created in between is no foreign key.
    stored = values.list(path)
    known = DOCUMENTS | set(group._without_consolidated()) | names
    return sorted(set(stored) - known)


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
    stored, shards = 0, list[tuple[int, ...]]()
    names = [codec["name"] for codec in array.metadata["codecs"]]
    is_sharded = names[-1:] == ["sharding_indexed"]
    for key, place in keys:
        if place is not None:
            stored += 1
            if is_sharded:
                shards.append(place)
        elif key not in DOCUMENTS:
            found.foreign.append(joined(path, key))
    if "sharding_indexed" in names and not is_sharded:
        found.uncounted += stored
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
        if array.shards is None or array.chunks is None:
            return place
        extents = zip(place, array.shards, array.chunks, strict=True)
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

    concurrent_calls.run((partial(count, place) for place in shards), most)


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
