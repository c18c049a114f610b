"""Reads the same selection by zarrow and by zarr-python, and compares time and values.

Each timed read comes directly after an identical one that is not counted: this measures the reading of
chunks from the system's page cache, by code that has run before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Reading:
    """One selection, read twice: seconds, and whether the values are the same."""

    array: Any
    zarrow_seconds: float
    zarr_python_seconds: float | None
    equal: bool


def timed(read: Callable[[], Any]) -> tuple[Any, float]:
    """Return what the second of two identical calls returns, and the seconds that it took."""
    read()
    start = time.perf_counter()
    result = read()
    return result, time.perf_counter() - start


def beside_zarr_python(array: Any, peer: Any, selection: Any) -> Reading:
    """Read the selection of a zarrow array, and of the same array opened by zarr-python."""
    ours, ours_seconds = timed(lambda: array[selection])
    theirs, theirs_seconds = timed(lambda: peer[selection])
    equal = bool(np.array_equal(ours.numpy(), theirs))
    return Reading(ours, ours_seconds, theirs_seconds, equal)


def beside_source(array: Any, source: Any, selection: Any) -> Reading:
    """Read the selection of an array, and check it against its source."""
    ours, seconds = timed(lambda: array[selection])
    values = ours.numpy()
    if isinstance(source, np.ma.MaskedArray):
        expected = source[selection]
        same_mask = np.array_equal(np.ma.getmaskarray(values), np.ma.getmaskarray(expected))
        equal = bool(same_mask and np.ma.allequal(values, expected))
    elif isinstance(source, list):
        equal = values.tolist() == source[selection]
    else:
        equal = bool(np.array_equal(values, source[selection]))
    return Reading(ours, seconds, None, equal)
