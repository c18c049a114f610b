"""Walks through the nodes below a group.

A folder may hold a link to a folder above it. A walk that follows it does not end, so it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from zarrow._zarrow import Array, Group, _visible
from zarrow.errors import LimitError
from zarrow.groups.places import place_below, place_of


class Way:
    """The groups on the way from the first group of a walk to one below it."""

    __slots__ = ("_places",)

    def __init__(self, *places: str | None) -> None:
        self._places = places

    def to(self, group: Group) -> Way:
        """Return the way to a member of the last group.

        Raises
        ------
        LimitError
            The member is a link to a group on the way.
        """
        if not self._places:
            return Way(place_of(group))
        above = self._places[-1]
        place = None if above is None else place_below(above, group.path.rpartition("/")[2])
        if place is not None and place in self._places:
            raise LimitError(
                f"{_visible(group.path)!r} is a link to a group above it: remove the link, or open its "
                f"members by name (store {group.store})",
                node=group,
            )
        return Way(*self._places, place)


def nodes_below(
    group: Group,
    max_depth: int | None = None,
    members: Callable[[Group], Iterable[tuple[str, Array | Group]]] = Group.items,
) -> Iterator[tuple[str, Array | Group]]:
    """Yield the nodes below a group with their paths below it, each group before its members.

    `max_depth` 0 gives the members alone. `members` lists a group.

    Raises
    ------
    LimitError
        A member is a link to a group above it.
    """
    waiting = [("", iter(members(group)), Way().to(group))]
    while waiting:
        prefix, listed, way = waiting[-1]
        name, member = next(listed, ("", None))
        if member is None:
            waiting.pop()
            continue
        yield prefix + name, member
        if isinstance(member, Group) and (max_depth is None or len(waiting) <= max_depth):
            waiting.append((f"{prefix}{name}/", iter(members(member)), way.to(member)))
