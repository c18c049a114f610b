"""Selections of rows and columns, and scans by polars, pyarrow and DuckDB: results, and chunks read."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import anndata
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.acero
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zarrow

ROWS = 10_000
START = datetime.datetime(2024, 1, 1)


class Counting(MutableMapping[str, bytes]):
    """A store in memory that lists the chunks it is asked for."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.read: list[str] = []

    def __getitem__(self, key: str) -> bytes:
        if "/c/" in key:
            self.read.append(key)
        return self.stored[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.stored[key] = value

    def __delitem__(self, key: str) -> None:
        del self.stored[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def chunks_of(self, name: str) -> list[int]:
        """Return which chunks of a column were read, in order."""
        return sorted(int(key.rpartition("/")[2]) for key in self.read if key.startswith(f"{name}/"))


@pytest.fixture(scope="module")
def store() -> Counting:
    made = Counting()
    group = zarrow.create_group(made)
    numbers = np.arange(ROWS)
    times = np.datetime64(START, "us") + numbers * np.timedelta64(1, "m")
    group.create_array("falling", data=numbers[::-1].astype("f4"), chunks=200)
    group.create_array("flag", data=numbers % 7 == 0, chunks=100)
    group.create_array("time", data=times, chunks=100)
    group.create_array("value", data=np.sin(numbers), chunks=100)
    group["word"] = [f"word {number:05}" for number in numbers]
    made.read.clear()
    return made


@pytest.fixture
def group(store: Counting) -> Iterator[zarrow.Group]:
    found = zarrow.open(store)
    store.read.clear()
    yield found
    store.read.clear()


@pytest.fixture(scope="module")
def expected(store: Counting) -> pl.DataFrame:
    frame = zarrow.open(store).to_polars()
    store.read.clear()
    return frame


def test_rows_and_columns_are_selected_without_a_read(group: zarrow.Group, store: Counting) -> None:
    table = group["word", "value"][100:][10:-9000]
    assert isinstance(table, zarrow.Table)
    assert (table.num_rows, len(table), table.column_names) == (890, 890, ["word", "value"])
    assert table.schema.names == ["word", "value"] and pa.schema(table).equals(table.schema)
    assert group.num_rows == ROWS and group.schema == pa.schema(group) and "890 rows of word" in repr(table)
    assert len(group[20:10]) == 0 and len(group[-3:]) == 3
    assert store.read == []
    expected = pa.table(group.to_arrow(["word", "value"], rows=slice(110, 1000)))
    for found in (pa.table(table), table.to_arrow().arrow()):
        assert found.equals(expected)
    assert table.to_polars().equals(pl.DataFrame(expected))
    assert table.to_pandas().equals(group.to_pandas(["word", "value"]).iloc[110:1000].reset_index(drop=True))
    assert table["word"].tolist() == expected["word"].to_pylist()
    assert table["value", "word"].column_names == ["value", "word"]
    assert table["value", "word"].columns == ("value", "word") and table["value", "word"].shape == (890, 2)
    assert group[:].columns == tuple(group[:].column_names) and group[:].shape == (
        ROWS,
        len(group[:].columns),
    )


def test_a_table_is_pickled(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", {"a": [1, 2, 3], "b": ["x", "y", "z"]})
    table = pickle.loads(pickle.dumps(zarrow.open(tmp_path / "a.zarr")["b", "a"][1:]))
    assert table.to_polars().rows() == [("y", 2), ("z", 3)]


def test_refused_selections(group: zarrow.Group) -> None:
    with pytest.raises(KeyError, match="nothing"):
        group["value", "nothing"]
    with pytest.raises(KeyError, match="nothing"):
        group[0:5]["nothing", "value"]
    with pytest.raises(ValueError, match="without a step"):
        group[::2]
    with pytest.raises(ValueError, match="twice"):
        group["value", "value"]
    with pytest.raises(TypeError, match="got int"):
        group[3]
    with pytest.raises(TypeError, match="got 3"):
        group[0:5][3]
    with pytest.raises(ValueError, match="at least one array"):
        zarrow.create_group({})[0:5]
    for name, message in (("nothing", "not a column"), ("value/a", "not a column")):
        with pytest.raises(ValueError, match=message):
            group.scan_polars(sorted_by=name)


PREDICATES: list[Callable[[], pl.Expr]] = [
    lambda: pl.col("time") >= START + datetime.timedelta(minutes=9_876),
    lambda: pl.col("time").is_between(START, START + datetime.timedelta(minutes=150), closed="none"),
    lambda: (pl.col("time") < START + datetime.timedelta(minutes=3)) | (pl.col("falling") < 5),
    lambda: (pl.col("time") == START) & pl.col("word").str.ends_with("0"),
    lambda: pl.col("falling") > 9_990,
    lambda: ~(pl.col("falling") > 10) & pl.col("flag"),
    lambda: pl.col("falling").is_in([3.0, 5_000.0]),
    lambda: pl.col("word") == "word 00777",
    lambda: pl.col("value") > 0.9999,
    lambda: pl.col("value") > 2,
    lambda: pl.col("flag"),
    lambda: pl.lit(True),
]


@pytest.mark.parametrize("sorted_by", [None, "time", "falling", "word"])
@pytest.mark.parametrize("number", range(len(PREDICATES)))
def test_polars_gets_what_it_filters(
    group: zarrow.Group, expected: pl.DataFrame, sorted_by: str | None, number: int
) -> None:
    predicate = PREDICATES[number]()
    scan = group.scan_polars(sorted_by=sorted_by)
    for change in (
        lambda frame: frame.filter(predicate),
        lambda frame: frame.filter(predicate).select("value"),
        lambda frame: frame.head(777).filter(predicate).select("word", "time"),
        lambda frame: frame.filter(predicate).select(pl.len()),
        lambda frame: frame.slice(50, 400).filter(predicate).group_by("flag").len().sort("flag"),
    ):
        assert change(scan).collect().equals(change(expected.lazy()).collect())
    first = scan.filter(predicate).head(3).collect(engine="streaming")
    assert first.equals(expected.filter(predicate).head(3))


QUERIES = [
    "SELECT count(*) FROM t",
    "SELECT sum(value) FROM t WHERE falling < 10",
    "SELECT word FROM t WHERE time >= '2024-01-07 20:00'::TIMESTAMP ORDER BY word",
    "SELECT word, flag FROM t WHERE falling IN (3, 77) OR falling > 9998 ORDER BY word",
    "SELECT falling FROM t WHERE word = 'word 00777' AND value < 2",
    "SELECT word FROM t WHERE flag AND word LIKE '%99' ORDER BY word",
    "SELECT a.word FROM t a JOIN t b USING (falling) WHERE b.value > 0.99999 ORDER BY 1",
    "SELECT min(time) FROM t WHERE falling IS NULL",
]


@pytest.mark.parametrize("sorted_by", [None, "time", "falling", "word"])
def test_duckdb_gets_what_it_filters(
    group: zarrow.Group, expected: pl.DataFrame, sorted_by: str | None
) -> None:
    for query in QUERIES:
        with duckdb.connect() as connection:
            connection.register("t", group.scan_arrow(sorted_by=sorted_by))
            found = connection.sql(query).fetchall()
            connection.register("t", expected.to_arrow())
            assert found == connection.sql(query).fetchall(), query


def test_only_columns_of_a_query_are_read(group: zarrow.Group, store: Counting) -> None:
    assert group.scan_polars().select("value").collect().height == ROWS
    assert store.chunks_of("value") == list(range(100)) and len(store.read) == 100
    store.read.clear()
    assert group.scan_polars().select("value").head(250).collect().height == 250
    assert store.chunks_of("value") == [0, 1, 2]
    store.read.clear()
    assert group[150:250].scan_polars().select("value").collect().height == 100
    assert store.chunks_of("value") == [1, 2] and len(store.read) == 2
    store.read.clear()
    assert group.scan_arrow().count_rows() == ROWS and store.read == []


def test_other_columns_are_read_only_where_rows_match(group: zarrow.Group, store: Counting) -> None:
    scan = group.scan_polars()
    assert scan.filter(pl.col("falling") == 5_000).select("value", "word").collect().height == 1
    assert len(store.chunks_of("falling")) == 50, "which are all"
    assert store.chunks_of("value") == [49]
    store.read.clear()
    assert scan.filter(pl.col("falling") > 1e9).collect().height == 0
    assert {key.partition("/")[0] for key in store.read} == {"falling"}


@pytest.mark.parametrize("library", ["polars", "duckdb", "pyarrow"])
def test_a_sorted_column_is_searched(group: zarrow.Group, store: Counting, library: str) -> None:
    begin, end = START + datetime.timedelta(minutes=5_050), START + datetime.timedelta(minutes=5_120)
    if library == "polars":
        lazy = group.scan_polars(sorted_by="time").filter(pl.col("time").is_between(begin, end))
        values = lazy.select("value").collect()["value"].to_list()
    elif library == "duckdb":
        with duckdb.connect() as connection:
            connection.register("t", group.scan_arrow(sorted_by="time"))
            query = f"SELECT value FROM t WHERE time BETWEEN '{begin}'::TIMESTAMP AND '{end}'::TIMESTAMP"
            values = [value for (value,) in connection.sql(query).fetchall()]
    else:
        condition = (pc.field("time") >= begin) & (pc.field("time") <= end)
        table = group.scan_arrow(sorted_by="time").to_table(columns=["value"], filter=condition)
        values = table["value"].to_pylist()
    assert values == np.sin(np.arange(5_050, 5_121)).tolist()
    assert store.chunks_of("value") == [50, 51]
    assert len(store.chunks_of("time")) < 20, "of 100 chunks"


def test_a_descending_column_is_searched(group: zarrow.Group, store: Counting) -> None:
    lazy = group.scan_polars(sorted_by="falling").filter(pl.col("falling") == 42)
    assert lazy.select("word").collect().item() == "word 09957"
    assert len(store.chunks_of("falling")) < 15, "of 50 chunks"


def test_an_unsorted_column_is_found_out() -> None:
    values = np.arange(1000)
    values[505] = -1
    group = zarrow.create_group({})
    group.create_array("a", data=values, chunks=10)
    with pytest.raises(ValueError, match="'a' is not sorted"):
        group.scan_polars(sorted_by="a").filter(pl.col("a") > 400).collect()
    group["a"] = np.arange(1000) % 10
    with pytest.raises(ValueError, match="'a' is not sorted"):
        group.scan_arrow(sorted_by="a").to_table(filter=pc.field("a") > 8)


def test_missing_elements_at_the_ends_are_kept() -> None:
    values = [np.nan, *np.arange(98.0), np.nan]
    group = zarrow.create_group({})
    group.create_array("a", data=values, chunks=7)
    frame = pl.DataFrame({"a": values})
    for predicate in (pl.col("a") > 95, pl.col("a") < 3, pl.col("a") == 50.0, pl.col("a").is_nan()):
        found = group.scan_polars(sorted_by="a").filter(predicate).collect()
        assert found.equals(frame.filter(predicate))


def test_a_dataset_has_the_methods_of_a_scan(group: zarrow.Group, store: Counting) -> None:
    dataset = group.scan_arrow(sorted_by="time")
    assert isinstance(dataset, pyarrow.dataset.Dataset) and dataset.schema == group.schema
    assert dataset.head(3, columns=["value"]).num_rows == 3
    assert len(store.read) == 100, "a batch of one column"
    condition = pc.field("falling") < 7
    assert dataset.count_rows(condition) == 7
    assert dataset.scanner(["value"], filter=condition).to_reader().read_all().num_rows == 7
    assert sum(batch.num_rows for batch in dataset.to_batches(filter=condition)) == 7
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("falling") < 7).collect().height == 7
    assert dataset.to_table(columns=[]).num_rows == ROWS
    with pytest.raises(KeyError, match="nothing"):
        dataset.to_table(columns=["nothing"])
    for name in ("filter", "get_fragments", "join", "replace_schema", "sort_by", "take"):
        with pytest.raises(NotImplementedError, match="to_table"):
            getattr(dataset, name)(None)


def test_a_filter_names_columns_by_their_place(group: zarrow.Group) -> None:
    dataset, memory = group.scan_arrow(), pyarrow.dataset.dataset(pa.table(group.to_arrow()))
    for place in range(3):
        condition = pc.field(place).is_valid() & (pc.field(0) > 9_000)
        for columns in (["word"], ["value", "falling"]):
            found = dataset.to_table(columns=columns, filter=condition)
            assert found.equals(memory.to_table(columns=columns, filter=condition))
        assert dataset.count_rows(filter=condition) == memory.count_rows(filter=condition) == 999


def test_a_dataset_that_others_scan_themselves_is_an_error(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", {"a": [1, 2, 3]})
    dataset = pickle.loads(pickle.dumps(zarrow.open(tmp_path / "a.zarr").scan_arrow(sorted_by="a")))
    assert dataset.to_table(filter=pc.field("a") > 1).to_pydict() == {"a": [2, 3]}
    with pytest.raises(FileNotFoundError, match="call to_table"):
        pyarrow.dataset.Scanner.from_dataset(dataset).to_table()
    options = pyarrow.acero.ScanNodeOptions(dataset)
    with pytest.raises(FileNotFoundError, match="call to_table"):
        pyarrow.acero.Declaration("scan", options).to_table()


@pytest.mark.parametrize("kind", ["bool", "c8"])
def test_a_column_without_order_is_refused(kind: str) -> None:
    group = zarrow.create_group({})
    group.create_array("a", data=np.zeros(3, kind))
    for scan in (group.scan_polars, group.scan_arrow):
        with pytest.raises(ValueError, match="expected numbers, times or text"):
            scan(sorted_by="a")


def test_batches_share_the_memory_of_reads(store: Counting, group: zarrow.Group) -> None:
    before = pa.total_allocated_bytes()
    batch = next(iter(pa.RecordBatchReader.from_stream(group["value", "time"])))
    assert batch.num_rows == ROWS and pa.total_allocated_bytes() == before, "pyarrow allocated nothing"
    table = group.scan_arrow().to_table(columns=["value"], filter=pc.field("value") > -2)
    assert table.num_rows == ROWS
    frame = group["value",].scan_polars().collect()
    assert frame["value"].to_numpy(allow_copy=False) is not None


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_a_parquet_file_has_the_table(group: zarrow.Group, tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.parquet"
    group[50:].to_parquet(path, compression=compression)
    group.to_parquet(path, compression=compression)
    assert pyarrow.parquet.read_table(path).equals(pa.table(group))
    assert pl.read_parquet(path).equals(group.to_polars())
    assert [each.name for each in tmp_path.iterdir()] == ["a.parquet"]


def test_a_failed_parquet_file_leaves_the_old_one(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", {"a": np.arange(100), "b": np.arange(100)})
    path = tmp_path / "a.parquet"
    path.write_bytes(b"old")
    (tmp_path / "a.zarr" / "b" / "c" / "0").write_bytes(b"no chunk")
    with pytest.raises(OSError, match="b"):
        zarrow.open(tmp_path / "a.zarr").to_parquet(path)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_tables_of_anndata_are_selected_and_scanned(tmp_path: Path) -> None:
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical([["a", "b", None][row % 3] for row in range(90)]),
            "count": pd.array([None if row % 4 == 0 else row for row in range(90)], "Int64"),
            "size": np.arange(90.0),
        },
        index=[f"cell {row}" for row in range(90)],
    )
    zarrow.save(tmp_path / "a.zarr", anndata.AnnData(np.zeros((90, 1)), obs=obs))
    group = zarrow.open(tmp_path / "a.zarr")["obs"]
    stored = group.to_pandas()
    pd.testing.assert_index_equal(stored.index, obs.index)
    pd.testing.assert_frame_equal(group[10:30].to_pandas(), stored.iloc[10:30])
    pd.testing.assert_frame_equal(group["size", "kind"][5:].to_pandas(), stored[["size", "kind"]].iloc[5:])
    assert group[3:6]["kind"].tolist() == ["a", "b", None]
    whole = group.to_polars()
    for predicate in (pl.col("kind") == "a", pl.col("count").is_null(), pl.col("size") > 80):
        for scan in (group.scan_polars(), group.scan_polars(sorted_by="size")):
            found = scan.filter(predicate).collect()
            assert found.equals(whole.filter(predicate)), predicate
    table = group.scan_arrow(sorted_by="size").to_table(filter=pc.field("size") < 4)
    assert table["kind"].to_pylist() == ["a", "b", None, "a"]
    with pytest.raises(ValueError, match="one axis"):
        group.scan_arrow(sorted_by="kind")
    path = tmp_path / "a.parquet"
    group.to_parquet(path)
    assert pyarrow.parquet.read_table(path)["count"].to_pylist() == whole["count"].to_list()


KINDS = st.sampled_from(["i1", "u8", "f4", "f8", "M8[s]", "M8[ns]", "m8[ms]", "U5"])


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=KINDS,
    chunks=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    values=st.lists(st.integers(0, 50), min_size=1, max_size=80),
    limits=st.tuples(st.integers(-2, 52), st.integers(-2, 52)),
    falls=st.booleans(),
    rows=st.tuples(st.integers(-90, 90), st.integers(-90, 90)),
)
def test_any_sorted_column_gives_the_rows_of_a_filter(
    kind: str,
    chunks: tuple[int, int],
    values: list[int],
    limits: tuple[int, int],
    falls: bool,
    rows: tuple[int, int],
) -> None:
    numbers = np.sort(np.array(values))[:: -1 if falls else 1]
    limit, other = (int(np.clip(each, 0, 52)) for each in limits)

    def made(each: Any) -> Any:
        if kind == "U5":
            return np.char.zfill(np.asarray(each).astype("U5"), 5)
        return np.asarray(each).astype(kind)

    group = zarrow.create_group({})
    key = made(numbers)
    if kind == "U5":
        group["key"] = key
    else:
        group.create_array("key", data=key, chunks=chunks[0])
    group.create_array("number", data=np.arange(len(values)), chunks=chunks[1])
    frame = group.to_polars()[slice(*rows)]
    low, high = (pl.lit(pl.Series(pa.array(made([each])))).first() for each in (limit, other))
    column = pl.col("key")
    table = group[slice(*rows)]
    for predicate in (
        column > low,
        column <= high,
        column == low,
        column != low,
        (column >= low) & (column < high),
        (column < low) | (column > high),
        column.is_between(low, high, closed="right"),
        ~column.is_between(low, high),
    ):
        found = table.scan_polars(sorted_by="key").filter(predicate).collect()
        assert found.equals(frame.filter(predicate)), predicate
    first, last = (pa.array(made([each]))[0] for each in (limit, other))
    field = pc.field("key")
    for condition in (field > first, field == last, (field < first) | (field >= last), field.isin([first])):
        arrow = table.scan_arrow(sorted_by="key").to_table(filter=condition)
        assert arrow.equals(pa.table(table).filter(condition)), condition
