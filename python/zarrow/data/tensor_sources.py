"""Refuses plans that loaders of tensors cannot batch."""

from __future__ import annotations

from zarrow.data.plan import Plan
from zarrow.errors import ExchangeError


def check_fixed_sizes(plan: Plan, library: str) -> None:
    """Raise `ExchangeError` if samples of a source are no tensors of a library."""
    for name, source in plan.sources.items():
        if not source.has_fixed_size:
            raise ExchangeError(
                f"source {name!r} has text, sparse rows or elements that may be missing, but {library} has "
                "no such tensors: type zarrow.data.Loader(plan, transform=function) and make tensors in the "
                "function",
                kind="no_such_type",
            )
