"""Arrays of the package `dask-array`, which has its own `Array` beside that of `dask.array`."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import dask
import dask.array
import numpy as np
import pytest
import zarr

import zarrow
import zarrow.dask

da: Any = pytest.importorskip("dask_array")

VALUES = np.arange(120.0).reshape(10, 12)


def test_arrays_are_read_and_written(tmp_path: Path, scheduler: str) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(5, 3), shards=(5, 6))
    read = zarrow.dask.from_zarr(tmp_path / "a.zarr", library="dask_array")
    assert type(read) is da.Array and read.chunks == ((5, 5), (6, 6))
    assert type(array.to_dask(library="dask_array")) is da.Array
    np.testing.assert_array_equal((read + 1)[2:7, ::2].compute(), (VALUES + 1)[2:7, ::2])
    assert zarrow.dask.to_zarr(read * 2, tmp_path / "b.zarr", chunks=(2, 3), shards=(8, 9)) is None
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "b.zarr", mode="r")[...], VALUES * 2)


@pytest.mark.parametrize("seed", range(10))
def test_misaligned_blocks_are_written_by_units(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 30) for _ in range(rng.randint(1, 3)))
    values = np.random.default_rng(seed).integers(0, 100, shape)
    source = da.from_array(values, chunks=tuple(rng.randint(1, extent) for extent in shape))
    chunks = tuple(rng.randint(1, 9) for _ in shape)
    zarrow.dask.to_zarr(source, tmp_path / "a.zarr", zarr_array_kwargs={"chunks": chunks})
    target = zarrow.open_array(tmp_path / "a.zarr", mode="r+")
    assert target.chunks == chunks
    region = tuple(slice(rng.randint(0, extent - 1), extent) for extent in shape)
    stored = zarrow.dask.store(source[region] + 1, target, regions=region, compute=False)
    np.testing.assert_array_equal(target[...], values)
    dask.compute(stored)
    expected = values.copy()
    expected[region] += 1
    np.testing.assert_array_equal(target[...], expected)
    again = zarrow.dask.store(source, target, return_stored=True)
    np.testing.assert_array_equal(again.compute(), values)


def test_only_the_chunks_of_a_slice_are_read(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(5, 6))
    (tmp_path / "a.zarr/c/1/1").write_bytes(b"damaged")
    read = zarrow.dask.from_zarr(array, library="dask_array", chunks=(10, 12))
    np.testing.assert_array_equal(read[:5].compute(), VALUES[:5])
    np.testing.assert_array_equal((array.to_dask(library="dask_array") + 1)[:5].compute(), VALUES[:5] + 1)
    with pytest.raises(zarrow.CodecError):
        read[:6].compute()


def test_names_depend_on_the_array(tmp_path: Path) -> None:
    for name in "ab":
        zarrow.save(tmp_path / name, np.arange(4))
    names = [zarrow.dask.from_zarr(tmp_path / name, library="dask_array").name for name in "aab"]
    assert names[0] == names[1] != names[2]
    read = zarrow.dask.from_zarr(tmp_path / "a", library="dask_array")
    assert pickle.loads(pickle.dumps(read)).name == names[0] and len(pickle.dumps(read)) < 2000


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    target = zarrow.create_array(tmp_path / "a.zarr", data=np.ones(4, "i4"))
    both = [da.ones(4, dtype="i4"), dask.array.ones(4, dtype="i4")]
    for call, error, message in (
        (lambda: zarrow.dask.store(both, [target, target]), TypeError, "two calls"),
        (lambda: zarrow.dask.store(da.ones(5), target), zarrow.ShapeError, "shape"),
        (lambda: zarrow.dask.store(da.ones(4), target), zarrow.DataTypeError, "astype"),
        (lambda: zarrow.dask.from_zarr(target, library="cubed"), ValueError, "cubed"),  # type: ignore[call-overload]
    ):
        with pytest.raises(error, match=message):
            call()
    assert target[...].tolist() == [1] * 4
    memory = zarrow.create_array(zarrow.MemoryStore(), shape=(4,), dtype="f8", chunks=2)
    zarrow.dask.store(da.arange(4.0, chunks=1), memory, scheduler="threads")
    assert memory[...].tolist() == [0, 1, 2, 3]
    with dask.config.set(scheduler="processes"), pytest.raises(TypeError, match="MemoryStore"):
        zarrow.dask.store(da.ones(4, chunks=2), memory)


def test_an_array_does_not_erase_its_own_source(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a", {"x": np.ones(10)})
    read = zarrow.dask.from_zarr(tmp_path / "a", "x", chunks=5, library="dask_array") + 1
    with pytest.raises(zarrow.NodeExistsError, match=r"reads '/x' in .*erased"):
        zarrow.dask.to_zarr(read, tmp_path / "a", "x", mode="w")
    assert zarrow.open(tmp_path / "a")["x"][...].tolist() == [1] * 10
