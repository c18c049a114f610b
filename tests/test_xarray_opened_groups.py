"""Opened groups of zarrow as the store of a dataset: the same dataset as by path, and its source."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrow
import zarrow.xarray


@pytest.fixture(params=[2, 3])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = zarrow.create_group(tmp_path / "x.zarr", zarr_format=request.param)
    for group in (root, root.create_group("model/day")):
        group.create_array(
            "rain", data=np.arange(12.0).reshape(4, 3), chunks=(2, 3), dimension_names=["time", "x"]
        )
        group.create_array(
            "time",
            data=np.arange(4),
            dimension_names=["time"],
            attributes={"units": "days since 2020-01-01"},
        )
    return tmp_path / "x.zarr"


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("inner", ["", "model/day"])
def test_a_dataset_of_an_opened_group_is_that_of_its_path(path: Path, inner: str, mode: Any) -> None:
    expected = xr.open_dataset(path, engine="zarrow", group=inner, consolidated=False)
    root = zarrow.open_group(path, mode=mode)
    opened = root[inner] if inner else root
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [
            zarrow.xarray.open_zarr(opened, chunks=None),
            zarrow.xarray.open_zarr(root, group=f"/{inner}/", chunks=None),
            zarrow.xarray.open_zarr(opened, consolidated=False),
            xr.open_dataset(opened, engine="zarrow"),
            xr.open_dataset(opened),
            xr.open_dataset(opened, chunks={}),
        ]
    for dataset in (*found, pickle.loads(pickle.dumps(found[0]))):
        xr.testing.assert_identical(dataset.load(), expected)
        assert dataset.encoding["source"] == str(path)
        assert dataset["time"].dtype.kind == "M"
        dataset.close()


def test_a_tree_of_an_opened_group_is_that_of_its_path(path: Path) -> None:
    expected = xr.open_datatree(path, engine="zarrow", consolidated=False)
    for found in (
        xr.open_datatree(zarrow.open_group(path)),
        xr.open_datatree(zarrow.open_group(path, mode="r")),
    ):
        xr.testing.assert_identical(found.load(), expected.load())
        assert found.encoding["source"] == str(path)


def test_a_group_in_memory_and_what_is_no_group(path: Path) -> None:
    group = zarrow.create_group(zarrow.MemoryStore()).create_group("a")
    group.create_array("v", data=[1, 2], dimension_names=["t"])
    found = zarrow.xarray.open_zarr(group)
    assert found["v"].values.tolist() == [1, 2] and found.encoding["source"] == group.store
    with pytest.raises(zarrow.NodeTypeError, match="is an array, expected a group"):
        zarrow.xarray.open_zarr(group["v"])
    with pytest.raises(zarrow.NodeTypeError, match="is an array, expected a group"):
        zarrow.xarray.open_zarr(group, group="v")
    with pytest.raises(zarrow.NotFoundError, match='path "a/b"'):
        zarrow.xarray.open_zarr(group, group="b")
    with pytest.raises(TypeError, match="unknown option 'engine' of open_zarr: zarrow has one engine"):
        zarrow.xarray.open_zarr(path, engine="zarr")  # type: ignore[call-arg]


@pytest.mark.parametrize("inner", [None, "/night/"])
def test_a_dataset_is_written_into_an_opened_group(path: Path, inner: str | None) -> None:
    root = zarrow.open_group(path, mode="r+")
    part = xr.Dataset({"wind": ("x", np.arange(3.0))}, coords={"x": [1, 2, 3]})
    zarrow.xarray.to_zarr(part, root["model"], mode="a", group=inner, consolidated=False)
    written = root["model/night" if inner else "model"]
    xr.testing.assert_identical(zarrow.xarray.open_zarr(written, chunks=None).load(), part)
    with pytest.raises(FileExistsError):
        zarrow.xarray.to_zarr(part, written)
    with pytest.raises(zarrow.ReadOnlyError, match="is read-only: open it with mode='r\\+'"):
        zarrow.xarray.to_zarr(part, zarrow.open_group(path, mode="r"), mode="a")
    store = zarrow.MemoryStore()
    zarrow.xarray.to_zarr(part, zarrow.create_group(store, "below"), mode="a", consolidated=False)
    assert zarrow.open(store)["below/wind"].shape == (3,)


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently")
def test_a_replaced_group_keeps_its_version(path: Path) -> None:
    """Another version would hide the rest of the store."""
    root = zarrow.open_group(path, mode="r+")
    part = xr.Dataset({"wind": ("x", np.arange(3.0))})
    zarrow.xarray.to_zarr(part, root["model"], mode="w")
    found = zarrow.open(path)
    assert sorted(found) == ["model", "rain", "time"] and sorted(found["model"]) == ["wind"]
    assert found["model/wind"].zarr_format == root.zarr_format


@pytest.mark.parametrize("consolidated", [True, False])
def test_a_dataset_of_an_opened_group_is_that_of_its_path_after_writes(
    tmp_path: Path, consolidated: bool
) -> None:
    """By zarrow into the group, and by another program into its path."""
    group = zarrow.create_group(tmp_path / "x.zarr")
    for number, write in enumerate(
        (zarrow.xarray.to_zarr, lambda made, *_, **how: made.to_zarr(group.store, **how))
    ):
        made = xr.Dataset(
            {"v": ("x", [1.0, number])}, {f"c{number}": ("y", [5, 6])}, {"title": f"written {number}"}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(made, group, mode="a" if number else "w", consolidated=consolidated)
        found = xr.open_dataset(group, engine="zarrow", consolidated=consolidated)
        xr.testing.assert_identical(
            found, xr.open_dataset(group.store, engine="zarr", consolidated=consolidated)
        )
        assert f"c{number}" in found.coords
        assert dict(group.attrs)["title"] == f"written {number}"
