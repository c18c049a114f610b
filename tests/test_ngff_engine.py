"""The example of an engine for ngff-zarr: each of its requirements, compared with zarr-python."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

SOURCE = Path(__file__).parent.parent / "examples" / "python" / "engines" / "ngff_engine.py"
spec = importlib.util.spec_from_file_location("ngff_engine", SOURCE)
assert spec is not None and spec.loader is not None
ngff_engine: Any = importlib.util.module_from_spec(spec)
sys.modules["ngff_engine"] = ngff_engine
spec.loader.exec_module(ngff_engine)

TYPES = ["u1", "bool", "u2", ">u2", "i4", "f4", "f8"]


def written(folder: Path, version: Any, dtype: str = "u2", **options: Any) -> Any:
    root = ngff_engine.create(folder, version, {"title": "cells"})
    names = ["y", "x"] if version == 3 else None
    return root.create_array("s0", shape=(6, 8), dtype=dtype, chunks=(2, 4), dimension_names=names, **options)


def theirs(folder: Path, version: Any, dtype: str = "u2") -> zarr.Array[Any]:
    root = zarr.create_group(folder, zarr_format=version, attributes={"title": "cells"})
    separator = {"name": "v2" if version == 2 else "default", "separator": "/"}
    names = ["y", "x"] if version == 3 else None
    return root.create_array(
        "s0", shape=(6, 8), dtype=dtype, chunks=(2, 4), dimension_names=names, chunk_key_encoding=separator
    )


def test_it_is_short() -> None:
    assert SOURCE.read_text().count("\n") <= 150


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_types_and_shapes_are_those_of_zarr_python(tmp_path: Path, version: int, dtype: str) -> None:
    ours, other = written(tmp_path / "a", version, dtype), theirs(tmp_path / "b", version, dtype)
    assert type(ours.shape) is tuple and ours.shape == other.shape
    assert type(ours.chunks) is tuple and ours.chunks == other.chunks
    assert isinstance(ours.dtype, np.dtype) and ours.dtype == other.dtype.newbyteorder("=")
    assert (ours.shards, ours.attrs) == (None, {})


@pytest.mark.parametrize("version", [2, 3])
def test_selections_are_those_of_zarr_python(tmp_path: Path, version: int) -> None:
    ours, other = written(tmp_path / "a", version), theirs(tmp_path / "b", version)
    values = np.arange(48, dtype="u2").reshape(6, 8)
    for array in (ours, other):
        array[...] = values
        array[2] = 7
        array[:, -1] = np.arange(6)
        array[1:5:2, ::3] = 9
    for selection in (
        ...,
        3,
        (3, 4),
        (slice(None), 2),
        (slice(1, 6, 2), slice(None, None, 3)),
        (-1, slice(2, 5)),
    ):
        expected = other[selection]
        assert ours[selection].shape == np.shape(expected)
        np.testing.assert_array_equal(ours[selection], expected)


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_any_strides_and_byte_order_are_written(tmp_path: Path, version: int) -> None:
    ours = written(tmp_path / "a", version)
    whole = np.arange(96, dtype="u2").reshape(6, 16)
    columns = np.asfortranarray(whole[:, :8])
    for values in (whole[:, ::2], whole[::-1, 15:7:-1], columns, whole[:, :8].astype(">u2"), whole[:1, :8]):
        ours[...] = values
        np.testing.assert_array_equal(
            zarr.open_array(tmp_path / "a", path="s0")[...], np.broadcast_to(values, (6, 8))
        )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_documents_mean_what_those_of_zarr_python_mean(tmp_path: Path, version: int, dtype: str) -> None:
    written(tmp_path / "a", version, dtype)
    theirs(tmp_path / "b", version, dtype)
    name = ".zarray" if version == 2 else "zarr.json"
    ours, other = (json.loads((tmp_path / store / "s0" / name).read_text()) for store in "ab")
    for document in (ours, other):
        document.pop("compressor", None)
    if version == 3:
        [ours_bytes, *_], [their_bytes, *_] = ours.pop("codecs"), other.pop("codecs")
        assert ours_bytes.get("configuration", {}) == their_bytes.get("configuration", {})
        # Optional: zarr-python writes that there are none.
        assert other.pop("storage_transformers") == [] and "storage_transformers" not in ours
    assert ours == other


def test_version_2_is_consolidated(tmp_path: Path) -> None:
    array = written(tmp_path / "a", 2)
    array[...] = 3
    ngff_engine.open_node(tmp_path / "a").create_group("labels", {"labels": ["a"]})
    ngff_engine.consolidate(tmp_path / "a")
    documents = json.loads((tmp_path / "a" / ".zmetadata").read_text())
    assert documents["zarr_consolidated_format"] == 1
    assert {".zgroup", ".zattrs", "s0/.zarray", "labels/.zgroup", "labels/.zattrs"} <= set(
        documents["metadata"]
    )
    root = zarr.open_consolidated(tmp_path / "a", zarr_format=2)
    assert dict(root.attrs) == {"title": "cells"} and root["labels"].attrs["labels"] == ["a"]
    np.testing.assert_array_equal(root["s0"][...], np.full((6, 8), 3))


@pytest.mark.parametrize("version", [2, 3])
def test_only_the_attributes_of_the_caller_are_stored(tmp_path: Path, version: int) -> None:
    written(tmp_path / "a", version)
    root = ngff_engine.open_node(tmp_path / "a")
    root.update_attributes({"more": [1, 2]})
    opened = zarr.open_group(tmp_path / "a", mode="r")
    assert dict(opened.attrs) == root.attrs == {"title": "cells", "more": [1, 2]}
    assert dict(opened["s0"].attrs) == {}


def test_stores_have_readable_paths(tmp_path: Path) -> None:
    written(tmp_path / "a", 3)
    root = ngff_engine.open_node(tmp_path / "a")
    assert Path(root.store_path) == tmp_path / "a" and "s0" in root and "s1" not in root
    in_memory = ngff_engine.create({}, 3)
    assert in_memory.store_path and in_memory.create_group("below").attrs == {}


def test_shards_are_stored(tmp_path: Path) -> None:
    array = written(tmp_path / "a", 3, shards=(4, 8))
    array[...] = np.arange(48).reshape(6, 8)
    stored = zarr.open_array(tmp_path / "a", path="s0")
    assert stored.shards == array.shards == (4, 8) and stored.chunks == array.chunks == (2, 4)
    np.testing.assert_array_equal(stored[...], array[...])
