"""Datasets of every kind that xarray writes, for the tests of the engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

STRINGS = np.dtypes.StringDType()


def cf() -> xr.Dataset:
    """Scales, offsets, fill values, times of several units and types."""
    days = pd.date_range("2000-01-01", periods=7)
    packed = np.arange(14.0).reshape(7, 2)
    packed[3, 1] = np.nan
    dataset = xr.Dataset(
        {
            "packed": (("time", "x"), packed, {"units": "K", "valid_range": [0.0, 1.0]}),
            "stamp": ("time", days + pd.Timedelta("3h")),
            "lead": ("time", pd.timedelta_range("1h", periods=7)),
            "label": ((), 4),
        },
        coords={"time": days, "x": [10, 20], "height": ("x", [0.5, 1.5])},
        attrs={"title": "é", "numbers": [1, 2.5], "nested": {"a": None}},
    )
    dataset["packed"].encoding = {
        "scale_factor": 0.5,
        "add_offset": 10.0,
        "dtype": "i2",
        "_FillValue": -9,
    }
    dataset["time"].encoding = {"units": "hours since 1990-01-01", "calendar": "noleap", "dtype": "f8"}
    dataset["time"].encoding["calendar"] = "proleptic_gregorian"
    return dataset


def kinds() -> xr.Dataset:
    """Elements of each kind."""
    return xr.Dataset(
        {
            "bool": ("x", np.array([True, False, True])),
            "int8": ("x", np.array([1, -2, 3], "i1")),
            "uint64": ("x", np.array([1, 2, 2**63], "u8")),
            "float16": ("x", np.array([1.5, np.nan, -0.0], "f2")),
            "big": ("x", np.array([1.5, np.nan, 7.0], ">f4")),
            "complex": ("x", np.array([1j, 2, 3], "c16")),
            "unicode": ("x", np.array(["a", "", "ßü"])),
            "bytes": ("x", np.array([b"a", b"", b"ccc"])),
            "strings": ("x", np.array(["a", "", "ßü"], STRINGS)),
            "object": ("x", np.array(["a", "b", "a longer text"], object)),
            "scalar": ((), np.float32(2.5)),
            "text": ((), "one"),
        },
        coords={"x": ["u", "v", "w"]},
    )


def chars() -> xr.Dataset:
    """Characters, which decoding joins to texts."""
    dataset = xr.Dataset({"name": ("x", np.array([b"abc", b"de", b"f"], "S3"))})
    dataset["name"].encoding = {"dtype": "S1", "char_dim_name": "letter"}
    return dataset


def empty() -> xr.Dataset:
    """Dimensions without elements, and variables without dimensions."""
    return xr.Dataset(
        {"none": (("t", "x"), np.zeros((0, 3))), "one": ((), 1)}, coords={"t": np.zeros(0), "x": [1, 2, 3]}
    )


def no_coordinates() -> xr.Dataset:
    """Dimensions without coordinates, and a coordinate of two dimensions."""
    return xr.Dataset(
        {"a": (("y", "x"), np.arange(20).reshape(4, 5))},
        coords={"lat": (("y", "x"), np.linspace(0, 1, 20).reshape(4, 5))},
    )


def nothing() -> xr.Dataset:
    """Attributes alone."""
    return xr.Dataset(attrs={"only": "attributes"})


def many() -> xr.Dataset:
    """Twelve coordinates with two times among them, and twelve variables."""
    coordinates: dict[str, Any] = {f"x{number}": np.arange(3 + number % 4) for number in range(8)}
    coordinates["time"] = pd.date_range("2000", periods=5)
    coordinates["reference"] = ("time", pd.date_range("1990", periods=5))
    coordinates["height"] = ("x0", [1.0, 2.0, 3.0])
    coordinates["scalar"] = 7
    variables = {f"v{number}": (("time", "x0"), np.full((5, 3), float(number))) for number in range(12)}
    return xr.Dataset(variables, coords=coordinates)


DATASETS: dict[str, Callable[[], xr.Dataset]] = {
    function.__name__: function for function in (cf, kinds, chars, empty, no_coordinates, nothing)
}


def tree() -> xr.DataTree:
    """Groups in groups, which inherit coordinates."""
    root = xr.Dataset({"a": ("x", [1, 2, 3])}, coords={"x": [10, 20, 30]}, attrs={"level": 0})
    return xr.DataTree.from_dict(
        {
            "/": root,
            "/cf": cf().rename(x="column"),
            "/cf/deep": xr.Dataset({"b": ("t", [1.0, np.nan])}, coords={"t": [1, 2]}),
            "/none": xr.Dataset(),
            "/none/below": xr.Dataset({"c": ("x", ["p", "q", "r"])}),
        }
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Hide zarr-python's warnings of types and documents without a specification."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently")
        warnings.filterwarnings("ignore", message="The data type")
        warnings.filterwarnings("ignore", message="Failed to open Zarr store with consolidated")
        yield


def write(dataset: xr.Dataset | xr.DataTree, path: Path, **options: Any) -> Path:
    """Write a dataset or a tree by xarray's own engine."""
    with quiet():
        dataset.to_zarr(path, **options)
    return path


def same(ours: Any, stock: Any) -> None:
    """Check that two datasets or trees are identical, with types, encodings and order."""
    xr.testing.assert_identical(ours, stock)
    if isinstance(stock, xr.DataTree):
        for node in stock.subtree:
            same(ours[node.path].to_dataset(inherit=False), node.to_dataset(inherit=False))
        return
    same_encoding(ours.encoding, stock.encoding)
    assert set(ours.variables) == set(stock.variables)
    for name, variable in stock.variables.items():
        found = ours.variables[name]
        assert found.dtype == variable.dtype, name
        assert found.values.dtype == variable.values.dtype, name
        assert found.chunks == variable.chunks, name
        same_encoding(found.encoding, variable.encoding)


def same_encoding(ours: dict[str, Any], stock: dict[str, Any]) -> None:
    """Check that encodings are equal; NaN is equal to itself."""
    assert list(ours) == list(stock)
    for name, value in stock.items():
        found = ours[name]
        assert type(found) is type(value), name
        assert found == value or (found != found and value != value), name
