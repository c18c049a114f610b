"""Fill values of copies between versions: xarray masks the same elements in the original and in the copy."""

from __future__ import annotations

import base64
import itertools
import struct
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import zarrow

pytestmark = pytest.mark.small_files

PAIRS = list(itertools.product((2, 3), (2, 3)))


def coded(value: float) -> str:
    return base64.standard_b64encode(struct.pack("<d", value)).decode()


def coded_complex(value: complex) -> list[str]:
    return [coded(value.real), coded(value.imag)]


INTEGERS = (
    [0, 1, 7, 99],
    [None, 0, 7],
    [-99, 7, 7.0, 1.5, 300, [1, 7], [7], True, "7"],
    [-99, 7, 1, 300, 1.5],
)
FLOATS = (
    [0.0, -9.5, np.nan, np.inf, 1.0],
    [None, -9.5, np.nan],
    [-9.5, 0, 0.1, float("nan"), float("inf"), [1, -9.5], [1], "NaN", coded(1), None],
    [coded(value) for value in (-9.5, 0.0, 0.1, np.nan, np.inf, 1e300)],
)
TIMES = ([0, 5, -(2**63)], [None, 5], [5], [])
TEXTS = (["a", "", "n/a"], [None, "", "a", "n/a"], ["a", ["a", "n/a"], 1], [])
# Elements, fill values, and values of the attribute `_FillValue` that xarray reads in versions 2 and 3.
CASES: dict[str, tuple[list[Any], list[Any], list[Any], list[Any]]] = {
    "?": ([True, False], [None, False, True], [False, True, 1, 2, "x"], [False, True]),
    "u1": INTEGERS,
    ">i8": INTEGERS,
    ">f2": FLOATS,
    "<f8": FLOATS,
    "<c8": (
        [0, 1 + 2j, complex(np.nan, 1)],
        [None, 0j, 1 + 2j, complex(np.nan, 1)],
        [1, [1, 2], coded_complex(1 + 2j)],
        [coded_complex(value) for value in (0j, 1 + 2j, 0.1 + 0.1j)],
    ),
    "M8[ns]": TIMES,
    "m8[s]": TIMES,
    "<U3": TEXTS,
    "str": TEXTS,
    "S3": ([b"a", b""], [None], [], []),
}
MISSING_VALUES: dict[str, list[Any]] = {
    "?": [True],
    "M8[ns]": [],
    "m8[s]": [],
    "<U3": ["a", ["", "n/a"], 1],
    "S3": [],
}
MISSING_VALUES["str"] = MISSING_VALUES["<U3"]


def originals(folder: Path, dtype: str, zarr_format: Any) -> dict[str, dict[str, Any]]:
    """Create an array for each fill value and attributes; return the attributes besides the names."""
    elements, fills, of_version_2, of_version_3 = CASES[dtype]
    if zarr_format == 3 and dtype not in ("<U3", "str"):
        fills = fills[:2]  # xarray ignores it
    named = [{"_FillValue": value} for value in (of_version_2 if zarr_format == 2 else of_version_3)]
    missing: list[dict[str, Any]] = [
        {"missing_value": value} for value in MISSING_VALUES.get(dtype, [0, [1, 7]])
    ]
    both = [one | other for one, other in zip(named, missing, strict=False)]
    group = zarrow.create_group(folder, zarr_format=zarr_format)
    data = np.array(elements, "T" if dtype == "str" else "i8" if dtype[0] in "Mm" else dtype)
    data = data.view(dtype) if dtype[0] in "Mm" else data
    created = {}
    for number, (fill, attributes) in enumerate(itertools.product(fills, [{}, *named, *missing, *both])):
        fill = fill if fill is None or dtype[0] not in "Mm" else data[1]
        name = f"v{number}"
        group.create_array(name, data=data, fill_value=fill, attributes=attributes, dimension_names=["x"])
        created[name] = attributes
    return created


def opened(folder: Path) -> xr.Dataset:
    with xr.open_zarr(folder, consolidated=False) as dataset:
        return dataset.load()


def check(copy: xr.Dataset, original: xr.Dataset, attributes: dict[str, Any]) -> None:
    for name in attributes:
        xr.testing.assert_equal(copy[name].variable, original[name].variable)
        assert copy[name].dtype == original[name].dtype, attributes[name]


@pytest.mark.parametrize(("source_format", "target_format"), PAIRS)
@pytest.mark.parametrize(
    ("dtype", "library"),
    [*((dtype, "zarrow") for dtype in CASES), ("u1", "zarr-python"), ("str", "zarr-python")],
)
@pytest.mark.filterwarnings("ignore")
def test_xarray_finds_the_same_elements_missing(
    tmp_path: Path, dtype: str, source_format: Any, target_format: Any, library: str
) -> None:
    attributes = originals(tmp_path / "source", dtype, source_format)
    source = (zarrow.open if library == "zarrow" else zarr.open_group)(tmp_path / "source")
    target = zarrow.create_group(tmp_path / "target", zarr_format=target_format)
    for name in attributes:
        target[name] = source[name]
    original = opened(tmp_path / "source")
    check(opened(tmp_path / "target"), original, attributes)
    if source_format != target_format:
        back = zarrow.create_group(tmp_path / "back", zarr_format=source_format)
        for name in attributes:
            back[name] = target[name]
        check(opened(tmp_path / "back"), original, attributes)


@pytest.mark.parametrize("dtype", [dtype for dtype in CASES if dtype != "S3"])
def test_a_copy_to_version_3_and_back_leaves_nothing_behind(tmp_path: Path, dtype: str) -> None:
    names = originals(tmp_path / "source", dtype, 2)
    source = zarrow.open(tmp_path / "source")
    other = zarrow.create_group(tmp_path / "other", zarr_format=3)
    back = zarrow.create_group(tmp_path / "back", zarr_format=2)
    for name, attributes in names.items():
        fill_value = zarr.open_array(tmp_path / "source" / name).fill_value
        if fill_value is None or attributes:
            continue  # a raw attribute becomes the fill value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            other[name] = source[name]
            back[name] = other[name]
        copy = zarr.open_array(tmp_path / "back" / name)
        assert dict(copy.attrs) == {"_ARRAY_DIMENSIONS": ["x"]}
        if dtype[0] not in "Mm":  # the copy leaves the fill value of times open: xarray ignores it
            np.testing.assert_array_equal(copy.fill_value, fill_value)


def test_what_the_other_version_cannot_say_is_named() -> None:
    old = zarrow.create_group(zarrow.MemoryStore(), zarr_format=2)
    new = zarrow.create_group(zarrow.MemoryStore())
    names: Any = {"dimension_names": ["x"]}
    old.create_array("bytes", data=np.array([b"a", b""]), fill_value=b"", **names)
    with pytest.warns(
        zarrow.ZarrowWarning, match="masks elements of '/bytes' that equal the fill value b'', but not"
    ):
        new["bytes"] = old["bytes"]
    old.create_array("count", data=[1, -99], fill_value=0, attributes={"_FillValue": -99}, **names)
    with pytest.warns(
        zarrow.ZarrowWarning, match="_FillValue of '/count' changes from -99 to 0, the fill value"
    ):
        new["count"] = old["count"]
    assert new["count"].attrs["_FillValue"] == 0
    old.create_array("text", data=["a", "1"], fill_value="a", attributes={"missing_value": 1}, **names)
    with pytest.warns(zarrow.ZarrowWarning, match="missing_value of '/text' changes from 1 to 'a', the fill"):
        new["text"] = old["text"]
    assert new["text"].attrs["missing_value"] == "a"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_copy_of_another_type_opens(tmp_path: Path, zarr_format: Any) -> None:
    zarr.create_group(tmp_path / "source", zarr_format=3).create_array(
        "v", shape=(2,), dtype="i2", dimension_names=["x"], attributes={"_FillValue": -99}
    )[:] = [1, -99]
    target = zarrow.create_group(tmp_path / "target", zarr_format=zarr_format)
    target.create_array("v", data=zarrow.open(tmp_path / "source")["v"], dtype="f4")
    np.testing.assert_array_equal(opened(tmp_path / "target")["v"], [1, np.nan])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore:variable 'v2' has multiple fill values")
def test_attributes_of_hdf5_name_missing_elements(tmp_path: Path, zarr_format: Any) -> None:
    cases: list[tuple[Any, Any]] = [
        ([1.0, -9.0], np.array([-9.0])),
        ([1, -9], -9),
        ([1, -9, 7], [7, -9]),
        ([False, True], True),
    ]
    target = zarrow.create_group(tmp_path / "target", zarr_format=zarr_format)
    with h5py.File(tmp_path / "source", "w") as source:
        for number, (elements, fill_value) in enumerate(cases):
            dataset = source.create_dataset(f"v{number}", data=elements)
            dataset.dims[0].label = f"x{number}"
            dataset.attrs["_FillValue"] = fill_value
            target[f"v{number}"] = dataset
    for number, (elements, fill_value) in enumerate(cases):
        masked = opened(tmp_path / "target")[f"v{number}"].isnull()
        assert masked.values.tolist() == np.isin(elements, fill_value).tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_of_a_data_array_name_missing_elements(tmp_path: Path, zarr_format: Any) -> None:
    data = xr.DataArray([1.0, -9.0], dims="x", attrs={"_FillValue": np.float32(-9), "units": "K"})
    group = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    for name, source in {"v": data, "named": data.rename("t"), "variable": data.variable}.items():
        group[name] = source
        np.testing.assert_array_equal(opened(tmp_path)[name], [1, np.nan])


@pytest.mark.parametrize("way", ["create_array", "setitem", "copy"])
@pytest.mark.parametrize(
    ("dtype", "fill_value", "is_kept"),
    [
        ("f4", np.nan, True),
        ("c8", complex(np.nan, np.nan), True),
        ("f4", 0, True),
        ("i4", -9, False),
        ("f4 packed", np.nan, False),
    ],
)
def test_a_copy_without_a_mask_keeps_its_fill_value_or_warns(
    way: str, dtype: str, fill_value: Any, is_kept: bool
) -> None:
    names: Any = {"dimension_names": ["y", "x"]}
    dtype, _, is_packed = dtype.partition(" ")
    if is_packed:  # xarray decodes floats with a fill value to another type
        names["attributes"] = {"scale_factor": 0.1}
    source = zarrow.create_array({}, shape=(4, 4), chunks=(2, 2), dtype=dtype, fill_value=fill_value, **names)
    source[:2] = 1
    target = zarrow.create_group({}, zarr_format=2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if way == "create_array":
            target.create_array("v", data=source)
        elif way == "setitem":
            target["v"] = source
        else:
            store = zarrow.MemoryStore()
            zarrow.copy(source, store, "v", zarr_format=2)
            target = zarrow.open(store)
    copy = target["v"]
    copy.resize((6, 4))
    np.testing.assert_array_equal(copy[-1], np.full(4, fill_value if is_kept else 0, dtype))
    assert ["has no fill value" in str(one.message) for one in told] == ([] if is_kept else [True])
