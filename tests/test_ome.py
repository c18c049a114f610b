"""OME-Zarr images."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow

IMAGE = np.arange(2 * 16 * 24, dtype="u2").reshape(2, 16, 24)
LEVELS = [IMAGE, IMAGE[:, ::2, ::2], IMAGE[:, ::4, ::4]]
NUCLEI = [level[0] > 9 for level in LEVELS]


def saved(folder: Path, version: Any, **options: Any) -> Path:
    zarrow.ome.save(
        folder,
        LEVELS,
        axes="cyx",
        scale=[1, 0.5, 0.25],
        unit="micrometer",
        name="cells",
        version=version,
        chunks=(1, 8, 8),
        **options,
    )
    return folder


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_metadata_are_those_of_the_specification(tmp_path: Path, version: str) -> None:
    saved(
        tmp_path / "a",
        version,
        labels={"nuclei": [level.astype("u1") for level in NUCLEI]},
        attributes={"by": "me"},
    )
    root = zarr.open_group(tmp_path / "a", mode="r")
    axes = [
        {"name": "c", "type": "channel"},
        {"name": "y", "type": "space", "unit": "micrometer"},
        {"name": "x", "type": "space", "unit": "micrometer"},
    ]
    datasets = [
        {
            "path": str(at),
            "coordinateTransformations": [{"type": "scale", "scale": [1.0, 0.5 * 2**at, 0.25 * 2**at]}],
        }
        for at in range(3)
    ]
    image = {"name": "cells", "axes": axes, "datasets": datasets}
    of_label = {
        "name": "nuclei",
        "axes": axes[1:],
        "datasets": [
            {
                "path": str(at),
                "coordinateTransformations": [{"type": "scale", "scale": [0.5 * 2**at, 0.25 * 2**at]}],
            }
            for at in range(3)
        ],
    }
    source = {"source": {"image": "../../"}}
    if version == "0.5":
        assert dict(root.attrs) == {"by": "me", "ome": {"version": "0.5", "multiscales": [image]}}
        assert dict(root["labels"].attrs) == {"ome": {"version": "0.5", "labels": ["nuclei"]}}
        expected = {"ome": {"version": "0.5", "multiscales": [of_label], "image-label": source}}
        assert dict(root["labels/nuclei"].attrs) == expected
        assert root["0"].metadata.dimension_names == ("c", "y", "x")
    else:
        assert dict(root.attrs) == {"by": "me", "multiscales": [{"version": "0.4", **image}]}
        assert dict(root["labels"].attrs) == {"labels": ["nuclei"]}
        expected = {
            "multiscales": [{"version": "0.4", **of_label}],
            "image-label": {"version": "0.4", **source},
        }
        assert dict(root["labels/nuclei"].attrs) == expected
        assert root["0"].metadata.zarr_format == 2 and (tmp_path / "a" / "0" / "0" / "0" / "0").is_file()
    for at, level in enumerate(LEVELS):
        np.testing.assert_array_equal(root[str(at)][...], level)
        np.testing.assert_array_equal(root[f"labels/nuclei/{at}"][...], NUCLEI[at])


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_levels_are_read_by_name_and_number(tmp_path: Path, version: str) -> None:
    saved(tmp_path / "a", version, labels={"nuclei": [level.astype("u1") for level in NUCLEI]})
    image = zarrow.open(tmp_path / "a").multiscales
    assert (image.name, image.version, len(image)) == ("cells", version, 3)
    assert image.axes[1] == zarrow.ome.Axis("y", "space", "micrometer")
    assert image[1] is image["1"] is image.level("1") is list(image)[1] is image.levels[1]
    assert image["2"].scale == (1.0, 2.0, 1.0) and image["2"].translation == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(image["1"].array[:, 2:4], LEVELS[1][:, 2:4])
    assert list(image.labels) == ["nuclei"] and image.labels["nuclei"].labels == {}
    np.testing.assert_array_equal(image.labels["nuclei"]["2"].array, NUCLEI[2])
    with pytest.raises(KeyError, match="no level '7', expected one of '0', '1', '2'"):
        image["7"]
    with pytest.raises(IndexError, match="no level 3, the image has 3"):
        image[3]


def test_transformations_of_the_image_apply_after_those_of_a_level() -> None:
    def scaled(scale: Any, translation: Any) -> list[dict[str, Any]]:
        return [{"type": "scale", "scale": scale}, {"type": "translation", "translation": translation}]

    image = {
        "version": "0.4",
        "axes": ["y", "x"],
        "datasets": [{"path": "full", "coordinateTransformations": scaled([2, 3], [1, 1])}],
        "coordinateTransformations": scaled([10, 10], [5, 0]),
    }
    group = zarrow.create_group({}, zarr_format=2, attributes={"multiscales": [image]})
    level = group.multiscales["full"]
    assert level.scale == (20.0, 30.0) and level.translation == (15.0, 10.0)


def test_trees_and_summaries_show_images(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    saved(root_path := tmp_path / "a.zarr", "0.5", path="plate/image")
    shown = str(zarrow.open(root_path).tree())
    assert "image multiscales c y x, 3 levels" in shown
    image = zarrow.open(root_path, "plate/image")
    assert "multiscales  c y x, 3 levels" in repr(image) and "c y x, 3 levels" in image._repr_html_()
    assert str(image.tree()).splitlines()[0] == "/plate/image multiscales c y x, 3 levels"
    for odd in ([], [{}], 3, [3], [{"axes": 3, "datasets": []}], {"a": 1}):
        root.attrs["multiscales"] = odd
        assert "plate" in repr(zarrow.open(root_path)) and "plate" in str(zarrow.open(root_path).tree())


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({"datasets": [{"path": "0"}]}, "'axes' is None, expected a list"),
        ({"axes": [{"type": "space"}], "datasets": [{"path": "0"}]}, "has no name"),
        ({"axes": ["y", "y"], "datasets": [{"path": "0"}]}, "a name twice"),
        ({"axes": ["y", "x"], "datasets": []}, "expected a list of levels"),
        ({"axes": ["y", "x"], "datasets": [{}]}, "has no path"),
        (
            {
                "axes": ["y", "x"],
                "datasets": [
                    {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 2, 3]}]}
                ],
            },
            r"scale \[1, 2, 3\] of level '0' has 3 numbers, but there are 2 axes",
        ),
        (
            {
                "axes": ["y", "x"],
                "datasets": [{"path": "0", "coordinateTransformations": [{"type": "affine"}]}],
            },
            "expected a scale or a translation",
        ),
        *(
            (
                {"axes": ["y", "x"], "datasets": [{"path": "0", "coordinateTransformations": given}]},
                message,
            )
            for given, message in [
                ([{"type": ["scale"], "scale": [1, 1]}], "expected a scale or a translation"),
                ([{"type": "scale", "scale": [10**400, 1]}], "of finite numbers"),
                (
                    [{"type": "scale", "scale": [1, 1]}, {"type": "scale", "scale": [2, 2]}],
                    "expected one scale",
                ),
                (
                    [{"type": "translation", "translation": [1, 1]}, {"type": "scale", "scale": [2, 2]}],
                    "expected one scale and then one translation",
                ),
                (0, "is 0, expected a list"),
            ]
        ),
        *(
            ({"axes": ["y", "x"], "datasets": [{"path": path}]}, "is not below the image")
            for path in ("../other", "/0", ".", "a//b", "file:///etc", "0\0", "\u2028")
        ),
        ({"axes": ["y", "x"], "datasets": [{"path": "0"}, {"path": "0"}]}, "level '0' is listed twice"),
        ({"axes": ["y", {"name": "x", "unit": {}}], "datasets": [{"path": "0"}]}, "'unit' of axis 'x' is {}"),
        ({"axes": ["y", "x"], "datasets": [{"path": "0"}], "name": 3}, "'name' of the image is 3"),
        ({"axes": ["y", "x"], "datasets": [{"path": "0"}], "version": [3]}, "'version' is"),
    ],
)
def test_malformed_metadata_are_refused(image: Any, message: str) -> None:
    group = zarrow.create_group({}, attributes={"ome": {"multiscales": [image]}})
    with pytest.raises(zarrow.MetadataError, match=message):
        _ = group.multiscales
    assert "Group" in repr(group) and str(group.tree()) and group._repr_html_()


@pytest.mark.parametrize("name", ["../..", "missing", ".", "", "plain", "array", "\0"])
def test_labels_that_are_no_images_are_refused(tmp_path: Path, name: str) -> None:
    saved(tmp_path / "a", "0.5")
    below = zarrow.open(tmp_path / "a").create_group("labels", attributes={"ome": {"labels": [name]}})
    below.create_group("plain")
    below["array"] = [1, 2]
    with pytest.raises(zarrow.MetadataError, match="label"):
        _ = zarrow.open(tmp_path / "a").multiscales.labels


def test_levels_that_do_not_fit_are_refused() -> None:
    image = {"axes": ["y", "x"], "datasets": [{"path": "0"}, {"path": "gone"}]}
    group = zarrow.create_group({}, attributes={"ome": {"version": "0.5", "multiscales": [image]}})
    group["0"] = np.zeros((2, 3, 4))
    with pytest.raises(
        zarrow.MetadataError, match=r"level '0' has shape \(2, 3, 4\), but the image has 2 axes"
    ):
        _ = group.multiscales["0"].array
    with pytest.raises(zarrow.MetadataError, match="level 'gone' is not an array"):
        _ = group.multiscales["gone"].array
    with pytest.raises(zarrow.NodeTypeError, match="not an OME-Zarr image"):
        _ = zarrow.create_group({}).multiscales


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": []}, "levels is empty"),
        ({"axes": "yx"}, "but there are 2 axes: y, x"),
        ({"axes": "yxc"}, "in this order"),
        ({"axes": "cqx"}, "2 or 3 of space"),
        ({"axes": "cxx"}, "a name twice"),
        ({"levels": LEVELS[::-1]}, "pass the largest first"),
        ({"scale": [1, 2]}, "has 2 numbers, but there are 3 axes"),
        ({"scale": [[1, 1, 1]]}, "given for 1 levels, but there are 3"),
        ({"unit": {"q": "meter"}}, r"unit names the axes \['q'\]"),
        ({"version": "0.3"}, "expected '0.4' or '0.5'"),
        ({"labels": {"a": NUCLEI[:1]}}, "have 1 levels, but the image has 3"),
        ({"labels": {"a": [level[:2] for level in NUCLEI]}}, "has shape .* expected"),
        ({"labels": {"a": [level.astype("f4") for level in NUCLEI]}}, "expected integers"),
        ({"labels": {"a/b": NUCLEI}}, "expected text without '/'"),
        ({"labels": {"a": NUCLEI}}, r"type bool, expected integers: pass level.astype\('u1'\)"),
        ({"labels": {"a": NUCLEI[0]}}, r"pass \[array\]"),
        ({"levels": IMAGE}, r"pass \[array\]"),
        ({"levels": {"labels/a": IMAGE}, "labels": {"a": [IMAGE]}}, "already here"),
        ({"levels": {"../a": IMAGE}}, "not allowed"),
        ({"levels": {"a": IMAGE, "a/b": IMAGE}}, "expected a group"),
        ({"levels": [IMAGE, np.array([[[object()]]])]}, "no Zarr data type"),
        ({"scale": [float("nan"), 1, 1]}, "expected finite numbers"),
        ({"scale": ["a", 1, 1]}, "expected finite numbers"),
        ({"scale": 2}, "expected finite numbers"),
        ({"scale": [0, 1, 1]}, "expected positive numbers"),
        ({"chunks": (3, 3)}, "chunks is"),
        ({"chunk": (3, 3, 3)}, "did you mean chunks"),
        ({"dimension_names": "abc"}, "takes no dimension_names"),
        ({"attributes": {"ome": {"multiscales": []}}}, "'multiscales', which save stores itself"),
        ({"attributes": {"ome": 3}}, "expected a mapping"),
    ],
)
@pytest.mark.parametrize("place", ["", "below"])
def test_a_refused_image_changes_nothing(tmp_path: Path, options: Any, message: str, place: str) -> None:
    arguments = {"levels": LEVELS, "axes": "cyx", **options}
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        zarrow.ome.save(tmp_path / "new", path=place, **arguments)
    assert not any(tmp_path.iterdir())
    zarrow.ome.save(tmp_path / "a", LEVELS, axes="cyx", path=place)
    before = contents(tmp_path)
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        zarrow.ome.save(tmp_path / "a", path=place, overwrite=True, **arguments)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("target", ["folder", "below", "memory"])
def test_an_image_replaces_the_one_that_its_levels_are_read_from(tmp_path: Path, target: str) -> None:
    store: Any = zarrow.MemoryStore() if target == "memory" else tmp_path / "a"
    path = "below" if target == "below" else ""
    zarrow.ome.save(store, LEVELS, axes="cyx", path=path)
    image = zarrow.open(store, path).multiscales
    levels = [level.array for level in image][1:]
    zarrow.ome.save(store, levels, axes="cyx", path=path, overwrite=True)
    found = zarrow.open(store, path).multiscales
    assert len(found) == 2
    for level, expected in zip(found, LEVELS[1:], strict=True):
        np.testing.assert_array_equal(level.array, expected)
    assert not list(tmp_path.glob(".zarrow-*"))


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(zarrow.NodeExistsError):
        zarrow.ome.save(tmp_path, LEVELS, axes="cyx", overwrite=True)
    assert contents(tmp_path) == {str(tmp_path / "notes.txt"): b"mine"}


KILLED = """
import os, sys, numpy as np, zarrow

class Level:
    shape, dtype = (2, 8, 12), np.dtype("u2")
    def __array__(self, dtype=None, copy=None):
        os._exit(9)

image = np.ones((2, 16, 24), "u2")
zarrow.ome.save(sys.argv[1], [image, Level()], axes="cyx", overwrite=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged in one step on Linux")
def test_a_killed_save_leaves_the_old_image(tmp_path: Path) -> None:
    def kill() -> None:
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a")], timeout=60, check=False)
        assert done.returncode == 9

    kill()
    assert not (tmp_path / "a").exists()
    saved(tmp_path / "a", "0.5")
    before = contents(tmp_path / "a")
    kill()
    assert contents(tmp_path / "a") == before
    saved(tmp_path / "b", "0.4")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"]


def test_images_saved_at_once_are_one_of_them(tmp_path: Path) -> None:
    def save(number: int) -> None:
        levels = [np.full_like(level, number) for level in LEVELS]
        zarrow.ome.save(tmp_path / "a", levels, axes="cyx", name=str(number), overwrite=True)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(save, range(8)))
    image = zarrow.open(tmp_path / "a").multiscales
    assert {int(value) for level in image for value in np.unique(level.array)} == {int(image.name or "")}


def test_attributes_of_other_tools_are_kept(tmp_path: Path) -> None:
    omero: dict[str, Any] = {"omero": {"channels": []}}
    saved(tmp_path / "a", "0.5", attributes={"ome": omero, "by": "me"})
    attributes = dict(zarrow.open(tmp_path / "a").attrs)
    assert attributes["by"] == "me" and attributes["ome"]["omero"] == omero["omero"]
    assert len(zarrow.open(tmp_path / "a").multiscales) == 3
    saved(tmp_path / "b", "0.4", attributes=omero)
    assert dict(zarrow.open(tmp_path / "b").attrs)["omero"] == omero["omero"]


def test_levels_of_a_store_and_of_names(tmp_path: Path) -> None:
    source = zarrow.create_array(tmp_path / "source", data=IMAGE, chunks=(1, 8, 8))
    levels = {"full": source, "half": IMAGE[:, ::2, ::2]}
    translation = [[0, 0, 0], [0, 0.5, 0.5]]
    zarrow.ome.save(tmp_path / "a", levels, axes="cyx", scale=[[1, 1, 1], [1, 2, 2]], translation=translation)
    image = zarrow.open(tmp_path / "a").multiscales
    assert [level.path for level in image] == ["full", "half"] and image["half"].translation == (
        0.0,
        0.5,
        0.5,
    )
    np.testing.assert_array_equal(image["full"].array, IMAGE)
    with pytest.raises(zarrow.NodeExistsError):
        zarrow.ome.save(tmp_path / "a", levels, axes="cyx")
    zarrow.ome.save(tmp_path / "a", levels, axes="cyx", overwrite=True)
    assert zarrow.open(tmp_path / "a").multiscales["half"].translation == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("kind", ["folder", "memory", "dict", "below a group"])
def test_an_image_is_created_with_the_levels_of_a_pyramid(version: Any, kind: str, tmp_path: Path) -> None:
    stores: dict[str, Any] = {"memory": zarrow.MemoryStore(), "dict": {}}
    store, path = stores.get(kind, tmp_path / "new"), "a/b" if kind == "below a group" else ""
    options: dict[str, Any] = {
        "axes": "zyx",
        "factors": {"z": 1, "y": 2, "x": 2},
        "levels": 3,
        "scale": [2, 1, 1],
    }
    options |= {"unit": "micrometer", "name": "cells", "method": "mode", "version": version}
    for shape in ((0, 40, 30), (5, 40, 30)):
        layout: dict[str, Any] = {"shape": shape, "dtype": "u2", "chunks": (4, 16, 16), "fill_value": 7}
        image = zarrow.ome.create(store, path, **layout, **options, overwrite=shape[0] > 0)
        first = zarrow.create_array(zarrow.MemoryStore(), **layout, zarr_format=2 if version == "0.4" else 3)
        expected = zarrow.MemoryStore()
        zarrow.ome.pyramid(first, expected, **options)
        assert not image.read_only
        assert dict(image.attrs) == dict(zarrow.open(expected).attrs)
        for own, other in zip(image.multiscales, zarrow.open(expected).multiscales, strict=True):
            assert own.array.metadata == other.array.metadata
            assert own.array.chunks[0] == 4
            np.testing.assert_array_equal(own.array[...], other.array[...])
        with pytest.raises(zarrow.NodeExistsError):
            zarrow.ome.create(store, path, **layout, **options)


def test_an_image_that_contradicts_itself_is_not_created(tmp_path: Path) -> None:
    given: dict[str, Any] = {"shape": (0, 40, 30), "dtype": "u2", "axes": "tyx"}
    wrongs: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"axes": "yx"}, ValueError, "its axes have y, x"),
        ({"levels": 9}, ValueError, "levels is 9"),
        ({"factors": {"t": 2}}, ValueError, "axis 't'"),
        ({"version": "0.3"}, ValueError, "version is '0.3'"),
        ({"method": "median"}, ValueError, "method is 'median'"),
        ({"dtype": "string"}, zarrow.DataTypeError, "have no mean"),
        ({"chunks": (4, 4)}, ValueError, "one int per axis"),
        ({"chunk": (4, 4)}, TypeError, "chunk"),
        ({"version": "0.4", "shards": (4, 8, 8), "chunks": (2, 4, 4)}, ValueError, "shard"),
    ]
    for wrong, error, message in wrongs:
        with pytest.raises(error, match=message):
            zarrow.ome.create(tmp_path / "new", **given | wrong)
        assert not (tmp_path / "new").exists()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "notes.txt").write_text("mine")
    with pytest.raises(zarrow.ZarrowError):
        zarrow.ome.create(tmp_path / "new", **given, overwrite=True)
    assert (tmp_path / "new" / "notes.txt").read_text() == "mine"
