"""Blocks of dask in `zarrow.xarray.to_zarr`: each shard is encoded once, and faulty blocks are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs import GzipCodec

import zarrow
import zarrow.dask
import zarrow.xarray
from test_xarray_writing import values
from zarrow.xarray.chunk_targets import ChunkTarget

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently")

ELEMENTS = np.arange(160.0).reshape(20, 8)
ENCODING = {"a": {"chunks": (2, 4), "shards": (4, 8)}}
OPTIONS: dict[str, Any] = {"safe_chunks": False, "consolidated": False}


class OwnCodec(GzipCodec):
    """A codec that the engine does not have."""


def part(rows: slice) -> xr.Dataset:
    """Return rows in blocks that end within shards."""
    return xr.Dataset({"a": (("y", "x"), ELEMENTS[rows])}).chunk(y=3, x=3)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Collect the rows of each write of a task."""
    found: list[tuple[int, int]] = []
    for target in (ChunkTarget, zarr.Array):
        write = target.__setitem__

        def collect(self: Any, region: Any, value: Any, write: Any = write) -> None:
            if isinstance(region[0], slice):  # zarr-python tries a codec by one element
                found.append((region[0].start, region[0].stop))
            write(self, region, value)

        monkeypatch.setattr(target, "__setitem__", collect)
    return found


@pytest.mark.parametrize("is_delayed", [False, True])
@pytest.mark.parametrize("has_codec", [True, False])
def test_blocks_of_one_shard_are_encoded_once(
    tmp_path: Path, written: list[tuple[int, int]], has_codec: bool, is_delayed: bool
) -> None:
    encoding = ENCODING if has_codec else {"a": {"chunks": (4, 8), "compressors": [OwnCodec(level=1)]}}

    def write(rows: slice, **options: Any) -> None:
        written.clear()
        stored = zarrow.xarray.to_zarr(
            part(rows), tmp_path / "a", compute=not is_delayed, **OPTIONS, **options
        )
        if is_delayed:
            stored.compute()

    with dask.config.set(scheduler="synchronous"):
        write(slice(0, 10), encoding=encoding)
        assert sorted(written) == [(0, 4), (4, 8), (8, 10)]
        write(slice(10, 20), append_dim="y")
        assert sorted(written) == [(10, 16), (16, 20)]
        write(slice(6, 14), region={"y": slice(6, 14), "x": slice(0, 8)})
        assert sorted(written) == [(6, 12), (12, 14)]
    assert np.array_equal(zarr.open_array(tmp_path / "a", path="a", mode="r")[...], ELEMENTS)


def test_blocks_of_trees_and_of_unchanged_programs_are_encoded_once(
    tmp_path: Path, written: list[tuple[int, int]]
) -> None:
    dataset = part(slice(0, 10))
    tree = xr.DataTree.from_dict({"/": dataset.rename(a="b"), "/below": dataset})
    encoding = {"/": {"b": ENCODING["a"]}, "/below": ENCODING}
    with dask.config.set(scheduler="synchronous"):
        zarrow.xarray.to_zarr(tree, tmp_path / "tree", encoding=encoding, **OPTIONS)
        assert sorted(written) == sorted([(0, 4), (4, 8), (8, 10)] * 2)
        written.clear()
        with zarrow.xarray.enable():
            dataset.to_zarr(tmp_path / "a", encoding=ENCODING, **OPTIONS)
        assert sorted(written) == [(0, 4), (4, 8), (8, 10)]


def fails(block: np.ndarray) -> np.ndarray:
    if block.max() > 100:
        raise RuntimeError("lost")
    return block


def test_a_failed_block_of_an_append_leaves_the_dataset(tmp_path: Path) -> None:
    zarrow.xarray.to_zarr(part(slice(0, 10)), tmp_path / "a", encoding=ENCODING, **OPTIONS)
    before = values(tmp_path / "a")
    lost = part(slice(10, 20)).map(lambda variable: variable.copy(data=variable.data.map_blocks(fails)))
    with pytest.raises(RuntimeError, match="lost"):
        zarrow.xarray.to_zarr(lost, tmp_path / "a", append_dim="y", **OPTIONS)
    after = values(tmp_path / "a")
    assert {key: value for key, value in after.items() if "json" in key} == {
        key: value for key, value in before.items() if "json" in key
    }
    assert np.array_equal(zarrow.load(tmp_path / "a/a"), ELEMENTS[:10])
    zarrow.xarray.to_zarr(part(slice(10, 20)), tmp_path / "a", append_dim="y", **OPTIONS)
    assert np.array_equal(zarrow.load(tmp_path / "a/a"), ELEMENTS)


@pytest.mark.parametrize("cut", [lambda block: block[:1], lambda block: block[None]])
def test_a_block_of_another_shape_is_not_repeated(tmp_path: Path, cut: Any) -> None:
    whole = da.from_array(ELEMENTS, chunks=(4, 8))
    faulty = whole.map_blocks(cut, dtype="f8", meta=whole._meta)
    with pytest.raises(zarrow.ShapeError, match=r"but dask expects \(4, 8\)"):
        zarrow.dask.to_zarr(faulty, tmp_path / "dask")
    with pytest.raises(zarrow.ShapeError, match=r"but dask expects \(4, 8\)"):
        zarrow.xarray.to_zarr(xr.Dataset({"a": (("y", "x"), faulty)}), tmp_path / "xarray", encoding=ENCODING)
    # A scalar fills its block, as in dask's own functions.
    zarrow.dask.to_zarr(whole.map_blocks(np.max, dtype="f8", meta=whole._meta), tmp_path / "maxima")
    assert zarrow.load(tmp_path / "maxima")[::4, 7].tolist() == [31, 63, 95, 127, 159]
