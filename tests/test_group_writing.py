"""Writing to groups: members are added and removed, consolidated metadata stay correct, modes hold."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "new.zarr" if request.param == "folder" else zarrow.MemoryStore()


def consolidated_by_zarr_python(folder: Path, zarr_format: int) -> Any:
    with warnings.catch_warnings():
        # zarr-python warns that consolidated metadata of version 3 have no specification.
        warnings.simplefilter("ignore")
        return zarr.open_consolidated(folder, zarr_format=zarr_format)


def members(group: Any) -> list[tuple[str, str]]:
    """Return every node below, however the group was opened."""
    found = []
    for name, member in group.items() if isinstance(group, zarrow.Group) else sorted(group.members()):
        is_group = isinstance(member, zarrow.Group | zarr.Group)
        found.append((name, "group" if is_group else f"{member.shape} {dict(member.attrs)}"))
        if is_group:
            found += [(f"{name}/{below}", text) for below, text in members(member)]
    return found


def test_a_group_is_a_mapping_that_is_written(store: Any, zarr_format: int) -> None:
    root = zarrow.create_group(store, attributes={"title": "rain"}, zarr_format=zarr_format)
    assert (root.attrs, root.zarr_format, root.keys()) == ({"title": "rain"}, zarr_format, [])
    root["x"] = [1, 2, 3]
    root["model/deep/y"] = np.eye(2)
    assert root.keys() == ["model", "x"] and root["model/deep"].keys() == ["y"]
    assert root["x"][...].tolist() == [1, 2, 3] and root["x"].zarr_format == zarr_format
    root["x"] = "text"
    assert root["x"][...].tolist() == "text"
    model = root["model"]
    model.create_array("z", shape=(4,), dtype="i2", fill_value=7, attributes={"units": "K"})
    assert root["model/z"][...].tolist() == [7] * 4 and root["model/z"].attrs == {"units": "K"}
    assert model.create_group("g", attributes={"a": 1}).path == "model/g"
    assert model.require_group("g").attrs == {"a": 1} and model.require_group("h/i").path == "model/h/i"
    with pytest.raises(TypeError):
        model.require_group("z")
    with pytest.raises(FileExistsError):
        model.create_group("g")
    with pytest.raises(FileExistsError, match="group"):
        root["model"] = [1]
    assert model.create_group("g", overwrite=True).attrs == {}
    del root["model/deep"], root["x"]
    assert members(zarrow.open(store)) == [
        ("model", "group"),
        ("model/g", "group"),
        ("model/h", "group"),
        ("model/h/i", "group"),
        ("model/z", "(4,) {'units': 'K'}"),
    ]
    for name in ("x", "nothing", "model/deep/y"):
        with pytest.raises(KeyError):
            del root[name]
    for name in ("", "..", "a/../b", "model//z"):
        with pytest.raises(ValueError):
            del root[name]
        with pytest.raises(ValueError):
            root[name] = [1]
    del root["model"]
    assert members(root) == [] and root.attrs == {"title": "rain"}


def test_zarr_python_sees_the_same(tmp_path: Path, zarr_format: int) -> None:
    root = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    root["a/b"] = np.arange(3)
    root.create_group("g", attributes={"q": [1]})
    theirs = zarr.open_group(tmp_path, mode="r+")
    assert theirs.metadata.zarr_format == zarr_format and members(theirs) == members(root)
    theirs.create_array("g/theirs", shape=(2,), dtype="f4")
    assert "g/theirs" in root and root["g"].keys() == ["theirs"]
    del root["g/theirs"]
    assert "theirs" not in theirs["g"]


@pytest.mark.parametrize("name", ["my.zattrs", "x.zarray", "a.zarr.json"])
def test_members_named_like_documents_are_consolidated(store: Any, zarr_format: Any, name: str) -> None:
    root = zarrow.create_group(store, zarr_format=zarr_format)
    root[name] = [1, 2]
    root[f"below/{name}"] = [3]
    root.consolidate_metadata()
    consolidated = zarrow.open_group(store)
    assert consolidated._is_consolidated() and set(consolidated) == {"below", name}
    assert list(consolidated["below"]) == [name] and consolidated[f"below/{name}"][...].tolist() == [3]


def test_consolidated_metadata_are_those_of_zarr_python(tmp_path: Path, zarr_format: int) -> None:
    root = zarrow.create_group(tmp_path, attributes={"title": "rain"}, zarr_format=zarr_format)
    root["a/b"] = np.arange(3)
    root.create_group("s", attributes={"q": [1]})
    root.consolidate_metadata()
    theirs = consolidated_by_zarr_python(tmp_path, zarr_format)
    assert theirs.metadata.consolidated_metadata is not None
    expected = members(root)
    assert members(theirs) == expected and theirs.attrs.asdict() == {"title": "rain"}
    assert [name for name, _ in expected] == ["a", "a/b", "s"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(tmp_path, zarr_format=zarr_format)
    assert members(zarrow.open(tmp_path)) == expected


@pytest.mark.parametrize("writer", ["zarrow", "zarr-python"])
def test_consolidated_metadata_stay_up_to_date(tmp_path: Path, zarr_format: int, writer: str) -> None:
    root = zarrow.create_group(tmp_path, zarr_format=zarr_format)
    root["a/b"] = np.arange(3)
    root.create_group("s")
    if writer == "zarrow":
        root = zarrow.consolidate_metadata(tmp_path)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(tmp_path, zarr_format=zarr_format)
        root = zarrow.open(tmp_path)
    root["a/b"].attrs["units"] = "K"
    root["a/b"].append([3, 4])
    zarrow.create_array(tmp_path, "s/t/u", data=[1], zarr_format=zarr_format)
    root.attrs["title"] = "rain"
    root["new"] = [1.5]
    expected = [
        ("a", "group"),
        ("a/b", "(5,) {'units': 'K'}"),
        ("new", "(1,) {}"),
        ("s", "group"),
        ("s/t", "group"),
        ("s/t/u", "(1,) {}"),
    ]
    assert members(root) == expected == members(zarrow.open(tmp_path))
    theirs = consolidated_by_zarr_python(tmp_path, zarr_format)
    assert members(theirs) == expected and theirs.attrs.asdict() == {"title": "rain"}
    root["a/b"].resize(2)
    del root["s"]
    expected = [("a", "group"), ("a/b", "(2,) {'units': 'K'}"), ("new", "(1,) {}")]
    assert members(root) == expected == members(consolidated_by_zarr_python(tmp_path, zarr_format))
    root.create_array("a", data=[1], overwrite=True)
    assert members(root) == [("a", "(1,) {}"), ("new", "(1,) {}")] == members(zarrow.open(tmp_path))


def test_consolidating_needs_a_group(store: Any) -> None:
    with pytest.raises(FileNotFoundError):
        zarrow.consolidate_metadata(store)
    zarrow.save(store, [1])
    with pytest.raises(TypeError):
        zarrow.consolidate_metadata(store)


def test_modes(store: Any) -> None:
    for mode in ("r", "r+"):
        with pytest.raises(FileNotFoundError):
            zarrow.open(store, mode=mode)
    if isinstance(store, Path):
        assert not store.exists()
    with pytest.raises(FileNotFoundError):
        zarrow.open(store)
    root = zarrow.open(store, mode="a")
    root["x"] = [1]
    assert zarrow.open(store, mode="a").keys() == ["x"] and zarrow.open(store, "x", mode="a").shape == (1,)
    for mode in ("w-", "x"):
        with pytest.raises(FileExistsError):
            zarrow.open(store, mode=mode)
        assert zarrow.open(store, f"new/{mode}", mode=mode).keys() == []
    read_only = zarrow.open(store, mode="r")
    assert read_only["x"][...].tolist() == [1]
    for refused in (
        lambda: read_only.__setitem__("y", [1]),
        lambda: read_only.__delitem__("x"),
        lambda: read_only.create_group("g"),
        lambda: read_only.require_group("g"),
        lambda: read_only.attrs.update(a=1),
        lambda: read_only.consolidate_metadata(),
        lambda: read_only["x"].attrs.clear(),
        lambda: read_only["x"].resize(5),
        lambda: read_only["x"].append([1]),
        lambda: read_only["x"].__setitem__(0, 1),
    ):
        with pytest.raises(PermissionError) as raised:
            refused()
        assert isinstance(raised.value, zarrow.ReadOnlyError)
    assert zarrow.open(store, mode="w").keys() == [] == zarrow.open(store).keys()
    for mode in ("", "rw", "R"):
        with pytest.raises(ValueError, match="mode"):
            zarrow.open(store, mode=mode)
    with pytest.raises(ValueError, match="durability"):
        zarrow.open(store, durability="some")


@pytest.mark.parametrize("durability", ["none", "file", "full"])
def test_durability_changes_nothing_that_is_read(tmp_path: Path, durability: Any) -> None:
    root = zarrow.create_group(tmp_path, durability=durability)
    root["a/x"] = [1, 2]
    root["a/x"].append([3])
    root["a/x"].attrs["k"] = 1
    zarrow.open(tmp_path, "a/x", durability=durability)[0] = 9
    assert zarrow.open(tmp_path)["a/x"][...].tolist() == [9, 2, 3]


def test_a_store_in_memory() -> None:
    store = zarrow.MemoryStore()
    zarrow.save(store, x=[1, 2])
    assert set(store.to_dict()) == {"zarr.json", "x/zarr.json", "x/c/0"} and "bytes" in repr(store)
    copy = pickle.loads(pickle.dumps(store))
    zarrow.open(copy)["x"][0] = 5
    assert zarrow.open(store)["x"][...].tolist() == [1, 2] and zarrow.open(copy)["x"][...].tolist() == [5, 2]
    again = zarrow.MemoryStore(store.to_dict())
    assert zarrow.open(again, "x")[...].tolist() == [1, 2]
    for key in ("", "/a", "a/../b", ".zarrow-x"):
        with pytest.raises(ValueError):
            zarrow.MemoryStore({key: b""})
    with pytest.raises(TypeError):
        zarrow.MemoryStore({1: b""})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        zarrow.MemoryStore(5)  # type: ignore[arg-type]
    array = zarrow.create_array(zarrow.MemoryStore(), data=[1, 2, 3])
    assert array[...].tolist() == [1, 2, 3] and array.store == "memory"


def test_writes_leave_no_temporary_files(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    root["a"] = np.arange(100)
    root["a"].append(np.arange(5))
    root["a"].resize(10)
    root["a"].attrs["x"] = 1
    root.create_group("g")
    root.consolidate_metadata()
    del root["g"]
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert names == ["a", "a/c", "a/c/0", "a/zarr.json", "zarr.json"]
