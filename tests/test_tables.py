"""Tables of pandas, polars and pyarrow, stored by column and read back; and invalid input."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from PIL import Image

import zarrow

COLUMNS: dict[str, Any] = {
    "z": [1, 2, 3],
    "flag": [True, False, True],
    "name": ["a", "b", "c"],
    "a": [0.5, 1.5, 2.5],
}


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"]
)
def test_tables_keep_their_column_order(make: Any, tmp_path: Path) -> None:
    zarrow.save(tmp_path, make(COLUMNS))
    stream = zarrow.open(tmp_path)
    assert pa.table(stream.to_arrow()).to_pydict() == COLUMNS
    assert list(pa.table(stream.to_arrow()).to_pydict()) == list(COLUMNS)
    assert pl.DataFrame(stream.to_arrow()).schema["flag"] == pl.Boolean
    assert pa.table(stream).column_names == list(COLUMNS)


def test_a_meaningful_pandas_index_is_a_column(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2]}, index=["r", "s"])
    zarrow.save(tmp_path / "a", table)
    assert pa.table(zarrow.open(tmp_path / "a").to_arrow()).to_pydict() == {"index": ["r", "s"], "x": [1, 2]}
    zarrow.save(tmp_path / "b", table.rename_axis("id"))
    assert zarrow.open(tmp_path / "b").keys() == ["id", "x"]
    zarrow.save(tmp_path / "c", pd.DataFrame({"x": [1, 2]}))
    assert zarrow.open(tmp_path / "c").keys() == ["x"]


def test_missing_values_of_columns(tmp_path: Path) -> None:
    table = pd.DataFrame({"n": pd.array([1, None], "Int64"), "s": ["a", None], "f": [1.5, np.nan]})
    zarrow.save(tmp_path, table, missing="fill")
    root = zarrow.open(tmp_path)
    assert root["n"].read(mask="cf").tolist() == [1, None]
    assert root["s"].read(mask="cf").tolist() == ["a", None]
    assert pa.table(root.to_arrow(mask="cf"))["n"].to_pylist() == [1, None]


def test_a_table_in_a_group(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    root["t"] = pd.DataFrame({"b": [1], "a": ["x"]})
    root["t"] = pd.DataFrame({"b": [2], "a": ["y"]})
    assert pa.table(root["t"].to_arrow()).to_pydict() == {"b": [2], "a": ["y"]}
    with pytest.raises(TypeError, match="rename"):
        root["u"] = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(TypeError, match="rename"):
        zarrow.save(tmp_path / "v", pd.DataFrame({0: [1]}))
    with pytest.raises(TypeError, match="collect"):
        zarrow.save(tmp_path / "v", pl.LazyFrame({"a": [1]}))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        xr.DataArray(np.array([[1.0, 3.0], [2.0, 4.0]]), dims=("y", "x")),
    ],
    ids=lambda table: type(table).__module__.partition(".")[0],
)
def test_tables_of_one_type_are_arrays_of_two_axes(table: Any) -> None:
    expected = [[1.0, 3.0], [2.0, 4.0]]
    assert zarrow.asarray(table).tolist() == expected
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(2, 2), dtype="f4")
    array[...] = table
    assert array[...].tolist() == expected
    created = zarrow.create_array(zarrow.MemoryStore(), data=table)
    assert created[...].tolist() == expected
    assert created.dimension_names == (("y", "x") if isinstance(table, xr.DataArray) else None)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pa.array([{"a": 1, "b": 2.5}]), r"zarrow\.save"),
        (pd.DataFrame({"a": [1], "b": ["x"]}), r"zarrow\.save"),
        (pa.array([[1, 2], [3]]), "fixed-size list"),
        (pl.Series([{"a": 1, "b": 2}]), r"zarrow\.save"),
        (xr.Dataset({"a": ("x", [1.0])}), "to_dataarray"),
        ({"a": [1]}, r"zarrow\.save"),
        ({1, 2}, r"list\(values\)"),
        (object(), "not an array"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_invalid_input_says_what_to_type(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        zarrow.asarray(value)


def test_images_have_rows_of_pixels() -> None:
    image = Image.new("RGB", (3, 2), (1, 2, 3))
    assert np.asarray(zarrow.asarray(image)).tolist() == np.asarray(image).tolist()


def test_columns_are_named_in_the_words_of_users(tmp_path: Path) -> None:
    zarrow.save(tmp_path, COLUMNS)
    root = zarrow.open(tmp_path)
    assert pa.table(root.to_arrow("z")).column_names == ["z"]
    with pytest.raises(TypeError, match=r'names of arrays, such as \["id", "height"\]'):
        root.to_arrow(5)
    with pytest.raises(zarrow.NotFoundError, match="nme"):
        root.to_arrow(["nme"])
    whole = zarrow.read_many([root["z"], (root["z"], slice(0, 3))])
    assert whole.tolist() == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(TypeError, match=r"\(array, selection\)"):
        zarrow.read_many([1])  # type: ignore[list-item]


@pytest.mark.parametrize("kind", ["Int64", "boolean", "string"])
def test_arrays_of_pandas_keep_their_elements(kind: str) -> None:
    values = {"Int64": [2**53 + 1, None], "boolean": [True, None], "string": ["Oslo", None]}[kind]
    taken = zarrow.asarray(pd.array(values, dtype=kind))
    assert taken.tolist() == values


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "boolean"])
def test_missing_integers_and_bools_are_nullable_in_pandas(kind: str, tmp_path: Path) -> None:
    values = {"Int64": [2**53 + 1, None], "UInt8": [255, None], "boolean": [True, None]}[kind]
    table = pd.DataFrame({"x": pd.array(values, dtype=kind)})
    zarrow.save(tmp_path, table, missing="optional")
    found = zarrow.open(tmp_path).to_pandas()
    pd.testing.assert_frame_equal(found, table)
    found.loc[1, "x"] = values[0]
    assert found["x"].tolist() == [values[0]] * 2 and zarrow.open(tmp_path)["x"][1].item() is None


STREAMS: dict[str, Any] = {
    "reader": lambda: pa.table(COLUMNS).to_reader(max_chunksize=2),
    "duckdb": lambda: duckdb.sql("select * from (values (1, 'a'), (2, 'b')) as t(z, name)"),
    "duckdb reader": lambda: duckdb.sql("select 1 as z, 'a' as name").arrow(),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_streams_are_stored_by_their_columns(stream: str, tmp_path: Path) -> None:
    zarrow.save(tmp_path, STREAMS[stream]())
    expected = pa.table(STREAMS[stream]()).to_pydict()
    root = zarrow.open(tmp_path)
    assert pa.table(root).to_pydict() == expected
    zarrow.save(tmp_path / "again", root.to_arrow())
    assert pa.table(zarrow.open(tmp_path / "again")).to_pydict() == expected


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_rows_are_appended(make: Any, tmp_path: Path) -> None:
    zarrow.save(tmp_path, make(COLUMNS))
    root = zarrow.open(tmp_path)
    assert root.append(make(COLUMNS)) == 6
    assert pa.table(root).to_pydict() == {name: values * 2 for name, values in COLUMNS.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": None}, "lacks"),
        ({"new": [1, 2, 3]}, "new"),
        ({"z": [1, 2]}, "different lengths"),
        ({"a": ["x", "y", "z"]}, "string"),
        ({"name": ["a", None, "c"]}, "missing"),
    ],
)
def test_rows_that_do_not_fit_change_nothing(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    zarrow.save(tmp_path, COLUMNS)
    root = zarrow.open(tmp_path)
    table = {name: values for name, values in {**COLUMNS, **change}.items() if values is not None}
    with pytest.raises((TypeError, ValueError), match=message):
        root.append(table)
    assert pa.table(zarrow.open(tmp_path)).to_pydict() == COLUMNS
    with pytest.raises(TypeError, match=r'group\["name"\]\.append'):
        root.append([1, 2, 3])


@pytest.mark.parametrize(
    "nulls",
    [pa.nulls(2), pl.Series([None, None]), pd.Series([None, None], dtype=object)],
    ids=["arrow", "polars", "pandas"],
)
def test_a_column_of_nulls_takes_the_type_that_is_stored(nulls: Any, tmp_path: Path) -> None:
    table = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[
        type(nulls).__module__.partition(".")[0]
    ]
    columns: dict[str, Any] = {"a": [1, None], "b": [0.5, None], "c": ["x", None], "d": [True, None]}
    zarrow.save(tmp_path / "old", pa.table(columns), missing="optional")
    root = zarrow.open(tmp_path / "old")
    assert root.append(table(dict.fromkeys(columns, nulls))) == 4
    expected = {name: [*values, None, None] for name, values in columns.items()}
    assert pa.table(root).to_pydict() == expected
    with pytest.raises(ValueError, match=r"^'b': all elements are null.*cast it"):
        zarrow.save(tmp_path / "new", table({"a": [1, 2], "b": nulls}))
    assert not (tmp_path / "new" / "a").exists()


def test_errors_of_columns_begin_with_their_names(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.time64("us"))
    zarrow.save(tmp_path, {"a": [1, 2], "b": [3, 4]})
    root = zarrow.open(tmp_path)
    for table in (pa.table({"a": [1, 2], "b": times}), {"a": [1, 2], "b": ["x", "y"]}):
        with pytest.raises((TypeError, ValueError), match=r"^'b': "):
            root.append(table)
    assert root["a"].shape == root["b"].shape == (2,)
    with pytest.raises(ValueError, match=r"^'b': .* times of day"):
        zarrow.save(tmp_path, pa.table({"a": [1, 2], "b": times}))
    with pytest.raises(ValueError, match=r"^'b': .*has no default"):
        zarrow.save(tmp_path / "new", {"b": [True, None]}, missing="fill")


def test_a_table_over_one_with_other_columns_warns(tmp_path: Path) -> None:
    zarrow.save(tmp_path, {"a": [1, 2], "b": [3, 4]})
    with pytest.warns(zarrow.ZarrowWarning, match=r"'b'.*create_group\(store, overwrite=True\)") as warned:
        zarrow.save(tmp_path, {"a": [5, 6], "c": [7, 8]})
    assert warned[0].filename == __file__
    root = zarrow.open(tmp_path)
    assert pa.table(root).to_pydict() == {"a": [5, 6], "c": [7, 8]} and "b" in root
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zarrow.create_group(tmp_path, overwrite=True)
        zarrow.save(tmp_path, {"d": [1]})
        zarrow.save(tmp_path, {"d": [2]})
    assert zarrow.open(tmp_path).keys() == ["d"]


def test_an_xarray_keeps_its_attributes_and_names_lost_coordinates(tmp_path: Path) -> None:
    data = xr.DataArray(
        [1.5, 2.5], dims="t", coords={"t": [3, 4], "place": 5}, attrs={"units": "K"}, name="d"
    )
    with pytest.warns(zarrow.ZarrowWarning, match=r"\(t, place\): .*to_zarr"):
        zarrow.save(tmp_path / "a", data)
    stored = zarrow.open(tmp_path / "a")
    assert dict(stored.attrs) == {"units": "K"} and stored.dimension_names == ("t",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zarrow.save(tmp_path / "a", data.drop_vars(data.coords))
        zarrow.save(tmp_path / "b", data["t"].drop_vars("place"))
    given = zarrow.create_array(tmp_path / "c", data=data.variable, attributes={"units": "C", "x": 1})
    assert dict(given.attrs) == {"units": "C", "x": 1}


def test_a_series_says_that_its_index_is_not_stored(tmp_path: Path) -> None:
    series = pd.Series([1, 2], index=["a", "b"])
    with pytest.warns(zarrow.ZarrowWarning, match=r"to_frame"):
        zarrow.save(tmp_path / "a", series)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zarrow.save(tmp_path / "a", series.reset_index(drop=True))
        zarrow.save(tmp_path / "b", series.to_frame("value"))
        zarrow.save(tmp_path / "c", pd.DataFrame({"x": [1, 2]}, index=["a", "b"]))
    assert pa.table(zarrow.open(tmp_path / "b")).to_pydict() == {"index": ["a", "b"], "value": [1, 2]}
