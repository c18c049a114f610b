"""Mends what `verify` finds.

1. The node is verified with `deep`. A corrupt chunk is dropped, or refilled from a copy; in a shard this is
   the inner chunk, and the others keep their bytes. A shard without any sound inner chunk is replaced whole.
2. Only errors of the chunk's own bytes count: a codec that is not installed or a failing disk is no reason to
   drop a chunk. If no stored chunk, or no inner chunk of the shards, can be read, the array's metadata may
   be wrong: nothing is dropped.
3. Each chunk is read once more before it is replaced, because another process may have written it since.
4. The document of a node is restored from a copy only if the stored chunks, read through it, have the
   elements of the copy. Otherwise the document may be that of another layout. Version 2 has a separate
   document for attributes, which stays if it can be read. Consolidated copies are renewed last.
5. Foreign keys are erased if this is asked for, unless they have the names of chunks or nodes: a wrong shape
   makes chunks foreign, too.

Each step is atomic. After a kill, another call does the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from zarrow._zarrow import Array, Group, MemoryStore, _StoredValues, open
from zarrow.api.array_options import Store
from zarrow.api.filled_arrays import full_like
from zarrow.api.progress import Progress, reporting
from zarrow.arrays.chunk_grid import grid_of, stored_chunks
from zarrow.checks.chunk_regions import chunks_in
from zarrow.checks.comparing import differs
from zarrow.checks.nodes import one_line, opened
from zarrow.checks.restoring import restore
from zarrow.checks.verified import Corrupt
from zarrow.checks.verifying import DOCUMENTS, verify, walk
from zarrow.errors import InvalidKeyError, MetadataError, NotFoundError, ZarrowError
from zarrow.groups.places import joined, refuse_read_only

Action = Literal["dropped", "refilled", "restored", "consolidated", "erased", "left"]

# Errors of the chunk's bytes.
_CORRUPT = frozenset(("corrupt", "checksum", "wrong_size"))

# Errors that other causes may have, too. A copy replaces the chunk without loss.
_DOUBTFUL = frozenset(("bad_value", "codec_failed", "limit"))

_WHOLE_ARRAY = (
    "no stored chunk of this array can be read, so the metadata may be wrong: "
    "give a copy, or drop all chunks by --drop-all (drop_all=True)"
)

# Chunks that are looked for at a time.
_SLAB = 1 << 20


@dataclass(frozen=True, slots=True)
class Repair:
    """A fault, and the step that `repair` took.

    Attributes
    ----------
    path : str
        The path of the node or of the foreign key, below the node given to `repair`.
    chunk : tuple of int or None
        The chunk's place in the grid, for a chunk in a shard that of the inner chunk; None for anything else.
    action : str
        `"dropped"`: the chunk was removed and now reads as fill values.
        `"refilled"`: the chunk was written again with the elements of the copy.
        `"restored"`: the node's metadata were written again from the copy.
        `"consolidated"`: the group's consolidated metadata were written again from its nodes.
        `"erased"`: the foreign key was removed.
        `"left"`: nothing was changed.
    reason : str
        The fault. For `"left"`, the reason why nothing was changed.
    """

    path: str
    chunk: tuple[int, ...] | None
    action: Action
    reason: str


@dataclass(slots=True)
class Repaired:
    """Result of `repair`. With `dry_run`, it describes the same steps, but none was taken.

    Attributes
    ----------
    mended : list of Repair
        Faults that were mended.
    left : list of Repair
        Faults that could not be mended, with reasons.
    foreign : list of str
        Foreign keys that remain.
    dry_run : bool
        Whether nothing was changed.
    """

    mended: list[Repair] = field(default_factory=list)
    left: list[Repair] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    dry_run: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether no fault is left."""
        return not self.left

    def __str__(self) -> str:
        verb = "would be mended" if self.dry_run else "mended"
        lines = [f"{len(self.mended)} faults {verb}, {len(self.left)} left, {len(self.foreign)} foreign keys"]
        for each in (*self.mended, *self.left):
            place = "" if each.chunk is None else f" chunk {each.chunk}"
            lines.append(f"  {each.action:8}  {one_line(each.path) or '/'}{place}: {one_line(each.reason)}")
        lines += [f"  foreign   {one_line(key)}" for key in self.foreign]
        return "\n".join(lines)


def repair(
    node: Array | Group | Store,
    source: Array | Group | Store | None = None,
    *,
    missing: bool = False,
    foreign: bool = False,
    drop_all: bool = False,
    dry_run: bool = False,
    progress: Progress | bool | None = None,
) -> Repaired:
    """Mend an array, or a group with everything below it.

    A corrupt chunk is dropped, so that it reads as fill values, or refilled from a copy. In a shard, this is
    the inner chunk. Stop other writers of the store first. After a kill or Ctrl-C, call it again.

    Parameters
    ----------
    node
        An opened array or group, or a store as `open` takes it.
    source
        A copy of the node, as for `node`. Format version, chunks and codecs may differ. Corrupt chunks get
        its elements; if it cannot be read there, they are left. Broken or lost metadata are restored, if the
        stored chunks have the elements of the copy.
    missing
        With `source`: also refill missing chunks that the copy has elements for.
    foreign
        Also erase files and folders that belong to no node. Names of chunks or nodes are kept: wrong metadata
        would make them look foreign.
    drop_all
        Also drop corrupt chunks if the array has no sound chunk. By default they are left, since wrong
        metadata have the same effect.
    dry_run
        Change nothing, and return the steps that a call without `dry_run` would take.
    progress
        Called with the bytes of elements that were verified, and of all; or True for a bar in a terminal or
        a notebook.

    Returns
    -------
    Repaired
        The mended faults, the remaining ones, and the remaining foreign keys.

    Raises
    ------
    NotFoundError, MetadataError, StoreError
        The node or the copy cannot be opened, or the store cannot be read.
    ReadOnlyError
        The store cannot be written.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks import repair
    >>> for name in ("heights.zarr", "copy.zarr"):
    ...     _ = zarrow.create_array(name, data=[1.5, 2.5, 3.5], chunks=1)
    >>> for chunk in ("0", "1"):
    ...     with open(f"heights.zarr/c/{chunk}", "r+b") as file:
    ...         _ = file.write(b"garbage")
    >>> print(repair("heights.zarr", "copy.zarr").mended[0].action)
    refilled
    >>> zarrow.load("heights.zarr").tolist()
    [1.5, 2.5, 3.5]
    """
    if missing and source is None:
        raise ValueError("missing=True refills chunks from a copy: give the copy as `source`")
    repaired = Repaired(dry_run=dry_run)
    copy = None if source is None else opened(source)
    target = node if isinstance(node, Array | Group) else _opened_root(node, copy, repaired)
    if target is None:
        return repaired
    if not dry_run:
        refuse_read_only(target)
    location, root = target.__reduce__()[1][:2]
    work = _Work(location, root, target, copy, missing, foreign, drop_all, repaired)
    with reporting(progress, "verify") as report:
        work.mend("", target, report)
    work.renew_consolidated()
    work.consolidate_outdated()
    return repaired


def _opened_root(store: Any, copy: Array | Group | None, repaired: Repaired) -> Array | Group | None:
    """Open the node of a store. Restore its documents first if they are broken or lost (step 4).

    Returns None if they stay broken, or would be restored only without `dry_run`.
    """
    mode: Literal["r", "r+"] = "r" if repaired.dry_run else "r+"
    try:
        return open(store, mode=mode)
    except MetadataError as error:
        fault = str(error)
    except NotFoundError:
        # The folder of a wrong path must not become a copy.
        if copy is None or not _StoredValues(store, create=False).list(""):
            raise
        fault = "its metadata are missing"
    problem = "give a copy to restore it" if copy is None else restore(store, "", copy, repaired.dry_run)
    if problem is not None:
        repaired.left.append(Repair("", None, "left", f"{problem}: {fault}"))
        return None
    repaired.mended.append(Repair("", None, "restored", fault))
    return None if repaired.dry_run else open(store, mode=mode)


@dataclass(frozen=True, slots=True)
class _Work:
    """A call of `repair`."""

    location: Any
    root: str
    target: Array | Group
    copy: Array | Group | None
    missing: bool
    foreign: bool
    drop_all: bool
    repaired: Repaired
    # Paths of restored nodes.
    restored: list[str] = field(default_factory=list)
    # Why the consolidated metadata of groups are outdated.
    outdated: dict[str, str] = field(default_factory=dict)

    def mend(self, prefix: str, node: Array | Group, progress: Progress | None = None) -> None:
        """Verify a node, and mend the node and its descendants."""
        found = verify(node, deep=True, progress=progress)
        chunks: dict[str, list[Corrupt]] = {}
        restored = []
        for each in found.corrupt:
            path = joined(prefix, each.path)
            if each.chunk is not None:
                chunks.setdefault(path, []).append(each)
            elif each.kind == "metadata":
                if self._restore(path, each.error):
                    restored.append(path)
            else:
                self._leave(path, None, each.error)
        for path, corrupt in chunks.items():
            self._mend_chunks(path, self._array(path), corrupt)
        self.outdated.update({joined(prefix, each.path): each.error for each in found.outdated})
        for each in found.unread:
            self._leave(joined(prefix, each.path), each.chunk, each.error)
        if self.missing:
            for path, member in walk(node, []):
                if isinstance(member, Array):
                    self._refill_missing(joined(prefix, path), member)
        for key in found.foreign:
            path = key.removeprefix(self.root + "/") if self.root else key
            try:
                if self._of_copy(path) is not None and self._is_folder(path):
                    if self._restore(path, "its metadata are missing"):
                        restored.append(path)
                elif self.foreign:
                    self._erase(path)
                else:
                    self.repaired.foreign.append(path)
            except InvalidKeyError as error:
                # No key of a store, such as a name with a backslash.
                self._leave(path, None, f"remove it yourself: {error}")
        if not self.repaired.dry_run:
            self.restored.extend(restored)
            for path in restored:
                self.mend(path, self._opened(path))

    def consolidate_outdated(self) -> None:
        """Write outdated consolidated metadata again, unless restored nodes have renewed them (step 4).

        Where nodes cannot be mended, the copies of their documents may be all that is left.
        """
        restored = [joined(self.root, path) for path in self.restored]
        for path, reason in self.outdated.items():
            place = joined(self.root, path)
            if any(not place or other.startswith(f"{place}/") for other in restored):
                continue
            if self.repaired.left:
                self._leave(path, None, f"mend the other faults first: {reason}")
                continue
            if self.repaired.foreign:
                self._leave(path, None, f"foreign keys may be nodes that lost their documents: {reason}")
                continue
            group = None if self.repaired.dry_run else open(self.location, place, mode="r+")
            if isinstance(group, Group):
                group.consolidate_metadata()
            self._enter(path, None, "consolidated", reason)

    def renew_consolidated(self) -> None:
        """Consolidate the groups again that have copies of restored documents (step 4)."""
        groups = {""} if self.restored else set()
        for path in self.restored:
            names = joined(self.root, path).split("/")
            groups.update("/".join(names[:depth]) for depth in range(1, len(names) + 1))
        # Deeper groups first: a group's copies include their documents.
        for path in sorted(groups, reverse=True):
            try:
                group = open(self.location, path, mode="r+")
                if isinstance(group, Group) and group._is_consolidated():
                    group.consolidate_metadata()
            except NotFoundError:
                # A store that was opened at an array or group has no node at its root.
                continue
            except ZarrowError as error:
                self._leave(path, None, f"its consolidated metadata may be stale: {error}")

    def _opened(self, path: str) -> Array | Group:
        group = self.target
        return group if not path or isinstance(group, Array) else group._without_consolidated()[path]

    def _array(self, path: str) -> Array:
        array = self._opened(path)
        if not isinstance(array, Array):
            raise NotFoundError(f"{path!r} is not an array any longer", store=array.store)
        return array

    def _of_copy(self, path: str) -> Array | Group | None:
        """Return the node of the copy at a path; None for names that a node cannot have."""
        if not path or self.copy is None:
            return self.copy
        try:
            return self.copy.get(path) if isinstance(self.copy, Group) else None
        except InvalidKeyError:
            return None

    def _enter(self, path: str, chunk: tuple[int, ...] | None, action: Action, reason: str) -> None:
        self.repaired.mended.append(Repair(path, chunk, action, reason))

    def _leave(self, path: str, chunk: tuple[int, ...] | None, reason: str) -> None:
        self.repaired.left.append(Repair(path, chunk, "left", reason))

    def _copy_of(self, path: str, array: Array) -> Array | str | None:
        """Return the array of the copy; None without a copy, and a text if it does not fit."""
        if self.copy is None:
            return None
        copy = self._of_copy(path)
        if not isinstance(copy, Array):
            return "the copy has no such array"
        if (copy.shape, copy.data_type) != (array.shape, array.data_type):
            return (
                f"the copy has shape {copy.shape} and type {copy.data_type}, "
                f"the array {array.shape} and {array.data_type}"
            )
        return copy

    def _mend_chunks(self, path: str, array: Array, corrupt: list[Corrupt]) -> None:
        """Mend the chunks of an array (steps 1 to 3)."""
        copy = self._copy_of(path, array)
        kinds = _CORRUPT if copy is None else _CORRUPT | _DOUBTFUL
        chunk, unit = array.chunks, array.write_unit
        mendable = []
        for each in corrupt:
            if each.kind not in kinds:
                self._leave(path, each.chunk, each.error)
            elif isinstance(copy, str):
                self._leave(path, each.chunk, copy)
            elif chunk is None or unit is None:
                self._leave(path, each.chunk, f"chunks of different shapes are not mended: {each.error}")
            else:
                mendable.append(each)
        if chunk is None or unit is None or isinstance(copy, str) or not mendable:
            return
        ratio = [whole // part for whole, part in zip(unit, chunk, strict=True)]
        units = _by_unit(mendable, ratio)
        regions = {place: _region(place, unit, array.shape) for place in units}
        whole = {place for place, group in units.items() if len(group) == _count(regions[place], chunk)}
        if copy is None and not self.drop_all and not _has_sound_chunk(array, corrupt, ratio):
            self._leave(path, None, _WHOLE_ARRAY)
            return
        for place, group in units.items():
            if place in whole:
                self._replace(path, array, copy, regions[place], group)
                continue
            for each in group:
                self._replace(path, array, copy, _region(each.chunk or (), chunk, array.shape), [each])

    def _replace(
        self,
        path: str,
        array: Array,
        copy: Array | None,
        region: tuple[slice, ...],
        corrupt: list[Corrupt],
    ) -> None:
        """Drop or refill a region (step 3)."""
        values: Any
        if copy is None:
            values = _fill_values(array, region)
        else:
            try:
                values = copy.read(region)
            except ZarrowError as error:
                for each in corrupt:
                    self._leave(path, each.chunk, f"the copy cannot be read there: {error}")
                return
        if not self.repaired.dry_run:
            if _is_readable(array, region):
                return
            array.write(region, values)
            array.read(region)
        for each in corrupt:
            self._enter(path, each.chunk, "dropped" if copy is None else "refilled", each.error)

    def _refill_missing(self, path: str, array: Array) -> None:
        """Refill the missing chunks, or shards, of an array."""
        copy, grid, unit = self._copy_of(path, array), grid_of(array), array.write_unit
        if not isinstance(copy, Array) or unit is None or not array.size:
            if copy is not None and array.size:
                reason = copy if isinstance(copy, str) else "the grid of chunks is not regular"
                self._leave(path, None, f"missing chunks are not refilled: {reason}")
            return
        values = _StoredValues(self.location, create=False)
        places = stored_chunks(values, joined(self.root, path), array)
        if places is None:
            self._leave(path, None, "missing chunks are not refilled: the names of chunks are not known")
            return
        stored = np.zeros(math.prod(grid), bool)
        for _, place in places:
            if place is not None:
                stored[np.ravel_multi_index(place, grid) if grid else 0] = True
        # Numbers of all missing chunks at once would take 8 bytes for each.
        missing = (
            begin + int(number)
            for begin in range(0, stored.size, _SLAB)
            for number in np.flatnonzero(~stored[begin : begin + _SLAB])
        )
        for number in missing:
            place = tuple(map(int, np.unravel_index(number, grid))) if grid else ()
            region = _region(place, unit, array.shape)
            try:
                found = copy.read(region)
            except ZarrowError as error:
                self._leave(path, place, f"the copy cannot be read there: {error}")
                continue
            fill = np.asanyarray(_fill_values(array, region).numpy())
            if not np.any(differs(np.asanyarray(found.numpy()), fill)):
                continue
            if not self.repaired.dry_run:
                array.write(region, found)
            self._enter(path, place, "refilled", "missing, and the copy has elements")

    def _is_folder(self, path: str) -> bool:
        return bool(_StoredValues(self.location, create=False).list(joined(self.root, path)))

    def _restore(self, path: str, fault: str) -> bool:
        """Restore the documents of a node from the copy, and return whether it can be mended now (step 4)."""
        copy = self._of_copy(path)
        if copy is not None:
            problem = restore(self.location, joined(self.root, path), copy, self.repaired.dry_run)
        else:
            problem = "the copy has no such node" if self.copy is not None else "give a copy to restore it"
        if problem is not None:
            self._leave(path, None, f"{problem}: {fault}")
            return False
        self._enter(path, None, "restored", fault)
        return True

    def _erase(self, path: str) -> None:
        """Erase a foreign key (step 5)."""
        values, key = _StoredValues(self.location, create=False), joined(self.root, path)
        if _may_be_chunk(key.rpartition("/")[2]) or _has_elements(values, key):
            reason = (
                "may have chunks or nodes, and the metadata may be wrong: give a copy, or remove it yourself"
            )
            self._leave(path, None, reason)
            return
        if not self.repaired.dry_run and not values.erase_prefix(key):
            values.erase(key)
        self._enter(path, None, "erased", "belongs to no node")


def _may_be_chunk(name: str) -> bool:
    """Return whether a file or folder has the name of a chunk, maybe outside of the grid."""
    return name == "c" or name[:1].isdigit() or name.startswith("c.")


def _has_elements(values: _StoredValues, key: str) -> bool:
    """Return whether a folder may have chunks or nodes, at any depth."""
    waiting = [key]
    while waiting:
        above = waiting.pop()
        for name in values.list(above):
            if _may_be_chunk(name) or name in DOCUMENTS:
                return True
            waiting.append(joined(above, name))
    return False


def _region(place: tuple[int, ...], chunk: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the region of a chunk inside the array."""
    return tuple(
        slice(at * step, min((at + 1) * step, extent))
        for at, step, extent in zip(place, chunk, shape, strict=True)
    )


def _by_unit(corrupt: list[Corrupt], ratio: list[int]) -> dict[tuple[int, ...], list[Corrupt]]:
    """Return corrupt chunks by the places of their shards, or of themselves without shards."""
    units: dict[tuple[int, ...], list[Corrupt]] = {}
    for each in corrupt:
        place = tuple(at // by for at, by in zip(each.chunk or (), ratio, strict=True))
        units.setdefault(place, []).append(each)
    return units


def _has_sound_chunk(array: Array, corrupt: list[Corrupt], ratio: list[int]) -> bool:
    """Return whether a stored chunk can be read, in shards an inner chunk (step 2)."""
    units = _by_unit(corrupt, ratio)
    if len(units) < array._stored_chunk_count():
        return True
    # Missing inner chunks of a shard can be read, too, but have the fill value alone.
    for place, broken in units.items():
        whole = _region(place, array.write_unit or (), array.shape)
        bad = {each.chunk for each in broken}
        for chunk, region in chunks_in(whole, array.chunks or ()):
            if chunk not in bad and _has_values(array, region):
                return True
    return False


def _has_values(array: Array, region: tuple[slice, ...]) -> bool:
    """Return whether a region can be read and differs from the fill value."""
    try:
        found = np.asanyarray(array.read(region).numpy())
    except ZarrowError:
        return False
    return bool(np.any(differs(found, np.asanyarray(_fill_values(array, region).numpy()))))


def _count(region: tuple[slice, ...], chunk: tuple[int, ...]) -> int:
    """Return how many chunks a region has."""
    return math.prod(-(-(part.stop - part.start) // step) for part, step in zip(region, chunk, strict=True))


def _fill_values(array: Array, region: tuple[slice, ...]) -> Any:
    """Return what a region reads as without a stored chunk."""
    shape = [part.stop - part.start for part in region]
    return full_like(array, array.fill_value, shape=shape, store=MemoryStore())[...]


def _is_readable(array: Array, region: tuple[slice, ...]) -> bool:
    try:
        array.read(region)
    except ZarrowError:
        return False
    return True
