"""Makes blocks of elements smaller: each window of neighbours becomes one element.

1. Windows begin at the first element. The last window along an axis has the elements that exist.
2. Integers are averaged exactly, and rounded to the nearest integer, halves to the even one. Floats are
   averaged in 64 bits at least.
3. The mode is the most frequent element of a window, the smallest of several. Most windows of a label image
   have one value, which is found without sorting.
4. Elements are passed through in slabs, so that intermediate results stay in the processor's cache.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array
from zarrow.errors import DataTypeError

Method: TypeAlias = Literal["mean", "mode", "nearest"]
"""How a window becomes one element: its mean, its most frequent element, or its first one."""

_Values: TypeAlias = npt.NDArray[Any]

# The size of a slab's elements (step 4).
_SLAB_NBYTES = 1 << 20


def check_type(array: Array, method: str) -> None:
    """Refuse elements that cannot be reduced.

    Raises
    ------
    ValueError
        The method is unknown.
    DataTypeError
        Elements of this type have no mean, or are no numbers.
    """
    if method not in _METHODS:
        raise ValueError(f"method is {method!r}, expected 'mean', 'mode' or 'nearest'")
    kind = getattr(array.dtype, "kind", "")
    if not isinstance(array.data_type, str) or kind not in "iufcb" or (kind == "b" and method == "mean"):
        raise DataTypeError(
            f"elements of type {array.data_type} have no {method}"
            + (": pass method='mode' or method='nearest'" if kind == "b" else ", expected numbers"),
            node=array,
        )


def smaller(shape: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a smaller array."""
    return tuple(-(-extent // factor) for extent, factor in zip(shape, factors, strict=True))


def downscale(values: _Values, factors: Sequence[int], method: Method, out: _Values) -> None:
    """Fill `out`, an array of the smaller shape."""
    reduce = _METHODS[method]
    for target, source, window in _parts(values.shape, factors):
        target_part, part = out[target], values[source]
        for rows in _slabs(target_part.shape, part.nbytes):
            first = tuple(
                slice(row.start * extent, row.stop * extent)
                for row, extent in zip(rows, window, strict=False)
            )
            target_part[rows] = reduce(part[first], window)


def _parts(
    shape: Sequence[int], factors: Sequence[int]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...], tuple[int, ...]]]:
    """Yield parts with windows of one shape: the region of the result, that of the values, and the shape."""
    along = []
    for extent, factor in zip(shape, factors, strict=True):
        full, rest = divmod(extent, factor)
        parts = [(slice(0, full), slice(0, full * factor), factor)] if full else []
        if rest:
            parts.append((slice(full, full + 1), slice(full * factor, extent), rest))
        along.append(parts)
    for chosen in itertools.product(*along):
        yield (
            tuple(part[0] for part in chosen),
            tuple(part[1] for part in chosen),
            tuple(part[2] for part in chosen),
        )


def _slabs(shape: Sequence[int], nbytes: int) -> Iterator[tuple[slice, ...]]:
    """Yield regions of the leading axes of the result, with about a slab's bytes of values each."""
    axis = next((at for at, extent in enumerate(shape) if extent > 1), None)
    if axis is None:
        yield ()
        return
    at_once = max(1, shape[axis] * _SLAB_NBYTES // max(1, nbytes))
    before = tuple(slice(0, 1) for _ in range(axis))
    for start in range(0, shape[axis], at_once):
        yield (*before, slice(start, min(start + at_once, shape[axis])))


def _nearest(values: _Values, window: Sequence[int]) -> _Values:
    return values[tuple(slice(None, None, extent) for extent in window)]


def _mean(values: _Values, window: Sequence[int]) -> _Values:
    """Return the mean of each window (step 2)."""
    count = math.prod(window)
    kind, nbits = values.dtype.kind, 8 * values.dtype.itemsize
    if count == 1:
        return values
    if kind in "fc":
        wide = np.result_type(values.dtype, np.float64)
        return _sum(values, window, wide) / count
    room = nbits + (count - 1).bit_length()
    if room <= 64:
        wide = np.dtype(f"{kind}{next(nbytes for nbytes in (2, 4, 8) if 8 * nbytes >= room)}")
        total = _sum(values, window, wide)
        total += _half(total // count, count)
        total //= count
        return total
    # The sum of 64-bit integers would overflow: quotients and remainders are added up separately.
    quotient = values // count
    remainder = values - quotient * count
    total = _sum(quotient, window, values.dtype)
    remainders = _sum(remainder, window, values.dtype)
    carried = remainders // count
    total += carried
    remainders -= carried * count
    remainders += _half(total, count)
    total += remainders // count
    return total


def _half(quotient: _Values, count: int) -> _Values:
    """Return the addend of sums before their division, which rounds halves to even integers."""
    if count % 2:
        return np.full((), count // 2, quotient.dtype)
    quotient = quotient & 1
    quotient += count // 2 - 1
    return quotient


def _sum(values: _Values, window: Sequence[int], dtype: np.dtype[Any]) -> _Values:
    """Return the sum of each window: axis by axis, the outer ones first, since their elements are in rows."""
    for axis, extent in enumerate(window):
        if extent == 1:
            continue
        parts = [values[(slice(None),) * axis + (slice(at, None, extent),)] for at in range(extent)]
        total = np.add(parts[0], parts[1], dtype=dtype)
        for part in parts[2:]:
            total += part
        values = total
    return values


def _mode(values: _Values, window: Sequence[int]) -> _Values:
    """Return the most frequent element of each window (step 3)."""
    offsets = itertools.product(*map(range, window))
    views = [
        values[tuple(slice(at, None, extent) for at, extent in zip(offset, window, strict=True))]
        for offset in offsets
    ]
    result: _Values = views[0].copy()
    is_mixed = np.zeros(result.shape, np.bool_)
    for view in views[1:]:
        is_mixed |= view != result
    if not is_mixed.any():
        return result
    each = np.stack([view[is_mixed] for view in views], axis=-1)
    each.sort(axis=-1)
    found = each[:, 0].copy()
    run = np.ones(len(each), np.intp)
    longest = run.copy()
    for at in range(1, len(views)):
        run += 1
        run[each[:, at] != each[:, at - 1]] = 1
        is_longer = run > longest
        longest[is_longer] = run[is_longer]
        found[is_longer] = each[is_longer, at]
    result[is_mixed] = found
    return result


_METHODS: Mapping[Method, Callable[[_Values, Sequence[int]], _Values]] = {
    "mean": _mean,
    "mode": _mode,
    "nearest": _nearest,
}
