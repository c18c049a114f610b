"""Consolidated metadata that differ from the nodes: `verify` finds them, and `repair` mends them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow.checks import repair, verify

Copies = dict[str, Any]


def other_type(copies: Copies) -> None:
    copies["below/x"]["data_type"] = "int32"


def other_shape(copies: Copies) -> None:
    copies["below/x"]["shape"] = [4]


def other_attributes(copies: Copies) -> None:
    copies["y"]["attributes"] = {"units": "K"}


def junk(copies: Copies) -> None:
    copies["y"] = "junk"


def one_more(copies: Copies) -> None:
    copies["ghost"] = copies["y"]


def one_fewer(copies: Copies) -> None:
    del copies["y"]


def written(path: Path) -> zarrow.Group:
    root = zarrow.create_group(path)
    root.create_array("below/x", data=np.arange(6.0), chunks=2, attributes={"units": "m"})
    root.create_array("y", data=["a", "b"])
    root["below"].consolidate_metadata()
    root.consolidate_metadata()
    return root


def test_consolidated_metadata_of_a_sound_store_are_up_to_date(tmp_path: Path) -> None:
    written(tmp_path / "a.zarr")
    for deep in (False, True):
        found = verify(tmp_path / "a.zarr", deep=deep)
        assert found.is_sound and not found.outdated and (found.arrays, found.groups) == (2, 2)
    old = zarrow.create_group(tmp_path / "old.zarr", zarr_format=2)
    old.create_array("below/x", data=np.arange(6.0), attributes={"units": "m"})
    old.consolidate_metadata()
    assert verify(tmp_path / "old.zarr").is_sound


@pytest.mark.parametrize("spoil", [other_type, other_shape, other_attributes, junk, one_more, one_fewer])
def test_outdated_consolidated_metadata_are_found_and_mended(
    tmp_path: Path, spoil: Callable[[Copies], None]
) -> None:
    path = tmp_path / "a.zarr"
    written(path)
    document = json.loads((path / "zarr.json").read_text())
    sound = json.dumps(document)
    spoil(document["consolidated_metadata"]["metadata"])
    (path / "zarr.json").write_text(json.dumps(document))
    found = verify(path)
    (outdated,) = found.outdated
    assert not found.is_sound and outdated.path == "" and "consolidated metadata" in outdated.error
    assert "1 outdated" in str(found)
    before = (path / "zarr.json").read_bytes()
    assert [each.action for each in repair(path, dry_run=True).mended] == ["consolidated"]
    assert (path / "zarr.json").read_bytes() == before
    assert [each.action for each in repair(path).mended] == ["consolidated"]
    assert verify(path, deep=True).is_sound and json.loads((path / "zarr.json").read_text()) == json.loads(
        sound
    )
