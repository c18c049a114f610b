"""Errors of plans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from zarrow.errors import NodeExistsError, ReadOnlyError, StorePermissionError, ZarrowError


class UnfinishedError(ZarrowError, RuntimeError):
    """Some units of a plan are not finished, or the plan is not set up; its kind is `"unfinished"`."""

    kind = "unfinished"


class ConflictError(ZarrowError, RuntimeError):
    """Another plan, or a commit to the branch of icechunk, writes the same; its kind is `"conflict"`."""

    kind = "conflict"


@contextlib.contextmanager
def renamed(**options: str) -> Iterator[None]:
    """Replace names of options and methods by the caller's in errors about existing arrays and the ledger."""
    names = {
        "overwrite": "overwrite=True",
        "ledger": "ledger=",
        "setup": "call setup()",
        "forget": "call forget()",
    }
    try:
        yield
    except (
        NodeExistsError,
        ConflictError,
        UnfinishedError,
        StorePermissionError,
        ReadOnlyError,
        TypeError,
    ) as error:
        text = str(error)
        for name, own in options.items():
            text = text.replace(names.get(name, name), own)
        error.args = (text,)
        raise
