"""Names of members that `Group.keys` gives for a group in a remote store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["MemberNames"]


class MemberNames(list[str]):
    """A list of names. In the body of a loop over it, `group[name]` is the member as the list found it."""

    __slots__ = ("_loops",)

    def __init__(self, names: list[str], loops: Callable[[Iterator[str]], Iterator[str]]) -> None:
        super().__init__(names)
        self._loops = loops

    def __iter__(self) -> Iterator[str]:
        """Begin a loop; the group knows the visited member."""
        return self._loops(super().__iter__())

    def __reduce_ex__(self, protocol: Any) -> tuple[type[list[str]], tuple[list[str]]]:
        """Pickle and copy the names alone."""
        return list, (self[:],)
