"""The census of `verify` among the inner chunks of shards."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow.checks import verify

ARRAYS: dict[str, dict[str, Any]] = {
    "one axis": {"shape": 50, "chunks": 3, "shards": 12},
    "edges": {"shape": (11, 7), "chunks": (2, 3), "shards": (4, 6)},
    "Fortran order": {"shape": (9, 8, 5), "chunks": (2, 1, 2), "shards": (4, 3, 6), "order": "F"},
    "an index at the start": {
        "shape": (11, 7),
        "chunks": (4, 6),
        "codecs": [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2, 3],
                    "index_location": "start",
                    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                },
            }
        ],
    },
}


def counted(array: zarrow.Array) -> tuple[int, int]:
    """Count the inner chunks of stored shards by their elements; chunks of zeros are not stored."""
    values, chunks, shards = np.asarray(array[...]), array.chunks, array.shards
    assert chunks is not None and shards is not None
    stored = total = 0
    for corner in itertools.product(*map(range, [0] * array.ndim, array.shape, shards)):
        ends = [min(at + one, end) for at, one, end in zip(corner, shards, array.shape, strict=True)]
        if not values[tuple(map(slice, corner, ends))].any():
            continue
        for inner in itertools.product(*map(range, corner, ends, chunks)):
            total += 1
            bounds = [min(at + one, end) for at, one, end in zip(inner, chunks, ends, strict=True)]
            stored += bool(values[tuple(map(slice, inner, bounds))].any())
    return stored, total - stored


@pytest.mark.parametrize("name", ARRAYS)
def test_stored_and_missing_inner_chunks_are_counted(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    memory = zarrow.MemoryStore()
    for store in (tmp_path / "a.zarr", memory):
        array = zarrow.create_array(store, dtype="i4", **ARRAYS[name])
        for count in range(4):
            if count:
                place = tuple(rng.randrange(extent) for extent in array.shape)
                values = np.asarray(array[...]).copy()
                values[tuple(slice(at, at + 2) for at in place)] = 7
                array[...] = values
            found = verify(store)
            assert found.is_sound and (found.inner_stored, found.inner_missing) == counted(array)
        assert found.inner_stored > 0
        # A dict is asked as a remote store is.
        assert memory.to_dict() == {} or verify(memory.to_dict()) == verify(memory)
        text = f"0 foreign keys, {found.inner_stored} inner chunks stored, {found.inner_missing} missing"
        assert text in str(found)


def test_of_nested_shards_the_outermost_are_counted(tmp_path: Path) -> None:
    inner = {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1],
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        },
    }
    outer = {**inner, "configuration": {**inner["configuration"], "chunk_shape": [4], "codecs": [inner]}}
    array = zarrow.create_array(tmp_path, shape=16, dtype="i4", chunks=8, codecs=[outer])
    array[1:6] = 3
    found = verify(tmp_path)
    assert (found.stored, found.missing, found.inner_stored, found.inner_missing) == (1, 1, 2, 0)


@pytest.mark.parametrize("deep", [False, True])
def test_a_shard_with_a_broken_index_is_named_once(tmp_path: Path, deep: bool) -> None:
    options: dict[str, Any] = {"chunks": (2,), "shards": (4,), "compressors": None}
    zarrow.create_array(tmp_path, data=np.arange(1, 9), **options)
    assert verify(tmp_path).is_sound
    shard = tmp_path / "c/1"
    good = shard.read_bytes()
    shard.write_bytes(good[:-1])
    found = verify(tmp_path, deep=deep)
    assert [each.chunk for each in found.corrupt] == [(2,), (3,)][: 1 + deep]
    assert (found.stored, found.inner_stored, found.inner_missing) == (2, 2, 0)


def test_arrays_without_shards_have_no_inner_chunks(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path, data=np.arange(8), chunks=2)
    assert array._inner_chunks_of((0,)) is None
    found = verify(tmp_path)
    assert (found.inner_stored, found.inner_missing) == (0, 0) and "inner" not in str(found)
    with pytest.raises(IndexError, match="outside the chunk grid"):
        array._inner_chunks_of((4,))


def sharded(grid: dict[str, Any], *after: dict[str, Any]) -> zarrow.Array:
    """Return an array of 12 elements. Some of its inner chunks of 2 elements are stored."""
    plain = [{"name": "bytes", "configuration": {"endian": "little"}}]
    options = {"chunk_shape": [2], "codecs": plain, "index_codecs": plain}
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [12],
        "data_type": "int32",
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": options}, *after],
    }
    array = zarrow.open_array({"zarr.json": json.dumps(document).encode()}, mode="r+")
    array[0:2], array[4], array[8:12] = 1, 2, [0, 0, 3, 3]
    return array


def test_inner_chunks_of_unequal_shards_are_counted() -> None:
    grid = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[4, 6, 2]]}}
    array = sharded(grid)
    found = verify(array)
    assert (found.stored, found.inner_stored, found.inner_missing, found.uncounted) == (3, 4, 2, 0)
    store = array.__reduce__()[1][0]
    store["c/1"] = store["c/1"][:-1]
    assert [each.chunk for each in verify(array).corrupt] == [(1,)]


def test_shards_that_are_compressed_as_a_whole_are_named() -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": [4]}}
    found = verify(sharded(grid, {"name": "gzip", "configuration": {"level": 1}}))
    assert (found.stored, found.inner_stored, found.inner_missing, found.uncounted) == (3, 0, 0, 3)
    assert "inner chunks of 3 shards not counted" in str(found)
