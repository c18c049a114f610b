"""Reads of zarr-python on the engine from a bucket, counted by the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import zarr
from obstore.store import S3Store
from zarr.storage import ObjectStore

import zarrow.zarr_python
from counted_bucket import Bucket, counted_bucket
from test_cloud import KEY, SECRET
from zarr_versions import needs_new_zarr

VALUES = np.arange(64 * 1024, dtype="i4").reshape(64, 1024)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with counted_bucket() as found:
        yield found


def store_of(bucket: Bucket, prefix: str) -> ObjectStore:
    return ObjectStore(
        S3Store(
            bucket.name,
            prefix=prefix,
            endpoint=bucket.options["client_kwargs"]["endpoint_url"],
            access_key_id=KEY,
            secret_access_key=SECRET,
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )
    )


@needs_new_zarr
@pytest.mark.parametrize(
    ("gap", "most", "expected"),
    [
        (1 << 20, 16 << 20, 1),
        # Between two of the selected rows are three others of 4 KiB.
        (12 << 10, 16 << 20, 1),
        ((12 << 10) - 1, 16 << 20, 8),
        (0, 16 << 20, 8),
        (1 << 20, 36 << 10, 3),
        (-1, -1, 8),
        (1 << 70, 1 << 70, 1),
    ],
)
def test_inner_chunks_are_merged_as_zarr_python_is_told(
    bucket: Bucket, gap: int, most: int, expected: int
) -> None:
    store = store_of(bucket, f"{gap}-{most}")
    zarr.create_array(store, data=VALUES, chunks=(1, 1024), shards=(64, 1024), compressors=None)
    settings = {"sharding_coalesce_max_gap_bytes": gap, "sharding_coalesce_max_bytes": most}
    ranges: list[str] = []

    def noted(environment: dict[str, Any]) -> bool:
        if "/c/" in environment["PATH_INFO"] and environment["REQUEST_METHOD"] == "GET":
            ranges.append(environment["HTTP_RANGE"])
        return False

    with zarrow.zarr_python.enable():
        array: Any = zarr.open_array(store, mode="r").with_config(settings)
        array[0]  # the index of the shard is known from here on
        bucket.refuses = noted
        try:
            found = array.oindex[list(range(4, 36, 4))]
        finally:
            bucket.refuses = lambda _: False
    assert found.tolist() == VALUES[4:36:4].tolist()
    # A slow server gets some requests twice.
    assert len(set(ranges)) == expected, ranges
