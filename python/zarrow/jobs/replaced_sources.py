"""Refuses plans that would replace their own sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zarrow._zarrow import Array, Group
from zarrow.api.array_options import Store
from zarrow.groups.places import is_within, place, place_of
from zarrow.jobs.work import Item


def check_apart(items: Iterable[Item], ledger: Store, source: Array | Group | None = None) -> None:
    """Refuse arrays to create that would replace an array to read, or be below one.

    Refuse a ledger in an array, too, and a source in the ledger.

    Raises
    ------
    ValueError
        There is such an array.
    """
    items = list(items)
    arrays = set[str]()
    read = {found for item in items for source in item.sources if (found := place_of(source)) is not None}
    above = {folder for found in read for folder in _above(found)}
    for item in items:
        for new in item.created:
            created = place(new.store, new.path)
            if created is None:
                continue
            arrays.add(created)
            if created in read or created in above:
                raise ValueError(f"the plan would replace {created!r}, which it reads: choose another target")
            if any(folder in read for folder in _above(created)):
                raise ValueError(f"the plan would create {created!r} in an array: choose another target")
    arrays |= read | {
        found for item in items if item.existing is not None and (found := place_of(item.existing))
    }
    own = place(ledger, "")
    if own is None:
        return
    if any(folder in arrays for folder in [own, *_above(own)]):
        raise ValueError(f"the ledger of the plan would be in an array, at {own!r}: pass another ledger=")
    if source is not None and is_within(str(place_of(source)), own):
        raise ValueError(f"the source is in the ledger of the plan, at {own!r}: pass another ledger=")


def _above(found: str) -> Iterator[str]:
    """Yield the places above a place."""
    while "/" in found:
        found = found.rpartition("/")[0]
        yield found
