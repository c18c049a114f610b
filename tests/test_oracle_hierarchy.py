"""Nested groups, consolidated or not, compared with zarr-python."""

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from oracle.random_values import seed_of

pytestmark = pytest.mark.small_files

NAMES = ["a", "b", "deep", "with space", "ünï", "c", "0", "a.b", "zarr"]


def grow(group: zarr.Group, rng: random.Random, depth: int) -> None:
    """Write groups and arrays below a group, with attributes."""
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        attributes: dict[str, Any] = (
            {"name": name, "list": [1, None, {"x": 0.5}]} if rng.random() < 0.5 else {}
        )
        if depth and rng.random() < 0.6:
            grow(group.create_group(name, attributes=attributes), rng, depth - 1)
        else:
            shape = (rng.randint(1, 5), rng.randint(1, 5))
            array = group.create_array(
                name, shape=shape, chunks=(2, 3), dtype="i2", attributes=attributes, fill_value=7
            )
            if rng.random() < 0.8:
                array[...] = np.arange(shape[0] * shape[1]).reshape(shape)


def compare(ours: zarrow.Group, theirs: zarr.Group) -> None:
    """Compare members, attributes and elements recursively."""
    members = dict(theirs.members())
    assert ours.attrs == dict(theirs.attrs)
    assert ours.keys() == sorted(members)
    for name, member in members.items():
        found = ours[name]
        assert (found.path, found.attrs) == (member.path, dict(member.attrs))
        if isinstance(member, zarr.Group):
            compare(found, member)
        else:
            assert isinstance(found, zarrow.Array)
            assert np.array_equal(found[...].numpy(), np.asarray(member[...]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_random_hierarchies(version: Any, consolidated: bool, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed_of(str(seed)))
    store = tmp_path / "store"
    root = zarr.create_group(store, zarr_format=version, attributes={"title": "root"})
    inner = root.create_group("inner", attributes={"level": 1})
    grow(root.create_group("outer"), rng, 3)
    grow(inner, rng, 3)
    with warnings.catch_warnings():
        # zarr-python warns that version 3 has no specification of consolidated metadata yet.
        warnings.simplefilter("ignore")
        if consolidated:
            zarr.consolidate_metadata(store, zarr_format=version)
            zarr.consolidate_metadata(store, path="inner", zarr_format=version)
        theirs = zarr.open_group(store, mode="r")
    compare(zarrow.open(store), theirs)
    subgroup = theirs["inner"]
    assert isinstance(subgroup, zarr.Group)
    compare(zarrow.open(store, "inner"), subgroup)
    assert zarrow.open(store / "inner").keys() == sorted(dict(subgroup.members()))
