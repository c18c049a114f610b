"""Writes that `zarrow.xarray.to_zarr` refuses leave each byte of the store, and raise xarray's own errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import zarrow.xarray
from test_xarray_writing import SHARDED, steps, values
from xarray_cases import tree
from xarray_marks import marks

pytestmark = marks()

CHUNKS = {"rain": {"chunks": (4, 3)}}


def rain(start: int, stop: int, **changes: Any) -> xr.Dataset:
    """Return some days of rain alone, without the coordinate `x`."""
    return steps(start, stop)[["rain"]].drop_vars("x").assign(**changes)


def encoded(name: str, **encoding: Any) -> xr.Dataset:
    """Return the next days with an encoding of one variable."""
    dataset = steps(8, 10)
    dataset[name].encoding.update(encoding)
    return dataset


def with_attributes(**attributes: Any) -> xr.Dataset:
    return steps(8, 10).assign_attrs(attributes)


class Refuses(zarr.codecs.GzipCodec):
    """A codec that does not encode."""

    async def _encode_single(self, *_: Any) -> Any:
        raise ValueError("these elements are refused")


# The dataset, and the options of the call. Stored are eight days, in chunks of four.
Case = tuple[Callable[[], Any], dict[str, Any]]
CASES: dict[str, Case] = {
    # modes
    "a store exists": (lambda: steps(0, 2), {}),
    "a store exists, w-": (lambda: steps(0, 2), {"mode": "w-"}),
    "unknown mode": (lambda: steps(0, 2), {"mode": "x"}),
    "read-only mode": (lambda: steps(0, 2), {"mode": "r"}),
    "append with w": (lambda: steps(8, 10), {"mode": "w", "append_dim": "time"}),
    "append with r+": (lambda: steps(8, 10), {"mode": "r+", "append_dim": "time"}),
    "region with w": (lambda: rain(0, 2), {"mode": "w", "region": {"time": slice(0, 2)}}),
    "options of a folder": (lambda: steps(0, 2), {"mode": "w", "storage_options": {"anon": True}}),
    "new variables with r+": (lambda: steps(0, 8).assign(new=1), {"mode": "r+"}),
    "other sizes with r+": (lambda: steps(0, 7), {"mode": "r+"}),
    "other sizes with a": (lambda: steps(0, 7), {"mode": "a"}),
    "other version": (lambda: steps(0, 8), {"mode": "a", "zarr_format": 2}),
    "consolidated metadata are missing": (
        lambda: rain(0, 8),
        {"mode": "r+", "consolidated": True, "group": "none"},
    ),
    "no such group": (lambda: steps(0, 8), {"mode": "r+", "group": "none"}),
    "a group below an array": (lambda: steps(0, 8), {"mode": "a", "group": "rain/below"}),
    # appends
    "misaligned dask chunks": (lambda: steps(8, 14, chunks=3), {"append_dim": "time"}),
    "misaligned dask chunks, a-": (lambda: steps(8, 14, chunks=3), {"append_dim": "time", "mode": "a-"}),
    "no such dimension": (lambda: steps(8, 10), {"append_dim": "none"}),
    "another extent": (lambda: steps(8, 10).isel(x=slice(2)), {"append_dim": "time"}),
    "other dimensions": (lambda: steps(8, 10).rename(x="y"), {"append_dim": "time"}),
    "longer texts": (
        lambda: steps(8, 10).assign(name=("time", ["too long", "for it"])),
        {"append_dim": "time"},
    ),
    "dates for numbers": (
        lambda: steps(8, 10).assign(rain=(("time", "x"), np.full((2, 3), "text"))),
        {"append_dim": "time"},
    ),
    "encoding of an existing variable": (
        lambda: steps(8, 10),
        {"append_dim": "time", "encoding": {"rain": {"dtype": "f4"}}},
    ),
    "region of the appended dimension": (
        lambda: rain(8, 10),
        {"append_dim": "time", "region": {"time": slice(0, 2)}},
    ),
    "objects": (
        lambda: steps(8, 10).assign(rain=(("time", "x"), np.full((2, 3), object()))),
        {"append_dim": "time"},
    ),
    "mixed objects": (
        lambda: steps(8, 10).assign(new=("x", np.array([1, "a", None], object))),
        {"append_dim": "time"},
    ),
    # regions
    "region beyond the end": (lambda: rain(0, 4), {"region": {"time": slice(6, 10)}}),
    "region of another size": (lambda: rain(0, 4), {"region": {"time": slice(2, 4)}}),
    "region with a step": (lambda: rain(0, 4), {"region": {"time": slice(0, 8, 2)}}),
    "region of an unknown dimension": (lambda: rain(0, 4), {"region": {"none": slice(0, 4)}}),
    "region that is no slice": (lambda: rain(0, 4), {"region": {"time": 3}}),
    "region that is no dict": (lambda: rain(0, 4), {"region": slice(0, 4)}),
    "variables outside the region": (lambda: steps(0, 4), {"region": {"time": slice(0, 4)}}),
    "values that are not stored": (lambda: rain(6, 10), {"region": "auto"}),
    "positions that are not contiguous": (lambda: rain(0, 8).isel(time=[0, 3]), {"region": "auto"}),
    "region auto with a-": (lambda: rain(0, 2), {"region": "auto", "mode": "a-"}),
    "dask chunks in a region": (lambda: rain(0, 4).chunk(time=2), {"region": {"time": slice(1, 5)}}),
    "dask chunks in a region, r+": (lambda: rain(0, 3).chunk(time=3), {"region": {"time": slice(1, 4)}}),
    "new variables in a region": (lambda: rain(0, 4).rename(rain="new"), {"region": {"time": slice(0, 4)}}),
    "new variables in a region, a": (
        lambda: rain(0, 4).rename(rain="new"),
        {"region": {"time": slice(4, 8)}, "mode": "a"},
    ),
    # encodings
    "unknown encoding": (lambda: steps(0, 2), {"mode": "w", "encoding": {"rain": {"none": 1}}}),
    "encoding of an unknown variable": (lambda: steps(0, 2), {"mode": "w", "encoding": {"none": {}}}),
    "chunks that are not integers": (
        lambda: steps(0, 2),
        {"mode": "w", "encoding": {"rain": {"chunks": (1.5, 3)}}},
    ),
    "misaligned dask chunks of a new array": (
        lambda: steps(0, 6, chunks=3),
        {"mode": "w", "encoding": CHUNKS},
    ),
    "dask chunks in one shard": (lambda: steps(0, 6, chunks=2), {"mode": "w", "encoding": SHARDED}),
    "unequal dask chunks": (lambda: steps(0, 6).chunk(time=(1, 3, 2)), {"mode": "w"}),
    "shards that chunks do not divide": (
        lambda: steps(0, 4),
        {"mode": "w", "encoding": {"rain": {"chunks": (2, 3), "shards": (3, 3)}}},
    ),
    "shards of version 2": (lambda: steps(0, 4), {"mode": "w", "zarr_format": 2, "encoding": SHARDED}),
    "fill value of version 2": (
        lambda: steps(0, 4),
        {"mode": "w", "zarr_format": 2, "encoding": {"rain": {"fill_value": 1.0}}},
    ),
    "unknown version": (lambda: steps(0, 4), {"mode": "w", "zarr_format": 4}),
    "unknown compressor": (
        lambda: steps(0, 4),
        {"mode": "w", "encoding": {"rain": {"compressors": [{"name": "none", "configuration": {}}]}}},
    ),
    "fill value of another type": (
        lambda: steps(0, 4),
        {"mode": "w", "encoding": {"fixed": {"fill_value": "text"}}},
    ),
    "a codec that refuses": (
        lambda: steps(0, 4),
        {"mode": "w", "encoding": {"rain": {"compressors": [Refuses()]}}},
    ),
    "contradicting write_empty_chunks": (
        lambda: steps(0, 4),
        {"mode": "w", "write_empty_chunks": True, "encoding": {"rain": {"write_empty_chunks": False}}},
    ),
    # names and attributes
    "a name that is no text": (lambda: steps(0, 4).assign({3: 1}), {"mode": "w"}),
    "a name below another variable": (lambda: steps(0, 4).assign({"rain/below": 1}), {"mode": "w"}),
    "a name of a document": (lambda: steps(0, 4).assign({"zarr.json": 1}), {"mode": "w"}),
    "a name that is too long": (lambda: steps(0, 4).assign({"x" * 300: 1}), {"mode": "w"}),
    "an empty name": (lambda: steps(0, 4).assign({"": 1}), {"mode": "w"}),
    "attributes of a group": (lambda: with_attributes(bad=object()), {"mode": "w"}),
    "attributes of a group, append": (lambda: with_attributes(bad={1, 2}), {"append_dim": "time"}),
    "attributes of a variable": (
        lambda: steps(0, 4).assign(bad=("x", [1, 2, 3], {"bad": object()})),
        {"mode": "w"},
    ),
    "attributes that encoding sets": (
        lambda: steps(0, 4).assign(bad=("x", [1.0, 2, 3], {"scale_factor": 2}, {"scale_factor": 3})),
        {"mode": "w"},
    ),
    # trees
    "a tree over a store": (tree, {}),
    "groups of an encoding": (tree, {"mode": "w", "encoding": {"/unknown": {}}}),
    "a tree in a group": (tree, {"mode": "w", "group": "below"}),
    "appended tree": (tree, {"mode": "a", "append_dim": "x"}),
    "attributes in a tree": (
        lambda: xr.DataTree.from_dict({"/a": xr.Dataset(), "/b": with_attributes(bad=object())}),
        {"mode": "w"},
    ),
    # delayed
    "delayed and misaligned": (lambda: steps(8, 14, chunks=3), {"append_dim": "time", "compute": False}),
    "delayed over a store": (lambda: steps(8, 14, chunks=3), {"compute": False}),
}
# Cases that xarray's own engine refuses in another way.
APART = {
    "a codec that refuses",
    "new variables in a region, a",
    "a name below another variable",
    "a name of a document",
    "a name that is too long",
}
# The message names the first of several members, which are listed in no order.
UNORDERED = {"other version", "no such dimension"}


def error_of(write: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:
        write()
    return caught.value


@pytest.mark.parametrize("is_consolidated", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_refused_write_leaves_each_byte(tmp_path: Path, name: str, is_consolidated: bool) -> None:
    ours, stock = tmp_path / "ours.zarr", tmp_path / "stock.zarr"
    stored = steps(0, 8)
    stored["name"] = stored["name"].astype("S3")
    stored.to_zarr(ours, encoding=CHUNKS, consolidated=is_consolidated)
    shutil.copytree(ours, stock)
    before = values(ours)
    made, options = CASES[name]
    error = error_of(lambda: zarrow.xarray.to_zarr(made(), ours, **options))
    assert values(ours) == before
    with zarrow.xarray.enable():
        error_of(lambda: made().to_zarr(ours, **options))
    assert values(ours) == before
    if name not in APART:
        expected = error_of(lambda: made().to_zarr(stock, **options))
        assert type(error) is type(expected)
        if name not in UNORDERED:
            assert str(error).replace("ours.zarr", "stock.zarr") == str(expected)
