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
from types import SimpleNamespace
from typing import Any, NamedTuple

from zarrow import _zarrow


class Part(NamedTuple):
    """Description of a part of a tensor, on the CPU or on a GPU."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    # Keeps the memory alive: a new tensor could get its address.
    owner: Any


class _Kept(NamedTuple):
    """An overwritten part: the number of the assignment, the part, and its old elements."""

    assignment: int
    part: Part
    elements: Any


class _Run(threading.local):
    def __init__(self) -> None:
        self.kept: list[_Kept] = []


_run = _Run()


def forget() -> None:
    """Forget what earlier assignments overwrote (step 3)."""
    if _run.kept:
        _run.kept.clear()


def exchanged(target: Part, value: Part, taken: int, copy_target: Callable[[], Any]) -> Any:
    """Return the elements that a value had when it was viewed, and save the target's elements (step 2).

    `taken` is the number of such assignments before the value was taken.

    Raises
    ------
    ValueError
        The value overlaps a part that was overwritten, and is another part.
    """
    kept = _run.kept
    if kept and taken >= kept[-1].assignment:
        kept.clear()
    meant = value.owner
    for earlier in kept:
        if taken < earlier.assignment and _overlaps(earlier.part, value):
            if earlier.part[:4] != value[:4]:
                raise ValueError(
                    "the assigned part was overwritten before the assignment: type .copy() after "
                    "each part, as "
                    "a, b = t[0:2].copy(), t[1:3].copy()"
                )
            meant = earlier.elements
            break
    if target[:4] != value[:4]:
        kept.append(_Kept(_zarrow._count_assignment(), target, copy_target()))
    return meant


def _overlaps(part: Part, other: Part) -> bool:
    np = _zarrow._import("numpy")
    try:
        # No name is bound to these arrays: a traceback that shows locals would read memory of a GPU.
        return bool(np.shares_memory(_described(np, part), _described(np, other), max_work=1000))
    except np.exceptions.TooHardError:
        return True


def _described(np: Any, part: Part) -> Any:
    """Return an array of NumPy at the address of a part, which must not be read."""
    description = {
        "version": 3,
        "data": (part.address, True),
        "shape": part.shape,
        "strides": part.strides,
        "typestr": f"|V{part.dtype.itemsize}",
    }
    return np.asarray(SimpleNamespace(__array_interface__=description))
