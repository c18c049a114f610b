"""Datasets of xarray in the cloud, on moto as S3 on the loopback interface."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import zarrow.xarray
from test_cloud import KEY, SECRET, upload
from xarray_cases import cf, same, tree, write

pytestmark = pytest.mark.filterwarnings(
    "ignore:Consolidated metadata is currently",
    "ignore:The data type",
    "ignore:Failed to open Zarr store with",
)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Start a server, and return a client and the options of a store."""
    from stores import s3_by_moto

    with s3_by_moto.connected(KEY, SECRET) as connected:
        yield connected


def _identical(dataset: xr.Dataset, expected: xr.Dataset, queue: Any) -> None:
    queue.put(bool(dataset.identical(expected)))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_datasets_and_trees_in_a_bucket(
    server: tuple[Any, dict[str, Any]], tmp_path: Path, version: int, consolidated: bool
) -> None:
    client, options = server
    bucket = f"xarray-{version}-{consolidated}".lower()
    client.create_bucket(Bucket=bucket)
    for name, written in (("data", cf()), ("tree", tree())):
        write(written, tmp_path / name, zarr_format=version, consolidated=consolidated)
        upload(client, bucket, name, tmp_path / name)
    given: dict[str, Any] = {"storage_options": options, "engine": "zarrow"}
    stock = xr.open_dataset(tmp_path / "data", engine="zarr", chunks={}).compute()
    ours = xr.open_dataset(f"s3://{bucket}/data", chunks={}, **given)
    ours.encoding, stock.encoding = {}, {}
    loaded = pickle.loads(pickle.dumps(ours))
    same(zarrow.xarray.load(ours), stock)
    same(loaded.compute(), stock)
    opened = zarrow.xarray.load(xr.open_datatree(f"s3://{bucket}/tree", **given))
    xr.testing.assert_identical(opened, xr.open_datatree(tmp_path / "tree", engine="zarr"))
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(f"s3://{bucket}/none", **given)


def test_a_forked_child_reads_a_dataset_in_a_bucket(
    server: tuple[Any, dict[str, Any]], tmp_path: Path
) -> None:
    client, options = server
    client.create_bucket(Bucket="forked")
    write(cf(), tmp_path / "data")
    upload(client, "forked", "data", tmp_path / "data")
    found = xr.open_dataset("s3://forked/data", engine="zarrow", storage_options=options)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    expected = xr.open_dataset(tmp_path / "data", engine="zarr").load()
    child = context.Process(target=_identical, args=(found, expected, queue))
    child.start()
    assert queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
