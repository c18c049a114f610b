"""Arrays and groups of a store as values: copies keep their properties."""

from __future__ import annotations

import collections.abc
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow.interchange import lazy_arrays


@pytest.fixture
def source(tmp_path: Path) -> zarrow.Group:
    root = zarrow.create_group(tmp_path / "source.zarr", attributes={"title": "rain"})
    root.create_array(
        "model/height",
        data=np.arange(42, dtype="f4").reshape(6, 7),
        chunks=(2, 3),
        shards=(4, 6),
        compressors="gzip",
        attributes={"units": "m"},
        dimension_names=["y", "x"],
        fill_value=-1,
    )
    root["model"].attrs["order"] = 3
    root.create_array("name", data=["a", None, "c"], missing="optional")
    root.create_array("scalar", data=5)
    return root


def described(array: zarrow.Array) -> dict[str, Any]:
    metadata = array.metadata
    return {name: metadata[name] for name in metadata if name != "zarr_format"}


def assert_same(copy: zarrow.Group, original: zarrow.Group) -> None:
    assert dict(copy.attrs) == dict(original.attrs)
    theirs = dict(original.members(max_depth=None))
    ours = dict(copy.members(max_depth=None))
    assert ours.keys() == theirs.keys()
    for name, member in theirs.items():
        if isinstance(member, zarrow.Array):
            assert described(ours[name]) == described(member)
            assert ours[name][...].equals(member[...])
        else:
            assert dict(ours[name].attrs) == dict(member.attrs)


TYPES_OF_ANY_KIND = ["<U3", "S4", "M8[ns]", "m8[s]", "V3", [("a", "i4"), ("b", "U2")], "f2", "?", str]


@pytest.mark.parametrize("dtype", TYPES_OF_ANY_KIND, ids=str)
@pytest.mark.parametrize("versions", [(2, 2), (2, 3), (3, 2), (3, 3)], ids=str)
@pytest.mark.filterwarnings("ignore::zarrow.errors.ZarrowWarning")
def test_arrays_of_every_kind_of_type_are_copied(dtype: Any, versions: tuple[int, int]) -> None:
    array = zarrow.create_array({}, "x", shape=(3,), dtype=dtype, zarr_format=versions[0])
    group = zarrow.create_group({}, zarr_format=versions[1])
    group["copy"] = array
    assert group["copy"][...].equals(array[...])
    assert group["copy"].dtype == array.dtype


class SometimesUnreadable(collections.abc.MutableMapping[str, bytes]):
    """A store that cannot read one document while `fails` is set."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.fails = False

    def __getitem__(self, key: str) -> bytes:
        if self.fails and key == "experiment/second/zarr.json":
            raise OSError(5, "Input/output error")
        return self.stored[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.stored[key] = value

    def __delitem__(self, key: str) -> None:
        del self.stored[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.stored))

    def __len__(self) -> int:
        return len(self.stored)


def test_a_member_that_cannot_be_read_ends_a_copy_before_it_begins() -> None:
    mapping = SometimesUnreadable()
    source = zarrow.create_group(zarrow.PythonStore(mapping, sole_writer=True))
    source["experiment/first"] = [1, 2]
    source["experiment/second"] = [3, 4]
    target = zarrow.create_group({})
    mapping.fails = True
    with pytest.raises(zarrow.StoreError, match="Input/output error"):
        target["experiment"] = source["experiment"]
    assert "experiment" not in target
    mapping.fails = False
    target["experiment"] = source["experiment"]
    assert_same(target["experiment"], source["experiment"])


def test_a_group_is_copied_with_all_below_it(source: zarrow.Group, tmp_path: Path) -> None:
    zarrow.save(tmp_path / "whole.zarr", source)
    assert_same(zarrow.open(tmp_path / "whole.zarr"), source)
    zarrow.save(tmp_path / "below.zarr", source, path="a/b")
    assert_same(zarrow.open(tmp_path / "below.zarr", "a/b"), source)
    zarrow.save(tmp_path / "named.zarr", x=source["model"], y=source["name"])
    assert_same(zarrow.open(tmp_path / "named.zarr", "x"), source["model"])
    other = zarrow.create_group(zarrow.MemoryStore())
    other["s"] = source
    other["s"] = source  # existing members are replaced one by one
    assert_same(other["s"], source)


def test_a_group_is_copied_into_itself(source: zarrow.Group) -> None:
    before = source.members(max_depth=None)
    source["copy"] = source
    assert [name for name, _ in source["copy"].members(max_depth=None)] == [name for name, _ in before]


def test_a_group_takes_the_place_of_no_array(source: zarrow.Group) -> None:
    with pytest.raises(zarrow.NodeTypeError):
        source["name"] = source["model"]
    assert source["name"][...].tolist() == ["a", None, "c"]


def test_an_array_is_copied_as_it_is_stored(source: zarrow.Group, tmp_path: Path) -> None:
    height = source["model/height"]
    zarrow.save(tmp_path / "array.zarr", height)
    copy = zarrow.open(tmp_path / "array.zarr")
    assert described(copy) == described(height) and copy[...].equals(height[...])
    source["model/height"] = height  # to itself
    assert source["model/height"][...].equals(copy[...])


def test_an_array_goes_to_a_group_of_the_other_version(source: zarrow.Group) -> None:
    old = zarrow.create_group(zarrow.MemoryStore(), zarr_format=2)
    old["scalar"] = source["scalar"]
    assert old["scalar"].zarr_format == 2 and old["scalar"][...].item() == 5
    source["again"] = old["scalar"]
    assert source["again"].zarr_format == 3 and source["again"][...].item() == 5


def test_a_large_array_is_copied_in_parts(
    source: zarrow.Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_arrays, "_PART_NBYTES", 64)
    zarrow.save(tmp_path / "parts.zarr", source)
    assert_same(zarrow.open(tmp_path / "parts.zarr"), source)
    source["model/height"] = source["model/height"]
    assert source["model/height"][5, 6].item() == 41


@pytest.mark.parametrize("shape", [(), (5,), (6, 7), (3, 5, 7), (0, 4)])
@pytest.mark.parametrize("part_nbytes", [1, 16, 100, 1000])
@pytest.mark.parametrize("other", [(1, 1, 1), (4, 2, 3)])
def test_parts_are_whole_units_and_cover_all_once(
    shape: tuple[int, ...], part_nbytes: int, other: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_arrays, "_PART_NBYTES", part_nbytes)
    unit = (2, 3, 4)[: len(shape)]
    seen = np.zeros(shape, int)
    for part in lazy_arrays.parts(shape, unit, other[: len(shape)], 4):
        seen[part] += 1
        assert all(along.start % extent == 0 for along, extent in zip(part, unit, strict=False))
        assert seen[part].size * 4 <= max(part_nbytes, 4 * math.prod(unit))
    assert (seen == 1).all()
