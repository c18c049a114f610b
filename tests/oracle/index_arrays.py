"""Index arrays and masks, with NumPy's results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

Index = tuple[Any, ...]


def positions(item: Any, extent: int) -> np.ndarray[Any, Any]:
    """Return every position of an axis that one item of an orthogonal index selects."""
    if isinstance(item, list | tuple):
        item = np.array(item, bool if item and isinstance(item[0], bool) else int)
    return np.atleast_1d(np.arange(extent)[item]).astype(int)


def orthogonal(values: np.ndarray[Any, Any], index: Index) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the NumPy index of all combinations, with an axis for each item that is not an integer."""
    full = index + (slice(None),) * (values.ndim - len(index))
    lists = [positions(item, extent) for item, extent in zip(full, values.shape, strict=True)]
    kept = [axis for axis, item in enumerate(full) if not isinstance(item, int)]
    shaped = []
    for axis, places in enumerate(lists):
        shape = [1] * len(kept)
        if axis in kept:
            shape[kept.index(axis)] = -1
        shaped.append(places.reshape(shape))
    return tuple(shaped) if kept else tuple(np.array(int(places[0])) for places in lists)


def slices(extent: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-extent - 2, extent + 2)
    return st.builds(slice, bound, bound, st.none() | st.integers(-4, 4).filter(bool))


def lists(extent: int, length: int | None = None) -> st.SearchStrategy[list[int]]:
    most, least = (8, 0) if length is None else (length, length)
    if not extent:
        return st.just([]) if not least else st.nothing()
    return st.lists(st.integers(-extent, extent - 1), min_size=least, max_size=most)


@st.composite
def orthogonal_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Index:
    """Draw integers, slices, lists, tuples, arrays and masks, for some or all of the axes."""
    index: list[Any] = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        choices = [slices(extent), lists(extent), lists(extent).map(lambda places: np.array(places, int))]
        masks = st.lists(st.booleans(), min_size=extent, max_size=extent)
        choices += [masks.map(lambda mask: np.array(mask, bool)), lists(extent), lists(extent).map(tuple)]
        if extent:
            choices += [st.integers(-extent, extent - 1), masks, masks.map(tuple)]
        index.append(draw(st.one_of(choices)))
    return tuple(index)


@st.composite
def vectorized_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Index:
    """Draw arrays that can be broadcast, among integers and slices: at least one."""
    full = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    index: list[Any] = []
    for extent in shape:
        kind = draw(st.sampled_from(["array", "array", "array", "slice", "at"]))
        if kind == "slice" or not extent:
            index.append(draw(slices(extent)))
        elif kind == "at":
            index.append(draw(st.integers(-extent, extent - 1)))
        else:
            # Any trailing part of the shape, with some axes of length 1, is broadcast to it.
            own = full[draw(st.integers(0, len(full))) :]
            own = tuple(length if draw(st.booleans()) else 1 for length in own)
            places = draw(lists(extent, math.prod(own)))
            dtypes = ["i8", "i4", "u1"] if min(places, default=0) >= 0 else ["i8"]
            array = np.array(places, draw(st.sampled_from(dtypes))).reshape(own)
            index.append(nested(array.tolist()) if array.size and draw(st.booleans()) else array)
    return tuple(index)


def nested(positions: Any) -> Any:
    """Replace lists by tuples, which NumPy takes for arrays inside an index."""
    return tuple(map(nested, positions)) if isinstance(positions, list) else positions
