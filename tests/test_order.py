"""Reads in C order, Fortran order and stored order."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow

STORED: dict[str, dict[str, Any]] = {
    "C": {},
    "F": {"zarr_format": 2, "order": "F"},
    "transpose": {"filters": [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}]},
    "turned": {"filters": [{"name": "transpose", "configuration": {"order": [1, 0, 2]}}]},
    "shards": {"shards": (8, 10, 12), "compressors": "zstd"},
}
SELECTIONS: list[Any] = [
    ...,
    np.s_[2:7, ::3, -1],
    np.s_[::-1, 3, 1::2],
    np.s_[0, 0, 0],
    np.s_[:0],
    ([5, 1], ..., 2),
]


@pytest.fixture(scope="module", params=product(STORED, ["u1", "f4", ">i8", [("a", "u1"), ("b", "<f8")]]))
def array(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> zarrow.Array:
    stored, dtype = request.param
    values = np.arange(8 * 9 * 11).reshape(8, 9, 11)
    values = (
        np.array(list(map(tuple, zip(values.ravel() % 200, values.ravel(), strict=True))), dtype).reshape(
            values.shape
        )
        if isinstance(dtype, list)
        else values.astype(dtype)
    )
    options = {"chunks": (4, 5, 6), "compressors": None} | STORED[stored]
    return zarrow.create_array(tmp_path_factory.mktemp("order"), data=values, **options)


@pytest.mark.parametrize("selection", SELECTIONS, ids=repr)
def test_the_values_do_not_depend_on_the_order(array: zarrow.Array, selection: Any) -> None:
    expected = np.asarray(array.read(selection))
    for order in ("C", "F", "A"):
        read = np.asarray(array.read(selection, order=order))
        np.testing.assert_array_equal(read, expected)
        assert read.flags.c_contiguous if order == "C" else read.flags.forc
        if order == "F":
            assert read.flags.f_contiguous


def test_order_a_keeps_the_stored_order(tmp_path: Path) -> None:
    for name, options in STORED.items():
        made = zarrow.create_array(
            tmp_path / name,
            shape=(8, 9, 11),
            chunks=(4, 5, 6),
            dtype="i4",
            **({key: value for key, value in options.items() if key != "shards"}),
        )
        flags = np.asarray(made.read(order="A")).flags
        assert flags.f_contiguous == (name in ("F", "transpose")), name
        assert flags.c_contiguous == (name not in ("F", "transpose")), name


def test_fields_and_large_results(tmp_path: Path) -> None:
    values = np.zeros((300, 400), [("a", "u1"), ("b", "f8")])
    values["b"] = np.arange(120_000).reshape(300, 400)
    array = zarrow.create_array(tmp_path, data=values, chunks=(64, 64))
    field = np.asarray(array.read("b", order="F"))
    assert field.flags.f_contiguous and (field == values["b"]).all()
    large = np.arange(3000 * 3000, dtype="f4").reshape(3000, 3000)
    array = zarrow.create_array(tmp_path, data=large, chunks=(512, 512), overwrite=True)
    turned = np.asarray(array.read(order="F"))
    assert turned.flags.f_contiguous and (turned == large).all()


def test_arrays_without_this_order(tmp_path: Path) -> None:
    names = zarrow.create_array(tmp_path / "names", data=np.array([["a"], ["b"]], "T"))
    with pytest.raises(zarrow.UnsupportedError, match="a fixed size"):
        names.read(order="F")
    assert names.read(order="A").tolist() == [["a"], ["b"]]
    numbers = zarrow.create_array(tmp_path / "numbers", data=[[1, 2]])
    with pytest.raises(ValueError, match='"C", "F" or "A"'):
        numbers.read(order="K")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="without out=, mmap= and mask="):
        numbers.read(order="F", out=np.empty((1, 2), int))
