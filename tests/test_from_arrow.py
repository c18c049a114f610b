"""`from_arrow`: shared values, nulls in a mask, joined chunks, for every type and slice."""

from __future__ import annotations

import ctypes
import datetime
import gc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handwritten
import zarrow

NUMBERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
]
SHARED = [
    *NUMBERS,
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.binary(3), pa.bool8()),
]
COPIED = [pa.bool_(), pa.date32()]
TEXT = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]


def values(kind: pa.DataType) -> list:
    """Return some values of the type, without nulls."""
    if pa.types.is_fixed_size_binary(kind):
        return [b"abc", b"\x00\x01\x02", b"xyz", b"\xff\xff\xff", b"   "]
    if kind in TEXT:
        words = ["", "a", "bé", "long enough to lie outside of a view", "…"]
        return (
            words if pa.types.is_large_string(kind) or "string" in str(kind) else [w.encode() for w in words]
        )
    if kind in (pa.bool_(), pa.bool8()):
        return [True, False, False, True, True]
    return (
        [0, 1, 2, 86_400_000, 5]
        if kind.bit_width > 32 and not pa.types.is_floating(kind)
        else [0, 1, 2, 9, 5]
    )


def made(kind: pa.DataType, items: list) -> pa.Array:
    """Make an array of values; durations and times are made from integers."""
    if kind == pa.bool8():
        return pa.ExtensionArray.from_storage(
            kind, pa.array([None if x is None else int(x) for x in items], "i1")
        )
    if pa.types.is_temporal(kind):
        return pa.array(items, pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    return pa.array(items, kind)


def expected(array: pa.Array) -> list:
    """Return the elements, converted by pyarrow."""
    kind = array.type
    if kind == pa.bool8():
        return [None if x is None else bool(x) for x in array.storage.to_pylist()]
    if pa.types.is_temporal(kind):
        return array.view(pa.int64() if kind.bit_width == 64 else pa.int32()).to_pylist()
    return array.to_pylist()


def taken(ours) -> list:
    """Return the elements, converted by zarrow: times as their counts."""
    if not isinstance(ours, (zarrow.Tensor, zarrow.MaskedTensor)):
        return ours.tolist()
    array = ours.numpy()
    return (array.view("i8") if array.dtype.kind in "mM" else array).tolist()


@st.composite
def arrays(draw):
    kind = draw(st.sampled_from([*SHARED, *COPIED, *TEXT]))
    item = st.sampled_from(values(kind))
    if draw(st.booleans()):
        item |= st.none()
    array = made(kind, draw(st.lists(item, max_size=40)))
    start = draw(st.integers(0, len(array)))
    return array.slice(start, draw(st.integers(0, len(array) - start)))


@settings(max_examples=400, deadline=None)
@given(arrays())
def test_any_array(array):
    ours = zarrow.from_arrow(array)
    assert ours.shape == (len(array),) and taken(ours) == expected(array)
    masked = isinstance(ours, (zarrow.MaskedTensor, zarrow.MaskedVariable))
    assert masked == (array.null_count > 0)
    if array.type in SHARED:
        data = ours.data if masked else ours
        storage = array.storage if array.type == pa.bool8() else array
        assert data.readonly
        if len(array):
            start = storage.buffers()[1].address + storage.offset * storage.type.bit_width // 8
            assert data.numpy().ctypes.data == start
        assert zarrow.asarray(array, copy=False).dtype == ours.dtype


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_chunks(data):
    kind = data.draw(st.sampled_from([*SHARED, *COPIED, *TEXT]))
    item = st.sampled_from(values(kind)) | st.none()
    chunks = data.draw(st.lists(st.lists(item, max_size=9), max_size=4))
    array = pa.chunked_array([made(kind, chunk) for chunk in chunks], kind)
    ours = zarrow.from_arrow(array)
    assert taken(ours) == [element for chunk in array.chunks for element in expected(chunk)]
    if len(array.chunks) > 1:
        with pytest.raises(zarrow.ExchangeError, match="without a copy"):
            zarrow.asarray(array, copy=False)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_rows(data):
    """Nested fixed-size lists, with nulls at any level, and slices of these lists.

    A null list differs from a list of nulls, and an element mask cannot represent the difference.
    """
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    kind, item = pa.int16(), st.integers(-9, 9) | st.none()
    for length in reversed(lengths):
        kind, item = pa.list_(kind, length), st.lists(item, min_size=length, max_size=length) | st.none()
    array = pa.array(data.draw(st.lists(item, max_size=6)), kind)
    start = data.draw(st.integers(0, len(array)))
    array = array.slice(start, data.draw(st.integers(0, len(array) - start)))

    def null_list(element, depth):
        return depth > 0 and (element is None or any(null_list(item, depth - 1) for item in element))

    if any(null_list(element, len(lengths)) for element in array.to_pylist()):
        with pytest.raises(zarrow.ExchangeError, match="null lists") as raised:
            zarrow.from_arrow(array)
        assert raised.value.kind == "loses_meaning"
        return
    ours = zarrow.from_arrow(array)
    assert ours.shape == (len(array), *lengths)
    assert ours.tolist() == array.to_pylist()


ZONED = [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in ("UTC", "Europe/Oslo", "+02:00")]
OF_DAY = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]


@pytest.mark.parametrize("kind", [*ZONED, *OF_DAY, pa.date64()], ids=str)
@pytest.mark.parametrize("take", [zarrow.from_arrow, zarrow.asarray])
def test_arrays_that_would_lose_meaning_are_refused(kind, take):
    array = made(kind, [0, 86_400_000 if kind == pa.date64() else 3, None])
    for lent in (array, pa.chunked_array([array, array]), array.slice(3)):
        with pytest.raises(zarrow.ExchangeError, match="would lose its meaning: cast it to") as raised:
            take(lent)
        assert raised.value.kind == "loses_meaning" and isinstance(raised.value, ValueError)


# Imported types, and the exported type: the same or an equivalent one.
ROUND_TRIPS = [
    *((kind, kind) for kind in NUMBERS),
    *((pa.timestamp(unit),) * 2 for unit in ("s", "ms", "us", "ns")),
    *((pa.duration(unit),) * 2 for unit in ("s", "ms", "us", "ns")),
    *((kind, kind) for kind in (pa.date32(), pa.binary(3), pa.bool8(), pa.large_string(), pa.large_binary())),
    (pa.bool_(), pa.bool8()),
    *((kind, pa.large_string()) for kind in (pa.string(), pa.string_view())),
    *((kind, pa.large_binary()) for kind in (pa.binary(), pa.binary_view())),
]


@pytest.mark.parametrize(("kind", "back"), ROUND_TRIPS, ids=str)
def test_imported_arrays_are_exported_again(kind, back):
    for items in (values(kind), [*values(kind), None]):
        array = made(kind, items)
        returned = pa.array(zarrow.from_arrow(array))
        assert returned.type == back and returned.null_count == array.null_count
        assert expected(returned) == expected(array)


def test_dates_beyond_32_bits_are_refused():
    far = np.array(["6000000-01-01", "2026-11-22"], "M8[D]")
    with pytest.raises(zarrow.ExchangeError, match=r"5\.8 million years"):
        zarrow.asarray(far).arrow()
    assert zarrow.asarray(far)[1:].arrow().to_pylist() == [datetime.date(2026, 11, 22)]


@pytest.mark.parametrize("kind", TEXT)
def test_text_shares_its_bytes(kind):
    array = pa.array(["one", "two", None, "three"]).cast(kind)
    if "view" not in str(kind):
        ours = zarrow.from_arrow(array)
        assert ours.arrow().buffers()[2].address == array.buffers()[2].address
        if "large" in str(kind):
            assert ours.arrow().buffers()[1].address == array.buffers()[1].address
            assert zarrow.asarray(array, copy=False).tolist() == ours.tolist()
            with pytest.raises(zarrow.ExchangeError, match="start at 0"):
                zarrow.asarray(array.slice(1), copy=False)
            return
    with pytest.raises(zarrow.ExchangeError, match="without a copy"):
        zarrow.asarray(array, copy=False)


def test_tensors():
    values = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for strided in (values, values.transpose(0, 2, 1)):
        array = pa.FixedShapeTensorArray.from_numpy_ndarray(strided)
        ours = zarrow.from_arrow(array)
        np.testing.assert_array_equal(ours.numpy(), strided)
        assert ours.numpy().ctypes.data == values.ctypes.data and ours.readonly
        assert zarrow.from_arrow(array.slice(1)).tolist() == strided[1:].tolist()
    for axes in [(0, 2, 3, 1), (0, 3, 1, 2)]:
        rotated = np.arange(120).reshape(5, 2, 3, 4).transpose(axes)
        array = pa.FixedShapeTensorArray.from_numpy_ndarray(rotated)
        # pyarrow writes the inverse of the specified permutation, and misreads it.
        assert array.to_numpy_ndarray().shape != rotated.shape
        with pytest.raises(zarrow.ExchangeError, match="rotated"):
            zarrow.from_arrow(array)
    storage = pa.array([[1, None, 3, 4], [None] * 4], pa.list_(pa.int32(), 4))
    masked = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), (2, 2), permutation=(1, 0)), storage
    )
    assert zarrow.from_arrow(masked).tolist() == [[[1, 3], [None, 4]], [[None, None], [None, None]]]


def test_dictionaries_are_decoded():
    words = pa.array(["a", "bé", "a", None, ""])
    for array in (words.dictionary_encode(), words.dictionary_encode().slice(1, 3)):
        assert zarrow.from_arrow(array).tolist() == array.to_pylist()
    for index in (pa.int8(), pa.uint64()):
        array = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 2], index), pa.array([1.5, None, 3]))
        assert zarrow.from_arrow(array).tolist() == [None, 1.5, None, 3]
    dates = pa.DictionaryArray.from_arrays([0, 0], pa.array([datetime.date(2026, 11, 21)]))
    assert zarrow.from_arrow(dates).tolist() == [datetime.date(2026, 11, 21)] * 2
    assert zarrow.from_arrow(words.dictionary_encode().slice(0, 0)).shape == (0,)
    with pytest.raises(zarrow.ExchangeError):
        zarrow.asarray(words.dictionary_encode(), copy=False)


def test_our_arrays_round_trip(tmp_path):
    for name in handwritten.NUMBERS:
        if name.startswith("complex"):
            continue
        ours = handwritten.tensor(tmp_path / name, handwritten.numbers(name))
        back = zarrow.from_arrow(ours.arrow())
        assert back.dtype == ours.dtype and back.numpy().tobytes() == ours.numpy().tobytes()
        assert back.numpy().ctypes.data == ours.numpy().ctypes.data
        assert zarrow.from_arrow(ours) is ours
    masked = handwritten.masked_variable(tmp_path / "words", ["a", None, "b"])
    assert zarrow.from_arrow(masked.arrow()).tolist() == ["a", None, "b"]


def test_types_without_a_layout_are_refused():
    for array in [
        pa.array([[1], [2, 3]]),
        pa.array([{"a": 1}]),
        pa.table({"a": [1]}),
        pa.nulls(3),
        pa.array([1]).cast(pa.decimal128(21, 2)),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        pa.array([None], pa.month_day_nano_interval()),
        pa.RunEndEncodedArray.from_arrays([2], [1]),
    ]:
        with pytest.raises(zarrow.ExchangeError) as raised:
            zarrow.from_arrow(array)
        assert raised.value.kind == "no_such_type"
    for wrong in (5, None, [1, 2], np.arange(3), (1, 2)):
        with pytest.raises(TypeError):
            zarrow.from_arrow(wrong)


def test_capsules():
    array = pa.array([1, 2, 3])
    pair = array.__arrow_c_array__()
    assert zarrow.from_arrow(pair).tolist() == [1, 2, 3]
    with pytest.raises(zarrow.ExchangeError, match="unconsumed capsule"):
        zarrow.from_arrow(pair)
    stream = pa.chunked_array([[1], [2]]).__arrow_c_stream__()
    assert zarrow.from_arrow(stream).tolist() == [1, 2]
    with pytest.raises(zarrow.ExchangeError, match="unconsumed capsule"):
        zarrow.from_arrow(stream)
    with pytest.raises((TypeError, BufferError)):
        zarrow.from_arrow(tuple(reversed(array.__arrow_c_array__())))


def test_a_type_without_a_format():
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for take in (zarrow.from_arrow, zarrow.asarray(np.arange(3)).__arrow_c_array__):
        pair = pa.array([1, 2]).__arrow_c_array__()
        # The struct begins with the pointer of its format.
        ctypes.c_void_p.from_address(address(pair[0], b"arrow_schema")).value = None
        with pytest.raises((zarrow.ExchangeError, TypeError)):
            take(pair if take is zarrow.from_arrow else pair[0])


def test_a_stream_that_fails():
    def batches():
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(zarrow.ExchangeError):
        zarrow.from_arrow(reader)


def test_broken_text_is_refused():
    broken = pa.Array.from_buffers(
        pa.large_string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], "i8")), pa.py_buffer(b"a\xff")]
    )
    with pytest.raises(ValueError, match="UTF-8"):
        zarrow.from_arrow(broken)
    for offsets in ([0, 5, 2], [0, -1, 2], [3, 1, 2], [-4, 1, 2]):
        for kind, word in ((pa.large_binary(), "i8"), (pa.binary(), "i4")):
            buffers = [None, pa.py_buffer(np.array(offsets, word)), pa.py_buffer(b"abcdefgh")]
            with pytest.raises(ValueError, match="offset"):
                zarrow.from_arrow(pa.Array.from_buffers(kind, 2, buffers))
    with pytest.raises(zarrow.ExchangeError, match="dictionary"):
        zarrow.from_arrow(pa.DictionaryArray.from_arrays([0, 7], ["a"], safe=False))


def test_the_producer_lives_as_long_as_its_memory():
    gc.collect()  # free garbage of other tests now, not during the measurement
    before = pa.total_allocated_bytes()
    array = pa.array(np.arange(100_000))
    ours = zarrow.from_arrow(array)[5:10].numpy()
    words = zarrow.from_arrow(pa.array(["x" * 1000] * 100, pa.large_string())).data
    del array
    gc.collect()
    assert ours.tolist() == [5, 6, 7, 8, 9] and words[99_999].item() == ord("x")
    assert pa.total_allocated_bytes() >= before + 100_000
    del ours, words
    gc.collect()
    assert pa.total_allocated_bytes() <= before


def test_polars():
    for series in [
        pl.Series([1, 2, 3]),
        pl.Series([1.5, None]),
        pl.Series(["a", None, "bé" * 20]),
        pl.Series([True, False, None]),
        pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int8, 2)),
        pl.concat([pl.Series([1, 2]), pl.Series([3])], rechunk=False),
        pl.Series(["a", "b", "a"], dtype=pl.Categorical),
    ]:
        for take in (zarrow.from_arrow, zarrow.asarray):
            assert take(series).tolist() == series.to_list()
