"""Attributes: a mapping that stores what is changed, and nothing else."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrow


@pytest.fixture(params=[(2, False), (2, True), (3, False), (3, True)], ids=str)
def store(request, tmp_path):
    """A hierarchy of zarr-python's, of both versions, consolidated or not."""
    zarr_format, consolidated = request.param
    root = zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format, attributes={"title": "rain"})
    root.create_array("model/grid", shape=(2, 2), dtype="f4", attributes={"units": "K", "nan": float("nan")})
    if consolidated and zarr_format == 2:
        zarr.consolidate_metadata(tmp_path, zarr_format=2)
    elif consolidated:
        with pytest.warns(UserWarning, match="[Cc]onsolidated"):
            zarr.consolidate_metadata(tmp_path, zarr_format=3)
    return tmp_path


@pytest.mark.parametrize("path", ["", "model", "model/grid"])
def test_zarr_python_reads_what_was_changed(store, path):
    attributes = zarrow.open(store, path).attrs
    before = dict(attributes)
    attributes["text"] = "né"
    attributes.update({"list": [1, {"a": None}]}, flag=True)
    attributes.setdefault("text", "other")
    assert attributes.pop("flag") is True and "flag" not in attributes
    del attributes["list"]
    with pytest.raises(KeyError):
        del attributes["list"]
    expected = {**before, "text": "né"}
    assert attributes == expected == dict(attributes) == zarrow.open(store, path).attrs
    root = zarr.open_group(store, mode="r")
    read = (root[path] if path else root).attrs.asdict()
    assert read == expected or (np.isnan(read.pop("nan")) and read.items() <= expected.items())
    attributes.put({"only": 1})
    assert zarrow.open(store, path).attrs.asdict() == {"only": 1}
    attributes.clear()
    assert attributes == {} and len(attributes) == 0 and list(attributes) == []
    assert zarrow.open(store)["model/grid"].shape == (2, 2)


def test_what_others_stored_stays(store):
    """An extension, a bare NaN, an integer beyond 64 bits, the order of keys: byte for byte."""
    name = "zarr.json" if (store / "zarr.json").exists() else ".zattrs"
    path = store / "model" / "grid" / name
    document = json.loads(path.read_text())
    (document["attributes"] if name == "zarr.json" else document)["big"] = 2**100
    if name == "zarr.json":
        document["theirs"] = {"must_understand": False, "b": 1, "a": 0.1}
    path.write_text(json.dumps(document, indent=3))
    zarrow.open(store)["model"]
    zarrow.open(store, "model/grid").attrs["new"] = [1]
    (document["attributes"] if name == "zarr.json" else document)["new"] = [1]
    found = json.loads(path.read_text())
    assert repr(found) == repr(document)
    zarr.open_array(store / "model" / "grid", mode="r")


def test_a_handle_knows_what_it_stored_and_what_was_there_then(store):
    first, second = zarrow.open(store, "model/grid"), zarrow.open(store, "model/grid")
    first.attrs["x"] = 1
    assert "x" in first.attrs and "x" not in second.attrs
    second.attrs["y"] = 2
    assert second.attrs["x"] == 1 and "y" not in first.attrs
    values = first.attrs
    first.attrs["z"] = 3
    assert values["z"] == 3 and repr(values) == repr(dict(values))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), ValueError),
        (np.float32("inf"), ValueError),
        (2**64, ValueError),
        (-(2**63) - 1, ValueError),
        (b"bytes", TypeError),
        ({1: 2}, TypeError),
        ({"a": {3, 4}}, TypeError),
        ("\ud800", UnicodeEncodeError),
    ],
    ids=repr,
)
def test_what_json_cannot_say_is_refused(tmp_path, value, error):
    zarr.open_group(tmp_path, mode="w", attributes={"a": 1})
    before = (tmp_path / "zarr.json").read_bytes()
    attributes = zarrow.open(tmp_path).attrs
    with pytest.raises(error):
        attributes["x"] = value
    with pytest.raises(error):
        attributes.update(b=1, c=[value])
    assert (tmp_path / "zarr.json").read_bytes() == before and attributes == {"a": 1}


def test_lists_that_hold_themselves_are_refused(tmp_path):
    zarr.open_group(tmp_path, mode="w")
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="deep"):
        zarrow.open(tmp_path).attrs["x"] = circle


def test_what_numpy_has_is_stored_as_numbers(tmp_path):
    zarr.open_group(tmp_path, mode="w")
    attributes = zarrow.open(tmp_path).attrs
    attributes["n"] = np.int16(3)
    attributes["list"] = np.array([[1.5, 2], [3, 4]], np.float32)
    attributes["mixed"] = (np.float64(0.1), np.True_, None, 2**64 - 1)
    assert zarr.open_group(tmp_path, mode="r").attrs.asdict() == {
        "n": 3,
        "list": [[1.5, 2.0], [3.0, 4.0]],
        "mixed": [0.1, True, None, 2**64 - 1],
    }


def test_a_node_that_was_erased(tmp_path):
    root = zarr.open_group(tmp_path, mode="w")
    root.create_array("a", shape=(1,), dtype="i1")
    array = zarrow.open(tmp_path)["a"]
    del root["a"]
    with pytest.raises(FileNotFoundError):
        array.attrs["x"] = 1
    assert not (tmp_path / "a").exists()


def change(folder: Path, number: int) -> None:
    for round_ in range(10):
        zarrow.open(folder).attrs[f"{number}-{round_}"] = round_


def test_changes_of_processes_are_not_lost(tmp_path):
    zarr.open_group(tmp_path, mode="w")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=change, args=(tmp_path, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert len(zarrow.open(tmp_path).attrs) == 40
    assert [path.name for path in tmp_path.iterdir()] == ["zarr.json"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_that_could_not_be_read_again_are_refused(tmp_path, zarr_format):
    large = {"large": "x" * (17 << 20)}
    with pytest.raises(ValueError, match="size"):
        zarrow.create_group(tmp_path / "no.zarr", attributes=large, zarr_format=zarr_format)
    group = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    with pytest.raises(ValueError, match="size"):
        group.attrs.update(large)
    assert zarrow.open(tmp_path).attrs == {} and not (tmp_path / "no.zarr" / "zarr.json").exists()
    if zarr_format == 3:
        # With consolidated metadata in it, a document may be that large.
        group.consolidate_metadata()
        group.attrs.update(large)
        assert len(zarrow.open(tmp_path).attrs["large"]) == 17 << 20
