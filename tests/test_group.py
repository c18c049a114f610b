"""The class Group, and `zarrow.open`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow


@pytest.fixture(params=[(2, False), (2, True), (3, False), (3, True)], ids=str, scope="module")
def store(request, tmp_path_factory) -> Path:
    zarr_format, consolidated = request.param
    folder = tmp_path_factory.mktemp("store") / "a data.zarr"
    root = zarr.open_group(folder, mode="w", zarr_format=zarr_format, attributes={"title": "rain"})
    root.create_array("station", shape=(3,), dtype="i2")[:] = [1, 2, 3]
    model = root.create_group("model", attributes={"run": 1})
    model.create_array("deep/grid", shape=(2, 2), dtype="f4")[:] = 7
    if consolidated and zarr_format == 2:
        zarr.consolidate_metadata(folder, zarr_format=2)
    elif consolidated:
        with pytest.warns(UserWarning, match="[Cc]onsolidated"):
            zarr.consolidate_metadata(folder, zarr_format=3)
    return folder


@pytest.fixture
def root(store):
    return zarrow.open(store)


def test_it_is_a_mapping(root):
    assert isinstance(root, zarrow.Group) and len(root) == 2
    assert list(root) == root.keys() == ["model", "station"]
    assert [type(member) for member in root.values()] == [zarrow.Group, zarrow.Array]
    assert [name for name, _ in root.items()] == ["model", "station"]
    assert [name for name, _ in root.arrays()] == ["station"] and [name for name, _ in root.groups()] == [
        "model"
    ]
    assert dict(root)["station"][:].tolist() == [1, 2, 3]


def test_a_group_compares_with_groups_alone(root, store):
    assert root == zarrow.open(store) and root != root["model"] and hash(root) == hash(zarrow.open(store))
    assert root != None and (root == object()) is False  # noqa: E711
    assert root not in ["T", 1] and root != "T"


def test_paths_go_through_groups(root):
    grid = root["model/deep/grid"]
    assert (
        grid.path
        == root["model"]["deep"]["grid"].path
        == root["/model/deep/"]["grid"].path
        == "model/deep/grid"
    )
    assert grid[...].tolist() == [[7, 7], [7, 7]]
    assert (root["model"].attrs, root["model"].path, root["model"].name) == ({"run": 1}, "model", "/model")
    assert (root.attrs, root.path, root.name) == ({"title": "rain"}, "", "/")
    assert root.store == grid.store and root.store.endswith("a data.zarr")


def test_missing_members(root):
    for path in ("model", "model/deep/grid", "station"):
        assert path in root
    for path in ("nothing", "model/nothing", "station/below"):
        assert path not in root
        with pytest.raises(KeyError) as raised:
            root[path]
        assert raised.value.kind == "not_found" and raised.value.path == path
    for path in ("../a data.zarr", "model/../station", "a//b"):
        with pytest.raises(ValueError):
            root[path]
    with pytest.raises(TypeError):
        root[0]


def test_the_tree_is_drawn(root):
    expected = """/
├── model
│   └── deep
│       └── grid (2, 2) float32
└── station (3,) int16"""
    assert str(root.tree()) == repr(root.tree()) == expected
    assert str(root.tree(1)) == "/\n├── model\n└── station (3,) int16"
    assert str(root["model"].tree(level=0)) == "/model"
    assert "grid" in root.tree()._repr_html_() and "station (3,) int16" in repr(root)
    assert "station" in root._repr_html_()


def test_open_takes_paths_and_urls(store, monkeypatch):
    quoted = str(store).replace(" ", "%20")
    for place in (str(store), store, f"file://{quoted}", f"FILE://localhost{quoted}", os.fspath(store) + "/"):
        assert zarrow.open(place).keys() == ["model", "station"]
    assert zarrow.open(store, "model/deep").keys() == zarrow.open(store / "model/deep").keys() == ["grid"]
    assert zarrow.open(store, path="station").shape == (3,)
    monkeypatch.chdir(store.parent)
    assert zarrow.open(store.name).zarr_format in (2, 3)


def test_open_names_the_problem(store, tmp_path):
    for place, path in [(tmp_path / "nothing", ""), (tmp_path, ""), (store, "nothing")]:
        with pytest.raises(FileNotFoundError) as raised:
            zarrow.open(place, path)
        assert isinstance(raised.value, zarrow.NotFoundError) and raised.value.store == str(place)
    for url in ("ftp://host/data.zarr", "hdfs://host/data.zarr"):
        with pytest.raises(NotImplementedError, match=url.partition(":")[0]):
            zarrow.open(url)
    with pytest.raises(ValueError, match="absolute"):
        zarrow.open("file://relative/path")
    with pytest.raises(TypeError):
        zarrow.open(5)


def test_a_broken_member_does_not_hide_the_others(tmp_path):
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3)
    root.create_array("good", shape=(1,), dtype="i1")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "array"}))
    group = zarrow.open(tmp_path)
    assert group.keys() == ["bad", "good"] and group["good"].shape == (1,)
    assert "bad cannot be opened" in str(group.tree()) and "good (1,) int8" in repr(group)
    with pytest.warns(zarrow.ZarrowWarning, match="bad"):
        assert [array.shape for array in group.values()] == [(1,)]
    for refused in (lambda: group["bad"], lambda: "bad" in group):
        with pytest.raises(zarrow.MetadataError):
            refused()


def test_names_are_escaped_in_html(tmp_path):
    zarr.open_group(tmp_path, mode="w").create_array("<script>", shape=(1,), dtype="i1")
    html = zarrow.open(tmp_path)._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_attributes_keep_their_types(tmp_path):
    attributes = {
        "int": 2**53 + 1,
        "float": 0.1,
        "none": None,
        "text": "é",
        "list": [1, [True]],
        "map": {"a": {}},
    }
    zarr.open_group(tmp_path, mode="w", attributes=attributes)
    assert zarrow.open(tmp_path).attrs == attributes
    assert np.float64(zarrow.open(tmp_path).attrs["float"]) == 0.1


def test_get_has_a_default(tmp_path):
    zarrow.save(tmp_path, x=[1, 2])
    root = zarrow.open(tmp_path)
    assert root.get("x") == root["x"] and root.get("y") is None and root.get("y", 3) == 3
    assert root._ipython_key_completions_() == ["x"]


def test_a_group_shows_its_attributes_and_the_first_of_many_members(tmp_path):
    root = zarrow.create_group(tmp_path, attributes={"title": "<rain>"})
    for number in range(103):
        root.create_group(f"g{number:03}")
    for text, title in ((repr(root), '"<rain>"'), (root._repr_html_(), "&quot;&lt;rain&gt;&quot;")):
        assert f"title={title}" in text
        assert "g099" in text and "g100" not in text and "3 more: .keys() lists them" in text
    assert "g102" in str(root.tree())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_consolidated_tree_shows_broken_documents(tmp_path: Path, zarr_format: Any) -> None:
    root = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    root["x"], root["y"], root["z"] = [1, 2], [1.5], [True]
    root.consolidate_metadata()
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    (tmp_path / "x" / name).write_text("{broken")
    (tmp_path / "y" / name).unlink()
    drawn = repr(zarrow.open(tmp_path).tree()).splitlines()
    assert drawn[1].startswith(
        "├── x (2,) int64, by consolidated metadata: its own document cannot be opened"
    )
    assert drawn[2].startswith(
        "├── y (1,) float64, by consolidated metadata: its own document cannot be opened"
    )
    assert drawn[3] == "└── z (1,) bool"
