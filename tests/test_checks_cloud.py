"""Verifying, mending and converting stores in the cloud, on moto as S3 on the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from test_cloud import KEY, SECRET
from zarrow.checks import bench, convert, diff, digest, repair, verify

VALUES = np.arange(1, 97.0).reshape(8, 12)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Start a server with a bucket."""
    from stores import s3_by_moto

    with s3_by_moto.connected(KEY, SECRET) as (client, options):
        client.create_bucket(Bucket="checks")
        yield client, options


def test_stores_are_mended_and_converted(server: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    client, options = server
    bucket = zarrow.CloudStore("s3://checks/a.zarr", options)
    for store in (bucket, tmp_path / "copy.zarr"):
        zarrow.create_array(store, "m/x", data=VALUES, chunks=(2, 3), zarr_format=2)
    before = digest(bucket)
    client.put_object(Bucket="checks", Key="a.zarr/m/x/0.1", Body=b"?")
    client.put_object(Bucket="checks", Key="a.zarr/notes/deep", Body=b"?")
    client.delete_object(Bucket="checks", Key="a.zarr/m/x/1.1")
    client.put_object(Bucket="checks", Key="a.zarr/m/.zgroup", Body=b"{")
    done = repair(bucket, tmp_path / "copy.zarr", missing=True, foreign=True)
    assert (len(done.mended), done.left) == (4, [])
    assert verify(bucket, deep=True).foreign == []
    assert digest(bucket) == before
    done = convert(bucket, remove_v2=True)
    assert (len(done.written), done.refused) == (3, {})
    assert digest(bucket) == before
    assert list(diff(bucket, tmp_path / "copy.zarr")) == []


def test_the_command_lists_and_erases(server: tuple[Any, dict[str, Any]]) -> None:
    client, options = server
    zarrow.create_array(zarrow.CloudStore("s3://checks/b.zarr", options), "m/x", data=VALUES)
    environment = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": options["client_kwargs"]["endpoint_url"],
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).with_name("zarrow"), *arguments],
            capture_output=True, text=True, timeout=100, env=environment,
        )  # fmt: skip

    assert command("ls", "s3://checks/b.zarr").stdout == "m/\n"
    assert command("rm", "s3://checks/b.zarr", "m/x", "--yes").returncode == 0
    assert command("rm", "s3://checks/b.zarr", "--yes").returncode == 0
    assert "Contents" not in client.list_objects_v2(Bucket="checks", Prefix="b.zarr")


def test_stores_are_measured_and_not_changed(server: tuple[Any, dict[str, Any]]) -> None:
    client, options = server
    bucket = zarrow.CloudStore("s3://checks/c.zarr", options)
    zarrow.create_array(bucket, "m/x", data=VALUES, chunks=(2, 3))

    def objects() -> list[tuple[Any, ...]]:
        listed = client.list_objects_v2(Bucket="checks", Prefix="c.zarr")["Contents"]
        return [(each["Key"], each["ETag"], each["LastModified"]) for each in listed]

    before = objects()
    found = bench(bucket, seconds=1)
    assert objects() == before
    assert found.nbytes == found.nbytes_sampled == VALUES.nbytes
    assert {timing.name for timing in found.timings} == {"open", "first scan", "scan", "chunks", "elements"}
    # Only files are counted.
    assert all(timing.nbytes_stored is None for timing in found.timings)
