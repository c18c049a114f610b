"""States of a ledger, and what the ledgers of other plans say of a target.

1. An array of an unfinished plan may lack elements: it never counts as finished.
2. A plan is dead if its arrays are gone after it was set up, or if its setup was killed. Its ledger is read
   before looking for its arrays: a plan that creates them at the same time is not yet set up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from zarrow._zarrow import Group, MemoryStore, open
from zarrow.api.array_options import Store
from zarrow.errors import MetadataError, NodeExistsError, NotFoundError, ZarrowError
from zarrow.jobs.errors import ConflictError
from zarrow.jobs.ledger import paths_of
from zarrow.jobs.owners import is_alive

# States of a ledger, in order. Units are written only after the first two.
ERASING, CREATING, RUNNING, FINISHED = "erasing", "setup", "running", "finished"

# How many arrays of another plan are looked for: all exist when it is set up.
_MOST_LOOKS = 8

# Kinds of plans that create no array.
_KINDS_WITHOUT_ARRAYS = frozenset(("write", "append", "collect"))


def state_of(ledger: Group) -> str:
    """Return the state of a plan, which people can edit."""
    state = ledger.attrs.get("state")
    if state not in (ERASING, CREATING, RUNNING, FINISHED):
        raise MetadataError(f"the ledger in {ledger.store} has the state {state!r}: delete it to begin anew")
    return str(state)


def kept_paths(attributes: Mapping[str, Any] | None) -> set[str]:
    """Return the paths of arrays that were skipped when the plan was set up."""
    kept = [] if attributes is None else attributes.get("kept", [])
    return set(kept) if isinstance(kept, list) else set()


def check_finished(others: Mapping[str, Mapping[str, Any]], store: Store, paths: Collection[str]) -> None:
    """Refuse to keep arrays of unfinished plans (step 1).

    Raises
    ------
    ConflictError
        A path belongs to an unfinished plan.
    """
    for name, attributes in others.items():
        kind = attributes["plan"].get("kind")
        if attributes.get("state") == FINISHED or kind in _KINDS_WITHOUT_ARRAYS:
            continue
        created = paths_of(attributes, without=kept_paths(attributes))
        for path in paths:
            if path in created:
                raise unfinished(f"plan {name} ({kind})", store, path)


def unfinished(plan: str, store: Store, path: str) -> ConflictError:
    """Return an error about an array that an unfinished plan has created."""
    return ConflictError(
        f"{repr(path) if path else 'the root'} of {store} is not whole: {plan} has not finished it. "
        "Continue with the options of that plan, or erase the array",
        store=str(store),
        path=path,
    )


def exists(store: Store, path: str, ledger: Store) -> NodeExistsError:
    """Return an error about an array that the plan did not create, as far as its ledger says."""
    if isinstance(ledger, MemoryStore):
        reason = (
            "the ledger in memory has no earlier runs: pass ledger= if a copy shall continue after a kill"
        )
    else:
        reason = "its options, such as memory_nbytes, are part of the plan"
    return NodeExistsError(
        f"{repr(path) if path else 'the root'} of {store} exists, and this plan did not create it "
        f"({reason}): pass overwrite=True to erase it",
        store=str(store),
        path=path,
    )


def other_kind(store: Store, path: str, is_group: bool) -> NodeExistsError:
    """Return an error about a node of another kind than the plan creates in its place."""
    found, wanted = ("an array", "a group") if is_group else ("a group", "an array")
    return NodeExistsError(
        f"{repr(path) if path else 'the root'} of {store} is {found}, and the plan creates {wanted} there: "
        "erase or move it",
        store=str(store),
        path=path,
    )


class Overlapping:
    """The paths of a node, of those below it, and of those above it."""

    def __init__(self, path: str) -> None:
        self._path = f"{path}/"

    def __contains__(self, path: object) -> bool:
        other = f"{path}/"
        return "/" in (self._path, other) or other.startswith(self._path) or self._path.startswith(other)


def is_dead(attributes: Mapping[str, Any], store: Store) -> bool:
    """Return whether another plan is dead (step 2). Results of `collect` stay."""
    if attributes["plan"].get("kind") == "collect":
        return False
    if attributes.get("state") in (ERASING, CREATING):
        return not is_alive(attributes.get("owner"))
    return not all(_may_exist(store, path) for path in sorted(paths_of(attributes))[:_MOST_LOOKS])


def _may_exist(store: Store, path: str) -> bool:
    try:
        open(store, path, mode="r")
    except NotFoundError:
        return False
    except ZarrowError:
        return True
    return True
