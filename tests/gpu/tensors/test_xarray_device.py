"""Datasets of xarray on a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow

xarray = pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("chunks", [None, {}])
def test_a_dataset_is_loaded_to_a_device(tmp_path: Path, chunks: Any) -> None:
    data = np.arange(48.0, dtype="f4").reshape(6, 8)
    dataset = xarray.Dataset({"a": (("y", "x"), data), "b": (("y", "x"), data + 1), "c": ("x", data[0])})
    dataset = dataset.assign_coords(x=np.arange(8))
    dataset["c"].encoding = {"scale_factor": 0.5, "dtype": "i2", "_FillValue": -1}
    for name in "ab":
        dataset[name].encoding = {"_FillValue": None}
    dataset.to_zarr(tmp_path / "a.zarr", consolidated=False)

    def opened() -> Any:
        return xarray.open_dataset(tmp_path / "a.zarr", engine="zarrow", chunks=chunks, consolidated=False)

    found = opened()
    with pytest.raises(zarrow.UnsupportedError, match="'c' is decoded"):
        zarrow.xarray.load(found, device="cuda")
    assert not isinstance(found["a"].variable._data, zarrow.gpu.Tensor)
    assert zarrow.xarray.load(found, ["a", "b"], device="cuda:0") is found
    for name, values in (("a", data), ("b", data + 1)):
        tensor = found[name].data
        assert isinstance(tensor, zarrow.gpu.Tensor)
        assert found[name].dims == ("y", "x")
        assert (tensor.cpu().numpy() == values).all()
    # What is on the device stays there.
    zarrow.xarray.load(found, ["a"], device="cuda:0")
    assert found["c"].values.tolist() == data[0].tolist()
    with pytest.raises(ValueError, match="without out="):
        zarrow.xarray.load(opened(), ["a"], device="cuda:0", out={"a": data})
