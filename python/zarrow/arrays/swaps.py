"""Parts of a tensor that exchange places, as in `t[0], t[1] = t[1], t[0]`.

1. An index gives a view. The first assignment of such a line overwrites memory that a view taken before still
   shows, so the second would store the new elements: rows would be doubled, also by `random.shuffle`.
2. An assignment of one part of a tensor to another keeps a copy of the elements that it overwrites. The next
   such assignment of an older view of that very part stores the copy.
3. Any other assignment forgets the copies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from zarrow import _zarrow

_Elements = TypeVar("_Elements")


class _Kept(NamedTuple):
    """A part that was overwritten: which assignment did it, the part, and its elements before."""

    assignment: int
    part: Any
    elements: Any


class _Run(threading.local):
    def __init__(self) -> None:
        self.kept: list[_Kept] = []


_run = _Run()


def forget() -> None:
    """Forget what earlier assignments overwrote (step 3)."""
    if _run.kept:
        _run.kept.clear()


def exchanged(
    target: _Elements,
    value: _Elements,
    taken: int,
    *,
    same: Callable[[_Elements, _Elements], bool],
    overlaps: Callable[[_Elements, _Elements], bool],
    copy: Callable[[_Elements], _Elements],
) -> _Elements:
    """Return a part's elements as they were when it was viewed, and keep those of the target (step 2).

    `taken` is the number of such assignments before the value was taken.

    Raises
    ------
    ValueError
        The value overlaps a part that was overwritten, and is another part.
    """
    kept = _run.kept
    if kept and taken >= kept[-1].assignment:
        kept.clear()
    meant = value
    for earlier in kept:
        if taken < earlier.assignment and overlaps(earlier.part, value):
            if not same(earlier.part, value):
                raise ValueError(
                    "the assigned part was overwritten after it was taken: type .copy() behind each part, as "
                    "a, b = t[0:2].copy(), t[1:3].copy()"
                )
            meant = earlier.elements
            break
    if not same(target, value):
        kept.append(_Kept(_zarrow._count_assignment(), target, copy(target)))
    return meant
