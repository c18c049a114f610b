"""The engine takes over the configuration of store objects; with servers on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr
import zarr.storage
from obstore.store import HTTPStore, LocalStore, S3Store

import zarrow
from stores_of_others import (
    VALUES,
    check,
    fill,
    run_in_child,
)
from zarrow.errors import StoreError
from zarrow.store_objects import engine_stores

pytestmark = pytest.mark.filterwarnings(
    # Python warns about every fork of a process with threads; these tests cover zarrow's promises for forks.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    r"ignore:os.fork\(\) was called:RuntimeWarning",
    "ignore::zarr.errors.ZarrUserWarning",
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from stores import s3_by_moto

    with s3_by_moto.running() as url:
        yield url


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., S3Store]:
    import boto3

    keys = {"access_key_id": "key", "secret_access_key": "secret"}
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="objects")

    def make(prefix: str, **options: Any) -> S3Store:
        return S3Store(
            "objects",
            prefix=prefix,
            endpoint=endpoint,
            region="us-east-1",
            client_options={"allow_http": True},
            **keys,
            **options,
        )

    return make


def test_an_s3_store_of_obstore_becomes_ours(s3: Callable[..., S3Store]) -> None:
    store = s3("native/data.zarr")
    found = engine_stores.resolve(store)
    assert found is not None and isinstance(found[0], zarrow.CloudStore)
    assert found[0].name == "s3://objects/native/data.zarr"
    root = fill(zarr.storage.ObjectStore(store))
    check(zarrow.open(store))
    assert run_in_child("fork", lambda: check(root)) is None
    root["plain"][3:5, 2] = 7
    assert zarrow.open(store)["plain"][4, 2] == 7


def test_unknown_configurations_are_read_by_obstore(s3: Callable[..., S3Store]) -> None:
    store = s3("asked/data.zarr", unsigned_payload=True)
    assert engine_stores.resolve(store) is None
    root = fill(store)
    check(zarrow.open(store))
    root["plain"][3:5, 2] = 7
    root.attrs["title"] = "snow"
    assert zarrow.open(store)["plain"][4, 2] == 7 and zarrow.open(store).attrs["title"] == "snow"
    del root["plain"]
    assert sorted(zarrow.open(store).keys()) == ["group", "names"]


def test_web_servers(web: str, tmp_path: Path) -> None:
    fill(tmp_path / "web" / "data.zarr")
    headers = {"X-Rain": "yes"}
    stores: list[Any] = [
        HTTPStore.from_url(
            f"{web}/data.zarr", client_options={"allow_http": True, "default_headers": headers}
        ),
        fsspec.get_mapper(f"{web}/data.zarr"),
        zarr.storage.FsspecStore.from_url(f"{web}/data.zarr", {"client_kwargs": {"headers": headers}}),
    ]
    for store in stores:
        found = engine_stores.resolve(store)
        assert found is not None and isinstance(found[0], zarrow.CloudStore)
        root = zarrow.open(store)
        np.testing.assert_array_equal(np.asarray(root["plain"][...]), VALUES)
    # The engine does not guess the behaviour of a user's client.
    asked = fsspec.get_mapper(f"{web}/data.zarr", client_kwargs={"trust_env": True})
    assert engine_stores.resolve(asked) is None
    np.testing.assert_array_equal(np.asarray(zarrow.open(asked, "plain")[3:40, 7]), VALUES[3:40, 7])
    # This server ignores ranges and sends the whole value: the rest is never used.
    with pytest.raises(StoreError, match="bytes, but the request"):
        zarrow.open(asked, "group/sharded")[3:40, 7]


def test_a_subclass_is_asked(tmp_path: Path) -> None:
    class Own(LocalStore):
        pass

    store = Own(tmp_path)
    assert engine_stores.resolve(store) is None
    fill(tmp_path)
    check(zarrow.open(store))
