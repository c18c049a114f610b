"""Arrays and groups, written and changed on each service, and read back by other libraries."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from oracle.arrays import GEOMETRIES, ArrayCase
from oracle.random_values import seed_of
from oracle.selections import Selection, random_one
from stores.services import CarelessGoogle, Service
from test_oracle import BY_NAME
from zarrow.errors import NodeExistsError, NotFoundError, ReadOnlyError, UnsupportedError

pytestmark = pytest.mark.stores

# One case in 30 takes a minute in all; with ZARROW_THOROUGH one in 5 runs.
CHOSEN = sorted(BY_NAME, key=seed_of)[:: 5 if "ZARROW_THOROUGH" in os.environ else 30]
PART_NBYTES = 16 << 20


def zarr_python(service: Service, path: str, folder: Path) -> Any:
    """Return zarr-python's result."""
    service.download(path, folder)
    return zarr.open(folder, mode="r")


@pytest.mark.parametrize("name", CHOSEN)
def test_round_trips(writable: Service, name: str, tmp_path: Path) -> None:
    from test_write_oracle import write_parts

    element, chain = BY_NAME[name]
    seed = seed_of(name)
    rng = random.Random(seed)
    geometry = rng.choice(GEOMETRIES)
    case = ArrayCase(element, chain, geometry, element.fills[seed % len(element.fills)], seed)
    path = f"round-trip/{name}"
    document = ".zarray" if chain.version == 2 else "zarr.json"
    writable.put(f"{path}/{document}", json.dumps(case.document()).encode())
    array = zarrow.open(writable.url(path), storage_options=writable.options)
    selections: list[Selection] = [(...,), *(random_one(rng, geometry.shape) for _ in range(3))]
    if not writable.has_conditions:
        selections = selections[:1]
    expected = write_parts(array, case, selections)
    writable.download(path, tmp_path / "array")
    case.check_readers(tmp_path / "array", expected)


def test_a_hierarchy_is_made_changed_and_erased(conditional: Service, tmp_path: Path) -> None:
    url, options = conditional.url("tree.zarr"), conditional.options
    root = zarrow.create_group(url, attributes={"title": "rain"}, storage_options=options)
    values = np.arange(20 * 12, dtype="i4").reshape(20, 12)
    plain = root.create_array("plain", data=values, chunks=(6, 5))
    shards = root.create_array("deep/er/shards", data=values, chunks=(3, 3), shards=(9, 6))
    root["names"] = ["Oslo", "Rome", "Quito"]
    plain.attrs["units"] = "mm"
    for array in (plain, shards):
        array.append(values[:3])
        array.resize((25, 12))
        array.resize((21, 12))
    expected = np.concatenate([values, values[:1]])

    theirs = zarr_python(conditional, "tree.zarr", tmp_path / "first")
    assert theirs.attrs.asdict() == {"title": "rain"}
    assert theirs["plain"].attrs.asdict() == {"units": "mm"}
    for name in ("plain", "deep/er/shards"):
        np.testing.assert_array_equal(theirs[name][...], expected)
        np.testing.assert_array_equal(np.asarray(root[name][...]), expected)

    root.consolidate_metadata()
    again = zarrow.open(url, storage_options=options)
    assert sorted(again.keys()) == ["deep", "names", "plain"]
    assert {name for name, _ in again.members(max_depth=None)} == {
        "deep",
        "deep/er",
        "deep/er/shards",
        "names",
        "plain",
    }
    assert again["names"][...].tolist() == ["Oslo", "Rome", "Quito"]
    with pytest.raises(NodeExistsError):
        root.create_array("plain", data=values)
    with pytest.raises(NodeExistsError):
        zarrow.create_group(url, storage_options=options)
    root.create_array("plain", data=values.astype("f8"), chunks=(4, 4), overwrite=True)
    theirs = zarr_python(conditional, "tree.zarr", tmp_path / "second")
    assert theirs["plain"].dtype == "f8" and theirs["plain"].shape == (20, 12)
    np.testing.assert_array_equal(theirs["plain"][...], values)

    with pytest.raises(ReadOnlyError):
        zarrow.open(url, "plain", mode="r", storage_options=options)[...] = 1
    del root["deep"]
    assert not [key for key in conditional.keys("tree.zarr/") if "/deep/" in key]
    with pytest.raises(NotFoundError):
        zarrow.open(url, "deep/er/shards", storage_options=options)
    assert sorted(zarrow.open(url, storage_options=options).keys()) == ["names", "plain"]


def test_an_array_pickles_with_its_store(conditional: Service) -> None:
    url = conditional.url("pickled.zarr")
    array = zarrow.create_array(url, data=np.arange(30), chunks=7, storage_options=conditional.options)
    again = pickle.loads(pickle.dumps(array))
    assert again == array
    again[3:9] = -1
    np.testing.assert_array_equal(np.asarray(array[...]), [*range(3), *[-1] * 6, *range(9, 30)])


def test_raw_chunks_are_sent_from_the_memory_of_the_values(writable: Service, tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(0, 256, (5, 300_000), "u1")
    url, options = writable.url("raw.zarr"), writable.options
    array = zarrow.create_array(
        url, shape=values.shape, chunks=(1, 300_000), dtype="u1", compressors=None, storage_options=options
    )
    array[...] = values
    array[2:4] = values[:2]
    values[2:4] = values[:2]
    np.testing.assert_array_equal(zarr_python(writable, "raw.zarr", tmp_path)[...], values)


def test_a_large_chunk_goes_in_parts_and_a_large_shard_whole(conditional: Service, tmp_path: Path) -> None:
    """More than two parts: the last one is shorter."""
    nbytes = 2 * PART_NBYTES + 12345
    values = np.random.default_rng(1).integers(0, 256, nbytes, "u1")
    for name, options in [("chunk", {"chunks": nbytes}), ("shard", {"chunks": 5, "shards": nbytes})]:
        if name == "shard":
            options = {"chunks": nbytes // 7, "shards": nbytes // 7 * 7}
        array = zarrow.create_array(
            conditional.url(f"large/{name}"),
            shape=nbytes,
            dtype="u1",
            compressors=None,
            storage_options=conditional.options,
            **options,
        )
        array[...] = values
        np.testing.assert_array_equal(np.asarray(array[...]), values)
        array[100:200] = 7
        values[100:200] = 7
        theirs = zarr_python(conditional, f"large/{name}", tmp_path / name)
        np.testing.assert_array_equal(theirs[...], values)


def test_more_keys_than_a_page_are_listed_and_deleted(writable: Service) -> None:
    """1,200 chunks: a page of S3 has at most 1,000 keys, and so has a deletion request."""
    url, options = writable.url("many.zarr"), writable.options
    root = zarrow.create_group(url, storage_options=options)
    root.create_array("kept", data=[1, 2])
    array = root.create_array("many", data=np.arange(1, 1201, dtype="u2"), chunks=1, compressors=None)
    assert array.nbytes_stored() >= 2 * 1200
    del root["many"]
    assert [key for key in writable.keys("many.zarr/") if "/many" in key] == []
    assert zarrow.open(url, storage_options=options).keys() == ["kept"]


def test_without_conditional_puts_stored_values_are_not_changed(running: Callable[[str], Service]) -> None:
    """Nodes are created and deleted and whole chunks written; changes that read first are refused."""
    service = running("s3s-fs")
    url, options = service.url("unconditional.zarr"), service.options
    root = zarrow.create_group(url, attributes={"title": "rain"}, storage_options=options)
    values = np.arange(60, dtype="i4").reshape(10, 6)
    plain = root.create_array("plain", data=values, chunks=(4, 6))
    shards = root.create_array("deep/shards", data=values, chunks=(2, 3), shards=(4, 6))
    for array in (plain, shards):
        array[...] = values + 1
        array[4:8] = 7
        array[8:] = 8
        for change in (
            lambda array=array: array.__setitem__((slice(1, 3),), 5),
            lambda array=array: array.append(values[:4]),
            lambda array=array: array.resize((4, 6)),
            lambda array=array: array.resize((20, 6)),
            lambda array=array: array.attrs.update(units="mm"),
        ):
            with pytest.raises(UnsupportedError, match="this store has no conditional writes"):
                change()
        expected = np.concatenate([values[:4] + 1, np.full((4, 6), 7), np.full((2, 6), 8)])
        np.testing.assert_array_equal(np.asarray(array[...]), expected)
    with pytest.raises(UnsupportedError, match="this store has no conditional writes"):
        root.consolidate_metadata()
    with pytest.raises(NodeExistsError):
        root.create_array("plain", data=values)
    root.create_array("plain", data=values.astype("f8"), chunks=(4, 4), overwrite=True)
    del root["deep"]
    found = zarrow.open(url, storage_options=options)
    assert dict(found.attrs) == {"title": "rain"} and found.keys() == ["plain"]
    np.testing.assert_array_equal(np.asarray(found["plain"][...]), values)


def test_a_server_that_ignores_conditions_is_detected(tmp_path: Path) -> None:
    """Before writing part of a chunk: whole chunks are written, and the probe leaves nothing."""
    service = CarelessGoogle(tmp_path)
    try:
        array = zarrow.create_array(
            service.url("a"), shape=10, dtype="i4", chunks=5, storage_options=service.options
        )
        array[:5] = 1
        with pytest.raises(UnsupportedError, match="whole chunks"):
            array[3:8] = 2
        assert np.asarray(array[...]).tolist() == [1] * 5 + [0] * 5
        assert not [key for key in service.keys("") if "probe" in key]
    finally:
        service.stop()


def test_emulators_of_google_are_detected(
    running: Callable[[str], Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = running("google")
    key = {"gcs_base_url": service.endpoint, "disable_oauth": True, "client_email": ""}
    key |= {"private_key": "", "private_key_id": ""}
    for name, options in [("key", {"token": key}), ("environment", {"token": "anon"})]:
        if name == "environment":
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", service.endpoint.removeprefix("http://"))
        array = zarrow.create_array(service.url(name), data=[1, 2, 3], storage_options=options)
        array[1] = 7
        assert np.asarray(array[...]).tolist() == [1, 7, 3]


def test_a_service_that_cannot_be_written_says_so(service: Service) -> None:
    """A web server has no puts, and fake-gcs-server lacks those of the XML interface."""
    if service.can_write:
        return
    with pytest.raises(zarrow.ZarrowError):
        zarrow.create_array(service.url("new.zarr"), data=[1, 2, 3], storage_options=service.options)
