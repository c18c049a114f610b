"""Nodes created, and arrays written, in one call."""

from __future__ import annotations

import json
import resource
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas
import pytest
import zarr

import zarrow
from zarrow._zarrow import _create_all, _NewNode

GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {"title": "rain", "limit": float("inf")}}


def document(version: Literal[2, 3], **options: Any) -> dict[str, Any]:
    """Return the documents of an array as zarrow writes them."""
    store = zarrow.MemoryStore()
    zarrow.create_array(store, shape=(4, 6), dtype="f4", chunks=(2, 6), zarr_format=version, **options)
    return {name: json.loads(text) for name, text in store.to_dict().items()}


def nodes(version: Literal[2, 3]) -> list[_NewNode]:
    """Return a tree of two groups and two arrays. One array has elements."""
    group: dict[str, Any] = {"zarr.json": GROUP}
    if version == 2:
        group = {".zgroup": {"zarr_format": 2}, ".zattrs": GROUP["attributes"]}
    array = document(version, dimension_names=["y", "x"], attributes={"units": "K"})
    values = np.arange(24, dtype="i2").reshape(4, 6)
    return [
        _NewNode("model/empty", array),
        _NewNode("", group),
        _NewNode("model/full", {name: json.dumps(text) for name, text in array.items()}, data=values),
        _NewNode("model", group),
    ]


def stores(tmp_path: Path) -> list[Any]:
    """Return a folder, memory, and a mapping, which is a remote store without conditions."""
    return [tmp_path / "tree.zarr", zarrow.MemoryStore(), {}]


@pytest.mark.parametrize("version", [2, 3])
def test_a_tree_is_created_from_documents(tmp_path: Path, version: Literal[2, 3]) -> None:
    for store in stores(tmp_path):
        created = _create_all(store, nodes(version), consolidate="")
        assert [node.path for node in created] == ["model/empty", "", "model/full", "model"]
        root = zarrow.open(store)
        assert root._is_consolidated()
        assert root.attrs["limit"] == float("inf")
        assert root["model"].attrs["title"] == "rain"
        assert root["model/full"][...].tolist() == np.arange(24).reshape(4, 6).tolist()
        assert root["model/full"].dimension_names == ("y", "x")
        assert not root["model/empty"][...].any()
        with pytest.raises(zarrow.NodeExistsError, match="a group is already here"):
            _create_all(store, nodes(version))
        kept = _NewNode("", {".zgroup": {"zarr_format": 2}, ".zattrs": {"limit": 3}}, existing="keep")
        if version == 3:
            kept = _NewNode("", {"zarr.json": {**GROUP, "attributes": {"limit": 3}}}, existing="keep")
        if isinstance(store, dict):
            continue  # it has no conditions, so attributes cannot change
        group, array = _create_all(
            store, [kept, _NewNode("model", document(version), existing="erase", data=7)]
        )
        assert dict(group.attrs) == {"title": "rain", "limit": 3}
        assert isinstance(array, zarrow.Array) and (array[...] == 7).all()
        assert isinstance(zarrow.open(store)["model"], zarrow.Array)


def test_what_does_not_fit_is_refused_at_once() -> None:
    array = document(3)
    with pytest.raises(zarrow.MetadataError):
        _NewNode("x", {"zarr.json": {**array["zarr.json"], "shape": [-1, 6]}})
    with pytest.raises(ValueError, match="expected"):
        _NewNode("x", array, existing="append")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="group"):
        _NewNode("x", {"zarr.json": GROUP}, data=1)
    store = zarrow.MemoryStore()
    with pytest.raises(ValueError, match="shape"):
        _create_all(store, [_NewNode("", {"zarr.json": GROUP}), _NewNode("x", array, data=[1, 2])])
    assert store.to_dict() == {}


def test_a_failed_call_keeps_what_it_replaced(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "tree.zarr")
    root.create_array("a", data=[1, 2])
    store = zarrow.MemoryStore()
    values = np.random.default_rng(1).random((64, 64))
    zarrow.create_array(store, shape=values.shape, dtype="f8")
    large: dict[str, Any] = {name: text.decode() for name, text in store.to_dict().items()}
    made = [
        _NewNode("a", document(3), data=3, existing="array"),
        _NewNode("b", document(3), data=4),
        _NewNode("c", large, data=values),
    ]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    try:
        with pytest.raises(OSError, match='remain: "/a"'):
            _create_all(root, made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (root["a"][...] == 3).all()
    assert "b" not in root and "c" not in root


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_consolidated", [False, True])
def test_arrays_are_created_together(tmp_path: Path, version: Literal[2, 3], is_consolidated: bool) -> None:
    named: Any = {
        "model/rain": {"shape": (365, 100), "chunks": (5, 100), "attributes": {"units": "mm"}},
        "day": {"data": [1, 2, 3], "dtype": "i2", "dimension_names": ["t"]},
        "kind": {"data": pandas.Categorical(["a", "b"]), "dtype": None, "fill_value": ""},
        "names": {"data": ["Oslo", "Rome"], "dtype": None, "fill_value": ""},
    }
    for store in stores(tmp_path):
        root = zarrow.create_group(store, zarr_format=version)
        if is_consolidated and not isinstance(store, dict):
            root.consolidate_metadata()
        created = root.create_arrays(named, dtype="f4", fill_value=0)
        assert list(created) == list(named)
        expected = zarrow.create_group(zarrow.MemoryStore(), zarr_format=version)
        for path, options in named.items():
            one = expected.create_array(path, **{"dtype": "f4", "fill_value": 0, **options})
            assert type(one) is type(created[path]) and created[path].path == path
        found = zarrow.open(store)
        assert str(found.tree()) == str(expected.tree())
        for path, array in found.members(max_depth=None):
            assert dict(array.attrs) == dict(expected[path].attrs)
            if isinstance(array, zarrow.Array):
                assert array.metadata == expected[path].metadata
                assert array[...].equals(expected[path][...])


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a node that exists": ({"day": {"shape": 3}}, zarrow.NodeExistsError, "an array is already here"),
    "the group": ({"": {"shape": 3}}, zarrow.ZarrowError, "a group is already here|expected a group"),
    "an array below another": ({"x/y": {"shape": 3}}, zarrow.NodeTypeError, "expected a group"),
    "a path twice": ({"/x": {"shape": 3}}, zarrow.NodeExistsError, "another node of this call"),
    "another place": ({"../y": {"shape": 3}}, zarrow.InvalidKeyError, "not allowed"),
    "a shape as the path": ({3: {"shape": 3}}, TypeError, "3: expected the path"),
    "an unknown option": ({"y": {"shape": 3, "chunk": 2}}, TypeError, "'y': unknown option 'chunk'"),
    "elements": ({"y": [1, 2]}, TypeError, "type {'y': {'data': x}} for its elements"),
    "chunks of other axes": ({"y": {"shape": 3, "chunks": (2, 2)}}, ValueError, "'y': chunks is"),
    "a fill value": ({"y": {"shape": 3, "fill_value": "a"}}, (ValueError, TypeError), "'y'|\"y\""),
    "no shape": ({"y": {}}, TypeError, "'y': expected shape="),
    "an array of a store": (
        {"y": {"data": zarrow.create_array({}, data=[1, 2])}},
        TypeError,
        r"'y': the data are an array of a store.* data\[...\] to read them",
    ),
    "a group": (
        {"y": {"data": pandas.Categorical(["a"]), "dtype": None, "missing": "anndata"}},
        TypeError,
        "'y': the data are .* stored as a group",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_no_array_is_created_if_one_is_refused(tmp_path: Path, case: str) -> None:
    named, error, message = REFUSED[case]
    for store in stores(tmp_path):
        root = zarrow.create_group(store)
        root["day"] = [1]
        before = list(root)
        with pytest.raises(error, match=message):
            root.create_arrays({"x": {"shape": 4}, **named}, dtype="f4")
        assert list(zarrow.open(store)) == list(root) == before
    with pytest.raises(TypeError, match="expected a dict"):
        root.create_arrays([("x", {"shape": 3})])  # type: ignore[arg-type]
    with pytest.raises(zarrow.ReadOnlyError):
        zarrow.open_group(tmp_path / "tree.zarr", mode="r").create_arrays({"x": {"shape": 3}}, dtype="f4")


def test_all_arrays_are_checked_before_large_ones_are_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zarrow.api.node_batch._MOST_NBYTES", 100)
    root = zarrow.create_group(zarrow.MemoryStore())
    root["old"] = [1.0, 2.0]
    large = {"data": np.zeros(1000), "overwrite": True}
    with pytest.raises(TypeError, match="'bad'"):
        root.create_arrays({"old": large, "x": large, "bad": {"shape": 3, "dtype": "nope"}})
    assert list(root) == ["old"] and root["old"][...].tolist() == [1, 2]


def test_options_that_are_iterated_once_hold_for_all_arrays() -> None:
    root = zarrow.create_group(zarrow.MemoryStore())
    once: Any = {"shape": iter([4]), "compressors": (name for name in ["gzip"])}
    created = root.create_arrays({"a": {}, "b": {}}, dtype="f4", **once)
    assert created["a"].metadata == created["b"].metadata
    assert created["b"].shape == (4,) and len(created["b"].compressors) == 1


def test_a_refused_call_leaves_the_groups_of_others(tmp_path: Path) -> None:
    root, rounds, start = zarrow.create_group(tmp_path), 40, threading.Barrier(2)

    def create(is_many: bool) -> None:
        for number in range(rounds):
            start.wait()
            try:
                if is_many:
                    root.create_arrays({f"r{number}/y{at}": {"data": [1.0]} for at in range(5)})
                else:
                    root.create_array(f"r{number}/y4", data=[7.0])
            except zarrow.NodeExistsError:
                pass

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(create, [True, False]))
    for number in range(rounds):
        assert zarrow.open(tmp_path)[f"r{number}/y4"][...].tolist() in ([1], [7])
    assert zarrow.verify(tmp_path).foreign == []


def test_many_arrays_are_written(tmp_path: Path) -> None:
    for store in stores(tmp_path)[:2]:
        root = zarrow.create_group(store)
        for name in "ab":
            root.create_array(name, shape=(3, 4), dtype="i4", chunks=(2, 2))
        zarrow.write_many([(root["a"], (slice(0, 2), 1), 5), (root["b"], ..., 6)])
        assert root["a"][:, 1].tolist() == [5, 5, 0]
        assert (root["b"][...] == 6).all()
        with pytest.raises(ValueError, match="shape"):
            zarrow.write_many([(root["a"], 0, 7), (root["b"], ..., np.zeros((2, 2), "i4"))])
        assert root["a"][0].tolist() == [0, 5, 0, 0]


def stores_of_zarr_python() -> dict[str, Any]:
    """Return a store with conditional writes, and one without."""
    url = f"memory://{uuid.uuid4().hex}"
    return {"memory": zarr.storage.MemoryStore(), "fsspec": zarr.storage.FsspecStore.from_url(url)}


@pytest.mark.parametrize("kind", ["memory", "fsspec"])
def test_arrays_are_saved_to_stores_of_zarr_python(kind: str) -> None:
    store = stores_of_zarr_python()[kind]
    for add in (0, 1):
        zarrow.save(store, x=np.arange(3) + add, y=["a", "b", "c"])
        found = zarr.open_group(store, mode="r")
        assert found["x"][...].tolist() == [add, 1 + add, 2 + add]
        assert found["y"][...].tolist() == ["a", "b", "c"]
    table, rows = zarrow.open(store, mode="r+"), {"x": [7], "y": ["d"]}
    image = [np.arange(64, dtype="u2").reshape(8, 8)]
    save = partial(zarrow.ome.save, store, image, axes="yx", path="image", labels={"nuclei": image})
    if kind == "memory":
        assert table.append(rows) == 4
        save()
        assert np.array_equal(
            zarr.open_group(store, path="image", mode="r")["labels/nuclei/0"][...], image[0]
        )
        return
    with pytest.raises(zarrow.UnsupportedError, match="no conditional writes") as caught:
        table.append(rows)
    assert caught.value.__notes__ == ["nothing was appended"]
    assert zarr.open_group(store, mode="r")["x"].shape == (3,)
    with pytest.raises(zarrow.UnsupportedError, match="no conditional writes"):
        save()
    with pytest.raises(zarrow.NodeTypeError, match="not an OME-Zarr image"):
        _ = zarrow.open(store, "image", mode="r").multiscales
