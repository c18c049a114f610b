"""Masks from values: from attributes, as xarray writes them, from the fill value, and from any value."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import handwritten
import zarrow

DTYPES = ["?", "i1", "u2", "i4", "<i8", ">i8", "f2", "<f4", ">f4", "f8", "c8", ">c16", "M8[s]", "S3", "U2"]


def stored(folder: Path, values: np.ndarray[Any, Any], **options: Any) -> zarrow.Array:
    options = {"chunks": tuple(max(1, extent // 2) for extent in values.shape), "zarr_format": 2} | options
    array = zarr.create_array(folder, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return zarrow.open(folder)


def attributes(array: zarrow.Array, **given: Any) -> zarrow.Array:
    """The array with attributes as other writers store them, including floats outside JSON."""
    path = Path(str(array.store).removeprefix("file://"))
    if array.zarr_format == 2:
        (path / ".zattrs").write_text(json.dumps(given))
    else:
        document = json.loads((path / "zarr.json").read_text())
        (path / "zarr.json").write_text(json.dumps(document | {"attributes": given}))
    return zarrow.open(path)


def check(masked: Any, values: np.ndarray[Any, Any], missing: np.ndarray[Any, Any]) -> None:
    """Return stored values, a mask, and its Arrow bitmap."""
    assert isinstance(masked, zarrow.MaskedTensor)
    native = values.astype(values.dtype.newbyteorder("="))
    assert masked.data.numpy().tobytes() == native.tobytes(), "the data keep the values"
    np.testing.assert_array_equal(masked.mask.numpy(), missing)
    if values.size and values.ndim and values.dtype.kind not in "MSU":
        flat = masked.arrow(layout="flat")
        flat.validate(full=True)
        assert flat.null_count == missing.sum()
        np.testing.assert_array_equal(flat.is_null().to_numpy(zero_copy_only=False), missing.reshape(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compressors", [None, "auto"])
def test_values_of_every_type(tmp_path, dtype, compressors):
    values = (np.arange(12 * 17) % 5).astype("i8").astype(dtype).reshape(12, 17)
    array = stored(tmp_path, values, compressors=compressors)
    for picked in ([values[0, 3]], [values[0, 1], values[0, 2]], []):
        given = [value.item() if values.dtype.kind in "?iufcSU" else value for value in picked]
        missing = np.zeros(values.shape, bool)
        for value in picked:
            missing |= values == value
        check(array.read(mask=given), values, missing)
        if len(given) == 1:
            check(array.read(np.s_[::-2, 3], mask=given[0]), values[::-2, 3], missing[::-2, 3])


@pytest.mark.parametrize("name", list(handwritten.NUMBERS))
def test_every_number(tmp_path, name):
    values = handwritten.numbers(name, (40,))
    zarr_array = handwritten.write(
        tmp_path, (40,), name, [handwritten.BYTES], values.tobytes(), _fill(values)
    )
    masked = zarrow.open(zarr_array).read(mask=values[3])
    np.testing.assert_array_equal(masked.mask.numpy(), values == values[3])


def _fill(values: np.ndarray[Any, Any]) -> Any:
    return {"b": False, "c": [1.0, 0.0], "i": 1, "u": 1}.get(values.dtype.kind, 1.0)


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "c8", ml_dtypes.bfloat16])
def test_any_nan_is_nan_and_zero_has_no_sign(tmp_path, dtype):
    dtype = np.dtype(dtype)
    values = np.array([0.0, -0.0, 1.0, np.nan, -np.nan, np.inf] * 5).astype(dtype)
    if dtype.kind == "V":
        handwritten.write(tmp_path, values.shape, "bfloat16", [handwritten.BYTES], values.tobytes(), 0.0)
        array = zarrow.open(tmp_path)
    else:
        array = stored(tmp_path, values)
    np.testing.assert_array_equal(array.read(mask=np.nan).mask.numpy(), np.isnan(values))
    np.testing.assert_array_equal(array.read(mask=0).mask.numpy(), values == 0)
    np.testing.assert_array_equal(array.read(mask=[np.inf, 1]).mask.numpy(), np.isinf(values) | (values == 1))


def _coded(value: float) -> str:
    return base64.standard_b64encode(struct.pack("<d", value)).decode()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"_FillValue": -1}, [-1]),
        ({"_FillValue": -1.0}, [-1]),
        ({"missing_value": [-1, 3]}, [-1, 3]),
        ({"_FillValue": [2], "missing_value": 3}, [2, 3]),
        ({"_FillValue": 99999}, []),
        ({"_FillValue": 1.5, "missing_value": "no number"}, []),
        ({"_FillValue": None}, []),
        ({"units": "m"}, []),
    ],
)
def test_attributes_of_integers(tmp_path, version, given, expected):
    values = (np.arange(30) % 6 - 1).astype("i2")
    array = attributes(stored(tmp_path, values, zarr_format=version), **given)
    check(array.read(mask="cf"), values, np.isin(values, expected))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"_FillValue": _coded(np.nan)}, [np.nan]),
        ({"_FillValue": _coded(1e20)}, [1e20]),
        ({"_FillValue": _coded(-np.inf), "missing_value": _coded(1.0)}, [-np.inf, 1]),
        ({"_FillValue": float("nan")}, [np.nan]),
        ({"_FillValue": "NaN", "missing_value": [1e20, "-Infinity"]}, [np.nan, 1e20, -np.inf]),
        ({"_FillValue": 1}, [1]),
        ({"_FillValue": [_coded(np.nan), _coded(1.0)]}, [np.nan, 1]),
    ],
)
def test_attributes_of_floats(tmp_path, version, given, expected):
    values = np.array([1, np.nan, 1e20, -np.inf, 0, np.inf] * 5, "f4")
    array = attributes(stored(tmp_path, values, zarr_format=version), **given)
    missing = np.isin(values, np.array(expected, "f4")) | (np.isnan(values) & np.isnan(expected).any())
    check(array.read(mask="cf"), values, missing)
    assert array.to_arrow(mask="cf", batch_rows=7).arrow().null_count == missing.sum()


def test_attributes_of_other_types(tmp_path):
    numbers = np.array([1 + 2j, np.nan, 3], "c16")
    array = attributes(stored(tmp_path / "c", numbers, zarr_format=3), _FillValue=[_coded(1.0), _coded(2.0)])
    assert array.read(mask="cf").mask.tolist() == [True, False, False]
    flags = attributes(stored(tmp_path / "b", np.array([True, False]), zarr_format=3), _FillValue=False)
    assert flags.read(mask="cf").mask.tolist() == [False, True]
    texts = zarr.create_array(tmp_path / "s", shape=(3,), dtype=str)
    texts[...] = np.array(["a", "none", ""])
    words = attributes(zarrow.open(tmp_path / "s"), _FillValue="none", missing_value=[""])
    assert words.read(mask="cf").tolist() == ["a", None, None]


def test_xarray_takes_the_fill_value_of_version_2(tmp_path):
    values = np.array([0, 5, 7, 5])
    array = stored(tmp_path / "5", values, fill_value=5)
    assert array.read(mask="cf").mask.tolist() == [False] * 4, "nobody said that it is missing"
    dimensions = {"_ARRAY_DIMENSIONS": ["x"]}
    assert attributes(array, **dimensions).read(mask="cf").mask.tolist() == [False, True, False, True]
    named = attributes(array, _FillValue=7, **dimensions)
    assert named.read(mask="cf").mask.tolist() == [False, False, True, False], "an attribute says it better"
    left_open = stored(tmp_path / "open", values, fill_value=None)
    document = json.loads((tmp_path / "open" / ".zarray").read_text())
    (tmp_path / "open" / ".zarray").write_text(json.dumps(document | {"fill_value": None}))
    for mask in ("cf", "fill"):
        assert attributes(left_open, **dimensions).read(mask=mask).mask.tolist() == [False] * 4
    third = attributes(stored(tmp_path / "3", values, fill_value=5, zarr_format=3), **dimensions)
    assert third.read(mask="cf").mask.tolist() == [False] * 4, "version 3 has the attribute"
    assert third.read(mask="fill").mask.tolist() == [False, True, False, True]


@pytest.mark.parametrize("name", ["plain", "sharded", "transposed", "big endian", "blosc", "one chunk"])
def test_chunks_that_are_not_stored_and_every_way_of_reading(tmp_path, name):
    values = (np.arange(24 * 20) % 7).reshape(24, 20).astype(">i4" if name == "big endian" else "i4")
    options: dict[str, Any] = {"chunks": (8, 5), "fill_value": 3, "compressors": None, "zarr_format": 3}
    options |= {
        "sharded": {"chunks": (4, 5), "shards": (8, 10), "compressors": zarr.codecs.ZstdCodec()},
        "transposed": {"filters": zarr.codecs.TransposeCodec(order=(1, 0))},
        "big endian": {"serializer": zarr.codecs.BytesCodec(endian="big")},
        "blosc": {"compressors": zarr.codecs.BloscCodec(typesize=4)},
        "one chunk": {"chunks": (24, 20)},
    }.get(name, {})
    array = zarr.create_array(tmp_path, shape=values.shape, dtype="i4", **options)
    array[:16, :] = values[:16]
    values[16:] = 3
    opened = zarrow.open(tmp_path)
    for index in (np.s_[...], np.s_[::-1, ::3], np.s_[5], np.s_[:, 7:9], np.s_[3:17, 2], np.s_[9:9]):
        for mask, missing in (("fill", 3), ([0, 6], None)):
            wanted = values[index]
            expected = wanted == missing if missing is not None else np.isin(wanted, [0, 6])
            masked = opened.read(index, mask=mask)
            np.testing.assert_array_equal(masked.data.numpy(), wanted)
            np.testing.assert_array_equal(masked.mask.numpy(), expected)
    bits = opened.read(mask="fill").arrow(layout="flat")
    assert bits.equals(pa.array(values.reshape(-1).astype("i4"), mask=(values == 3).reshape(-1)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    chunk=st.lists(st.integers(1, 7), min_size=3, max_size=3),
    slices=st.lists(
        st.tuples(st.integers(-13, 13), st.integers(-13, 13), st.sampled_from([1, 2, -1, -3])),
        min_size=3,
        max_size=3,
    ),
    value=st.integers(0, 4),
    written=st.booleans(),
)
def test_any_selection_is_masked_as_numpy_does(tmp_path_factory, shape, chunk, slices, value, written):
    folder = tmp_path_factory.mktemp("any")
    values = (np.arange(np.prod(shape)) % 5).reshape(shape).astype("u1")
    array = zarr.create_array(
        folder, shape=shape, chunks=tuple(chunk[: len(shape)]), dtype="u1", fill_value=2
    )
    if written:
        array[...] = values
    else:
        values = np.full(shape, 2, "u1")
    index = tuple(slice(*bounds) for bounds in slices[: len(shape)])
    masked = zarrow.open(folder).read(index, mask=value)
    check(masked, values[index], values[index] == value)


def test_strings_and_bytes(tmp_path):
    words = ["Oslo", "", "none", "Rome", "none"]
    array = zarr.create_array(tmp_path / "words", shape=(5,), chunks=(2,), dtype=str, fill_value="")
    array[...] = np.array(words)
    opened = zarrow.open(tmp_path / "words")
    masked = opened.read(mask="none")
    assert isinstance(masked, zarrow.MaskedVariable) and masked.tolist() == ["Oslo", "", None, "Rome", None]
    assert masked.arrow().null_count == 2 and masked.data.tolist() == words
    assert opened.read(mask=["none", ""]).tolist() == ["Oslo", None, None, "Rome", None]
    assert opened.read(np.s_[::-2], mask="fill").tolist() == ["none", "none", "Oslo"]
    with pytest.raises(TypeError, match="strings"):
        opened.read(mask=3)


def test_missing_elements_stay_missing(tmp_path):
    values, missing = np.array([1, 2, 3, 0], "i2"), np.array([False, True, False, True])
    handwritten.masked_tensor(tmp_path, values, missing)
    masked = zarrow.open(tmp_path).read(mask=[3])
    assert masked.tolist() == [1, None, None, None] and masked.arrow().to_pylist() == [1, None, None, None]
    assert zarrow.open(tmp_path).read(mask="fill").tolist() == [1, None, 3, None]
    handwritten.masked_variable(tmp_path / "words", ["a", None, "b"])
    assert zarrow.open(tmp_path / "words").read(mask="b").tolist() == ["a", None, None]


def test_invalid_mask_values_are_refused(tmp_path):
    array = stored(tmp_path, np.arange(4, dtype="u1"))
    for mask, error in (
        (300, OverflowError),
        (-1, OverflowError),
        (1.5, ValueError),
        ("x", TypeError),
        ("1", TypeError),
        ([b"1"], TypeError),
        ([1, 2.5], ValueError),
        (True, TypeError),
        (np.bool_(False), TypeError),
        (np.array([False, True, False, False]), TypeError),
    ):
        with pytest.raises(error):
            array.read(mask=mask)
    bools = stored(tmp_path / "bools", np.array([True, False]))
    assert bools.read(mask=True).tolist() == [None, False]
    with pytest.raises(ValueError, match="exclude each other"):
        array.read(mask="cf", out=np.empty(4, "u1"))
    with pytest.raises(ValueError, match="'cf', 'fill' or None"):
        array.to_arrow(mask="other")
    texts = stored(tmp_path / "U", np.array(["ab"]))
    with pytest.raises(ValueError, match="expected a value of type"):
        texts.read(mask="longer")
    assert array.read(mmap=True, mask=3).tolist() == [0, 1, 2, None]
    for values in (np.array([1, 3]), np.array([1, 3], "u1"), [np.int8(1), 3]):
        assert array.read(mask=values).tolist() == [0, None, 2, None]


def test_scalars_and_nothing(tmp_path):
    array = stored(tmp_path, np.arange(6.0).reshape(2, 3))
    assert array.read((1, 2), mask=5).tolist() is None and array.read((0, 0), mask=5).tolist() == 0
    assert array.read(np.s_[:0], mask=5).mask.shape == (0, 3)
    zero = zarr.create_array(tmp_path / "zero", shape=(), dtype="i4", fill_value=1)
    assert zero.shape == () and zarrow.open(tmp_path / "zero").read(mask="fill").tolist() is None


def test_tables_have_nulls(tmp_path):
    group = zarr.create_group(tmp_path)
    for name, fill in (("a", 0), ("b", 3)):
        column = group.create_array(name, shape=(6,), chunks=(2,), dtype="i4", fill_value=fill)
        column[:4] = np.arange(4)
        column.attrs["missing_value"] = 1
    opened = zarrow.open(tmp_path)
    assert pa.table(opened.to_arrow(mask="cf")).to_pydict() == {
        "a": [0, None, 2, 3, 0, 0],
        "b": [0, None, 2, 3, 3, 3],
    }
    assert pa.table(opened.to_arrow(mask="fill", batch_rows=4)).to_pydict() == {
        "a": [None, 1, 2, 3, None, None],
        "b": [0, 1, 2, None, None, None],
    }
    assert pa.table(opened.to_arrow())["a"].null_count == 0
