"""Arrays of version 2 without a fill value: other readers choose the value of missing chunks.

Every written chunk is stored, even if it is all zeros.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import zarrow
from oracle.libraries import unspecified

SHAPE, CHUNKS = (5, 7), (2, 3)
KEYS = sorted(f"{row}.{column}" for row in range(3) for column in range(3))
DTYPES = ["|b1", "|i1", "<i4", ">i8", "<f8", ">f4", "<c16", "<M8[s]", "<m8[ms]", "|S3", "<U2", "|V4"]
STRUCTURE = [["x", "<i4"], ["y", "|u1"]]


def create(folder: Path, dtype: Any, **keys: Any) -> zarrow.Array:
    """Write an array of version 2 with a null fill value."""
    document: dict[str, Any] = {"zarr_format": 2, "shape": SHAPE, "chunks": CHUNKS, "dtype": dtype}
    document |= {"fill_value": None, "order": "C", "compressor": None, "filters": None} | keys
    (folder / ".zarray").write_text(json.dumps(document))
    return zarrow.open(folder)


def stored(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name[0] not in ".")


def zeros(array: zarrow.Array) -> np.ndarray[Any, Any]:
    return np.zeros(SHAPE, array.dtype)


def read_by_zarr_python(folder: Path) -> np.ndarray[Any, Any]:
    with unspecified():
        return np.asarray(zarr.open_array(folder, mode="r")[...])


@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}])
@pytest.mark.parametrize("dtype", [*DTYPES, STRUCTURE], ids=str)
def test_zeros_are_stored_and_read_by_others(dtype: Any, compressor: Any, tmp_path: Path) -> None:
    array = create(tmp_path, dtype, compressor=compressor)
    array[:] = zeros(array)
    assert stored(tmp_path) == KEYS
    read = read_by_zarr_python(tmp_path)
    assert read.tobytes() == zeros(array).astype(read.dtype).tobytes()


@pytest.mark.parametrize("dtype", ["|i1", "<i4", ">i8", "<f8", ">f4", "<c16", "|b1"])
def test_tensorstore_reads_them(dtype: str, tmp_path: Path) -> None:
    array = create(tmp_path, dtype)
    array[:] = zeros(array)
    kvstore = {"driver": "file", "path": f"{tmp_path}/"}
    other = tensorstore.open(
        {"driver": "zarr", "kvstore": kvstore, "fill_missing_data_reads": False}
    ).result()
    assert np.array_equal(other.read().result(), zeros(array))


@pytest.mark.parametrize("dtype", ["<i4", "<M8[s]", "|S3"])
def test_zeros_over_values_and_parts_of_chunks(dtype: str, tmp_path: Path) -> None:
    array = create(tmp_path, dtype)
    array[:2, :3] = np.ones((), "i4").astype(dtype)
    array[:2, :3] = zeros(array)[:2, :3]
    assert stored(tmp_path) == ["0.0"]
    array[3, 4] = zeros(array)[0, 0]
    assert stored(tmp_path) == ["0.0", "1.1"]
    found, expected = array[...].numpy(), zeros(array)
    if expected.dtype.kind == "M":
        expected[...] = np.datetime64("NaT", "s")
    expected[:2, :3] = expected[3, 4] = zeros(array)[0, 0]
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("filter_name", "value"), [("vlen-utf8", ""), ("vlen-bytes", b"")])
def test_empty_strings(filter_name: str, value: Any, tmp_path: Path) -> None:
    array = create(tmp_path, "|O", filters=[{"id": filter_name}])
    values = np.full(SHAPE, value, object)
    array[:] = values
    assert stored(tmp_path) == KEYS
    assert read_by_zarr_python(tmp_path).tolist() == values.tolist()


def test_fields(tmp_path: Path) -> None:
    array = create(tmp_path, STRUCTURE)
    array["y"] = np.zeros(SHAPE, "u1")
    assert stored(tmp_path) == KEYS


def test_a_smaller_shape_keeps_chunks_of_zeros(tmp_path: Path) -> None:
    array = create(tmp_path, "<i4")
    array[:] = zeros(array)
    array.resize((3, 4))
    assert stored(tmp_path) == ["0.0", "0.1", "1.0", "1.1"]


def test_with_a_fill_value_zeros_are_still_left_out(tmp_path: Path) -> None:
    array = create(tmp_path, "<i4", fill_value=0)
    array[:] = zeros(array)
    assert stored(tmp_path) == []
