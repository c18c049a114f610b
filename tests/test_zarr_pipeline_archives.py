"""The codec pipeline of `zarrow.zarr_python` reads zip archives of zarr-python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

import zarrow
from zarr_pipelines import LAYOUTS, SHAPE, assert_equal, elements

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning"),
]


def pack(path: Path, seed: int, **options: Any) -> Any:
    """Write an archive with an array in a group. Some chunks are missing."""
    values = elements(SHAPE, "f4", seed)
    values[:6] = 0
    with ZipStore(path, mode="w") as store:
        array = zarr.create_array(store, name="below/x", shape=SHAPE, dtype="f4", **options)
        array[6:] = values[6:]
    return values


def opened(path: Path) -> Any:
    with zarrow.zarr_python.enable():
        return zarr.open_group(ZipStore(path, mode="r"), mode="r")["below/x"]


@pytest.mark.parametrize("name", ["a.zip", "archive"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_archive_is_read_by_the_engine(tmp_path: Path, layout: str, name: str) -> None:
    values = pack(tmp_path / name, 1, **LAYOUTS[layout])
    array = opened(tmp_path / name)
    assert zarrow.zarr_python.explain(array).read == "zarrow"
    for selection in (..., (slice(3, 20, 3), 5), (slice(None), slice(2, 9))):
        assert_equal(array[selection], values[selection])
    assert_equal(array.oindex[[7, 1], [30, 3]], values[np.ix_([7, 1], [30, 3])])


def test_an_archive_that_was_replaced_is_read_by_zarr_python(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    values = pack(path, 1, chunks=(5, 7))
    with zarrow.zarr_python.enable():
        store = ZipStore(path, mode="r")
        group = zarr.open_group(store, mode="r")
        array = group["below/x"]
    first = array[7]
    pack(tmp_path / "b.zip", 2, chunks=(5, 7))
    (tmp_path / "b.zip").replace(path)
    assert_equal(first, values[7])
    assert_equal(array[...], values)
    with zarrow.zarr_python.enable():
        again = group["below/x"]
    assert "replaced" in str(zarrow.zarr_python.explain(again).why)
    assert_equal(again[...], values)
    assert not np.array_equal(opened(path)[...], values)


def test_an_archive_that_is_written_is_read_by_zarr_python(tmp_path: Path) -> None:
    with zarrow.zarr_python.enable(), ZipStore(tmp_path / "a.zip", mode="w") as store:
        array = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4")
        array[:2] = 3
        assert array[:].tolist() == [3, 3, 0, 0]
        assert "ZipStore" in str(zarrow.zarr_python.explain(array).why)
