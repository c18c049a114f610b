"""Comparisons checked with NumPy: bits, IEEE, and NaN."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .driver import Driver
from .settings import PROPERTIES
from .structs import Compare, lengths, strides
from .test_cast import TYPES
from .views import View, random_bytes, shapes, views

pytestmark = pytest.mark.kernels

SAMPLES = [0.0, -0.0, 1.0, float("nan"), 2.0]
Elements = npt.NDArray[np.generic]


def samples(dtype: np.dtype[np.generic]) -> Elements:
    """Few values, so that pairs are often equal; no NaN in types that are not floats."""
    if dtype.kind == "c":
        return np.array([complex(re, im) for re in SAMPLES for im in SAMPLES[:4]], dtype)
    is_float = dtype.kind == "f" or dtype.name == "bfloat16"
    return np.array(SAMPLES if is_float else [0, 1, 2], np.float64).astype(dtype)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.dtype[np.generic], View, View, int]:
    """A type, two views of one shape, and their fill."""
    dtype = draw(st.sampled_from(TYPES))
    shape = draw(shapes)
    sides = [draw(views(shape, dtype.itemsize, broadcast=True)) for _ in range(2)]
    return dtype, sides[0], sides[1], draw(st.integers(0, 9))


def filled(view: View, dtype: np.dtype[np.generic], seed: int) -> tuple[npt.NDArray[np.uint8], Elements]:
    """A buffer with samples in the view's elements. Every third pair of arrays holds a single value."""
    content = np.zeros(view.nbytes, np.uint8)
    elements = view.of(content, dtype)
    choices = samples(dtype)
    which = np.random.default_rng(seed).integers(0, len(choices), view.shape)
    elements[...] = choices[(which * 0 + seed % len(choices)) if seed % 3 == 0 else which]
    return content, elements


def parameters(dtype: np.dtype[np.generic], left: View, right: View, addresses: list[int]) -> Compare:
    return Compare(
        left=addresses[0] + left.offset,
        right=addresses[1] + right.offset,
        count=left.count,
        shape=lengths(left.shape),
        left_stride=strides(left.strides),
        right_stride=strides(right.strides),
        rank=len(left.shape),
        type=TYPES.index(dtype),
    )


def is_nan(elements: Elements) -> npt.NDArray[np.bool_]:
    if elements.dtype.kind == "c":
        return np.isnan(elements)
    return np.isnan(elements.astype(np.float64))


def bits(elements: Elements) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(elements).reshape(-1).view(np.uint8).reshape(elements.size, -1)


@PROPERTIES
@given(pairs(), st.booleans(), st.data())
def test_bit_differences_are_found(
    shared: Driver,
    drawn: tuple[np.dtype[np.generic], View, View, int],
    equal_nan: bool,
    data: st.DataObject,
) -> None:
    """Both sides have one value, or the same random values, except for one element."""
    dtype, left, right, seed = drawn
    (content, elements), (other_content, others) = filled(left, dtype, seed), filled(right, dtype, seed)
    place = tuple(data.draw(st.integers(0, length - 1)) for length in left.shape)
    others[place] = data.draw(st.sampled_from([others[place], *samples(dtype)]))
    same = (bits(elements) == bits(others)).all(axis=1)
    if equal_nan:
        same |= (is_nan(elements) & is_nan(others)).reshape(-1)
    with shared.memory(content, other_content, np.zeros(4, np.uint8)) as addresses:
        pair = parameters(dtype, left, right, addresses)
        pair.equal_nan = equal_nan
        shared.launch("zarrow_differs", pair, ctypes.c_uint64(addresses[2]), threads=3)
        assert shared.download(addresses[2], 4).view(np.uint32)[0] == (not same.all())


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float64", "complex64", "complex128"])
def test_each_value_differs_from_each_other(shared: Driver, name: str, equal_nan: bool) -> None:
    """A complex number with one NaN part is NaN."""
    dtype = next(dtype for dtype in TYPES if dtype.name == name)
    values = samples(dtype)
    content = values.view(np.uint8)
    one = View((), 0, (), dtype.itemsize)
    with shared.memory(content, np.zeros((len(values) ** 2, 4), np.uint8).reshape(-1)) as [address, flags]:
        for left, right in np.ndindex(len(values), len(values)):
            places = [address + left * dtype.itemsize, address + right * dtype.itemsize]
            pair = parameters(dtype, one, one, places)
            pair.equal_nan = equal_nan
            flag = flags + (left * len(values) + right) * 4
            shared.launch("zarrow_differs", pair, ctypes.c_uint64(flag), blocks=(1, 1), threads=1)
        differs = shared.download(flags, len(values) ** 2 * 4).view(np.uint32).reshape(len(values), -1)
    same = (bits(values)[:, None] == bits(values)[None]).all(axis=2)
    if equal_nan:
        same |= is_nan(values)[:, None] & is_nan(values)[None]
    np.testing.assert_array_equal(differs, ~same)


@PROPERTIES
@given(pairs(), st.data())
def test_pairs_are_equal_as_in_numpy(
    shared: Driver, drawn: tuple[np.dtype[np.generic], View, View, int], data: st.DataObject
) -> None:
    dtype, left, right, seed = drawn
    (content, elements), (other_content, others) = filled(left, dtype, seed), filled(right, dtype, seed + 1)
    destination = data.draw(views(left.shape, 1))
    before = random_bytes(destination.nbytes, 2)
    after = before.copy()
    destination.of(after, np.dtype(bool))[...] = elements == others
    with shared.memory(content, other_content, before) as addresses:
        pair = parameters(dtype, left, right, addresses)
        pair.destination = addresses[2] + destination.offset
        pair.destination_stride = strides(destination.strides)
        shared.launch("zarrow_equal", pair, threads=5)
        np.testing.assert_array_equal(shared.download(addresses[2], len(after)), after)


@PROPERTIES
@given(pairs())
def test_zeros_and_others_are_found(
    shared: Driver, drawn: tuple[np.dtype[np.generic], View, View, int]
) -> None:
    dtype, left, right, seed = drawn
    content, elements = filled(left, dtype, seed)
    nonzero = elements.astype(bool)
    expected = (0 if nonzero.all() else 1) | (2 if nonzero.any() else 0)
    with shared.memory(content, np.zeros(4, np.uint8)) as addresses:
        shared.launch(
            "zarrow_nonzero", parameters(dtype, left, right, addresses), ctypes.c_uint64(addresses[1])
        )
        assert shared.download(addresses[1], 4).view(np.uint32)[0] == expected
