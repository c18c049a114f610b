"""Refuses plans that would replace their own sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zarrow.groups.places import place, place_of
from zarrow.jobs.work import Item


def check_apart(items: Iterable[Item]) -> None:
    """Refuse arrays to create that would replace an array to read, or be below one.

    Raises
    ------
    ValueError
        There is such an array.
    """
    items = list(items)
    read = {found for item in items for source in item.sources if (found := place_of(source)) is not None}
    above = {folder for found in read for folder in _above(found)}
    for item in items:
        for new in item.created:
            created = place(new.store, new.path)
            if created is None:
                continue
            if created in read or created in above:
                raise ValueError(f"the plan would replace {created!r}, which it reads: choose another target")
            if any(folder in read for folder in _above(created)):
                raise ValueError(f"the plan would create {created!r} in an array: choose another target")


def _above(found: str) -> Iterator[str]:
    """Yield the places above a place."""
    while "/" in found:
        found = found.rpartition("/")[0]
        yield found
