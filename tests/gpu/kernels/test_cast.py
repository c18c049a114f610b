"""Casts compared with NumPy and ml_dtypes: every pair of types."""

from __future__ import annotations

import ctypes
import itertools
import warnings

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .driver import Bytes, Driver
from .settings import PROPERTIES
from .structs import Cast, lengths, strides
from .views import View, random_bytes, shapes, views

pytestmark = pytest.mark.kernels

# In the order of their codes.
INTEGERS = [np.dtype(name) for name in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]
FLOATS = [np.dtype(name) for name in ("f2", ml_dtypes.bfloat16, "f4", "f8", "c8", "c16")]
TYPES = [*INTEGERS, *FLOATS]
NAMES = [dtype.name for dtype in TYPES]

SPECIAL = [
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    256,
    300.7,
    1.5,
    2.5,
    0.1,
    1e-5,
    6e-8,
    2.98e-8,
    2.99e-8,
    5.97e-8,
    1e-40,
    1e-320,
]
SPECIAL += [
    2049,
    4097,
    32767,
    32768,
    65503,
    65504,
    65519,
    65519.99,
    65520,
    65536,
    2**24 + 1,
    2**31 - 1,
    2**31,
    2**32,
]
SPECIAL += [
    2**32 + 2**24 + 1,
    2**40 + 2**32 + 1,
    2**53 + 1,
    2**63 - 1024,
    2**63,
    2**63 + 4096,
    2**64,
    1e19,
    3e38,
    3.4028236e38,
    1e39,
    1e300,
]
SPECIAL += [float("inf"), float("nan")]


def values(dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """Return the special values that a type can hold, with both signs, and random bits."""
    if dtype.kind == "b":
        return np.array([False, True, True])
    if dtype.itemsize <= 2:
        # All values of the type.
        return np.arange(1 << 8 * dtype.itemsize).astype(f"u{dtype.itemsize}").view(dtype)
    random = random_bytes(4000 * dtype.itemsize, 5).view(dtype)
    if dtype.kind in "iu":
        information = np.iinfo(dtype)
        whole = [int(x) for x in SPECIAL if x == x and abs(x) != float("inf")]
        signed = [sign * x for x in whole for sign in (1, -1)] + [
            information.max,
            information.max - 1,
            information.min,
        ]
        return np.concatenate(
            [np.array([x for x in signed if information.min <= x <= information.max], dtype), random]
        )
    both = [sign * x for x in SPECIAL for sign in (1.0, -1.0)]
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            return np.concatenate([np.array(both), np.array(both) * 1j, np.full(3, 1 - 2j)]).astype(dtype)
        # Also the neighbours of midpoints between two halves.
        halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float64)
        middle = (halves[:-1] + halves[1:]) / 2
        near = np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)])
        return np.concatenate([np.array(both).astype(dtype), near.astype(dtype), random])


def expected_cast(source: npt.NDArray[np.generic], dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """Return NumPy's result."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return source.astype(dtype)


def parts(elements: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the elements, or their real and imaginary parts."""
    return elements.view(f"f{elements.itemsize // 2}") if elements.dtype.kind == "c" else elements


def assert_same(actual: npt.NDArray[np.generic], expected: npt.NDArray[np.generic]) -> None:
    """Assert equal bits, except for the payload of NaN."""
    actual, expected = parts(actual), parts(expected)
    # Only NaN differs from itself.
    nan = expected != expected
    np.testing.assert_array_equal(actual != actual, nan)
    bits = f"u{expected.itemsize}"
    np.testing.assert_array_equal(actual.view(bits)[~nan], expected.view(bits)[~nan])


def cast(
    driver: Driver, source: npt.NDArray[np.generic], dtype: np.dtype[np.generic]
) -> npt.NDArray[np.generic]:
    """Cast the elements with the kernel."""
    whole = source.view(np.uint8)
    with driver.memory(whole, np.zeros(source.size * dtype.itemsize, np.uint8)) as [address, destination]:
        parameters = Cast(
            source=address,
            destination=destination,
            count=source.size,
            shape=lengths([source.size]),
            source_stride=strides([source.itemsize]),
            destination_stride=strides([dtype.itemsize]),
            rank=1,
            source_type=TYPES.index(source.dtype),
            destination_type=TYPES.index(dtype),
        )
        driver.launch("zarrow_cast", parameters)
        return driver.download(destination, source.size * dtype.itemsize).view(dtype)


@pytest.mark.parametrize("to", TYPES, ids=NAMES)
@pytest.mark.parametrize("of", TYPES, ids=NAMES)
def test_each_type_becomes_each(shared: Driver, of: np.dtype[np.generic], to: np.dtype[np.generic]) -> None:
    source = values(of)
    if to == np.dtype("u4") and of in FLOATS:
        # Beyond, NumPy's result depends on the position in the array (`number.cuh`).
        with np.errstate(all="ignore"):
            real = source.real.astype(np.float64)
        source = source[(real > -(2.0**31)) & (real < 2.0**32)]
    assert_same(cast(shared, source, to), expected_cast(source, to))


def test_large_floats_become_u32_as_a_single_one_does(shared: Driver) -> None:
    """NumPy's vector loops depend on the machine; a single value is converted through `i64`."""
    source = np.array([-5e9, 1e10, 2.0**32 + 5, np.nan, np.inf, -1.0])
    expected = np.array(
        [2**64 - 5 * 10**9, 10**10, 2**32 + 5, 1 << 63, 1 << 63, 2**64 - 1], np.uint64
    ).astype(np.uint32)
    assert_same(cast(shared, source, np.dtype("u4")), expected)


@st.composite
def strided_casts(draw: st.DrawFn) -> tuple[np.dtype[np.generic], np.dtype[np.generic], View, View]:
    """Two types, each with a view of the same shape."""
    of, to = draw(st.sampled_from(TYPES)), draw(st.sampled_from(TYPES))
    shape = draw(shapes)
    return of, to, draw(views(shape, of.itemsize, broadcast=True)), draw(views(shape, to.itemsize))


@PROPERTIES
@given(strided_casts())
def test_strided_elements_are_cast(
    shared: Driver, drawn: tuple[np.dtype[np.generic], np.dtype[np.generic], View, View]
) -> None:
    of, to, source, destination = drawn
    content: Bytes = np.zeros(source.nbytes, np.uint8)
    view = source.of(content, of)
    view[...] = np.arange(view.size).reshape(view.shape).astype(of)
    before = random_bytes(destination.nbytes, 3)
    after = before.copy()
    destination.of(after, to)[...] = expected_cast(view, to)
    with shared.memory(content, before) as [source_address, destination_address]:
        parameters = Cast(
            source=source_address + source.offset,
            destination=destination_address + destination.offset,
            count=source.count,
            shape=lengths(source.shape),
            source_stride=strides(source.strides),
            destination_stride=strides(destination.strides),
            rank=len(source.shape),
            source_type=TYPES.index(of),
            destination_type=TYPES.index(to),
        )
        shared.launch("zarrow_cast", parameters, blocks=(1, 1), threads=7)
        np.testing.assert_array_equal(shared.download(destination_address, len(after)), after)


def test_bits_stay_between_the_same_types(shared: Driver) -> None:
    """Including a signalling NaN."""
    for dtype in TYPES:
        if dtype.kind != "b":
            source = random_bytes(4096, 1).view(dtype)
            source.view(np.uint8)[: dtype.itemsize] = 0xFF
            assert cast(shared, source, dtype).tobytes() == source.tobytes()


def test_codes_are_those_of_the_table() -> None:
    assert [dtype.itemsize for dtype in TYPES] == [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16]
    assert len(list(itertools.product(TYPES, TYPES))) == 225
    assert ctypes.sizeof(Cast) == 232
