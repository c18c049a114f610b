"""Arrays that another program changes while a loader reads them."""

from __future__ import annotations

import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from test_cloud import KEY, SECRET
from zarrow import data
from zarrow.data import current_arrays
from zarrow.errors import NotFoundError, StaleHandleError

VALUES = np.arange(400 * 8, dtype="i4").reshape(400, 8) + 1


@pytest.fixture(autouse=True)
def checks_follow_each_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_arrays, "_SECONDS", 0.0)


def shrink_by_zarr(path: Path) -> None:
    zarr.open_array(path, path="x").resize((100, 8))


def shrink(path: Path) -> None:
    zarrow.open_array(path, "x", mode="r+").resize((100, 8))


def erase(path: Path) -> None:
    group = zarrow.open_group(path, mode="r+")
    del group["x"]


def erase_all(path: Path) -> None:
    shutil.rmtree(path)


def replace(path: Path) -> None:
    group = zarrow.open_group(path, mode="r+")
    group.create_array("x", data=VALUES, chunks=(10, 8), compressors=None, overwrite=True)


def replace_by_group(path: Path) -> None:
    zarrow.open_group(path, mode="r+").create_group("x", overwrite=True)


CHANGES = [shrink_by_zarr, shrink, erase, erase_all, replace, replace_by_group]


def saved(path: Path, zarr_format: int) -> zarrow.Array:
    group = zarrow.create_group(path, zarr_format=zarr_format)
    return group.create_array("x", data=VALUES, chunks=(10, 8), compressors=[{"id": "gzip", "level": 1}])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_array_is_an_error(
    tmp_path: Path, zarr_format: int, change: Callable[[Path], None]
) -> None:
    array = saved(tmp_path / "a.zarr", zarr_format)
    loader = data.Loader(data.Plan(array, 10, window_nbytes=1000), memory_nbytes=1000)
    assert len(list(loader)) == 40
    # The engine notices an erased or replaced array itself, at its first missing or broken chunk.
    with pytest.raises((StaleHandleError, NotFoundError)) as raised:
        for number, _ in enumerate(loader):
            if number == 2:
                change(tmp_path / "a.zarr")
    assert raised.value.path == "x"
    if change in (shrink, shrink_by_zarr):
        assert "was made smaller, from (400, 8) to (100, 8), since it was opened" in str(raised.value)


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_changes_at_the_end_is_an_error(tmp_path: Path, change: Callable[[Path], None]) -> None:
    # All is read before the first batch is delivered, but for the end of the epoch.
    array = saved(tmp_path / "a.zarr", 3)
    loader = data.Loader(data.Plan(array, 10, order="sequential"))
    change(tmp_path / "a.zarr")
    with pytest.raises((StaleHandleError, NotFoundError)):
        list(loader)


@pytest.mark.parametrize("change", CHANGES)
def test_random_access_notices_a_change(tmp_path: Path, change: Callable[[Path], None]) -> None:
    samples = data.RandomAccess(data.Plan(saved(tmp_path / "a.zarr", 3), 10))
    copied = pickle.loads(pickle.dumps(samples))
    assert samples[3].tolist() == copied[3].tolist() == VALUES[3].tolist()
    change(tmp_path / "a.zarr")
    for each in samples, copied:
        with pytest.raises((StaleHandleError, NotFoundError)):
            each[300]


def test_what_does_not_change_samples_is_no_error(tmp_path: Path) -> None:
    array = saved(tmp_path / "a.zarr", 3)
    loader = data.Loader(data.Plan(array, 10, window_nbytes=1000, order="sequential"), memory_nbytes=1000)
    other = zarrow.open_array(tmp_path / "a.zarr", "x", mode="r+")
    found = []
    for number, batch in enumerate(loader):
        found.append(batch.copy())
        if number == 2:
            other.attrs["note"] = "new"
        if number == 4:
            other.append(VALUES[:7])
    assert np.array_equal(np.concatenate(found), VALUES)


def test_an_array_with_chunks_of_many_sizes_may_grow(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        stored = zarr.create_array(
            tmp_path / "a.zarr", shape=(400, 8), dtype="i4", chunks=[[100, 200, 100], [8]]
        )
        stored[...] = VALUES
        array = zarrow.open_array(tmp_path / "a.zarr")
        loader = data.Loader(data.Plan(array, 10, window_nbytes=1000, order="sequential"), memory_nbytes=1000)
        found = []
        for number, batch in enumerate(loader):
            found.append(batch.copy())
            if number == 2:
                stored.append(VALUES[:7])
    assert zarrow.open_array(tmp_path / "a.zarr").shape == (407, 8)
    assert np.array_equal(np.concatenate(found), VALUES)


def test_arrays_in_consolidated_metadata_alone_are_checked(tmp_path: Path) -> None:
    for depth in ("", "below"):
        path = tmp_path / f"a{depth}.zarr"
        root = zarrow.create_group(path)
        group = root.create_group(depth) if depth else root
        group.create_array("x", data=VALUES, chunks=(10, 8))
        zarrow.consolidate_metadata(path)
        (path / depth / "x" / "zarr.json").unlink()
        loader = data.Loader(data.Plan(zarrow.open_group(path)[f"{depth}/x".strip("/")], 10))
        for _ in range(3):
            assert sum(map(len, loader)) == 400
        document = path / "zarr.json"
        document.write_text(document.read_text().replace("400", "100"))
        with pytest.raises(StaleHandleError):
            list(loader)
        document.write_text(document.read_text().replace("100", "400"))
        assert sum(map(len, loader)) == 400
        shutil.rmtree(path / depth / "x")
        with pytest.raises(StaleHandleError, match="was erased"):
            list(data.Loader(loader.plan))


@pytest.mark.parametrize("is_known", [False, True])
def test_an_erased_array_of_a_consolidated_group_is_an_error(tmp_path: Path, is_known: bool) -> None:
    saved(tmp_path / "a.zarr", 3)
    zarrow.consolidate_metadata(tmp_path / "a.zarr")
    array = zarrow.open_group(tmp_path / "a.zarr")["x"]
    loader = data.Loader(data.Plan(array, 10, window_nbytes=1000), memory_nbytes=1000)
    if is_known:
        assert sum(map(len, loader)) == 400
    with pytest.raises(StaleHandleError, match="was erased"):
        for number, _ in enumerate(loader):
            if number == 2:
                shutil.rmtree(tmp_path / "a.zarr" / "x")
    with pytest.raises(StaleHandleError, match="was erased"):
        list(loader)


def test_a_store_in_memory_is_checked() -> None:
    store = zarrow.MemoryStore()
    array = zarrow.create_array(store, path="x", data=VALUES, chunks=(10, 8))
    loader = data.Loader(data.Plan(array, 10))
    list(loader)
    zarrow.open_array(store, "x", mode="r+").resize((10, 8))
    with pytest.raises(StaleHandleError, match=r"made smaller, from \(400, 8\) to \(10, 8\)"):
        list(loader)


def test_arrays_of_many_stores_are_checked() -> None:
    arrays, stores = {}, []
    for number in range(30):
        store: Any = {} if number % 2 else zarrow.MemoryStore()
        path = f"x{number}"
        stores.append(store)
        arrays[path] = zarrow.create_array(store, path, data=np.arange(20) + number, chunks=5)
    loader = data.Loader(data.Plan(arrays, 7, order="sequential"))
    for _ in range(3):
        assert [len(batch["x3"]) for batch in loader] == [7, 7, 6]
    zarrow.open_array(stores[7], "x7", mode="r+").resize(3)
    with pytest.raises(StaleHandleError, match=r"'x7' .* made smaller"):
        list(loader)


def test_arrays_in_a_zip_are_checked(tmp_path: Path) -> None:
    saved(tmp_path / "a.zarr", 3)
    shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "a.zarr")
    array = zarrow.open_array(tmp_path / "a.zip", "x")
    assert sum(map(len, data.Loader(data.Plan(array, 10)))) == 400


def test_a_remote_array_of_one_read_is_checked_after_it(
    web: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the last check counts.
    monkeypatch.setattr(current_arrays, "_SECONDS", 100.0)
    saved_in = zarrow.create_array(tmp_path / "web" / "x.zarr", data=VALUES, chunks=(100, 8))

    def allocate(nbytes: int) -> Any:
        # An early check would be over by now.
        time.sleep(0.3)
        saved_in.resize((100, 8))
        return np.empty(nbytes, np.uint8)

    plan = data.Plan(f"{web}/x.zarr", 200)
    with pytest.raises(StaleHandleError, match="made smaller"):
        list(data.Loader(plan, allocate=allocate))


def test_an_array_in_the_cloud_is_checked() -> None:
    from stores import s3_by_moto

    with s3_by_moto.connected(KEY, SECRET) as (client, options):
        client.create_bucket(Bucket="changed")
        store = zarrow.CloudStore("s3://changed/a.zarr", options)
        saved_in = zarrow.create_array(store, "x", data=VALUES, chunks=(100, 8))
        loader = data.Loader(data.Plan(saved_in, 10, window_nbytes=1000), memory_nbytes=1000)
        assert sum(map(len, loader)) == 400
        zarrow.open_array(store, "x", mode="r+").append(VALUES[:7])
        assert sum(map(len, loader)) == 400
        zarrow.open_array(store, "x", mode="r+").resize((100, 8))
        with pytest.raises(StaleHandleError, match="made smaller"):
            list(loader)
