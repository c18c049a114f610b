"""Missing elements in formats that other programs read, and the warning for other formats."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray
import zarr

import zarrow
from zarrow.arrays import missing


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(missing, "_has_warned", False)
    yield
    zarrow.set_missing(None)


NUMBERS: list[tuple[Any, str]] = [
    ([1, None, 3], "i8"),
    ([1.5, None, -2.0], "f8"),
    (np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype="u2"), "u2"),
    (np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype="f4"), "f4"),
    (np.ma.array([1 + 1j, 2, 3], mask=[0, 1, 0]), "c16"),
    (np.array([1, None, 3], object), "i8"),
]


@pytest.mark.parametrize(("data", "dtype"), NUMBERS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_fill_value_stands_for_missing_numbers(
    data: Any, dtype: str, zarr_format: Any, tmp_path: Path
) -> None:
    array = zarrow.create_array(tmp_path, data=data, missing="fill", zarr_format=zarr_format)
    expected = [data[0], None, data[2]]
    assert array.dtype == np.dtype(dtype)
    assert array.read(mask="cf").tolist() == expected == array.read(mask="fill").tolist()
    theirs = zarr.open_array(tmp_path, mode="r")
    assert theirs.dtype == np.dtype(dtype) and theirs[0] == data[0]
    np.testing.assert_equal(theirs[1], theirs.fill_value)


def test_xarray_reads_fill_values_as_missing(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    for name, data in {"f": [1.5, None, 2.5], "i": [1, None, 3], "s": ["a", None, "c"]}.items():
        root.create_array(
            name, data=data, missing="fill", dimension_names=["x"], fill_value="-" if name == "s" else None
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = xarray.open_dataset(tmp_path, engine="zarr", consolidated=False)
    assert dataset.f.isnull().values.tolist() == [False, True, False]
    assert dataset.i.isnull().values.tolist() == [False, True, False]
    assert dataset.f.values[2] == 2.5 and dataset.i.values[2] == 3


def test_strings_and_times() -> None:
    store = zarrow.MemoryStore()
    names = zarrow.create_array(store, "names", data=["a", None], missing="fill", fill_value="?")
    assert (names[...].tolist(), names.read(mask="cf").tolist()) == (["a", "?"], ["a", None])
    times = np.ma.array(np.array(["2020", "2021"], "M8[s]"), mask=[True, False])
    stored = zarrow.create_array(store, "times", data=times, missing="fill")
    assert np.isnat(stored[0].numpy()) and dict(stored.attrs) == {}
    assert stored.read(mask="fill").tolist()[0] is None


def test_the_fill_value_differs_from_present_elements() -> None:
    store = zarrow.MemoryStore()
    with pytest.raises(ValueError, match="also occurs in the data"):
        zarrow.create_array(store, data=[1, None, -1], missing="fill", fill_value=-1)
    with pytest.raises(ValueError, match="also occurs in the data"):
        zarrow.create_array(store, data=["", None], missing="fill")
    with pytest.raises(ValueError, match="missing='anndata'"):
        zarrow.create_array(store, data=[True, None], missing="fill")
    with pytest.raises(ValueError, match="'optional', 'fill', 'anndata'"):
        zarrow.create_array(store, data=[1, None], missing="nan")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        zarrow.open(store)


def test_a_dtype_chooses_the_value_too() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=[1, None, 3], dtype="i2", missing="fill")
    assert (array.dtype, array.fill_value) == (np.dtype("i2"), -32768)
    assert array.read(mask="cf").tolist() == [1, None, 3]


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ([1, None, 3], "nullable-integer"),
        ([True, None, False], "nullable-boolean"),
        (["a", None, "c"], "nullable-string-array"),
    ],
)
def test_anndata_has_values_and_a_mask(data: list[Any], encoding: str, tmp_path: Path) -> None:
    group: Any = zarrow.create_array(
        tmp_path, "x", data=data, missing="anndata", chunks=2, attributes={"unit": "m"}
    )
    assert isinstance(group, zarrow.Group)
    assert group.read().tolist() == data
    assert group.attrs == {"unit": "m", "encoding-type": encoding, "encoding-version": "0.1.0"}
    theirs: Any = zarr.open_group(tmp_path / "x", mode="r")
    assert theirs["mask"][:].tolist() == [False, True, False]
    assert theirs["values"].chunks == (2,) and theirs["values"][0] == data[0]


def test_floats_of_anndata_have_nan(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path, data=[1.5, None], missing="anndata")
    assert array.attrs["encoding-type"] == "array"
    np.testing.assert_equal(np.asarray(array), [1.5, np.nan])
    with pytest.raises(ValueError, match="nullable complex128"):
        zarrow.create_array(tmp_path, "c", data=np.ma.array([1j], mask=[True]), missing="anndata")


def test_groups_and_save_take_the_form_that_was_set(tmp_path: Path) -> None:
    zarrow.set_missing("anndata")
    root = zarrow.create_group(tmp_path)
    for data in ([1, None], [None, 2]):
        root["x"] = data  # a group of values and mask is replaced like an array
        assert root["x"].read().tolist() == data
    zarrow.set_missing("fill")
    with pytest.raises(FileExistsError, match="group"):
        root["x"] = [1.5, None]
    zarrow.save(tmp_path / "b", y=[1.5, None])
    zarrow.save(tmp_path / "b", z=["a", None], missing="optional")
    there = zarrow.open(tmp_path / "b")
    assert there["y"].attrs["_FillValue"] == "AAAAAAAA+H8="
    assert there["z"][...].tolist() == ["a", None]
    with pytest.raises(ValueError, match="'fill'"):
        zarrow.set_missing("fil")  # type: ignore[arg-type]


def test_later_writes_store_the_value_of_the_attribute() -> None:
    array = zarrow.create_array(
        zarrow.MemoryStore(), data=[1, None, 3], missing="fill", fill_value=-1, chunks=2
    )
    array[0] = None
    array[1:] = np.ma.array([7, 8], mask=[False, True])
    array.append([None, 9])
    assert array[...].tolist() == [-1, 7, -1, -1, 9]
    assert array.read(mask="cf").tolist() == [None, 7, None, None, 9]
    names = zarrow.create_array(zarrow.MemoryStore(), data=["a", None], missing="fill", fill_value="?")
    names[0] = None
    assert names[...].tolist() == ["?", "?"]
    plain = zarrow.create_array(zarrow.MemoryStore(), shape=(2,), dtype="i4")
    with pytest.raises(zarrow.DataTypeError, match='missing="fill"'):
        plain[0] = None


def test_the_first_array_that_others_cannot_open_warns(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    with pytest.warns(zarrow.ZarrowWarning, match="missing='fill'") as caught:
        root["x"] = [1, None]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root["y"] = [1, None]
        root.create_array("z", data=["a", None], missing="optional")
        root.create_array("o", shape=(2,), dtype="optional[int32]")


def test_one_process_warns_once() -> None:
    code = "import zarrow; r = zarrow.create_group(zarrow.MemoryStore()); r['a'] = r['b'] = [1, None]"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.count("ZarrowWarning") == 1


def test_explicit_choices_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zarrow.create_array(zarrow.MemoryStore(), data=[1, None], missing="optional")
        zarrow.create_array(zarrow.MemoryStore(), data=[1, None], missing="fill")


def test_members_that_cannot_be_read_are_left_out_with_a_warning(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    root["good"] = [1, 2]
    root.create_group("below")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    for listed, expected in [
        (root.arrays, ["good"]), (root.items, ["below", "good"]), (root.groups, ["below"]),
    ]:  # fmt: skip
        with pytest.warns(zarrow.ZarrowWarning, match='"bad" is left out') as caught:
            assert [name for name, _ in listed()] == expected
        assert caught[0].filename == __file__
    with pytest.warns(zarrow.ZarrowWarning, match="bad"):
        assert len(root.values()) == 2
    assert root.keys() == ["bad", "below", "good"]
    with pytest.raises(zarrow.MetadataError):
        root["bad"]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("data", [[1, None], ["a", None], pandas.Categorical(["a", "b"])])
@pytest.mark.parametrize("wrong", [{"compressors": "nope"}, {"chunks": (2, 2)}, {"order": "X"}])
def test_wrong_options_leave_no_group(zarr_format: Any, data: Any, wrong: dict[str, Any]) -> None:
    group = zarrow.create_group(zarrow.MemoryStore(), zarr_format=zarr_format)
    with pytest.raises((ValueError, zarrow.ZarrowError)):
        group.create_array("c", data=data, missing="anndata", **wrong)
    assert list(group) == []
    if isinstance(data, list):
        with pytest.raises(ValueError, match="fill_value"):
            group.create_array("c", data=[1, None], missing="anndata", fill_value="x")
        assert list(group) == []


def test_version_2_names_the_forms_of_missing_elements_that_it_has() -> None:
    group = zarrow.create_group({}, zarr_format=2)
    for value in (["a", None], np.ma.array([1, 2], mask=[0, 1])):
        for form in (None, "optional"):
            with pytest.raises(zarrow.MetadataError, match="missing='fill' or missing='anndata'"):
                group.create_array("x", data=value, missing=form)
        assert len(group) == 0
    group.create_array("x", data=["a", None], missing="anndata")


def test_the_order_of_categories_is_not_dropped_in_silence() -> None:
    ordered = pandas.Categorical(["lo", "hi"], categories=["lo", "hi"], ordered=True)
    group = zarrow.create_group({})
    for value in (ordered, pandas.Series(ordered)):
        with pytest.warns(zarrow.ZarrowWarning, match="the order of the categories .* is not stored"):
            group["x"] = value
    group.create_array("kept", data=ordered, missing="anndata")
    assert group["kept"].read().ordered
