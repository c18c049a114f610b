"""`zarrow.xarray.to_zarr` in a bucket: round trips, equal documents, and parallel writers."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from werkzeug.serving import make_server

import zarrow.xarray
from stores.s3_by_moto import Quiet, application
from test_cloud import KEY, SECRET
from test_xarray_writing import CODED, expect_equal, steps, values
from xarray_cases import Rounds, many

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{message}")
    for message in ("Consolidated metadata is currently", "The data type", "Failed to open Zarr store with")
]


class Bucket:
    """A bucket on a server that counts round trips while `is_counting`."""

    def __init__(self, url: str, rounds: Rounds) -> None:
        import boto3

        self.rounds = rounds
        self.is_counting = False
        self.name = uuid.uuid4().hex
        options = {"endpoint_url": url, "region_name": "us-east-1"}
        self.client = boto3.client("s3", aws_access_key_id=KEY, aws_secret_access_key=SECRET, **options)
        self.client.create_bucket(Bucket=self.name)
        self.options = {"key": KEY, "secret": SECRET, "client_kwargs": options}

    def url(self, name: str) -> str:
        return f"s3://{self.name}/{name}"

    def count(self, write: Callable[[], object]) -> int:
        """Return the round trips of a write."""
        self.rounds.take()
        self.is_counting = True
        write()
        self.is_counting = False
        return self.rounds.take()

    def download(self, name: str, folder: Path) -> Path:
        for listed in self.client.list_objects_v2(Bucket=self.name, Prefix=f"{name}/")["Contents"]:
            path = folder / listed["Key"].removeprefix(f"{name}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.client.get_object(Bucket=self.name, Key=listed["Key"])["Body"].read())
        return folder


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    # Many threads begin their puts one after the other.
    rounds = Rounds(0.4)
    found: list[Bucket] = []

    def counting(environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if found and found[0].is_counting:
            rounds.wait()
        return application(environment, start_response)

    server = make_server("127.0.0.1", 0, counting, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.append(Bucket(f"http://127.0.0.1:{server.server_port}", rounds))
    yield found[0]
    server.shutdown()
    thread.join()


def wide_tree() -> xr.DataTree:
    """Thirteen nodes and sixty arrays."""
    nodes = {f"/n{number}": steps(0, 4) for number in range(12)}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "root"}), **nodes})


# What to write, and the most round trips to a new place and over an existing store.
CASES: dict[str, tuple[Callable[[], Any], int, int]] = {"dataset": (many, 5, 6), "tree": (wide_tree, 6, 7)}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_a_dataset_and_a_tree_are_written_in_few_round_trips(
    bucket: Bucket, tmp_path: Path, name: str, version: int
) -> None:
    make, new, replaced = CASES[name]
    made = make()
    options: dict[str, Any] = {"storage_options": bucket.options, "zarr_format": version}

    def write(**mode: str) -> None:
        zarrow.xarray.to_zarr(made, bucket.url("data"), **options, **mode)

    assert bucket.count(write) <= new
    made.to_zarr(tmp_path / "stock.zarr", zarr_format=version)
    expect_equal(bucket.download("data", tmp_path / "ours.zarr"), tmp_path / "stock.zarr")
    assert bucket.count(lambda: write(mode="w")) <= replaced
    expect_equal(bucket.download("data", tmp_path / "again.zarr"), tmp_path / "stock.zarr")


@pytest.mark.parametrize(("version", "most"), [(2, 5), (3, 4)])
def test_an_append_takes_few_round_trips(bucket: Bucket, tmp_path: Path, version: int, most: int) -> None:
    options: dict[str, Any] = {"storage_options": bucket.options}
    steps(0, 4).to_zarr(tmp_path / "stock.zarr", zarr_format=version)
    zarrow.xarray.to_zarr(steps(0, 4), bucket.url("data"), zarr_format=version, **options)

    def append() -> None:
        zarrow.xarray.to_zarr(steps(4, 8), bucket.url("data"), append_dim="time", **options)

    assert bucket.count(append) <= most
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
