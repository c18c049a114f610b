"""Filters of tables, compared with pandas and pyarrow, and the index of pandas tables."""

from __future__ import annotations

import datetime
import operator
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zarrow
import zarrow.dask

pytestmark = pytest.mark.small_files

ROWS = 60
START = datetime.datetime(2024, 1, 1)
COMPARED = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def random_table(seed: int) -> pd.DataFrame:
    """Return columns of each kind, with some missing elements."""
    rng = np.random.default_rng(seed)
    missing = rng.random(ROWS) < 0.3
    words = rng.choice(["owl", "crow", "wren", ""], ROWS)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(-3, 4, ROWS),
            "small": rng.integers(0, 5, ROWS).astype("u1"),
            "float": rng.choice([-1.5, 0.0, 2.0, np.nan], ROWS),
            "word": words,
            "flag": rng.random(ROWS) < 0.5,
            "time": pd.Timestamp(START) + pd.to_timedelta(rng.integers(0, 5, ROWS), unit="D"),
            "maybe": pd.array(np.where(missing, None, rng.integers(0, 4, ROWS)), "Int64"),
            "kind": pd.Categorical(np.where(missing, None, words), ["owl", "crow", "wren", ""]),
        }
    )
    frame.loc[missing, "time"] = pd.NaT
    return frame


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "whole": st.integers(-4, 4) | st.sampled_from([0.5, np.int8(2)]),
    "small": st.integers(-1, 5),
    "float": st.sampled_from([-1.5, 0, 2.0, 1]),
    "word": st.sampled_from(["owl", "crow", "p", ""]),
    "flag": st.booleans(),
    "time": st.integers(0, 4).map(lambda day: START + datetime.timedelta(day))
    | st.sampled_from([pd.Timestamp(START), np.datetime64("2024-01-03"), "2024-01-02"]),
    "maybe": st.integers(0, 4),
    "kind": st.sampled_from(["owl", "crow", "p", ""]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[str, str, Any]:
    name = draw(st.sampled_from(list(VALUES)))
    kinds = ["==", "!=", "in", "not in"]
    if name not in ("flag", "kind"):
        kinds += ["<", "<=", ">", ">="]
    chosen = draw(st.sampled_from(kinds))
    if "in" in chosen:
        return name, chosen, draw(st.lists(VALUES[name], max_size=3))
    return name, chosen, draw(VALUES[name])


def matching(frame: pd.DataFrame, alternatives: list[list[tuple[str, str, Any]]]) -> pd.DataFrame:
    """Return the rows that pandas finds; missing elements fulfil no comparison but "not in"."""
    rows = np.zeros(len(frame), bool)
    for alternative in alternatives:
        each = np.ones(len(frame), bool)
        for name, chosen, value in alternative:
            column = frame[name]
            if "in" in chosen:
                found = column.isin([pd.Timestamp(one) for one in value] if name == "time" else value)
                each &= (found if chosen == "in" else ~found).to_numpy(bool)
            else:
                value = pd.Timestamp(value) if name == "time" else value
                compared = COMPARED[chosen](column, value)
                # A NaN is not missing.
                each &= (compared & (column.notna() | (name == "float"))).fillna(False).to_numpy(bool)
        rows |= each
    return frame[rows]


@pytest.fixture(scope="module", params=range(3))
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table in AnnData's format in chunks of 7 rows, and the same in pandas."""
    frame = random_table(request.param)
    path = tmp_path_factory.mktemp("table") / "table.zarr"
    import dask.dataframe

    zarrow.dask.to_table(dask.dataframe.from_pandas(frame, npartitions=1), path, chunks=7, index=False)
    return path, frame


@given(st.lists(st.lists(comparisons(), min_size=1, max_size=3), min_size=1, max_size=2))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_filters_give_the_rows_of_pandas(stored: Any, filters: list[list[tuple[str, str, Any]]]) -> None:
    path, frame = stored
    group = zarrow.open(path)
    expected = matching(frame, filters)
    whole = group.to_pandas()
    found = group.to_pandas(filters=filters)
    pd.testing.assert_frame_equal(found, whole.loc[expected.index].reset_index(drop=True))
    assert group.to_arrow(["whole"], filters=filters).arrow()["whole"].to_pylist() == list(expected["whole"])
    in_dask = zarrow.dask.read_table(group, ["whole", "word"], filters=filters, partition_rows=14)
    computed = in_dask.compute(scheduler="sync")
    assert computed["word"].tolist() == list(expected["word"]) and list(computed.index) == list(
        expected.index
    )
    assert len(in_dask) == len(expected)


@given(comparisons())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_filters_give_the_rows_of_parquet(
    stored: Any, tmp_path_factory: pytest.TempPathFactory, filters: tuple[str, str, Any]
) -> None:
    path, _ = stored
    name, _, value = filters
    group = zarrow.open(path)
    values = value if isinstance(value, list) else [value]
    if not values or (name == "time" and not all(isinstance(one, datetime.datetime) for one in values)):
        return  # pyarrow itself refuses text, NumPy's dates and empty lists.
    file = path.parent / "table.parquet"
    if not file.exists():
        group.to_parquet(file)
    expected = pyarrow.parquet.read_table(file, filters=[filters])
    # Texts of NaN are equal.
    assert str(group.to_arrow(filters=[filters]).arrow().to_pydict()) == str(expected.to_pydict())
    assert str(group.to_polars(filters=[filters]).rows()) == str(pl.DataFrame(expected).rows())


def test_times_of_any_unit_are_compared(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=4)
    for unit in ("s", "ms", "us", "ns"):
        path = tmp_path / unit
        zarrow.save(path, {"time": days.to_numpy(f"M8[{unit}]"), "step": np.arange(4).astype(f"m8[{unit}]")})
        group = zarrow.open(path)
        values = [pd.Timestamp("2024-01-02"), "2024-01-03", datetime.date(2024, 1, 4), np.datetime64("2025")]
        assert len(group.to_pandas(filters=[("time", "in", values)])) == 3
        for value, count in zip(values, (2, 1, 0, 0), strict=True):
            assert len(group.to_pandas(filters=[("time", ">", value)])) == count
        assert len(group.to_pandas(filters=[("step", ">", np.timedelta64(2, unit))])) == 1
        assert len(group.to_pandas(filters=[("step", "<", datetime.timedelta(seconds=5))])) == 4


def test_rows_columns_and_conditions(tmp_path: Path) -> None:
    zarrow.save(tmp_path, {"id": range(10), "name": [f"n{at % 3}" for at in range(10)]})
    group = zarrow.open(tmp_path)
    found = group.to_arrow("id", rows=slice(2, 9), filters=[("name", "==", "n1")])
    assert (
        found.arrow().to_pydict() == {"id": [4, 7]} and found.num_rows == 2 and found.column_names == ["id"]
    )
    assert [batch.num_rows for batch in found] == [2] and pa.table(found).num_rows == 2
    assert pa.schema(found).names == ["id"] and "name" in repr(found)
    assert pl.DataFrame(found).rows() == [(4,), (7,)] == found.polars().rows()
    assert group[2:9]["name", "id"].to_pandas(filters=("id", ">", 7)).columns.tolist() == ["name", "id"]
    assert group[2:9].to_polars(filters=("id", ">", 7))["id"].to_list() == [8]
    assert (
        group[5:].to_arrow(filters=pc.field("id") % 4 == 0).arrow()["id"].to_pylist() == [8]
        if hasattr(pc.Expression, "__mod__")
        else True
    )
    assert group.to_pandas(filters=(pc.field("id") > 2) & (pc.field("name") == "n0"))["id"].tolist() == [
        3,
        6,
        9,
    ]
    assert group.to_pandas(filters=[("id", ">", 99)]).shape == (0, 2)
    assert group.to_pandas(filters=[["id", "<", 1]])["id"].tolist() == [0]
    batches = group.to_arrow(filters=[("id", ">=", 0)], batch_rows=4)
    assert [batch.num_rows for batch in batches] == [4, 4, 2]
    with pytest.raises(TypeError, match="sorted_by is for filters"):
        group.to_pandas(sorted_by="id")
    with pytest.raises(TypeError, match="sorted_by is for filters"):
        group.to_arrow(sorted_by="id")


@pytest.mark.parametrize(
    ("filters", "error", "message"),
    [
        ([("other", ">", 1)], KeyError, "no column 'other': it has"),
        ([("id", "~", 1)], ValueError, "operator '~' is unknown, expected one of =="),
        ([("id", "==", None)], ValueError, r"field\('id'\).is_null\(\)"),
        ([("id", ">", "x")], TypeError, "column 'id' of int64 is not compared with 'x'"),
        ([("time", ">", "May")], TypeError, "column 'time' .* is not compared with 'May'"),
        ([("id", "in", "12")], TypeError, "'in' takes a list of values, got '12'"),
        ([("id", "in", 12)], TypeError, "'in' takes a list of values, got 12"),
        ([], ValueError, "filters are empty"),
        ([[]], ValueError, "has no comparison"),
        ("id > 1", TypeError, "expected comparisons, such as filters="),
        (["id > 1"], TypeError, "expected a comparison of three items, .* got 'id > 1'"),
        ([("id", ">")], TypeError, "expected a comparison of three items"),
        (pl.col("id") > 1, TypeError, r"scan_polars\(\).filter\(expression\)"),
    ],
)
def test_refused_filters_say_what_is_expected(
    filters: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    zarrow.save(tmp_path, {"id": [1, 2], "time": np.array(["2024-01-01", "2024-01-02"], "M8[s]")})
    group = zarrow.open(tmp_path)
    for read in (group.to_arrow, group.to_pandas, group.to_polars):
        with pytest.raises(error, match=message):
            read(filters=filters)
    with pytest.raises(error, match=message):
        zarrow.dask.read_table(group, filters=filters).compute(scheduler="sync")


def test_a_sorted_column_leaves_out_partitions(tmp_path: Path) -> None:
    frame = pd.DataFrame({"value": range(100)}, index=pd.date_range("2024", periods=100, name="time"))
    zarrow.save(tmp_path, frame)
    root = zarrow.open(tmp_path, mode="r+")
    for name in ("time", "value"):
        root.create_array(name, data=root[name][...], chunks=10, overwrite=True)
    filters = [("time", ">=", "2024-02-01"), ("time", "<", "2024-02-20"), ("value", ">", 40)]
    expected = frame[(frame.index >= "2024-02-01") & (frame.index < "2024-02-20") & (frame["value"] > 40)]
    for partition_rows in (10, 17, 100):
        read = zarrow.dask.read_table(root, sorted_by="time", filters=filters, partition_rows=partition_rows)
        assert read.npartitions <= 3 and read.known_divisions
        pd.testing.assert_frame_equal(read.compute(scheduler="sync"), expected, check_freq=False)
        assert len(read.loc["2024-02-12"]) == 1
    nothing = zarrow.dask.read_table(root, sorted_by="time", filters=[("time", ">", "2030-01-01")])
    assert len(nothing) == 0 and nothing.compute(scheduler="sync").columns.tolist() == ["value"]
    found = root.to_pandas(filters=filters, sorted_by="time")
    pd.testing.assert_frame_equal(found, expected, check_freq=False)


INDEXES = {
    "text": pd.Index(["p", "q", "r", "s"]),
    "named": pd.Index([5, 6, 7, 8], name="id"),
    "floats": pd.Index([0.5, 1, 2, 4]),
    "times": pd.date_range("2024", periods=4, name="time"),
    "levels": pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["letter", None]),
    "range": pd.RangeIndex(4, name="row"),
    "default": pd.RangeIndex(4),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_the_index_of_pandas_is_read_back(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": list("abcd")}, index=INDEXES[kind])
    zarrow.save(tmp_path / "pandas", frame)
    # By default, pyarrow describes ranges without a column.
    zarrow.save(tmp_path / "arrow", pa.Table.from_pandas(frame, preserve_index=kind != "default"))
    for name in ("pandas", "arrow"):
        group = zarrow.open(tmp_path / name)
        equal: dict[str, Any] = {"check_freq": False, "check_index_type": False, "check_dtype": False}
        pd.testing.assert_frame_equal(group.to_pandas(), frame, **equal)
        pd.testing.assert_frame_equal(group.to_pandas("y"), frame[["y"]], **equal)
        part = frame[1:3].reset_index(drop=True) if kind == "default" else frame[1:3]
        pd.testing.assert_frame_equal(group[1:3].to_pandas(), part, **equal)
        pd.testing.assert_frame_equal(group.to_arrow().arrow().to_pandas(), frame, **equal)
        group.to_parquet(tmp_path / "table.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), frame, **equal)
        if kind != "levels":
            in_dask = zarrow.dask.read_table(group).compute(scheduler="sync")
            pd.testing.assert_frame_equal(in_dask, frame, **equal)
    assert (
        pl.DataFrame(zarrow.open(tmp_path / "pandas")).rows()
        == frame.reset_index()[list(zarrow.open(tmp_path / "pandas").to_arrow().column_names or ())]
        .apply(tuple, axis=1)
        .tolist()
    )


def test_an_index_ends_with_its_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=["p", "q"])
    zarrow.save(tmp_path, frame)
    root = zarrow.open(tmp_path, mode="r+")
    root.append(frame.set_axis(["r", "s"]))
    assert root.to_pandas().index.tolist() == ["p", "q", "r", "s"]
    del root["index"]
    root.attrs["column-order"] = ["x"]
    assert root.to_pandas().index.tolist() == [0, 1, 2, 3]
    zarrow.save(tmp_path, frame)
    with pytest.warns(zarrow.ZarrowWarning, match="'index'"):
        zarrow.save(tmp_path, frame.reset_index(drop=True))
    assert "pandas" not in zarrow.open(tmp_path).attrs
    assert zarrow.open(tmp_path).to_pandas(["index", "x"]).index.tolist() == [0, 1]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", '{"index_columns": ["x"]}', '{"index_columns": 1, "columns": []}', 3, ["x"]]
)
def test_other_attributes_of_that_name_are_no_index(text: Any, tmp_path: Path) -> None:
    zarrow.save(tmp_path, {"x": [1, 2]})
    zarrow.open(tmp_path, mode="r+").attrs["pandas"] = text
    assert zarrow.open(tmp_path).to_pandas()["x"].tolist() == [1, 2]


def test_an_anndata_names_its_tables(tmp_path: Path) -> None:
    cells = pd.DataFrame({"n": [1, 2, 3]}, index=["a", "b", "c"])
    zarrow.save(tmp_path, anndata.AnnData(np.ones((3, 2)), obs=cells))
    root = zarrow.open(tmp_path)
    for read in (root.to_arrow, root.to_pandas, root.to_polars, root.scan_arrow):
        with pytest.raises(zarrow.ShapeError, match=r'obs and var: type group\["obs"\]'):
            read()
    assert root["obs"].to_pandas(filters=[("n", ">", 1)]).index.tolist() == ["b", "c"]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_lists_of_times_are_compared_exactly(kind: str, unit: str) -> None:
    """Values of the same and of another unit, as scalars of NumPy, pandas and Arrow; none is rounded."""
    numbers = np.array([0, 1, 1000, 1001, 2000])
    times = numbers.astype(f"{kind}[{unit}]")
    group = zarrow.create_group(zarrow.MemoryStore())
    group["t"], group["row"] = times, numbers
    finer = np.array([1001], f"{kind}[ns]")
    for wanted in (times[[3]], times[[1, 3]], finer, np.concatenate([finer, times[:1].astype(finer.dtype)])):
        expected = numbers[np.isin(times.astype(finer.dtype), wanted.astype(finer.dtype))].tolist()
        others = [number for number in numbers.tolist() if number not in expected]
        made = pd.Timestamp if kind == "M8" else pd.Timedelta
        for values in (list(wanted), wanted, pa.array(wanted), [made(each) for each in wanted]):
            for comparison, rows in (("in", expected), ("not in", others)):
                found = group.to_arrow(["row"], filters=[("t", comparison, values)])
                assert found.arrow()["row"].to_pylist() == rows, (comparison, values)
        if len(wanted) == 1:
            found = group.to_arrow(["row"], filters=[("t", "==", made(wanted[0]))])
            assert found.arrow()["row"].to_pylist() == expected


@pytest.mark.parametrize("value", [5, 1.5, pd.Timestamp(5, tz="UTC"), np.timedelta64(5, "ns")])
def test_lists_of_other_values_are_not_compared_with_times(value: Any) -> None:
    group = zarrow.create_group(zarrow.MemoryStore())
    group["t"] = np.array([5], "M8[ns]")
    with pytest.raises(TypeError, match=r"column 't' of timestamp\[ns\] is not compared"):
        group.to_arrow(filters=[("t", "in", [value])])


def test_large_integers_without_a_sign_are_compared() -> None:
    most = 2**64 - 1
    group = zarrow.create_group(zarrow.MemoryStore())
    group["u"] = np.array([1, 2, most], "u8")
    for comparison, value, expected in (
        ("==", most, [most]),
        ("<", most, [1, 2]),
        ("in", [most, 1, -1], [1, most]),
        ("in", np.array([most], "u8"), [most]),
        ("not in", [most], [1, 2]),
    ):
        found = group.to_arrow(filters=[("u", comparison, value)]).arrow()["u"].to_pylist()
        assert found == expected, (comparison, value)
