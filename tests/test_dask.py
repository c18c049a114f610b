"""Arrays of dask: reading, aligned writing, tokens and refusals, beside dask's own functions."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray
import zarr

import zarrow
import zarrow.dask
import zarrow.xarray
from zarrow.dask.gathered_blocks import aligned

pytestmark = pytest.mark.small_files

CASES = range(40)


@pytest.mark.parametrize("seed", CASES)
def test_blocks_end_between_write_units(seed: int) -> None:
    rng = random.Random(seed)
    blocks = [rng.randint(0, 9) for _ in range(rng.randint(1, 8))]
    unit, start = rng.randint(1, 7), rng.randint(0, 20)
    (found,) = aligned([blocks], [unit], [start])
    assert sum(found) == sum(blocks)
    edges = np.cumsum(found)[:-1]
    assert all((start + edge) % unit == 0 for edge in edges)
    # Each unit is written by one block.
    owners = np.repeat(np.arange(len(found)), found)
    for first in range(start - start % unit, start + sum(blocks), unit):
        part = owners[max(0, first - start) : max(0, first + unit - start)]
        assert len(set(part.tolist())) <= 1


@pytest.mark.parametrize("seed", CASES)
def test_written_arrays_are_as_dask_writes_them(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 30) for _ in range(rng.randint(1, 3)))
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(rng.choice(("i2", "f8", ">u4")))
    source = da.from_array(values, chunks=tuple(rng.randint(1, extent) for extent in shape))
    chunks = tuple(rng.randint(1, 9) for _ in shape)
    options: dict[str, Any] = {"chunks": chunks}
    if rng.random() < 0.5:
        options["shards"] = tuple(extent * rng.randint(1, 3) for extent in chunks)
    zarrow.dask.to_zarr(source, tmp_path / "ours.zarr", **options)
    found = zarr.open_array(tmp_path / "ours.zarr", mode="r")
    np.testing.assert_array_equal(found[...], values)
    assert (found.chunks, found.shards) == (chunks, options.get("shards"))
    target = zarrow.open_array(tmp_path / "ours.zarr", mode="r+")
    region = tuple(slice(rng.randint(0, extent - 1), extent) for extent in shape)
    part = values[region] + 1
    zarrow.dask.store(da.from_array(part, chunks=2), target, regions=region)
    expected = values.copy()
    expected[region] = part
    np.testing.assert_array_equal(found[...], expected)


def test_read_arrays_are_those_of_dask(tmp_path: Path, scheduler: str) -> None:
    values = np.arange(120.0).reshape(10, 12)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(5, 3), shards=(5, 6))
    ours, stock = zarrow.dask.from_zarr(tmp_path / "a.zarr"), da.from_zarr(tmp_path / "a.zarr")
    assert ours.chunks == ((5, 5), (6, 6))
    assert type(ours._meta) is np.ndarray
    for index in (np.s_[...], np.s_[2, ::2], np.s_[[1, 8, 3]], np.s_[:, [0, 11]], np.s_[-3:, 4]):
        result = ours[index].compute()
        assert type(result) is type(stock[index].compute())
        np.testing.assert_array_equal(result, values[index])
    assert (ours + 1).sum(axis=0).mean().compute() == (values + 1).sum(axis=0).mean()


def test_an_array_is_an_array_of_dask(tmp_path: Path, scheduler: str) -> None:
    values = np.arange(120.0).reshape(10, 12)
    array = zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(5, 3), shards=(5, 6))
    found = array.to_dask()
    assert found.chunks == ((5, 5), (6, 6)) and found.name == array.to_dask(None).name
    np.testing.assert_array_equal(found.compute(), values)
    assert array.to_dask(chunks=(10, -1)).npartitions == 1


def test_blocks_are_written_under_each_scheduler(tmp_path: Path, scheduler: str) -> None:
    values = np.arange(300).reshape(20, 15)
    source = da.from_array(values, chunks=(3, 4))
    stored = zarrow.dask.to_zarr(source, tmp_path / "a.zarr", chunks=(2, 3), shards=(8, 9), compute=False)
    assert zarrow.open_array(tmp_path / "a.zarr").nchunks_initialized == 0
    dask.compute(stored)
    np.testing.assert_array_equal(zarrow.load(tmp_path / "a.zarr"), values)
    again = zarrow.dask.to_zarr(source + 1, tmp_path / "a.zarr", mode="w", return_stored=True)
    np.testing.assert_array_equal(again.compute(), values + 1)


def test_shards_are_encoded_once(tmp_path: Path) -> None:
    target = zarrow.create_array(tmp_path / "a.zarr", shape=(16,), chunks=2, shards=8, dtype="i4")
    source = da.from_array(np.arange(16, dtype="i4"), chunks=3)
    stored = zarrow.dask.store(source, target, compute=False)
    assert stored.npartitions == 2
    with dask.config.set(scheduler="synchronous"):
        stored.compute()
    assert target[...].tolist() == list(range(16))


def test_text_and_many_arrays(tmp_path: Path) -> None:
    words = np.array(["a", "bc", "def"], dtype=np.dtypes.StringDType())
    zarrow.save(tmp_path / "words.zarr", words)
    read = zarrow.dask.from_zarr(tmp_path / "words.zarr", chunks=2)
    assert read.compute().tolist() == ["a", "bc", "def"]
    root = zarrow.create_group(tmp_path / "many.zarr")
    targets = [root.create_array(name, shape=(4,), dtype="i8", chunks=3) for name in "xy"]
    sources = [da.arange(4, chunks=2), da.ones(4, dtype="i8", chunks=1)]
    assert zarrow.dask.store(sources, targets) is None
    assert [target[...].tolist() for target in targets] == [[0, 1, 2, 3], [1, 1, 1, 1]]


def test_names_depend_on_the_array(tmp_path: Path) -> None:
    for name in "ab":
        zarrow.save(tmp_path / name, np.arange(4))
    names = {name: zarrow.dask.from_zarr(tmp_path / name).name for name in "ab"}
    assert names["a"] != names["b"]
    read = zarrow.dask.from_zarr(zarrow.open_array(tmp_path / "a", mode="r"))
    assert read.name == names["a"]
    assert pickle.loads(pickle.dumps(read)).name == names["a"]
    assert zarrow.dask.from_zarr(tmp_path / "a", chunks=2).name != names["a"]
    zarrow.open_array(tmp_path / "a").append([4])
    assert zarrow.dask.from_zarr(tmp_path / "a").name != names["a"]
    assert zarrow.dask.from_zarr(tmp_path / "a", name="mine").name == "mine"


def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    target = zarrow.create_array(tmp_path / "a.zarr", shape=(4,), dtype="i4")
    source = da.ones(4, dtype="i4")
    before = sorted(tmp_path.rglob("*"))
    for call, error in (
        (lambda: zarrow.dask.store(da.ones(5), target), zarrow.ShapeError),
        (lambda: zarrow.dask.store(source[source > 0], target), zarrow.ShapeError),
        (lambda: zarrow.dask.store(source, np.ones(4)), TypeError),
        (lambda: zarrow.dask.store(np.ones(4), target), TypeError),
        (lambda: zarrow.dask.store([source], [target, target]), ValueError),
        (lambda: zarrow.dask.store(source, target, regions=(slice(0, 2),)), zarrow.ShapeError),
        (lambda: zarrow.dask.store(source[:2], target, regions=(slice(2, 0, -1),)), zarrow.ShapeError),
        (lambda: zarrow.dask.to_zarr(source, tmp_path / "a.zarr"), zarrow.NodeExistsError),
        (lambda: zarrow.dask.to_zarr(source[source > 0], tmp_path / "b.zarr"), zarrow.ShapeError),
        (lambda: zarrow.dask.to_zarr(source, tmp_path / "b.zarr", region=(slice(2),)), ValueError),
        (lambda: zarrow.dask.to_zarr(source, tmp_path / "b.zarr", mode="r"), ValueError),
        (lambda: zarrow.dask.to_zarr(source, target, chunks=2), TypeError),
    ):
        with pytest.raises(error):
            call()
    with pytest.raises(zarrow.ReadOnlyError, match="mode='r\\+'"):
        zarrow.dask.store(source, zarrow.open_array(tmp_path / "a.zarr", mode="r"))
    assert sorted(tmp_path.rglob("*")) == before


def test_graphs_of_a_million_blocks_are_as_small_as_dasks(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", shape=(4 * 10**6,), chunks=(4,), dtype="i1")
    ours, stock = zarrow.dask.from_zarr(tmp_path / "a.zarr"), da.from_zarr(tmp_path / "a.zarr")
    assert ours.npartitions == 10**6
    sizes = [len(pickle.dumps(each.dask)) for each in (ours, stock)]
    assert sizes[0] <= sizes[1] * 1.01


def test_another_shape_is_refused_before_an_array_is_created(tmp_path: Path) -> None:
    with pytest.raises(zarrow.ShapeError, match="shape is"):
        zarrow.dask.to_zarr(da.ones((4, 4)), tmp_path / "a.zarr", shape=(3, 3))
    assert not (tmp_path / "a.zarr").exists()


def test_processes_do_not_write_into_a_copy_of_a_memory_store() -> None:
    target = zarrow.create_array(zarrow.MemoryStore(), shape=(4, 4), chunks=(2, 2), dtype="f8")
    with pytest.raises(TypeError, match="MemoryStore"):
        pickle.dumps(zarrow.dask.store(da.ones((4, 4), chunks=2), target, compute=False))
    zarrow.dask.store(da.ones((4, 4), chunks=2), target, scheduler="threads")
    assert target[...].tolist() == [[1.0] * 4] * 4
    stored = zarrow.dask.store(da.zeros((4, 4), chunks=2), target, return_stored=True)
    assert stored.compute().sum() == 0


def test_another_type_is_refused_before_an_array_is_created(tmp_path: Path) -> None:
    target = zarrow.create_array(tmp_path / "a.zarr", data=np.ones(4, "i4"))
    for call in (
        lambda: zarrow.dask.to_zarr(da.ones(4), tmp_path / "b.zarr", dtype="i4"),
        lambda: zarrow.dask.to_zarr(da.ones(4), tmp_path / "a.zarr", dtype="i4", mode="w"),
        lambda: zarrow.dask.store(da.ones(4) * 2, target),
    ):
        with pytest.raises(zarrow.DataTypeError, match="astype"):
            call()
    assert not (tmp_path / "b.zarr").exists()
    assert target[...].tolist() == [1, 1, 1, 1]
    zarrow.dask.to_zarr(da.ones(4), tmp_path / "b.zarr", dtype="f4")
    assert zarrow.open_array(tmp_path / "b.zarr").dtype == "f4"


def test_an_array_does_not_erase_its_own_source(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a")
    for name in "xy":
        root.create_array(name, data=np.ones(10), dimension_names=["t"])
    for read in (
        zarrow.dask.from_zarr(tmp_path / "a", "x", chunks=5) + 1,
        da.from_zarr(zarr.open_array(tmp_path / "a/x", mode="r")) + 1,
        zarrow.xarray.open_zarr(tmp_path / "a", consolidated=False, chunks={})["x"].data[:5],
        xarray.open_zarr(tmp_path / "a", consolidated=False, chunks={})["x"].data[:5],
    ):
        for path, options in (("x", {"mode": "w"}), ("x", {"overwrite": True}), ("", {"mode": "w"})):
            with pytest.raises(zarrow.NodeExistsError, match=r"reads '/x?' in .*erased"):
                zarrow.dask.to_zarr(read, tmp_path / "a", path, **options)
            with pytest.raises(zarrow.NodeExistsError, match=r"reads '/x?' in .*erased"):
                zarrow.dask.to_zarr(read, zarr.storage.LocalStore(tmp_path / "a"), path, **options)
        zarrow.dask.to_zarr(read, tmp_path / "a", "y", mode="w")
    assert root["x"][...].tolist() == [1] * 10
