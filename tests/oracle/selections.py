"""Selections in NumPy's notation: fixed ones for every array, and random ones."""

import random
from types import EllipsisType

from hypothesis import strategies as st

Part = int | slice | EllipsisType
Selection = tuple[Part, ...]


def fixed(shape: tuple[int, ...]) -> list[Selection]:
    """Return selections that use each rule of basic indexing once, for an array of any shape."""
    ndim = len(shape)
    selections: list[Selection] = [
        (),
        (...,),
        (slice(None, None, -1),) * ndim,
        (slice(None, None, 2),) * ndim,
    ]
    if ndim:
        selections += [
            (slice(1, -1),),
            (..., slice(-3, None)),
            (slice(None, None, -3), ...),
            (slice(3, 3),),
            (slice(5, 1),),
            (slice(-100, 100, 3), ...),
            (slice(100, -100, -2),) * ndim,
        ]
    if ndim > 1:
        selections += [(slice(None), slice(-1, None, -2)), (slice(0, 1), ..., slice(None, None, 3))]
    if 0 not in shape:
        selections += [(0,) * ndim, (-1,) * ndim]
        if ndim:
            selections += [(shape[0] - 1, ...), (..., -shape[-1])]
        if ndim > 2:
            selections += [(0, ..., slice(None, None, -1), -1), (slice(None), shape[1] // 2)]
    return selections


def random_one(rng: random.Random, shape: tuple[int, ...]) -> Selection:
    """Return integers, slices with any step and bounds inside and outside, and an ellipsis somewhere."""
    parts: list[Part] = []
    for extent in shape:
        bounds = [None, *range(-extent - 2, extent + 3)]
        if extent and rng.random() < 0.25:
            parts.append(rng.randrange(-extent, extent))
        else:
            step = rng.choice([None, 1, 2, 3, 5, -1, -2, -3, extent + 1])
            parts.append(slice(rng.choice(bounds), rng.choice(bounds), step))
    if rng.random() < 0.3:
        start = rng.randint(0, len(parts))
        parts[start : rng.randint(start, len(parts))] = [...]
    return tuple(parts)


def any_of(shape: tuple[int, ...]) -> st.SearchStrategy[Selection]:
    """Like `random_one`, as a strategy that shrinks."""

    def part(extent: int) -> st.SearchStrategy[Part]:
        bound = st.none() | st.integers(-extent - 2, extent + 2)
        step = st.none() | st.integers(-5, 5).filter(bool)
        slices: st.SearchStrategy[Part] = st.builds(slice, bound, bound, step)
        return slices | st.integers(-extent, extent - 1) if extent else slices

    def with_ellipsis(parts: tuple[Part, ...]) -> st.SearchStrategy[Selection]:
        cut = st.tuples(st.integers(0, len(parts)), st.integers(0, len(parts))).map(sorted)
        return st.just(parts) | cut.map(lambda ends: (*parts[: ends[0]], ..., *parts[ends[1] :]))

    return st.tuples(*map(part, shape)).flatmap(with_ellipsis)
