"""Makes a plan of its items, after checking the memory, the function, the ledger and the places."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

from zarrow._zarrow import Array, Group
from zarrow.api.array_options import Store
from zarrow.errors import UnsupportedError
from zarrow.groups.places import refuse_references
from zarrow.jobs.ledger import beside, name_of
from zarrow.jobs.plan import Location, Plan, Work
from zarrow.jobs.replaced_sources import check_apart
from zarrow.jobs.two_passes import FirstPass, TwoPassPlan
from zarrow.jobs.work import Item, located
from zarrow.store_objects.icechunk_sessions import session_of

# Half of what a process of a cluster usually has for each core.
MEMORY_NBYTES = 256 << 20


def planned(
    kind: str,
    items: Mapping[str, Item],
    store: Store,
    path: str,
    ledger: Store | None,
    memory_nbytes: int,
    *,
    function: Callable[..., Any] | None = None,
    passes_unit: bool = False,
    groups: Mapping[str, tuple[int, Mapping[str, Any]]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    consolidate: bool = False,
    remake: functools.partial[Plan] | None = None,
    first: FirstPass | None = None,
    source: Array | Group | None = None,
) -> Plan:
    """Return a plan of these items, after checking that it replaces nothing that it reads."""
    if kind in ("map", "write", "append", "collect") and not callable(function):
        raise TypeError(f"expected a function that is called for each unit, got {type(function).__name__}")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError(f"expected attributes as a mapping, got {type(attributes).__name__}")
    memory_nbytes = checked_memory(memory_nbytes)
    store = located(store)
    ledger = ledger_of(store) if ledger is None else located(ledger)
    check_apart([*items.values(), *(() if first is None else first.items)], ledger, source)
    work = Work(
        kind=kind,
        items=items,
        function=function,
        passes_unit=passes_unit,
        target=Location(store, path.strip("/")),
        groups=groups or {},
        ledger=ledger,
        memory_nbytes=memory_nbytes,
        attributes=dict(attributes or {}),
        consolidate=consolidate,
        remake=remake,
    )
    if first is not None:
        return TwoPassPlan(work, first)
    return _type_of(kind, store, consolidate)(work)


def checked_memory(memory_nbytes: Any) -> int:
    """Return a number of bytes.

    Raises
    ------
    TypeError
        It is no integer.
    ValueError
        It is below 1.
    """
    try:
        found = operator.index(memory_nbytes)
    except TypeError:
        raise TypeError(
            f"memory_nbytes is a number of bytes, such as 256 << 20, got {memory_nbytes!r}"
        ) from None
    if found < 1:
        raise ValueError(f"memory_nbytes is at least 1, got {found}")
    return found


def _type_of(kind: str, store: Store, consolidate: bool) -> type[Plan]:
    """Return the type of a plan, by the store that it writes."""
    if kind == "collect" or session_of(store) is None:
        return Plan
    if consolidate:
        raise UnsupportedError("icechunk has no consolidated metadata")
    from zarrow.jobs.versioned import VersionedPlan

    return VersionedPlan


def ledger_of(store: Store) -> Store:
    """Return the store of the ledgers for a store: its name with `.jobs` at the end."""
    refuse_references(store)
    found = beside(store, ".jobs")
    if found is None:
        raise TypeError(
            f"the ledger of a plan is stored beside its target, and {name_of(store)} has no place for it: "
            "pass ledger=, another store that all processes reach"
        )
    return found
