"""Options, names and warnings of the engine and the writer, compared with xarray's own code."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrow
import zarrow.xarray
from xarray_cases import cf, write
from xarray_marks import marks

pytestmark = marks("The specified chunks separate")

OPENERS: dict[str, Callable[..., Any]] = {
    "open_zarr": zarrow.xarray.open_zarr,
    "engine": lambda path, **options: xr.open_dataset(path, engine="zarrow", **options),
    "tree": lambda path, **options: xr.open_datatree(path, engine="zarrow", **options),
}


def caught(function: Callable[[], Any]) -> list[tuple[type[Warning], str]]:
    """Return the category and the file of each warning."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [(each.category, each.filename) for each in found]


@pytest.mark.parametrize("opener", OPENERS)
def test_warnings_name_the_line_of_the_program(tmp_path: Path, opener: str) -> None:
    """xarray warns of `use_cftime` for each variable."""
    times = xr.Dataset({name: ("t", [0, 1], {"units": "days since 2000-01-01"}) for name in "abt"})
    path = write(times, tmp_path / "a.zarr", consolidated=False)
    found = caught(lambda: OPENERS[opener](path, use_cftime=False))
    assert found == [(RuntimeWarning, __file__), (FutureWarning, __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened, coder = OPENERS[opener](path, use_cftime=False), xr.coders.CFDatetimeCoder(use_cftime=False)
        expected = xr.open_dataset(path, engine="zarr", decode_times=coder)
    assert all(opened[name].identical(expected[name]) for name in "abt")


def test_use_cftime_beside_a_coder_is_refused(tmp_path: Path) -> None:
    path = write(cf(), tmp_path / "a.zarr")
    coder = xr.coders.CFDatetimeCoder(use_cftime=False)
    with pytest.raises(TypeError, match="use_cftime"):
        xr.open_dataset(path, engine="zarrow", decode_times=coder, use_cftime=False)


def test_no_options_may_be_given_for_a_folder(tmp_path: Path) -> None:
    zarrow.xarray.to_zarr(cf(), tmp_path / "a.zarr", storage_options={})
    found = zarrow.xarray.open_zarr(tmp_path / "a.zarr", storage_options={})
    xr.testing.assert_identical(found.load(), cf())


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["zarr.json", ".zattrs", ".zgroup", ".zarray", ".zmetadata"])
def test_names_of_documents_are_refused(tmp_path: Path, name: str, version: int) -> None:
    """The engine does not list them: a variable of this name would be lost."""
    dataset = xr.Dataset({name: ("x", np.arange(3)), "a": ("x", np.arange(3))})
    with pytest.raises((zarrow.UnsupportedError, FileExistsError), match="rename"):
        zarrow.xarray.to_zarr(dataset, tmp_path / "a.zarr", zarr_format=version)
    below = xr.DataTree.from_dict({"/": xr.Dataset(), f"/b/{name}": xr.Dataset({"a": ("x", np.arange(3))})})
    with pytest.raises((zarrow.UnsupportedError, FileExistsError), match="rename"):
        zarrow.xarray.to_zarr(below, tmp_path / "a.zarr", zarr_format=version)
    assert not (tmp_path / "a.zarr").exists()


def test_objects_load_at_the_same_time(tmp_path: Path) -> None:
    """As `test_concurrent_load_multiple_objects` of xarray, which counts calls of zarr-python."""
    path = write(cf(), tmp_path / "a.zarr")
    dataset, stock = (xr.open_dataset(path, engine=name) for name in ("zarrow", "zarr"))
    name = next(iter(dataset.data_vars))

    async def load(lazy: Any) -> list[Any]:
        return await asyncio.gather(*(lazy.copy().load_async() for _ in range(5)))

    for lazy, expected in (
        (dataset, stock),
        (dataset[name], stock[name]),
        (dataset[name].variable, stock[name].variable),
    ):
        assert all(loaded.identical(expected) for loaded in asyncio.run(load(lazy)))
