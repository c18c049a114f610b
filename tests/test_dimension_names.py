"""Dimension names: `dimension_names` of version 3 and `_ARRAY_DIMENSIONS` of version 2 are equivalent."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import zarrow

FORMATS = (2, 3)
PAIRS = list(itertools.product(FORMATS, FORMATS))


def named(group: zarrow.Group, **options: Any) -> zarrow.Array:
    data = np.arange(6, dtype="f4").reshape(2, 3)
    return group.create_array("t", data=data, dimension_names=["y", "x"], **options)


def stored_names(folder: Path, name: str) -> Any:
    array = zarr.open_group(folder, mode="r")[name]
    if array.metadata.zarr_format == 3:
        return array.metadata.dimension_names
    return tuple(array.attrs["_ARRAY_DIMENSIONS"])


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_each_version_stores_names_as_xarray_reads_them(tmp_path: Path, zarr_format: Any) -> None:
    group = zarrow.create_group(tmp_path, zarr_format=zarr_format, attributes={"title": "rain"})
    named(group, attributes={"units": "K"})
    assert zarrow.open(tmp_path)["t"].dimension_names == ("y", "x")
    assert stored_names(tmp_path, "t") == ("y", "x")
    with xr.open_zarr(tmp_path, consolidated=False) as found:
        assert found["t"].dims == ("y", "x") and found["t"].attrs == {"units": "K"}
        assert found["t"].values.tolist() == [[0, 1, 2], [3, 4, 5]]  # zeros are not masked


def test_the_attribute_names_dimensions_in_both_versions() -> None:
    for zarr_format in FORMATS:
        group = zarrow.create_group(zarrow.MemoryStore(), zarr_format=zarr_format)
        made = group.create_array(
            "a", data=[[1]], attributes={"_ARRAY_DIMENSIONS": ["y", "x"], "nan": np.nan}
        )
        assert made.dimension_names == group["a"].dimension_names == ("y", "x")
        assert np.isnan(group["a"].attrs["nan"])
        for names in (["y"], ["y", 1], "yx", ["y", None]):
            group.create_array("b", data=[[1]], attributes={"_ARRAY_DIMENSIONS": names}, overwrite=True)
            assert group["b"].dimension_names is None
        group["b"].attrs["_ARRAY_DIMENSIONS"] = ["v", "u"]
        assert group["b"].dimension_names == ("v", "u")
    old = zarrow.create_group(zarrow.MemoryStore(), zarr_format=2)
    with pytest.raises(zarrow.MetadataError, match="expected the names of the attribute"):
        old.create_array("c", data=[1], attributes={"_ARRAY_DIMENSIONS": ["y"]}, dimension_names=["x"])
    with pytest.raises(zarrow.MetadataError, match="expected a name for every dimension"):
        old.create_array("c", data=[[1]], dimension_names=["x", None])
    assert "c" not in old


def set_item(source: zarrow.Group, target: zarrow.Group) -> None:
    target["t"] = source["t"]


def save_group(source: zarrow.Group, target: zarrow.Group) -> None:
    zarrow.save(target.store, source)


def save_array(source: zarrow.Group, target: zarrow.Group) -> None:
    zarrow.save(target.store, t=source["t"])


def create_like(source: zarrow.Group, target: zarrow.Group) -> None:
    zarrow.empty_like(source["t"], store=target.store, path="t", zarr_format=target.zarr_format)


@pytest.mark.parametrize("copy", [set_item, save_group, save_array, create_like])
@pytest.mark.parametrize(("source_format", "target_format"), PAIRS)
def test_copies_keep_names(tmp_path: Path, source_format: Any, target_format: Any, copy: Any) -> None:
    source = zarrow.create_group(tmp_path / "source", zarr_format=source_format)
    target = zarrow.create_group(tmp_path / "target", zarr_format=target_format)
    named(source, attributes={"units": "K"})
    copy(source, target)
    assert target["t"].dimension_names == ("y", "x")
    assert stored_names(tmp_path / "target", "t") == ("y", "x")
    if target_format == 3:
        assert "_ARRAY_DIMENSIONS" not in target["t"].attrs


@pytest.mark.parametrize(("source_format", "target_format"), PAIRS)
def test_xarray_opens_a_copy_as_the_original(tmp_path: Path, source_format: Any, target_format: Any) -> None:
    dataset = xr.Dataset(
        {
            "t": (("time", "x"), np.array([[0.0, np.nan], [-1.0, 3.5]], "f4"), {"units": "K"}),
            "gaps": (("time", "x"), np.array([[0.0, np.nan], [7.0, 3.0]])),
            "count": (("x",), np.array([0, 5], "i4")),
            "scalar": ((), np.int64(0)),
        },
        coords={"time": [0, 1], "x": [10.0, 20.0]},
        attrs={"title": "rain"},
    )
    encoding = {"gaps": {"_FillValue": -9, "dtype": "i2"}, "t": {"_FillValue": np.float32(-9)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # consolidated metadata of version 3
        dataset.to_zarr(tmp_path / "source", zarr_format=source_format, encoding=encoding)
    source = zarrow.open(tmp_path / "source")
    assert source["t"].dimension_names == ("time", "x") and source["scalar"].dimension_names in ((), None)
    target = zarrow.create_group(tmp_path / "target", zarr_format=target_format, attributes=source.attrs)
    for name, array in source.arrays():
        target[name] = array
    with (
        xr.open_zarr(tmp_path / "source", consolidated=False) as original,
        xr.open_zarr(tmp_path / "target", consolidated=False) as copy,
    ):
        xr.testing.assert_identical(copy.load(), original.load())


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_data_array_keeps_its_dims(tmp_path: Path, zarr_format: Any) -> None:
    group = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    group["t"] = xr.DataArray([[0, 1]], dims=("y", "x"), attrs={"units": "K"})
    with xr.open_zarr(tmp_path, consolidated=False) as found:
        assert found["t"].dims == ("y", "x") and found["t"].attrs == {"units": "K"}
        assert found["t"].dtype.kind == "i" and found["t"].values.tolist() == [[0, 1]]


def test_names_that_version_2_cannot_store_warn(tmp_path: Path) -> None:
    new = zarrow.create_group(zarrow.MemoryStore())
    old = zarrow.create_group(zarrow.MemoryStore(), zarr_format=2)
    new.create_array("some", data=[[1]], dimension_names=["y", None])
    new.create_array("none", data=[[1]], dimension_names=[None, None])
    with pytest.warns(zarrow.ZarrowWarning, match=r"\('y', None\) of '/some' are not stored: version 2"):
        old["some"] = new["some"]
    old["none"] = new["none"]
    assert old["some"].dimension_names is None and old["none"].dimension_names is None


def test_a_copy_keeps_an_open_fill_value(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "old", shape=(4,), dtype="i4", fill_value=None, zarr_format=2)[:] = [
        0,
        1,
        2,
        3,
    ]
    target = zarrow.create_group(tmp_path / "new", zarr_format=2)
    target["x"] = zarrow.open(tmp_path / "old")
    assert zarr.open_array(tmp_path / "new" / "x").fill_value is None
    assert target["x"][...].tolist() == [0, 1, 2, 3]
