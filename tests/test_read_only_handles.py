"""Nodes that were opened to be read: every way to change them is refused, and no byte changes."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pandas as pd
import pytest
import zarr

import zarrow
import zarrow.checks
import zarrow.dask
import zarrow.stream
from zarrow import jobs


def tens(unit: Any) -> Any:
    return np.full([part.stop - part.start for part in unit.region], 10)


def appended(group: zarrow.Group) -> None:
    plan = jobs.append(tens, group["table/x"], 3)
    plan.setup()
    plan.run(plan.job(0, 1))
    plan.finish()


CHANGES: dict[str, Callable[[zarrow.Group], object]] = {
    "assign elements": lambda group: group["table/x"].__setitem__(0, 9),
    "write": lambda group: group["table/x"].write(0, 9),
    "write_async": lambda group: asyncio.run(group["table/x"].write_async(0, 9)),
    "write_many": lambda group: zarrow.write_many([(group["table/x"], 0, 9)]),
    "append elements": lambda group: group["table/x"].append([9]),
    "resize": lambda group: group["table/x"].resize((1,)),
    "attributes": lambda group: group["table/x"].attrs.update(a=1),
    "attributes of a group": lambda group: group.attrs.update(a=1),
    "append rows": lambda group: group["table"].append({"x": [9], "y": [9.0]}),
    "append no rows": lambda group: group["table"].append({"x": [], "y": []}),
    "assign an array": lambda group: group.__setitem__("new", [1]),
    "assign a table": lambda group: group.__setitem__("new", pd.DataFrame({"a": [1]})),
    "assign a column": lambda group: group["table"].__setitem__("z", [1, 2, 3, 4]),
    "erase": lambda group: group.__delitem__("table"),
    "erase a column": lambda group: group["table"].__delitem__("x"),
    "create an array": lambda group: group.create_array("new", data=[1]),
    "create a group": lambda group: group.create_group("new"),
    "require a group": lambda group: group.require_group("new"),
    "consolidate": lambda group: group.consolidate_metadata(),
    "jobs.write": lambda group: jobs.write(tens, group["table/x"]),
    "jobs.append": appended,
    "ome.pyramid": lambda group: zarrow.ome.pyramid(group["image"], axes="yx"),
    "ome.pyramid of the first level": lambda group: zarrow.ome.pyramid(group["image/0"], axes="yx"),
    "ome.plan_pyramid": lambda group: zarrow.ome.plan_pyramid(group["image"], axes="yx").setup(),
    "repair": lambda group: zarrow.checks.repair(group),
    "stream": lambda group: zarrow.stream.Writer(group["table/x"]),
    "dask": lambda group: zarrow.dask.store(dask.array.ones(4, chunks=2), group["table/x"]),
}


def folder(path: Path) -> zarrow.Group:
    return zarrow.open_group(path, mode="r")


def pickled(path: Path) -> zarrow.Group:
    return pickle.loads(pickle.dumps(folder(path)))


def local_store(path: Path) -> zarrow.Group:
    return zarrow.open_group(zarr.storage.LocalStore(path, read_only=True))


def bytes_below(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}


@pytest.mark.parametrize("opened", [folder, pickled, local_store])
@pytest.mark.parametrize("change", CHANGES)
def test_a_node_that_was_opened_to_be_read_is_not_changed(
    tmp_path: Path, change: str, opened: Callable[[Path], zarrow.Group]
) -> None:
    path = tmp_path / "a.zarr"
    zarrow.save(path, {"x": [1, 2, 3, 4], "y": [1.0, 2, 3, 4]}, path="table")
    zarrow.save(path, {"0": np.ones((64, 64), "u1")}, path="image")
    before = bytes_below(path)
    group = opened(path)
    assert group.read_only and group["table/x"].read_only and group["image"].read_only
    with pytest.raises(zarrow.ReadOnlyError):
        CHANGES[change](group)
    assert bytes_below(path) == before


def test_an_image_that_was_opened_to_be_read_may_be_a_source(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", {"0": np.ones((64, 64), "u1")})
    image = zarrow.open_group(tmp_path / "a.zarr", mode="r")
    zarrow.ome.pyramid(image, tmp_path / "b.zarr", axes="yx", levels=2)
    assert zarrow.open(tmp_path / "b.zarr")["1"].shape == (32, 32) and list(image) == ["0"]
    # A path is opened to be changed.
    zarrow.ome.pyramid(tmp_path / "a.zarr", axes="yx", levels=2)
    assert zarrow.open(tmp_path / "a.zarr")["1"].shape == (32, 32)
