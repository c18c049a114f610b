"""`zarrow.xarray.to_zarr` in a bucket: round trips, equal documents, and parallel writers."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import zarrow
import zarrow.xarray
from counted_bucket import Bucket, counted_bucket
from round_trips import in_few_round_trips
from test_xarray_writing import CODED, expect_equal, steps, values
from xarray_cases import many
from zarrow.groups import append_claims as claims
from zarrow.groups.append_claims import ClaimedError, Claims, Turns
from zarrow.groups.places import may_be_one_server
from zarrow.xarray import writing
from zarrow.xarray.staged_store import StagedStore
from zarrow.xarray.writing import _Write

pytestmark = [
    pytest.mark.small_files,
    *(
        pytest.mark.filterwarnings(f"ignore:{message}")
        for message in (
            "Consolidated metadata is currently",
            "The data type",
            "Failed to open Zarr store with",
        )
    ),
]


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with counted_bucket() as found:
        yield found


def wide_tree() -> xr.DataTree:
    """Thirteen nodes and sixty arrays."""
    nodes = {f"/n{number}": steps(0, 4) for number in range(12)}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "root"}), **nodes})


DOCUMENTS = ("zarr.json", ".zarray", ".zmetadata")

# What to write, and the most round trips to a new place and over an existing store.
CASES: dict[str, tuple[Callable[[], Any], int, int]] = {"dataset": (many, 5, 6), "tree": (wide_tree, 6, 7)}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", CASES)
@in_few_round_trips(counted_bucket)
def test_a_dataset_and_a_tree_are_written_in_few_round_trips(
    bucket: Bucket, tmp_path: Path, name: str, version: int
) -> None:
    make, new, replaced = CASES[name]
    made = make()
    options: dict[str, Any] = {"storage_options": bucket.options, "zarr_format": version}

    def write(**mode: str) -> None:
        zarrow.xarray.to_zarr(made, bucket.url("data"), **options, **mode)

    bucket.expect(write, new)
    made.to_zarr(tmp_path / "stock.zarr", zarr_format=version)
    expect_equal(bucket.download("data", tmp_path / "ours.zarr"), tmp_path / "stock.zarr")
    bucket.expect(lambda: write(mode="w"), replaced)
    expect_equal(bucket.download("data", tmp_path / "again.zarr"), tmp_path / "stock.zarr")


@pytest.mark.parametrize(("version", "is_known", "most"), [(2, True, 4), (2, False, 4), (3, False, 4)])
@in_few_round_trips(counted_bucket)
def test_an_append_takes_few_round_trips(
    bucket: Bucket, tmp_path: Path, version: int, is_known: bool, most: int
) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    steps(0, 4).to_zarr(tmp_path / "stock.zarr", zarr_format=version)
    zarrow.xarray.to_zarr(steps(0, 4), bucket.url("data"), zarr_format=version, **options)
    if not is_known:
        writing._VERSIONS.clear()

    def append() -> None:
        zarrow.xarray.to_zarr(steps(4, 8), bucket.url("data"), append_dim="time", **options)

    bucket.expect(append, most)
    steps(4, 8).to_zarr(tmp_path / "stock.zarr", append_dim="time")
    expect_equal(bucket.download("data", tmp_path / "ours.zarr"), tmp_path / "stock.zarr")


def test_a_refused_write_leaves_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    zarrow.xarray.to_zarr(steps(0, 4), bucket.url("data"), encoding=CODED, **options)
    before = values(bucket.download("data", tmp_path / "before"))
    for dataset, given in (
        (steps(4, 8), {}),
        (steps(4, 9, chunks=3), {"append_dim": "time"}),
        (steps(0, 4), {"mode": "w", "encoding": {"rain": {"unknown": 1}}}),
        (steps(2, 6)[["rain"]].drop_vars("x"), {"region": {"time": slice(2, 6)}}),
    ):
        with pytest.raises((ValueError, FileExistsError)):
            zarrow.xarray.to_zarr(dataset, bucket.url("data"), **options, **given)
    assert values(bucket.download("data", tmp_path / "after")) == before


def test_threads_write_regions_of_one_shard_in_a_bucket(bucket: Bucket) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    encoding = {"a": {"chunks": (10,), "shards": (200,)}}
    empty = xr.Dataset({"a": ("x", np.zeros(200, "i8"))})
    zarrow.xarray.to_zarr(empty, bucket.url("data"), encoding=encoding, **options)

    def write(start: int) -> None:
        region = {"x": slice(start, start + 25)}
        part = xr.Dataset({"a": ("x", np.arange(start, start + 25))})
        zarrow.xarray.to_zarr(part, bucket.url("data"), region=region, **options)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(0, 200, 25)))
    found = zarrow.xarray.open_zarr(bucket.url("data"), **options)
    assert found["a"].values.tolist() == list(range(200))


def rows(start: int) -> xr.Dataset:
    days = np.array([start, start + 1])
    return xr.Dataset({"a": (("time", "x"), np.repeat(days[:, None], 3, 1))}, coords={"time": days})


def append_days(urls: list[str], options: dict[str, Any], start: int, barrier: Any) -> None:
    barrier.wait(60)
    for url in urls:
        for day in range(start, start + 4, 2):
            zarrow.xarray.to_zarr(rows(day), url, append_dim="time", **options)


def test_processes_that_append_in_a_bucket_lose_no_row(bucket: Bucket) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    # Appends begin within chunks.
    encoding = {"a": {"chunks": (3, 3)}, "time": {"chunks": (3,)}}
    urls = [bucket.url(f"data{version}") for version in (2, 3)]
    for version, url in zip((2, 3), urls, strict=True):
        given: dict[str, Any] = {"encoding": encoding, "zarr_format": version, **options}
        zarrow.xarray.to_zarr(rows(0), url, consolidated=version == 2, **given)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    workers = [
        context.Process(target=append_days, args=(urls, options, start, barrier)) for start in (100, 200, 300)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    days = [0, 1, *(start + day for start in (100, 200, 300) for day in range(4))]
    for url in urls:
        found = zarrow.xarray.open_zarr(url, **options).load()
        assert sorted(found["time"].values.tolist()) == days
        assert (found["a"].values == found["time"].values[:, None]).all()


@pytest.mark.parametrize("version", [2, 3])
def test_a_failed_append_releases_its_claims(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    zarrow.xarray.to_zarr(rows(0), bucket.url("data"), zarr_format=version, **options)
    before = values(bucket.download("data", tmp_path / "before"))
    claimed: list[dict[str, bytes]] = []

    def fail(write: _Write) -> Any:
        found = bucket.download("data", tmp_path / f"claimed{len(claimed)}")
        claimed.append(values(found))
        # Claims have no meaning for readers.
        assert xr.open_zarr(found)["a"].shape == zarrow.open(found)["a"].shape == (2, 3)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_Write, "_store_chunked", fail)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                zarrow.xarray.to_zarr(rows(2).chunk(), bucket.url("data"), append_dim="time", **options)
    assert claimed[0] != claimed[1] != before
    documents = [name for name in before if name.rpartition("/")[2] in DOCUMENTS]
    assert {name: claimed[0][name].rstrip() for name in documents} == {
        name: before[name] for name in documents
    }
    after = values(bucket.download("data", tmp_path / "after"))
    assert {name: after[name] for name in before} == before


def test_an_append_waits_for_claims_and_replaces_abandoned_ones(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    zarrow.xarray.to_zarr(rows(0), bucket.url("data"), **options)
    store = StagedStore(zarrow.CloudStore(bucket.url("data"), bucket.options))
    store.prefetch("", ["time"], (3,), is_listed=False)
    killed = Claims(store, Turns())
    killed.begin(*store.claims_of("", ["time"]))
    killed.take()
    killed.keep()
    pauses: list[float] = []
    wait = Turns.wait

    def shortened(self: Turns, error: ClaimedError) -> None:
        if len(pauses) == 2:
            monkeypatch.setattr(claims, "_ABANDONED", 0)
        pauses.append(time.monotonic())
        wait(self, error)

    monkeypatch.setattr(Turns, "wait", shortened)
    zarrow.xarray.to_zarr(rows(2), bucket.url("data"), append_dim="time", **options)
    assert len(pauses) == 3
    assert zarrow.xarray.open_zarr(bucket.url("data"), **options)["time"].values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("is_late", [False, True])
def test_documents_of_another_writer_in_a_bucket_are_kept(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    zarrow.xarray.to_zarr(rows(0), bucket.url("data"), **options)
    check, commit = StagedStore.check_unchanged, StagedStore.commit

    def change() -> None:
        zarrow.open(bucket.url("data"), storage_options=bucket.options)["a"].attrs["by"] = "another"

    def change_before_check(store: StagedStore) -> None:
        change()
        check(store)

    def change_after_check(store: StagedStore, **given: Any) -> None:
        change()
        commit(store, **given)

    with monkeypatch.context() as patched:
        if is_late:
            patched.setattr(StagedStore, "commit", change_after_check)
        else:
            patched.setattr(StagedStore, "check_unchanged", change_before_check)
        with pytest.raises(zarrow.StoreError, match="changed by another writer"):
            zarrow.xarray.to_zarr(rows(2), bucket.url("data"), append_dim="time", **options)
    found = zarrow.xarray.open_zarr(bucket.url("data"), consolidated=False, **options)
    assert found["a"].attrs == {"by": "another"}
    assert found["time"].values.tolist() == [0, 1]
    zarrow.xarray.to_zarr(rows(2), bucket.url("data"), append_dim="time", **options)
    found = zarrow.xarray.open_zarr(bucket.url("data"), **options)
    assert found["time"].values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("group", [None, "below"])
def test_a_dataset_in_a_bucket_does_not_erase_its_own_source(bucket: Bucket, group: str | None) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options, "group": group}
    url = bucket.url("data")
    zarrow.xarray.to_zarr(rows(3), url, **options)
    lazy = zarrow.xarray.open_zarr(url, chunks={}, **options) + 1
    with pytest.raises(ValueError, match="which this write erases"):
        zarrow.xarray.to_zarr(lazy, url, mode="w", **options)
    with pytest.raises(ValueError, match="which this write erases"):
        zarrow.xarray.to_zarr(lazy, f"{url}/{group or ''}", mode="w", storage_options=bucket.options)
    zarrow.xarray.to_zarr(lazy, bucket.url("data2"), mode="w", **options)
    for name, first in (("data", 3), ("data2", 4)):
        found = zarrow.xarray.open_zarr(bucket.url(name), **options)
        assert found["a"].values[:, 0].tolist() == [first, first + 1]


def test_servers_of_sources_are_compared() -> None:
    def store(**options: Any) -> zarrow.CloudStore:
        return zarrow.CloudStore("s3://bucket/data", options)

    here, there = ({"endpoint_url": f"http://127.0.0.1:{port}"} for port in (1, 2))
    assert may_be_one_server(store(), store(**here))
    assert may_be_one_server(store(**here), store(client_kwargs=here))
    assert not may_be_one_server(store(**here), store(client_kwargs=there))
