"""`iter_chunks`, `stored_chunks` and `len(array.blocks)`, beside zarr-python's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from test_cloud import KEY, SECRET

pytestmark = pytest.mark.small_files

LAYOUTS: dict[str, dict[str, Any]] = {
    "version 3": {"chunks": (3, 4)},
    "version 2": {"chunks": (3, 4), "zarr_format": 2},
    "version 2, folders": {
        "chunks": (1, 1),
        "zarr_format": 2,
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
    "dots": {"chunks": (1, 5), "chunk_key_encoding": {"name": "default", "separator": "."}},
    "shards": {"chunks": (2, 2), "shards": (4, 4)},
    "rectilinear": {"chunks": [[3, 3, 4, 10, 11], [1, 4]]},
    "rectilinear in one axis": {"chunks": [[5] * 6 + [1], [1, 4]]},
    "no axes": {"shape": ()},
    "empty": {"shape": (0, 5), "chunks": (3, 4)},
}


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """Start a server, and return the options to reach its bucket."""
    from stores import s3_by_moto

    with s3_by_moto.connected(KEY, SECRET) as (client, options):
        client.create_bucket(Bucket="chunks")
        yield options


def written(folder: Path, layout: dict[str, Any]) -> zarr.Array[Any]:
    """Create an array with missing chunks by zarr-python."""
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array = zarr.create_array(folder, **{"shape": (31, 5), "dtype": "i4", "fill_value": 9, **layout})
    if array.ndim and array.size:
        array[4:30:7, :3] = 5
    return array


def expected_places(array: zarr.Array[Any], regions: list[tuple[slice, ...]]) -> list[tuple[int, ...]]:
    """Return the places of chunks that have other elements than fill values."""
    axes = [sorted({region[axis].start for region in regions}) for axis in range(array.ndim)]
    return [
        tuple(starts.index(part.start) for starts, part in zip(axes, region, strict=True))
        for region in regions
        if (np.asarray(array[region]) != 9).any()
    ]


@pytest.mark.parametrize("name", LAYOUTS)
def test_chunks_are_those_of_zarr_python(tmp_path: Path, name: str, bucket: dict[str, str]) -> None:
    other = written(tmp_path / "a.zarr", LAYOUTS[name])
    regions = [
        tuple(slice(part.start, part.stop) for part in region) for region in other._iter_shard_regions()
    ]
    places = expected_places(other, regions)
    memory = zarrow.MemoryStore()
    cloud = zarrow.CloudStore(f"s3://chunks/{name.replace(' ', '-')}.zarr", bucket)
    for store in (memory, cloud):
        zarrow.copy(tmp_path / "a.zarr", store, raw=True)
    shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "a.zarr")
    stores: list[Any] = [tmp_path / "a.zarr", memory, cloud, tmp_path / "a.zip"]
    for store in stores:
        array = zarrow.open(store, mode="r")
        found = list(array.iter_chunks())
        assert [region for region, _ in found] == regions
        for region, chunk in found:
            np.testing.assert_array_equal(chunk, other[region])
        assert list(array.stored_chunks()) == places
        for place in places[:3]:
            assert (np.asarray(array.blocks[place]) != 9).any()
        if array.ndim and array.size:
            assert len(array.blocks) == len({region[0].start for region in regions})


def test_lengths_of_other_indexers_are_refused() -> None:
    array = zarrow.zeros((4, 4), chunks=2)
    for indexer in (array.oindex, array.vindex, zarrow.zeros(()).blocks):
        with pytest.raises(TypeError):
            len(indexer)


def test_foreign_files_are_no_chunks(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.ones(4), chunks=2)
    for name in ("2", "01", "x", "-1"):
        (tmp_path / "a.zarr" / "c" / name).touch()
    assert list(array.stored_chunks()) == [(0,), (1,)]


def test_iterations_begin_without_a_list_of_all_chunks() -> None:
    array = zarrow.zeros(10**13, chunks=1000, dtype="u1")
    chunks = array.iter_chunks()
    assert next(chunks)[0] == (slice(0, 1000),)
    assert len(array.blocks) == 10**10
