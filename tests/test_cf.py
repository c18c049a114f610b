"""`Array.read(decode="cf")`, compared with xarray."""

from __future__ import annotations

import asyncio
import base64
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow

UNITS = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]
DATES = [
    "2000-01-01",
    "1970-1-1 0:0:0",
    "1999-12-31T12:30:15.25",
    "2000-01-01 00:00:00 +01:30",
    "1900-01-01 06:00Z",
]


def store(folder: Path, data: Any, attributes: dict[str, Any], version: int = 3, **options: Any) -> Path:
    """Write an array as another program would, without encoding."""
    names = {"dimension_names": ["t", "x"][: data.ndim]} if version == 3 else {}
    group = zarr.create_group(folder, zarr_format=version, overwrite=True)
    array = group.create_array("x", data=data, chunks=tuple(2 for _ in data.shape), **names, **options)
    array.attrs.update(
        attributes if version == 3 else {"_ARRAY_DIMENSIONS": ["t", "x"][: data.ndim], **attributes}
    )
    return folder


def by_xarray(folder: Path) -> np.ndarray[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values: np.ndarray[Any, Any] = (
            xr.open_zarr(folder, consolidated=False, chunks=None)["x"].load().values
        )
    return values


def check(folder: Path, selection: Any = ...) -> None:
    expected = by_xarray(folder)[selection]
    found = zarrow.open(folder, "x").read(selection, decode="cf")
    assert isinstance(found, zarrow.Tensor) and found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(
        asyncio.run(zarrow.open(folder, "x").read_async(selection, decode="cf")), expected
    )


@st.composite
def variables(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], dict[str, Any], int, Any]:
    dtype = np.dtype(draw(st.sampled_from(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"])))
    version = draw(st.sampled_from([2, 3]))
    values = draw(st.lists(st.integers(0, 100), min_size=1, max_size=7))
    data = np.array(values, dtype)
    attributes: dict[str, Any] = {}
    fill = draw(st.sampled_from([0, values[0]]))  # in version 2, xarray takes it for `_FillValue`
    if dtype.kind == "f":
        data, fill = data / dtype.type(8), draw(st.sampled_from([fill / 8, float("nan")]))
        if version == 3 and draw(st.booleans()):
            attributes["_FillValue"] = base64.b64encode(struct.pack("<d", fill)).decode()
    elif version == 3 and draw(st.booleans()):
        attributes["_FillValue"] = fill
    if draw(st.booleans()):
        attributes["missing_value"] = draw(
            st.sampled_from([values[-1], float(values[-1]), [values[-1], 101]])
        )
    if draw(st.booleans()):
        attributes["scale_factor"] = draw(st.sampled_from([0.5, 0.1, -3.7]))
    if draw(st.booleans()):
        attributes["add_offset"] = draw(st.sampled_from([0.5, 273.15, 2]))
    time = draw(st.sampled_from(["none", "date", "span"]))
    if time == "date":
        attributes["units"] = f"{draw(st.sampled_from(UNITS))} since {draw(st.sampled_from(DATES))}"
        attributes["calendar"] = draw(st.sampled_from(["standard", "gregorian", "proleptic_gregorian"]))
    elif time == "span":
        attributes["units"] = draw(st.sampled_from(UNITS))
        resolutions = ["s", "ms", "us", "ns"][max(0, UNITS.index(attributes["units"]) - 3) :]
        attributes["dtype"] = f"timedelta64[{draw(st.sampled_from(resolutions))}]"
    elif draw(st.booleans()):
        attributes["_Unsigned"] = draw(st.sampled_from(["true", "false"])) if dtype.kind in "iu" else "true"
    return data, attributes, version, fill


@settings(max_examples=150, deadline=None)
@given(variables())
def test_decoded_elements_equal_those_of_xarray(tmp_path_factory: Any, variable: Any) -> None:
    data, attributes, version, fill = variable
    check(store(tmp_path_factory.getbasetemp() / "cf.zarr", data, attributes, version, fill_value=fill))


@pytest.mark.parametrize("version", [2, 3])
def test_a_dataset_written_by_xarray_reads_the_same(tmp_path: Path, version: Any) -> None:
    dates = np.array(["2000-01-01T06", "NaT", "2100-02-28T23:59:59.5"], "M8[ns]")
    dataset = xr.Dataset(
        {
            "packed": ("t", np.array([1.5, np.nan, -20]), {}),
            "floats": ("t", np.array([1.5, np.nan, -20], "f4")),
            "flags": ("t", np.array([True, False, True])),
            "date": ("t", dates),
            "span": ("t", dates - dates[0]),
            "text": ("t", ["a", "b", "c"]),
        },
    )
    encoding = {"packed": {"scale_factor": 0.5, "add_offset": 2.5, "dtype": "i2", "_FillValue": -99}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset.to_zarr(tmp_path / "a.zarr", encoding=encoding, zarr_format=version)
        expected = xr.open_zarr(tmp_path / "a.zarr").load()
    root = zarrow.open(tmp_path / "a.zarr")
    for name in ("packed", "floats", "flags", "date", "span"):
        found = root[name].read(decode="cf")
        assert found.dtype == expected[name].dtype, name
        np.testing.assert_array_equal(found.numpy(), expected[name].values)
    assert root["text"].read(decode="cf").tolist() == ["a", "b", "c"]


def test_selections_and_several_axes(tmp_path: Path) -> None:
    data = np.arange(12, dtype="i2").reshape(3, 4)
    folder = store(tmp_path / "a.zarr", data, {"scale_factor": 0.1, "_FillValue": 5})
    for selection in (..., 1, (1, 1), (slice(None, None, 2), -1), [2, 0]):
        check(folder, selection)
    folder = store(tmp_path / "b.zarr", np.arange(3), {"units": "days since 2001-01-01"})
    for selection in (..., 1, slice(0, 0)):
        check(folder, selection)


def test_elements_change_in_the_memory_of_the_read() -> None:
    array = zarrow.create_array({}, data=np.array([1.0, -1.0]), attributes={"scale_factor": 2.0})
    plain = zarrow.create_array({}, data=np.array([1, 2], "i4"))
    assert array.read(decode="cf").tolist() == [2.0, -2.0] and array[...].tolist() == [1.0, -1.0]
    assert plain.read(decode="cf").tolist() == [1, 2] and plain.read(decode="cf").dtype == np.int32


def test_missing_values_of_another_type(tmp_path: Path) -> None:
    # xarray compares as float64, and so misses a float32 that was rounded.
    array = zarrow.create_array({}, data=np.array([1.5, -999.9], "f4"), attributes={"missing_value": -999.9})
    assert np.isnan(array.read(decode="cf")[1].item())
    # xarray gives the number that stands for NaT.
    array = zarrow.create_array(
        {}, data=np.array([1, -1], "i2"), attributes={"units": "days", "_FillValue": -1}
    )
    np.testing.assert_array_equal(array.read(decode="cf"), np.array([1, np.nan], "f4"))
    check(store(tmp_path / "a.zarr", np.array([1, 2], "i2"), {"missing_value": 1e20}))
    optional = zarrow.create_array({}, data=[1, None], missing="optional", attributes={"scale_factor": 0.5})
    np.testing.assert_array_equal(optional.read(decode="cf"), [0.5, np.nan])
    text = zarrow.create_array({}, data=["a", "b"], attributes={"missing_value": "b"})
    assert text.read(decode="cf").tolist() == ["a", None]


@pytest.mark.parametrize(
    ("attributes", "data", "error", "message"),
    [
        ({"units": "days since 2000-01-01", "calendar": "noleap"}, [1], NotImplementedError, "cftime"),
        ({"units": "months since 2000-01-01"}, [1], NotImplementedError, "fixed length.*xarray"),
        ({"units": "days since 1500-01-01"}, [1], NotImplementedError, "datetime64.*cftime"),
        ({"units": "days since 1600-01-01"}, [-10000], NotImplementedError, "standard"),
        ({"units": "days since 2000-01-01"}, [10**6], NotImplementedError, "datetime64"),
        ({"units": "days since 2000-01-01"}, [float("inf")], NotImplementedError, "datetime64"),
        ({"units": "days since the flood"}, [1], ValueError, "no date of the form"),
        ({"units": "days since 2000-02-30"}, [1], ValueError, "day"),
        ({"units": " since "}, [1], ValueError, "' since ', expected the form"),
        ({"scale_factor": "0.5"}, [1], ValueError, "'scale_factor' is '0.5', expected a number"),
        ({"units": "days", "dtype": "timedelta64[ns]"}, [10**6], NotImplementedError, "do not fit"),
    ],
)
def test_other_attributes_are_refused(attributes: Any, data: Any, error: Any, message: str) -> None:
    array = zarrow.create_array({}, "x", data=np.array(data), attributes=attributes)
    with pytest.raises(error, match=message):
        array.read(decode="cf")
    assert array.read().tolist() == data


@pytest.mark.parametrize(
    ("attributes", "version", "options"),
    [
        ({"_FillValue": -9999}, 2, {"fill_value": 0}),
        ({"_FillValue": -9999, "scale_factor": 0.1}, 2, {"fill_value": 0}),
        ({"_FillValue": -9999}, 2, {"fill_value": None}),
        ({"_Unsigned": "True"}, 3, {}),
        ({"_Unsigned": True}, 3, {}),
        ({"_Unsigned": "true"}, 3, {}),
        ({"units": "days since 2000"}, 3, {}),
    ],
)
def test_rare_attributes_are_decoded_as_by_xarray(
    tmp_path: Path, attributes: Any, version: int, options: Any
) -> None:
    check(store(tmp_path / "a.zarr", np.array([0, 1, -9999], "i2"), attributes, version, **options))


@pytest.mark.parametrize("version", [2, 3])
def test_many_selections_are_decoded(tmp_path: Path, version: int) -> None:
    packed = {"scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -1}
    days = {"units": "days since 2000-01-01", "calendar": "proleptic_gregorian"}
    stored = {
        "packed": (np.arange(-2, 6, dtype="i2"), packed),
        "more": (np.arange(-3, 5, dtype="i4"), packed),
        "time": (np.arange(8), days),
    }
    for name, (data, attributes) in stored.items():
        store(tmp_path / name, data, attributes, version)
    arrays = {name: zarrow.open(tmp_path / name, "x") for name in stored}
    expected = {name: by_xarray(tmp_path / name) for name in stored}
    first, second, time = arrays.values()

    def check_each(items: Any, wanted: list[Any]) -> None:
        awaited = asyncio.run(zarrow.read_many_async(items, decode="cf"))
        for found in (zarrow.read_many(items, decode="cf"), awaited):
            assert len(found) == len(wanted)
            for part, values in zip(found, wanted, strict=True):
                assert part.dtype == values.dtype
                np.testing.assert_array_equal(part.numpy(), values)

    parts = [expected["packed"][:3], expected["packed"][[6, 1, 1]]]
    items: Any = [(first, slice(0, 3)), (first.oindex, [6, 1, 1])]
    check_each(items, parts)
    assert zarrow.read_many(items, decode="cf").shape == (2, 3)
    # Arrays of other stored types, and of other decoded types.
    assert zarrow.read_many([first, second], decode="cf").shape == (2, 8)
    again = zarrow.open(tmp_path / "packed", "x")
    assert zarrow.read_many([first, again], decode="cf").shape == (2, 8)
    check_each([first, (second, ...)], [expected["packed"], expected["more"]])
    check_each(list(arrays.values()), list(expected.values()))
    assert isinstance(zarrow.read_many([first, time], decode="cf"), list)
    assert zarrow.read_many([], decode="cf") == zarrow.read_many([]) == []
    # As without `decode`.
    with pytest.raises(IndexError):
        zarrow.read_many([(first, 8)], decode="cf")
    with pytest.raises(TypeError, match="takes a list of"):
        zarrow.read_many([("a", 1)], decode="cf")  # type: ignore[list-item]
    with pytest.raises(ValueError, match="without out="):
        zarrow.read_many([first], decode="cf", out=np.zeros((1, 8)))  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="expected 'cf'"):
        zarrow.read_many([first], decode="other")  # type: ignore[call-overload]


def test_options_beside_decode_are_refused() -> None:
    array = zarrow.create_array({}, data=[1.0])
    with pytest.raises(ValueError, match="expected 'cf' or None"):
        array.read(decode="netcdf")
    for options in (
        {"out": np.empty(1)},
        {"mmap": True},
        {"mask": "cf"},
        {"order": "F"},
        {"device": "cuda:0"},
    ):
        with pytest.raises(ValueError, match=f"without {next(iter(options))}="):
            array.read(decode="cf", **options)
