"""Opening and listing nodes in a bucket: requests and round trips."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from counted_bucket import Bucket, counted_bucket
from round_trips import in_few_round_trips


@in_few_round_trips(counted_bucket)
def test_arrays_opened_by_their_own_urls_take_two_requests_each(bucket: Bucket, tmp_path: Path) -> None:
    del tmp_path
    urls = [bucket.url(f"array{number}") for number in range(60)]
    zarrow.save(
        bucket.url(""), {url.rpartition("/")[2]: [1, 2] for url in urls}, storage_options=bucket.options
    )

    async def read(url: str) -> Any:
        array = await zarrow.open_async(url, storage_options=bucket.options)
        return (await array.read_async(...)).tolist()

    async def read_all() -> list[Any]:
        return await asyncio.gather(*map(read, urls))

    before = bucket.rounds.requests
    # The first of them may be unknown; a host gets 64 requests at once at first.
    bucket.expect(lambda: asyncio.run(read_all()), 6)
    # A document and a chunk each; a slow server gets some requests twice. Unknown nodes would take six each.
    assert bucket.rounds.requests - before <= 3 * len(urls)


@in_few_round_trips(counted_bucket)
def test_an_unknown_store_among_both_versions_opens_in_one_round_trip(bucket: Bucket, tmp_path: Path) -> None:
    del tmp_path
    for version in (2, 3):
        zarr_format: Any = version
        zarrow.create_array(
            bucket.url(f"saved{version}"),
            data=[version],
            zarr_format=zarr_format,
            storage_options=bucket.options,
        )
        # Copied by another program, so that nothing is known of it.
        for item in bucket.client.list_objects_v2(Bucket=bucket.name, Prefix=f"saved{version}/")["Contents"]:
            source = {"Bucket": bucket.name, "Key": item["Key"]}
            copied = item["Key"].replace("saved", "copied")
            bucket.client.copy_object(Bucket=bucket.name, CopySource=source, Key=copied)
    for version in (2, 3):
        opened = partial(zarrow.open, bucket.url(f"copied{version}"), storage_options=bucket.options)
        bucket.expect(opened, 1)
        assert opened()[...].tolist() == [version]


@in_few_round_trips(counted_bucket)
def test_a_failed_open_takes_at_most_three_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    del tmp_path
    store = zarrow.CloudStore(bucket.url("some"), storage_options=bucket.options)
    zarrow.save(store, {"temperature": [1], "pressure": [2], "below": {"x": [3]}})
    group = zarrow.open(store)

    def missing(path: str, hint: str) -> None:
        with pytest.raises(zarrow.NotFoundError, match=hint):
            group[path]

    bucket.expect(partial(missing, "humidity", "no Zarr array or group here"), 3)
    bucket.expect(partial(missing, "temperature/x", "is an array, which has no members"), 3)
    # One more for the documents of the names that are close.
    bucket.expect(partial(missing, "temprature", 'did you mean "temperature"'), 4)


@in_few_round_trips(counted_bucket)
def test_a_list_of_a_group_takes_one_round_trip(bucket: Bucket, tmp_path: Path) -> None:
    del tmp_path
    store = zarrow.CloudStore(bucket.url("some"), storage_options=bucket.options)
    zarrow.save(store, {"x": [1], "y": [2]})
    group = zarrow.open(store)
    for listed in (list, sorted, tuple, set, len):
        bucket.expect(partial(listed, group), 1)
    assert list(group) == ["x", "y"]


def test_names_are_listed_when_an_iterator_begins(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path)
    group["a"] = np.arange(3)
    made, begun = iter(group), iter(group)
    assert next(begun) == "a" and len(group) == 1
    group["b"] = np.arange(3)
    # `len` lists the group, for the next iterator too.
    assert len(group) == 2 and list(made) == ["a", "b"] and list(begun) == []
    waiting = iter(group)
    assert len(group) == 2
    group["c"] = np.arange(3)
    assert len(group) == 3 == len(list(group))
    assert list(waiting) == ["a", "b"] and iter(waiting) is waiting
