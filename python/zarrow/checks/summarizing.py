"""Computes statistics and a histogram of the elements of an array, part by part.

1. Mean and variance of the parts are combined by the formula of Chan, Golub and LeVeque, which is stable.
2. A histogram needs the range of the elements, so that the elements are read a second time.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrow._zarrow import Array
from zarrow.api.progress import Progress, reporting
from zarrow.checks.chunk_regions import parts
from zarrow.checks.nodes import nbytes_of
from zarrow.errors import DataTypeError


@dataclass(slots=True)
class Summary:
    """Statistics of an array's elements.

    Attributes
    ----------
    count : int
        Elements with a value: neither missing nor NaN.
    missing, nan, infinite : int
        Missing elements, NaN, and infinities. `mean` and `std` leave infinities out.
    smallest, largest : float or int or None
        None if no element has a value.
    mean, std : float or None
        Mean, and standard deviation of the population.
    edges : list of float or None
        Edges of the bins of the histogram; None without one.
    bins : list of int or None
        Elements in each bin.
    """

    count: int = 0
    missing: int = 0
    nan: int = 0
    infinite: int = 0
    smallest: float | int | None = None
    largest: float | int | None = None
    mean: float | None = None
    std: float | None = None
    edges: list[float] | None = None
    bins: list[int] | None = None


def summarize(array: Array, *, bins: int = 0, progress: Progress | bool | None = None) -> Summary:
    """Return statistics of an array of numbers or booleans, in bounded memory.

    Parameters
    ----------
    array
        An opened array.
    bins
        Number of bins of a histogram; 0 for no histogram. A histogram reads all elements twice.
    progress
        Called with the bytes of elements that were read, and of all; or True for a bar in a terminal or a
        notebook.

    Raises
    ------
    DataTypeError
        The elements are neither real numbers nor booleans.
    CodecError, StoreError
        A chunk cannot be read.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks.summarizing import summarize
    >>> found = summarize(zarrow.full((2, 2), 1.5), bins=1)
    >>> found.count, found.mean, found.std, found.bins
    (4, 1.5, 0.0, [4])
    """
    if _wider(array.dtype) is None:
        raise DataTypeError(
            f"statistics need numbers or booleans, and the elements are {array.dtype}", kind="array"
        )
    with reporting(progress, "statistics") as report:
        return _summary(array, bins, report)


def _summary(array: Array, bins: int, progress: Progress | None) -> Summary:
    found, spread, finite = Summary(), 0.0, 0
    low, high = math.inf, -math.inf
    total = nbytes_of(array) * (2 if bins else 1)
    done = 0
    for region in parts(array):
        values, missing = _values(array, region)
        found.missing += missing
        size = values.size
        if values.dtype.kind == "f":
            values = values[~np.isnan(values)]
            found.nan += size - values.size
        found.count += values.size
        if values.size:
            smallest, largest = values.min().item(), values.max().item()
            found.smallest = smallest if found.smallest is None else min(found.smallest, smallest)
            found.largest = largest if found.largest is None else max(found.largest, largest)
        if values.dtype.kind == "f":
            is_finite = np.isfinite(values)
            found.infinite += values.size - int(np.count_nonzero(is_finite))
            values = values[is_finite]
        if values.size:
            low, high = min(low, values.min().item()), max(high, values.max().item())
            # Step 1.
            with np.errstate(over="ignore", invalid="ignore"):
                mean = float(values.mean(dtype="f8"))
                parts_spread = float(np.square(values.astype("f8") - mean).sum())
            both = finite + values.size
            apart = mean - (found.mean or 0.0)
            # `apart**2` would raise an error if it is too large.
            spread += parts_spread + (apart * apart * finite * values.size / both if finite else 0.0)
            found.mean = (found.mean or 0.0) + apart * values.size / both
            finite = both
        done += _nbytes_in(array, region)
        if progress is not None:
            progress(done, total)
    if finite:
        found.std = math.sqrt(spread / finite)
    if bins and finite:
        edges = _edges(float(low), float(high), bins)
        found.edges, found.bins = edges.tolist(), _count_bins(array, edges, progress, total)
    return found


def _edges(low: float, high: float, bins: int) -> Any:
    """Return the edges of bins, also of a range that has no finite width, or too few numbers for its bins."""
    if math.isfinite(high - low):
        try:
            return np.histogram_bin_edges(np.array([low, high]), bins)
        except ValueError:
            margin, largest = 1e-9 * max(abs(low), abs(high)), sys.float_info.max
            low, high = max(low - margin, -largest), min(high + margin, largest)
    return 4 * np.linspace(low / 4, high / 4, bins + 1)


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return a type of NumPy's own that has all values of a type of real numbers; `None` for other types."""
    if dtype.kind in "biuf":
        return dtype
    if dtype.kind == "V" and dtype.type is not np.void:
        # Numbers of ml_dtypes, such as bfloat16 and int4: NumPy has no mean and no bins of them.
        return next((np.dtype(wider) for wider in ("i1", "u1", "f4") if np.can_cast(dtype, wider)), None)
    return None


def _values(array: Array, region: tuple[slice, ...]) -> tuple[Any, int]:
    """Return the elements of a region that are not missing, and the number of missing ones."""
    values = np.asanyarray(array.read(region).numpy())
    size = values.size
    values = np.ma.compressed(values) if isinstance(values, np.ma.MaskedArray) else values.ravel()
    missing = size - values.size
    if values.dtype.kind == "b":
        return values.view("u1"), missing
    return values.astype(_wider(values.dtype), copy=False), missing


def _nbytes_in(array: Array, region: tuple[slice, ...]) -> int:
    extents: list[int] = [part.stop - part.start for part in region]
    return nbytes_of(array) * math.prod(extents) // max(1, array.size)


def _count_bins(
    array: Array,
    edges: Any,
    progress: Progress | None,
    total: int,
) -> list[int]:
    """Count the elements in each bin (step 2)."""
    counts = np.zeros(len(edges) - 1, "i8")
    done = total // 2
    for region in parts(array):
        values, _ = _values(array, region)
        counts += np.histogram(values[np.isfinite(values)].astype("f8"), edges)[0]
        done += _nbytes_in(array, region)
        if progress is not None:
            progress(done, total)
    found: list[int] = counts.tolist()
    return found
