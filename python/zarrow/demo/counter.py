"""Counts what a step allocates, by the allocators' own books and by the pages that the process holds.

1. `heap`: bytes in use by glibc's `malloc` (`mallinfo2`, all arenas and mapped blocks), which NumPy, PyTorch,
   JAX and this package use, and bytes in use by Arrow's memory pool.
2. `resident`: bytes of memory that the process holds, which also shows what allocates by itself (polars).

Both are differences of totals of the whole process: a copy of a megabyte cannot hide, and a few hundred
bytes of bookkeeping are visible as such.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Growth:
    """Growth of the heap and of the resident memory in bytes; `None` if the system does not report it."""

    heap: int | None
    resident: int | None


def measure(step: Callable[[], Result]) -> tuple[Result, Growth]:
    """Run the step and say by how much memory grew while its result was still alive."""
    heap, resident = _heap(), _resident()
    result = step()
    return result, Growth(_difference(_heap(), heap), _difference(_resident(), resident))


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def _heap() -> int | None:
    if _MALLINFO2 is None:
        return None
    information = _MALLINFO2()
    arrow = sys.modules.get("pyarrow")
    in_pool: int = arrow.total_allocated_bytes() if arrow else 0
    return int(information.uordblks + information.hblkhd + in_pool)


def _mallinfo2() -> Callable[[], Any] | None:
    """Look up `mallinfo2`, which glibc has from 2.33 on."""
    names = (
        *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
        *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
    )
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is not None:
        fields = {"_fields_": [(name, ctypes.c_size_t) for name in names]}
        function.restype = type("mallinfo2", (ctypes.Structure,), fields)
    return function


_MALLINFO2 = _mallinfo2()


def _resident() -> int | None:
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        return None
    return int(statistics.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
