"""Writers that use `zarrow.xarray.to_zarr` on one store at the same time lose nothing, or are refused."""

from __future__ import annotations

import errno
import json
import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import zarrow
import zarrow.xarray
from zarrow._zarrow import _StoredValues
from zarrow.xarray import writing
from zarrow.xarray.writing import _Write

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{message}")
    for message in ("Consolidated metadata is currently", "Failed to open Zarr store with")
]


def _append_days(path: Path, start: int) -> None:
    for day in range(start, start + 10, 2):
        zarrow.xarray.to_zarr(_rows(day), path, append_dim="time")


def _rows(day: int) -> xr.Dataset:
    days = np.array([day, day + 1])
    return xr.Dataset({"a": (("time", "x"), np.repeat(days[:, None], 3, 1))}, coords={"time": days})


def test_processes_that_append_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    encoding = {"a": {"chunks": (3, 3)}, "time": {"chunks": (3,)}}
    zarrow.xarray.to_zarr(_rows(0), path, encoding=encoding)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_days, args=(path, start)) for start in (100, 200, 300)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    found = xr.open_zarr(path)
    days = [0, 1, *(start + day for start in (100, 200, 300) for day in range(10))]
    assert sorted(found["time"].values.tolist()) == days
    assert (found["a"].values == found["time"].values[:, None]).all()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_consolidated", [True, False])
@pytest.mark.parametrize("is_folder", [True, False])
def test_documents_of_another_writer_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, is_consolidated: bool, is_folder: bool
) -> None:
    store: Any = tmp_path / "a.zarr" if is_folder else zarrow.MemoryStore()
    options: dict[str, Any] = {"consolidated": is_consolidated}
    zarrow.xarray.to_zarr(_rows(0), store, zarr_format=version, **options)
    store_chunks = _Write._store_chunked

    def append_between(self: _Write) -> Any:
        """Change the shape as another library does, which has no lock of zarrow."""
        stored = store_chunks(self)
        values, key = _StoredValues(store, create=False), "a/zarr.json" if version == 3 else "a/.zarray"
        [document] = values.get_each([key])
        assert document is not None
        values.set(key, json.dumps(json.loads(document) | {"shape": [4, 3]}).encode())
        return stored

    with monkeypatch.context() as patched:
        patched.setattr(_Write, "_store_chunked", append_between)
        with pytest.raises(zarrow.StoreError, match="changed by another writer"):
            zarrow.xarray.to_zarr(_rows(2).chunk(), store, append_dim="time", **options)
    found = zarrow.open_group(store, mode="r")._without_consolidated()
    assert found["a"].shape == (4, 3) and found["time"].shape == (2,)


def test_threads_that_add_variables_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zarrow.xarray.to_zarr(_rows(0), path)
    threads = [
        threading.Thread(target=zarrow.xarray.to_zarr, args=(_rows(0).rename(a=f"a{number}"), path, "a"))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert set(xr.open_zarr(path).data_vars) == {"a", *(f"a{number}" for number in range(6))}


# The last document of an append is too long for the limit of the process.
FULL = """
import resource, signal, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, xarray as xr, zarrow.xarray
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
more = xr.Dataset({"a": ("time", [2.0])}, coords={"time": ("time", [2], {"note": "x" * 5000})})
try:
    zarrow.xarray.to_zarr(more, sys.argv[1], append_dim="time", consolidated=sys.argv[2] == "True")
except zarrow.StoreError as error:
    print("refused", error.errno)
"""


@pytest.mark.parametrize(("version", "is_consolidated"), [(2, True), (3, True), (3, False)])
def test_a_failed_commit_restores_the_documents(tmp_path: Path, version: int, is_consolidated: bool) -> None:
    path = tmp_path / "a.zarr"
    first = xr.Dataset({"a": ("time", [0.0, 1.0])}, coords={"time": ("time", [0, 1], {"note": "x" * 5000})})
    zarrow.xarray.to_zarr(first, path, zarr_format=version, consolidated=is_consolidated)

    def documents() -> dict[Path, bytes]:
        files = [file for file in path.rglob("*") if file.name.startswith((".z", "zarr"))]
        return {file: file.read_bytes() for file in files}

    before = documents()
    done = subprocess.run(
        [sys.executable, "-c", FULL, path, str(is_consolidated)], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.split(), done.returncode) == (["refused", str(errno.EFBIG)], 0), done.stderr
    assert documents() == before
    more = first.isel(time=[0]).assign_coords(time=("time", [2], first["time"].attrs))
    zarrow.xarray.to_zarr(more, path, append_dim="time", consolidated=is_consolidated)
    assert xr.open_zarr(path, consolidated=is_consolidated)["time"].values.tolist() == [0, 1, 2]


@pytest.mark.parametrize("group", [None, "below"])
@pytest.mark.parametrize("reads", [xr.open_zarr, zarrow.xarray.open_zarr])
def test_a_dataset_does_not_erase_its_own_source(tmp_path: Path, reads: Any, group: str | None) -> None:
    path = tmp_path / "a.zarr"
    zarrow.xarray.to_zarr(_rows(3), path, group=group)
    (tmp_path / "link").symlink_to(path)
    for target in (path, tmp_path / "link", zarr.storage.LocalStore(path)):
        with pytest.raises(ValueError, match="which this write erases"):
            zarrow.xarray.to_zarr(reads(path, group=group) + 1, target, mode="w", group=group)
    assert reads(path, group=group)["a"].values[:, 0].tolist() == [3, 4]
    # Without dask, elements are read before the store is erased.
    zarrow.xarray.to_zarr(reads(path, group=group, chunks=None), path, mode="w", group=group)
    zarrow.xarray.to_zarr(reads(path, group=group), tmp_path / "other.zarr", mode="w")
    assert xr.open_zarr(path, group=group)["a"].values[:, 0].tolist() == [3, 4]
    assert xr.open_zarr(tmp_path / "other.zarr")["a"].values[:, 0].tolist() == [3, 4]


def test_a_region_of_a_template_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zarrow.xarray.to_zarr(_rows(0).chunk(time=1), path, compute=False)
    for row in range(2):
        zarrow.xarray.to_zarr(_rows(0)[["a"]].isel(time=slice(row, row + 1)), path, region="auto")
    assert xr.open_zarr(path)["a"].values[:, 0].tolist() == [0, 1]


def test_an_append_to_an_array_beside_one_to_its_dataset_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder: it waits while the dataset's elements are written."""
    path, write = tmp_path / "a.zarr", writing._set
    first = xr.Dataset({"a": ("x", np.arange(6))})
    zarrow.xarray.to_zarr(first, path, encoding={"a": {"chunks": (4,)}})
    other = threading.Thread(target=lambda: zarrow.open_array(path, path="a", mode="r+").append([7, 7, 7]))

    def write_after_another(*given: Any) -> None:
        other.start()
        other.join(0.5)
        write(*given)

    monkeypatch.setattr(writing, "_set", write_after_another)
    zarrow.xarray.to_zarr(xr.Dataset({"a": ("x", np.full(5, 9))}), path, append_dim="x", safe_chunks=False)
    other.join(60)
    assert zarrow.open_array(path, path="a")[...].tolist() == [*range(6), *[9] * 5, *[7] * 3]
