"""What `verify` finds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from zarrow.checks.nodes import one_line


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A node or chunk that cannot be read.

    Attributes
    ----------
    path : str
        The path of the node, below the node given to `verify`.
    chunk : tuple of int or None
        The chunk's place in the grid, for a chunk in a shard that of the inner chunk; None for metadata. A
        shard with an unreadable index has the place of its first inner chunk, unless the array is read. In
        a grid of unequal shards, it is the place of the shard.
    error : str
        The message of the error.
    kind : str
        The error's `kind`, such as `"checksum"`.
    """

    path: str
    chunk: tuple[int, ...] | None
    error: str
    kind: str


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
        Numbers of inner chunks of the stored shards, as far as their indexes could be read.
    uncounted : int
        Stored shards that are compressed as a whole: their inner chunks are not counted.
    corrupt : list of Corrupt
        Chunks and metadata with wrong bytes.
    outdated : list of Corrupt
        Groups with consolidated metadata that differ from the nodes below.
    unread : list of Corrupt
        What could not be read for another reason, such as memory, a permission or the network.
    foreign : list of str
        Keys in the store that belong to no node: files, or folders with everything in them.
    changed : list of str
        Nodes that another process erased or replaced while they were checked: their chunks are not counted.
    """

    arrays: int = 0
    groups: int = 0
    stored: int = 0
    missing: int = 0
    inner_stored: int = 0
    inner_missing: int = 0
    uncounted: int = 0
    corrupt: list[Corrupt] = field(default_factory=list)
    outdated: list[Corrupt] = field(default_factory=list)
    unread: list[Corrupt] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)

    def add(self, other: Verified) -> None:
        """Add the counts and the faults of another node."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

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
            + (f", inner chunks of {self.uncounted} shards not counted" if self.uncounted else "")
            + (f", {len(self.changed)} changed during the check" if self.changed else "")
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
        lines += [f"  changed  {one_line(path) or '/'}" for path in self.changed]
        lines += [f"  foreign  {one_line(key)}" for key in self.foreign]
        return "\n".join(lines)
