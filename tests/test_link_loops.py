"""Walks through a group end where a folder holds links to groups above it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zarrow
from zarrow import jobs
from zarrow.checks import diff


@pytest.fixture(params=[2, 3])
def looped(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store with two links to its root, so that each level of a walk doubles the nodes."""
    path = tmp_path / "looped.zarr"
    group = zarrow.create_group(path, zarr_format=request.param)
    group.create_group("a")
    group["a/x"] = np.arange(3)
    for name in ("one", "two"):
        (path / "a" / name).symlink_to("..")
    return path


def _tree(path: Path) -> object:
    xarray = pytest.importorskip("xarray")
    return xarray.open_datatree(path, engine="zarrow", consolidated=False)


WALKS: dict[str, Callable[[Path], object]] = {
    "members": lambda path: zarrow.open_group(path).members(max_depth=None),
    "info": lambda path: zarrow.open_group(path).info_complete(),
    "load": zarrow.load,
    "copy": lambda path: zarrow.save(path.with_name("copy.zarr"), copied=zarrow.open_group(path)),
    "copy below": lambda path: zarrow.open_group(path).__setitem__("copied", zarrow.open_group(path, "a")),
    "plan": lambda path: jobs.copy(zarrow.open_group(path), path.with_name("planned.zarr")),
    "diff": lambda path: list(diff(path, path)),
    "consolidated metadata": zarrow.consolidate_metadata,
    "tree of datasets": _tree,
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_a_walk_refuses_links_to_a_group_above(looped: Path, walk: Callable[[Path], object]) -> None:
    with pytest.raises(zarrow.LimitError, match=r"link to a group above|the depth of the hierarchy"):
        walk(looped)
    # What the links lead to is still there.
    assert zarrow.open(looped)["a/one/a/two/a/x"].shape == (3,)


def test_the_error_names_the_link(looped: Path) -> None:
    with pytest.raises(zarrow.LimitError, match="'a/one' is a link to a group above it") as raised:
        zarrow.open_group(looped).members(max_depth=None)
    assert raised.value.path == "a/one"


def test_links_to_other_groups_are_followed(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "linked.zarr")
    group["a/x"] = np.arange(3)
    (tmp_path / "linked.zarr" / "b").symlink_to("a")
    assert [name for name, _ in group.members(max_depth=None)] == ["a", "a/x", "b", "b/x"]
    assert [name for name, _ in group.members(max_depth=0)] == ["a", "b"]


def test_the_command_shows_the_links_as_errors(looped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from zarrow.cli import main

    assert main(["tree", "--json", str(looped)]) == 0
    below = json.loads(capsys.readouterr().out)["members"]["a"]["members"]
    assert below["one"]["kind"] == below["two"]["kind"] == "limit"


def test_consolidating_names_the_link(looped: Path) -> None:
    with pytest.raises(zarrow.LimitError, match="this is a link to a group above it") as raised:
        zarrow.consolidate_metadata(looped)
    assert raised.value.path == "a/one"


def test_the_drawing_does_not_enter_the_links(looped: Path) -> None:
    drawing = str(zarrow.open_group(looped).tree())
    assert drawing.count(", not entered: this is a link to a group above it") == 2
    assert drawing.count("int64") == 1


def test_a_folder_outside_the_store_leads_back_to_its_root(tmp_path: Path) -> None:
    """The link leads to a folder outside, and from there a name that is no link leads to the store."""
    zarrow.create_group(tmp_path / "above")
    group = zarrow.create_group(tmp_path / "above/g.zarr")
    for name in ("one", "two"):
        (tmp_path / "above/g.zarr" / name).symlink_to(tmp_path / "above")
    assert str(group.tree()).count("not entered") == 2
    with pytest.raises(zarrow.LimitError, match="link to a group above"):
        group.consolidate_metadata()


def test_sizes_and_erasures_do_not_follow_links(looped: Path) -> None:
    group = zarrow.open_group(looped)
    group["x"] = [1, 2, 3]
    (looped / "x/link").symlink_to(looped)
    files = [file for file in (looped / "x").rglob("*") if file.is_file()]
    assert group["x"].nbytes_stored() == sum(file.stat().st_size for file in files)
    del group["a"]
    assert group["x"][...].tolist() == [1, 2, 3] and "a" not in group


def test_folders_of_chunks_that_lead_back_are_not_entered(tmp_path: Path) -> None:
    """With three such links, an array of 30 dimensions has 3^30 paths."""
    array = zarrow.create_array(tmp_path / "x.zarr", shape=(4,) * 30, chunks=(1,) * 30, dtype="i1")
    chunks = tmp_path / "x.zarr/c"
    chunks.mkdir()
    for name in ("0", "1", "2"):
        (chunks / name).symlink_to(chunks)
    array.resize((2,) * 30)
    assert array.shape == (2,) * 30
