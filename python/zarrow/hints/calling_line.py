"""The line of the program that called zarrow, for warnings to name."""

from __future__ import annotations

import sys

# xarray calls zarrow for a program.
_LIBRARIES = ("zarrow.", "xarray.")


def frames_of_zarrow() -> int:
    """Count the frames from the caller of this down to the program, as `stacklevel` of a warning counts."""
    count, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(_LIBRARIES):
        count, frame = count + 1, frame.f_back
    return count
