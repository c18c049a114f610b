"""Values of another type than the array's: written, refused, or converted."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import zarrow

NUMBERS = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (3, 4), "compressors": None},
    {"chunks": (4, 2)},
    {"chunks": (2, 2), "shards": (4, 6)},
    {"chunks": (7, 5), "order": "F"},
    {"chunks": (3, 4), "serializer": {"name": "bytes", "configuration": {"endian": "big"}}},
]


def empty(dtype: Any, shape: tuple[int, ...] = (7, 6), **options: Any) -> zarrow.Array:
    return zarrow.create_array(zarrow.MemoryStore(), shape=shape, dtype=dtype, **options)


@pytest.mark.parametrize("found", NUMBERS)
@pytest.mark.parametrize("wanted", NUMBERS)
def test_numbers_are_cast_as_numpy_casts_them(found: str, wanted: str) -> None:
    values = (np.arange(42).reshape(7, 6) % 11).astype(found)
    expected = values.astype(wanted)
    for order in (
        values,
        np.asfortranarray(values),
        values[::-1][::-1],
        values.astype(values.dtype.newbyteorder()),
    ):
        array = empty(wanted, chunks=(3, 4))
        array.write(..., order, casting="unsafe")
        np.testing.assert_array_equal(array[...], expected)
        assert array.dtype == np.dtype(wanted)


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_every_layout_and_selection_casts_on_the_way(layout: dict[str, Any]) -> None:
    array, expected = empty("f4", **layout), np.zeros((7, 6), "f4")
    random = np.random.default_rng(5)
    indices: list[Any] = [
        ..., (slice(1, 6, 2), slice(None)), (3, slice(None, None, -1)), ([5, 0], [1, 4]),
        (slice(None), [0, 5]),
    ]  # fmt: skip
    for index in indices:
        given = random.normal(size=expected[index].shape)
        array[index] = given
        expected[index] = given
        np.testing.assert_array_equal(array[...], expected)
    array.append(np.full((2, 6), 0.1))
    np.testing.assert_array_equal(array[7:], np.full((2, 6), 0.1, "f4"))


def test_nothing_is_copied_but_a_chunk_a_thread(tmp_path: Path) -> None:
    """The doubles are in NumPy's memory, which stays unchanged while their chunks are cast."""
    values = np.arange(60_000.0).reshape(300, 200)
    array = zarrow.create_array(tmp_path, shape=values.shape, dtype="f4", chunks=(64, 64))
    array[:, ::-1] = values
    np.testing.assert_array_equal(array[...], values[:, ::-1].astype("f4"))
    assert values[299, 199] == 59_999


@pytest.mark.parametrize(
    ("found", "wanted", "allowed"),
    [
        ("f8", "f4", True), ("f8", "f2", True), ("i8", "f4", True), ("i8", "i2", True), ("i8", "u1", True),
        ("u8", "i8", True), ("bool", "i1", True), ("f8", "i8", False), ("f4", "u1", False),
        ("c16", "f8", False), ("i8", "bool", False), ("f8", "bool", False), ("c16", "c8", True),
        ("M8[ms]", "M8[s]", True),
        ("S3", "S2", False), ("S2", "S3", True), ("f8", "M8[s]", False), ("i8", "S9", False),
    ],
)  # fmt: skip
def test_casts_allowed_by_same_kind(found: str, wanted: str, allowed: bool) -> None:
    array, values = empty(wanted, (3,)), np.zeros(3, found)
    if allowed:
        array[...] = values
        np.testing.assert_array_equal(array[...], values.astype(wanted))
    else:
        with pytest.raises(zarrow.DataTypeError, match=r'casting="unsafe"') as caught:
            array[...] = values
        assert isinstance(caught.value, TypeError)


def test_casting_is_that_of_numpy() -> None:
    array = empty("f4", (2,))
    for casting in ("no", "equiv", "safe"):
        with pytest.raises(zarrow.DataTypeError, match=casting):
            array.write(..., np.ones(2), casting=casting)
    with pytest.raises(ValueError, match='"same_kind"'):
        array.write(..., np.ones(2), casting="same kind")  # type: ignore[arg-type]
    array.oindex.write([0], np.full(1, 2.5), casting="same_kind")
    assert array[...].tolist() == [2.5, 0.0]
    whole = empty("i4", (2,))
    whole.vindex.write([0, 1], np.array([1.9, -1.9]), casting="unsafe")
    assert whole[...].tolist() == [1, -1]


@pytest.mark.parametrize("wanted", ["i1", "u1", "i4", "u4", "i8"])
def test_integers_that_do_not_fit_are_refused_before_anything_is_written(wanted: str) -> None:
    limits = np.iinfo(wanted)
    array = empty(wanted, (4,), chunks=(1,))
    array[...] = np.array([1, 2, 3, 4], "u8")
    for value in (limits.max + 1, limits.min - 1):
        found = np.uint64 if value > np.iinfo("i8").max else np.int64
        if value < np.iinfo("i8").min:
            continue
        with pytest.raises(OverflowError, match=f"{value} does not fit"):
            array[...] = np.array([9, 9, 9, value], found)
        assert array[...].tolist() == [1, 2, 3, 4]
    array[...] = np.array([limits.max, 0, 0, max(limits.min, np.iinfo("i8").min)], object).astype(
        "u8" if limits.min == 0 else "i8"
    )
    assert array[0].item() == limits.max


def test_overflow_to_infinity_follows_errstate(tmp_path: Path) -> None:
    values = np.array([1.0, 1e300])
    array = zarrow.create_array(tmp_path, shape=(2,), dtype="f4")
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast") as caught:
        array[...] = values
    assert caught[0].filename == __file__
    assert array[...].tolist() == [1.0, np.inf]
    array[...] = 0
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="float32"):
        array[...] = values
    assert array[...].tolist() == [0.0, 0.0]
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        array[...] = values
    calls: list[str] = []
    with np.errstate(over="call"):
        previous = np.seterrcall(lambda kind, _: calls.append(kind))
        array[...] = values
        np.seterrcall(previous)
    assert calls == ["overflow"]


def test_infinity_itself_does_not_overflow() -> None:
    array = empty("f2", (3,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array[...] = np.array([np.inf, -np.inf, np.nan])
        array[...] = np.array([np.nan, np.nan, np.nan])
        array[...] = np.array([65504.0, -65504.0, np.inf])
    with pytest.warns(RuntimeWarning, match="float16"):
        array[...] = np.array([np.inf, 1e6, 0])


def test_hidden_elements_need_not_fit() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(3,), dtype="optional[int16]")
    array[...] = np.ma.array([1, 70000, 3], mask=[False, True, False])
    assert array[...].tolist() == [1, None, 3]
    with pytest.raises(OverflowError, match="70000"):
        array[...] = np.ma.array([1, 70000, 3], mask=[True, False, False])


def test_small_numbers_of_ml_dtypes() -> None:
    brain = empty("bfloat16", (3,))
    brain[...] = np.array([1.0, 2.5, 3.0])
    assert brain[...].numpy().astype("f4").tolist() == [1.0, 2.5, 3.0]
    nibbles = empty("int4", (3,))
    nibbles[...] = np.array([-8, 0, 7])
    assert nibbles[...].numpy().astype(int).tolist() == [-8, 0, 7]
    with pytest.raises(OverflowError, match="8 does not fit int4"):
        nibbles[...] = np.array([8, 0, 0])
    with pytest.raises(zarrow.DataTypeError):
        nibbles[...] = np.array([1.5, 0, 0])
    assert nibbles[...].numpy().dtype == ml_dtypes.int4


def test_fields_are_cast_like_arrays() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(3,), dtype=[("a", "f4"), ("b", "i2")])
    array["a"] = np.arange(3.0)
    array["b"] = np.arange(3)
    assert array[...].tolist() == [(0.0, 0), (1.0, 1), (2.0, 2)]
    with pytest.raises(zarrow.DataTypeError, match="casting"):
        array[...] = np.zeros(3, [("a", "f8"), ("b", "i8")])


def test_times_are_cast_where_nothing_is_cut_off() -> None:
    array = empty("M8[s]", (2,))
    array[...] = np.array(["2020-01-01T00:00:01.000", "NaT"], "M8[ms]")
    assert array[0].item().second == 1
    with pytest.raises(zarrow.DataTypeError, match="cut it off"):
        array[...] = np.array(["2020-01-01T00:00:01.500", "NaT"], "M8[ms]")
    array.write(..., np.array(["2020-01-01T00:00:02.500", "NaT"], "M8[ms]"), casting="unsafe")
    assert array[0].item().second == 2


def test_casting_no_refuses_other_byte_orders() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), shape=2, dtype="f4")
    other = np.array([1, 2], np.dtype("f4").newbyteorder())
    with pytest.raises(zarrow.DataTypeError, match="byte-swapped float32"):
        array.write(..., other, casting="no")
    array.write(..., other, casting="equiv")
    assert array[...].tolist() == [1, 2]
    array.write(..., np.array([3, 4], "f4"), casting="no")
    assert array[...].tolist() == [3, 4]


@pytest.mark.parametrize("dtype", ["u8", "optional[uint64]"])
def test_integers_on_both_sides_of_2_to_63_are_integers(dtype: str) -> None:
    """NumPy converts such a list to floats."""
    array = zarrow.create_array(zarrow.MemoryStore(), shape=3, dtype=dtype)
    array[...] = [2**64 - 1, 3, 2**53 + 1]
    assert array[...].tolist() == [2**64 - 1, 3, 2**53 + 1]
    if dtype != "u8":
        array[...] = [2**64 - 1, None, 3]
        assert array[...].tolist() == [2**64 - 1, None, 3]
    for values in ([-1, 2**64 - 1, 3], [2**64, 1, 2]):
        with pytest.raises(OverflowError):
            array[...] = values
    with pytest.raises(zarrow.DataTypeError):
        array[...] = [1.5, 2, 2**64 - 1]
    assert zarrow.asarray([[2**64 - 1], [3]], dtype="u8").tolist() == [[2**64 - 1], [3]]
