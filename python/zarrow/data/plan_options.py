"""Options of `zarrow.data.Plan` that loaders take in place of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from zarrow.data.fields import Fields, Sources
from zarrow.data.order import Ordering
from zarrow.data.plan import Plan
from zarrow.data.rank_schedule import Last


class PlanOptions(TypedDict, total=False):
    """Options of the plan, if a loader is given the sources of one."""

    batch_size: int
    fields: Fields | None
    order: Ordering
    window_nbytes: int
    last: Last
    seed: int


def planned(plan: Plan | Sources, options: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
    """Return the plan, or one of sources with its options, and the other options.

    Raises
    ------
    TypeError
        A plan was given, and options of one.
    """
    own = {name: options[name] for name in PlanOptions.__annotations__ if name in options}
    rest = {name: value for name, value in options.items() if name not in own}
    if not isinstance(plan, Plan):
        return Plan(plan, **own), rest
    if own:
        raise TypeError(f"the plan has its own {', '.join(own)}: pass it to zarrow.data.Plan")
    return plan, rest
