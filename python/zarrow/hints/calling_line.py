"""Warnings, attributed to the line of the program that called zarrow."""

from __future__ import annotations

import sys
import warnings

from zarrow.errors import ZarrowWarning

# xarray calls zarrow for a program.
_LIBRARIES = ("zarrow.", "xarray.")


def warn(message: str, category: type[Warning] = ZarrowWarning) -> None:
    """Warn, attributed to the program's line."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(_LIBRARIES):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
