"""Arrays that are assigned to a table become its columns."""

from __future__ import annotations

import resource
import shutil
import threading
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse

import zarrow

pytestmark = [pytest.mark.small_files, pytest.mark.filterwarnings("ignore:.*infer_string")]


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    obs = pd.DataFrame({"depth": [3, 1, 2]}, index=["a", "b", "c"])
    path = tmp_path / "cells.zarr"
    zarrow.save(path, anndata.AnnData(np.ones((3, 2), "f4"), obs=obs))
    return path


def test_anndata_sees_a_new_column(cells: Path) -> None:
    root = zarrow.open_group(cells)
    root["obs"]["cluster"] = [2, 0, 1]
    root["obs/label"] = np.array(["x", "y", "x"], object)
    root["obs"]["depth"] = [7, 8, 9]
    for frame in (zarrow.open(cells)["obs"].to_pandas(), anndata.read_zarr(cells).obs):
        assert list(frame) == ["depth", "cluster", "label"] and list(frame.index) == ["a", "b", "c"]
        assert frame["cluster"].tolist() == [2, 0, 1] and frame["depth"].tolist() == [7, 8, 9]
        assert frame["label"].tolist() == ["x", "y", "x"]


def test_a_column_of_another_length_is_refused_in_a_dataframe(cells: Path) -> None:
    obs = zarrow.open_group(cells)["obs"]
    with pytest.raises(zarrow.ShapeError, match=r"'/obs' has 3 rows, and the column 'cluster' has 2"):
        obs["cluster"] = [1, 2]
    assert "cluster" not in obs
    with pytest.raises(zarrow.ShapeError, match="has 4"):
        obs["depth"] = pd.Series([1, 2, 3, 4])
    assert obs["depth"][...].tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="is the index of the dataframe"):
        del obs["_index"]
    obs["_index"] = np.array(["p", "q", "r"], object)
    assert list(obs.to_pandas().index) == ["p", "q", "r"] and obs.attrs["column-order"] == ["depth"]
    assert list(anndata.read_zarr(cells).obs.index) == ["p", "q", "r"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (5, "no axis"),
        ("abc", "no axis"),
        (np.array(3), "no axis"),
        (np.ones((3, 2)), "3 x 2"),
        (np.ones((2, 3)), "2 x 3"),
        (scipy.sparse.csr_matrix(np.eye(3)), "3 x 3"),
        ([1, 2, 3, 4], "4"),
    ],
)
@pytest.mark.parametrize("name", ["depth", "new"])
def test_what_is_not_one_element_for_each_row_is_refused(
    cells: Path, name: str, value: Any, found: str
) -> None:
    obs = zarrow.open_group(cells)["obs"]
    with pytest.raises(zarrow.ShapeError, match=f"has 3 rows, and the column '{name}' has {found}$"):
        obs[name] = value
    assert anndata.read_zarr(cells).obs["depth"].tolist() == [3, 1, 2] and "new" not in obs


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", None, "c"], object),
        np.ma.masked_equal([1, 2, 3], 2),
        polars.Series([1, None, 3]),
        pyarrow.array([True, None, False]),
    ],
)
def test_missing_elements_are_those_of_anndata(cells: Path, value: Any) -> None:
    obs = zarrow.open_group(cells)["obs"]
    obs["new"] = value
    column = anndata.read_zarr(cells).obs["new"]
    assert column.isna().tolist() == [False, True, False]
    assert zarrow.load(cells).obs["new"].isna().tolist() == [False, True, False]


def test_a_table_does_not_replace_a_dataframe(cells: Path) -> None:
    root = zarrow.open_group(cells)
    with pytest.raises(zarrow.NodeExistsError, match="'/obs' is a dataframe of AnnData"):
        root["obs"] = pd.DataFrame({"depth": [7, 8, 9]}, index=["p", "q", "r"])
    assert list(anndata.read_zarr(cells).obs.index) == ["a", "b", "c"]


def test_a_table_without_its_first_column_takes_columns(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root["empty"] = {}
    root["empty"]["n"] = [1, 2, 3]
    assert root["empty"].attrs["column-order"] == ["n"]
    root["t"] = {"x": [1, 2], "y": [3, 4]}
    del root["t"]["x"]
    root["t"]["z"] = [5, 6]
    assert root["t"].attrs["column-order"] == ["y", "z"]


def test_columns_of_pandas_are_stored_as_anndata_stores_them(cells: Path) -> None:
    obs = zarrow.open_group(cells)["obs"]
    obs["kind"] = pd.Categorical(["T", "B", "T"], ordered=True)
    obs["count"] = pd.array([1, None, 3], dtype="Int32")
    obs["donor"] = pd.Series(["Ada", None, "Ben"])
    obs["depth"] = pd.Series([0.5, 1.5, 2.5])
    frame = anndata.read_zarr(cells).obs
    assert list(frame) == ["depth", "kind", "count", "donor"]
    assert frame["kind"].cat.ordered and frame["kind"].tolist() == ["T", "B", "T"]
    assert frame["count"].dtype == "Int32" and frame["count"].isna().tolist() == [False, True, False]
    assert frame["depth"].tolist() == [0.5, 1.5, 2.5] and frame["donor"].isna().sum() == 1
    obs["kind"] = pd.Series([1, 2, 3])
    assert anndata.read_zarr(cells).obs["kind"].tolist() == [1, 2, 3]


def test_a_categorical_group_becomes_a_column(cells: Path, tmp_path: Path) -> None:
    kinds = pd.DataFrame({"kind": pd.Categorical(["T", "B", "T"])}, index=["a", "b", "c"])
    zarrow.save(tmp_path / "other.zarr", anndata.AnnData(np.ones((3, 1), "f4"), obs=kinds))
    obs = zarrow.open_group(cells)["obs"]
    obs["kind"] = zarrow.open(tmp_path / "other.zarr")["obs/kind"]
    assert anndata.read_zarr(cells).obs["kind"].tolist() == ["T", "B", "T"]
    longer = pd.DataFrame({"kind": pd.Categorical(list("TBTB"))}, index=list("abcd"))
    zarrow.save(tmp_path / "longer.zarr", anndata.AnnData(np.ones((4, 1), "f4"), obs=longer))
    with pytest.raises(zarrow.ShapeError, match="has 3 rows, and the column 'kind' has 4"):
        obs["kind"] = zarrow.open(tmp_path / "longer.zarr")["obs/kind"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_tables_take_columns_of_their_length_alone(tmp_path: Path, zarr_format: int) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    root["t"] = {"x": [1, 2, 3]}
    table = root["t"]
    table["y"] = [4.0, 5.0, 6.0]
    table["grid"] = np.zeros((2, 2))
    table["inner"] = {"x": [1, 2, 3]}
    table["scalar"] = np.float64(3)
    assert table.to_pandas().to_dict("list") == {"x": [1, 2, 3], "y": [4.0, 5.0, 6.0]}
    plain = root.create_group("plain")
    plain["y"] = [1, 2]
    assert "column-order" not in plain.attrs


def test_threads_add_columns_beside_each_other(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", {"x": [1, 2, 3]})

    def add(number: int) -> None:
        zarrow.open_group(tmp_path / "a.zarr")[f"y{number}"] = [number] * 3

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = zarrow.open(tmp_path / "a.zarr").attrs["column-order"]
    assert names[0] == "x" and sorted(names[1:]) == sorted(f"y{number}" for number in range(12))


# Columns that are stored as a group, and as an array.
NEW_COLUMNS: dict[str, Any] = {
    "categorical": pd.Categorical(["u", "v", "u"]),
    "a series of categories": pd.Series(pd.Categorical(["v", "v", "u"], ordered=True)),
    "nullable": pd.array([1, None, 3], "Int64"),
    "numbers": np.array([7.0, 8, 9]),
    "text": ["p", "q", "r"],
    "a list with None": ["p", None, "r"],
}


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    obs = pd.DataFrame(
        {
            "first": [1, 2, 3],
            "kind": pd.Categorical(["a", "b", "a"]),
            "count": pd.array([1, 2, None], "Int64"),
            "last": [1.0, 2, 3],
        },
        index=["a", "b", "c"],
    )
    path = tmp_path / "typed.zarr"
    zarrow.save(path, anndata.AnnData(np.ones((3, 2), "f4"), obs=obs))
    return path


@pytest.mark.parametrize("old", ["kind", "count", "last"])
@pytest.mark.parametrize("new", NEW_COLUMNS)
def test_any_column_replaces_any_other(typed: Path, old: str, new: str) -> None:
    root = zarrow.open_group(typed)
    root["obs"][old] = NEW_COLUMNS[new]
    expected = pd.Series(NEW_COLUMNS[new]).tolist()
    for frame in (zarrow.open(typed)["obs"].to_pandas(), anndata.read_zarr(typed).obs):
        assert list(frame) == ["first", "kind", "count", "last"] and frame["first"].tolist() == [1, 2, 3]
        assert pd.isna(frame[old]).tolist() == pd.isna(pd.Series(expected)).tolist()
        for value, other in zip(frame[old].tolist(), expected, strict=True):
            assert pd.isna(other) or value == other


def test_a_value_that_cannot_be_stored_replaces_no_column(typed: Path) -> None:
    before = anndata.read_zarr(typed).obs
    obs = zarrow.open_group(typed)["obs"]
    for value in ([object()] * 3, np.array([{}, 1, "x"], object), np.ones((3, 2)), {"x": [1, 2, 3]}):
        with pytest.raises((TypeError, ValueError, zarrow.ZarrowError)):
            obs["kind"] = value
    pd.testing.assert_frame_equal(anndata.read_zarr(typed).obs, before)
    # A group that is no column is never replaced.
    obs.create_group("below").create_array("x", data=[1])
    with pytest.raises(zarrow.NodeExistsError):
        obs["below"] = [1, 2, 3]
    assert obs["below/x"][...].tolist() == [1]


@pytest.mark.parametrize("new", ["categorical", "nullable", "a list with None"])
def test_a_column_that_cannot_be_stored_leaves_nothing(
    typed: Path, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A column of several arrays is stored whole or not at all."""
    before = {path: path.read_bytes() for path in typed.rglob("*") if path.is_file()}
    root = zarrow.open_group(typed)
    too_large = resource.getrlimit(resource.RLIMIT_FSIZE)
    values = (
        pd.Categorical([f"{'long' * 500}{number}" for number in range(3)]) if new == "categorical" else None
    )
    for name in ("new", "kind", "last"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, too_large[1]))
        try:
            with pytest.raises((OSError, zarrow.ZarrowError)):
                root["obs"][name] = NEW_COLUMNS[new] if values is None else values
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, too_large)
        assert {path: path.read_bytes() for path in typed.rglob("*") if path.is_file()} == before
    root["obs"]["new"] = NEW_COLUMNS[new]
    assert "new" in anndata.read_zarr(typed).obs


@pytest.mark.parametrize("value", [[4, 5, 6], np.array([4, 5, 6]), pd.Categorical([4, 5, 6])])
def test_an_array_that_is_no_column_yet_becomes_one(typed: Path, value: Any) -> None:
    obs = zarrow.open_group(typed)["obs"]
    obs.create_array("stray", data=[1, 2, 3])
    obs["stray"] = value
    assert anndata.read_zarr(typed).obs["stray"].tolist() == [4, 5, 6]


def test_names_with_members_are_no_columns(typed: Path) -> None:
    obs = zarrow.open_group(typed)["obs"]
    with pytest.raises(ValueError, match="'/obs' is a dataframe, and has no column 'a' with members"):
        obs["a/b"] = [1, 2, 3]
    assert "a" not in obs


@pytest.mark.parametrize(
    "value", [["p", "q", "r"], pd.Index(["p", "q", "r"]), np.array(["p", "q", "r"], object)]
)
def test_an_index_is_replaced(typed: Path, value: Any) -> None:
    obs = zarrow.open_group(typed)["obs"]
    obs[obs.attrs["_index"]] = value
    assert list(anndata.read_zarr(typed).obs.index) == ["p", "q", "r"]
    assert obs.attrs["column-order"] == ["first", "kind", "count", "last"]


def test_a_stored_column_replaces_another(typed: Path) -> None:
    obs = zarrow.open_group(typed)["obs"]
    for name in ("first", "count"):
        obs[name] = obs["kind"]
    frame = anndata.read_zarr(typed).obs
    assert frame["first"].tolist() == frame["count"].tolist() == ["a", "b", "a"]
    obs["kind"] = obs["last"]
    assert (
        anndata.read_zarr(typed).obs["kind"].tolist() == [1, 2, 3]
        and "codes" not in zarrow.open(typed)["obs"]
    )


@pytest.mark.parametrize("path", ["kind", "first", "obs/kind", "/obs/first/"])
def test_an_erased_column_leaves_a_table(typed: Path, path: str) -> None:
    root = zarrow.open_group(typed)
    group = root if "obs" in path else root["obs"]
    del group[path]
    name = path.strip("/").rpartition("/")[2]
    left = [column for column in ("first", "kind", "count", "last") if column != name]
    for frame in (zarrow.open(typed)["obs"].to_pandas(), anndata.read_zarr(typed).obs):
        assert list(frame) == left and list(frame.index) == ["a", "b", "c"]
    with pytest.raises(zarrow.NotFoundError):
        del group[path]
    root["obs"][name] = [4, 5, 6]
    assert list(anndata.read_zarr(typed).obs) == [*left, name]


def test_a_column_that_cannot_be_erased_stays_listed(typed: Path) -> None:
    obs = zarrow.open_group(typed)["obs"]
    del obs["last"]
    other = zarrow.open_group(typed)["obs"]
    # Another program erased the column's folder: its name goes too.
    shutil.rmtree(typed / "obs/count")
    with pytest.raises(zarrow.NotFoundError):
        del other["count"]
    assert zarrow.open_group(typed)["obs"].attrs["column-order"] == ["first", "kind"]


@pytest.mark.parametrize("method", ["to_pandas", "to_polars", "to_arrow"])
def test_what_is_no_table_is_not_read_as_one(typed: Path, method: str) -> None:
    """The parts of a categorical, of nullable values or of a matrix are no columns."""
    root = zarrow.open_group(typed)
    root["obs"]["kind"] = pd.Categorical(["a", "b", "a"], categories=["a", "b", "c"])
    for name in ("kind", "count"):
        with pytest.raises(zarrow.ShapeError, match=r"is one column: type group.read\(\)"):
            getattr(root["obs"][name], method)()
        assert len(root["obs"][name].read()) == 3
    with pytest.raises(zarrow.ShapeError, match="is an AnnData"):
        getattr(root, method)()
    zarrow.save(typed, anndata.AnnData(scipy.sparse.csr_matrix(np.eye(3, dtype="f4"))))
    with pytest.raises(zarrow.ShapeError, match=r"is a sparse matrix: type group.to_scipy\(\)"):
        getattr(zarrow.open(typed)["X"], method)()


@pytest.mark.parametrize("kind", ["anndata", "pandas"])
def test_a_series_with_another_index_is_refused(tmp_path: Path, kind: str) -> None:
    names = ["a", "b", "c"]
    if kind == "anndata":
        zarrow.save(tmp_path, anndata.AnnData(obs=pd.DataFrame({"x": [1, 2, 3]}, index=names)))
        table = zarrow.open_group(tmp_path).get_group("obs")
    else:
        zarrow.save(tmp_path, pd.DataFrame({"x": [1, 2, 3]}, index=names))
        table = zarrow.open_group(tmp_path)
    series = pd.Series([10.0, 20.0, 30.0], index=names)
    for value in (series, series.reset_index(drop=True), series.to_numpy(), series[::-1].reindex(names)):
        table["y"] = value
        assert table.to_pandas()["y"].tolist() == [10, 20, 30]
    for other in (series[::-1], series.set_axis(["a", "b", "d"]), series.set_axis([2, 0, 1])):
        with pytest.raises(ValueError, match=r"differs from that of .*series\.reindex"):
            table["y"] = other
        with pytest.raises(ValueError, match="index of the Series for 'new'"):
            table["new"] = other
    assert "new" not in table
    table["y"] = series[::-1].reindex(table.to_pandas().index)
    found = table.to_pandas()
    assert found["y"].tolist() == [10, 20, 30] and found.index.tolist() == names


INDEXES = {
    "times": pd.date_range("2020", periods=3).as_unit("ns"),
    "lengths": pd.to_timedelta([3, 1, 2], unit="h"),
    "floats": pd.Index([0.5, 2.5, 1.5]),
    "numbers": pd.Index([2, 1, 0]),
    "a range": pd.RangeIndex(5, 8, name="row"),
    "two levels": pd.MultiIndex.from_tuples([(1, "a"), (2, "b"), (3, "c")]),
    "the default": pd.RangeIndex(3),
}


@pytest.mark.parametrize("name", INDEXES)
def test_series_have_the_index_of_the_table(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"v": [1.0, 2.0, 3.0]}, index=INDEXES[name])
    zarrow.save(tmp_path, frame)
    table = zarrow.open_group(tmp_path)
    for value in (frame["v"] * 2, table.to_pandas()["v"] * 2):
        table["w"] = value
        assert table["w"][...].tolist() == [2, 4, 6]
    for other in (frame["v"][::-1], frame["v"].iloc[[1, 0, 2]]):
        with pytest.raises(ValueError, match="'new' differs from that of"):
            table["new"] = other
    if name in ("numbers", "a range"):
        with pytest.raises(ValueError, match="'new' differs from that of"):
            table["new"] = pd.Series([1, 2, 3])
    else:
        table["new"] = pd.Series([1, 2, 3])
        assert table["new"][...].tolist() == [1, 2, 3]
    assert list(table.to_pandas()["w"]) == [2, 4, 6]
