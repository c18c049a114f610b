"""Resizing existing arrays of any writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import zarrow


@pytest.fixture(params=["zarrow 2", "zarrow 3", "zarr-python 2", "zarr-python 3", "zarr-python shards"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Create an array of zeros, 7 by 5, in chunks of 3 by 2."""
    options: dict[str, Any] = {"shape": (7, 5), "chunks": (3, 2), "dtype": "i4", "fill_value": -1}
    writer, kind = request.param.split()
    if kind == "shards":
        options |= {"shards": (6, 2)}
    else:
        options |= {"zarr_format": int(kind)}
    create = zarrow.create_array if writer == "zarrow" else zarr.create_array
    create(tmp_path / "a", **options, attributes={"units": "K"})[...] = 0
    return tmp_path / "a"


def read(folder: Path) -> Any:
    """Return the elements as zarr-python and TensorStore read them."""
    theirs = zarr.open_array(folder, mode="r")
    assert theirs.attrs.asdict() == {"units": "K"}
    driver = {2: "zarr", 3: "zarr3"}[theirs.metadata.zarr_format]
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/"}}
    assert np.array_equal(tensorstore.open(spec).result().read().result(), theirs[...])
    return theirs[...]


def test_growing_does_not_restore_erased_elements(folder: Path) -> None:
    array = zarrow.open(folder)
    expected = np.zeros((7, 5), "i4")
    for shape in ((4, 4), (7, 5), (2, 9), (8, 3), (0, 3), (5, 5), (5, 0), (6, 6), (1, 1), (9, 9)):
        array.resize(shape)
        kept = expected[: shape[0], : shape[1]]
        expected = np.full(shape, -1, "i4")
        expected[: kept.shape[0], : kept.shape[1]] = kept
        assert array.shape == shape and np.array_equal(array[...], expected), shape
        assert np.array_equal(zarrow.open(folder)[...], expected)
        assert np.array_equal(read(folder), expected), shape
        if shape[0] > 1:
            array[-1] = shape[0]
            expected[-1] = shape[0]
    assert array.attrs == {"units": "K"}


def test_appending(folder: Path) -> None:
    array, other = zarrow.open(folder), zarrow.open(folder)
    expected = np.zeros((7, 5), "i4")
    for number, (count, axis) in enumerate([(1, 0), (4, 0), (3, 1), (0, 0), (1, 1), (6, 0)]):
        shape = list(expected.shape)
        shape[axis] = count
        added = np.full(shape, number, "i4")
        expected = np.concatenate([expected, added], axis)
        # Two handles take turns: each continues at the other's end.
        assert array.append(added, axis=axis) == expected.shape == array.shape
        assert np.array_equal(array[...], expected) and np.array_equal(read(folder), expected)
        array, other = other, array
    assert other.shape != array.shape
    array.refresh()
    assert array.shape == other.shape


def test_a_write_at_the_edge_keeps_another_handles_append(folder: Path) -> None:
    """A stale handle does not know the new shape, and covers all of the chunk that it knows."""
    array, other = zarrow.open(folder), zarrow.open(folder)
    other.append(np.full((2, 5), 7, "i4"))
    other.append(np.full((9, 1), 8, "i4"), axis=1)
    array[...] = np.full((7, 5), 1, "i4")
    array[6:] = 2
    expected = np.pad(np.full((7, 5), 1, "i4"), ((0, 2), (0, 0)), constant_values=7)
    expected[6] = 2
    expected = np.pad(expected, ((0, 0), (0, 1)), constant_values=8)
    assert np.array_equal(read(folder), expected)
    array.refresh()
    assert np.array_equal(array[...], expected)


def test_appending_anything(tmp_path: Path) -> None:
    log = zarrow.create_array(tmp_path, shape=(0,), dtype=str, chunks=2)
    for number, text in enumerate(["a", "né", "", "x" * 1000]):
        assert log.append([text]) == (number + 1,)
    assert zarrow.open(tmp_path)[...].tolist() == ["a", "né", "", "x" * 1000]
    log.resize(1)
    log.resize(3)
    assert log[...].tolist() == ["a", "", ""] == zarr.open_array(tmp_path, mode="r")[...].tolist()
    masked = zarrow.create_array(zarrow.MemoryStore(), shape=(2,), dtype="optional[int16]", chunks=4)
    masked.append(np.ma.array([1, 2], mask=[True, False], dtype="i2"))
    masked.resize(3)
    masked.resize(5)
    assert [value is None for value in masked[...].tolist()] == [True] * 5


def test_a_refused_resize_changes_nothing(folder: Path) -> None:
    array = zarrow.open(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for shape in (-1, (-1, 5), (2**64, 5), (7,), (7, 5, 1), (2**62, 5), (2**64 - 1, 5), ()):
        with pytest.raises(ValueError):
            array.resize(shape)
    for shape in ((1.5, 2), "ab", None):
        with pytest.raises((OverflowError, TypeError)):
            array.resize(shape)
    for value, axis in [
        ([[1, 2]], 0),
        ([1, 2, 3, 4, 5], 0),
        (5, 0),
        (np.zeros((1, 5), "i4"), 2),
        (np.zeros((1, 5), "i4"), -1),
        (np.zeros((1, 5), "i4"), -3),
        ([[[1]]], 0),
    ]:
        with pytest.raises(IndexError):
            array.append(value, axis=axis)
    with pytest.raises(TypeError):
        array.append(np.zeros((1, 5)))
    assert array.shape == (7, 5)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_resizing_a_sparse_array_visits_only_stored_chunks(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path, shape=(2**40,), dtype="i1", chunks=2)
    array[2**39] = 1
    array[5] = 2
    array.resize(6)
    assert array[...].tolist() == [0, 0, 0, 0, 0, 2]
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["2"]
    array.resize(2**40)
    assert array[2**39].item() == 0


def test_resizing_back_while_another_handle_reads(folder: Path) -> None:
    array, other = zarrow.open(folder), zarrow.open(folder)
    array.resize((1, 1))
    assert other.shape == (7, 5) and other[...].tolist() == [[0] + [-1] * 4] + [[-1] * 5] * 6
    with pytest.raises(IndexError):
        array[1, 0]


APPEND = """
import sys, zarrow
array = zarrow.open(sys.argv[1])
for _ in range(20):
    array.append([int(sys.argv[2])] * 3)
"""


def test_appends_of_processes_are_not_lost(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path, shape=(0,), dtype="i4", chunks=7)
    processes = [
        subprocess.Popen([sys.executable, "-c", APPEND, tmp_path, str(number)]) for number in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    values = zarrow.open(tmp_path)[...].numpy()
    assert np.array_equal(np.sort(values), np.repeat([0, 1, 2], 60))
    assert (values.reshape(-1, 3) == values[::3, None]).all()
