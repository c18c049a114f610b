"""Tables as dataframes of dask: types, divisions, projection, aligned writing and refusals, beside pandas."""

from __future__ import annotations

import itertools
import pickle
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed  # noqa: F401 - it changes dask's settings, which `dask.config.set` cannot undo
import numpy as np
import pandas as pd
import pyarrow
import pytest
import zarr
from pandas.testing import assert_frame_equal

import zarrow
import zarrow.dask
from zarrow.errors import ExchangeError

pytestmark = pytest.mark.small_files

ROWS = 100


def table(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Return a table with a column of each kind, and missing elements."""
    rng = np.random.default_rng(seed)
    lost = rng.random(rows) < 0.2
    columns = {
        "count": np.arange(rows) * 3,
        "name": pd.array(np.where(lost, None, rng.choice(["owl", "wren", "ä"], rows)), "str"),
        "kind": pd.Categorical(
            np.where(lost, None, rng.choice(list("xyz"), rows)), categories=list("zyxw"), ordered=True
        ),
        "time": pd.Series(pd.date_range("2024-01-01", periods=rows, freq="h")).where(~lost),
        "seen": pd.array(np.where(lost, None, 2**53 + 1), "Int64"),
        "open": pd.array(np.where(lost, None, True), "boolean"),
        "rain": np.where(lost, np.nan, rng.random(rows)).astype("f4"),
        "wait": pd.to_timedelta(np.arange(rows), "s"),
        "flag": rng.random(rows) < 0.5,
    }
    return pd.DataFrame(columns, index=pd.Index([f"r{row:05}" for row in range(rows)], "str", name="id"))


@pytest.fixture(autouse=True)
def types_of_pandas() -> Iterator[None]:
    """Leave the types of text as pandas has them."""
    with dask.config.set({"dataframe.convert-string": False}):
        yield


def test_tables_come_back_as_they_were(tmp_path: Path, scheduler: str) -> None:
    expected = table()
    zarrow.dask.to_table(dd.from_pandas(expected, npartitions=7), tmp_path / "a", chunks=10, shards=30)
    assert_frame_equal(zarrow.open(tmp_path / "a").to_pandas(), expected)
    found = zarrow.dask.read_table(tmp_path / "a", partition_rows=17)
    assert_frame_equal(found.compute(), expected)


def test_types_are_those_of_each_partition(tmp_path: Path) -> None:
    expected = table()
    zarrow.dask.to_table(dd.from_pandas(expected, npartitions=7), tmp_path / "a", chunks=10, index=False)
    found = zarrow.dask.read_table(tmp_path / "a", partition_rows=17)
    assert_frame_equal(found.compute(), expected.reset_index(drop=True))
    assert found.npartitions == 6 and len(found.partitions[1:3]) == 34 and found["kind"].cat.known
    for part in found.partitions:
        assert part.compute().dtypes.equals(expected.dtypes) and part.dtypes.equals(expected.dtypes)
    # Text as dask reads it from other files.
    with dask.config.set({"dataframe.convert-string": True}):
        zarrow.dask.to_table(dd.from_pandas(expected, npartitions=2), tmp_path / "b")
    assert (
        zarrow.dask.read_table(tmp_path / "b")["name"].isna().sum().compute() == expected["name"].isna().sum()
    )


@pytest.mark.parametrize("seed", range(20))
def test_misaligned_partitions_are_written_by_units(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    lengths = [rng.choice((0, rng.randint(1, 40))) for _ in range(rng.randint(1, 9))]
    expected = table(sum(lengths), seed)
    edges = np.cumsum([0, *lengths])
    parts = [expected.iloc[start:stop] for start, stop in itertools.pairwise(edges)]
    frame = dd.from_map(lambda part: part, parts, meta=expected.iloc[:0])
    chunks = rng.randint(1, 20)
    options: dict[str, Any] = {"shards": chunks * rng.randint(1, 4)} if rng.random() < 0.5 else {}
    written = zarrow.dask.to_table(frame, tmp_path / "a", chunks=chunks, compute=False, **options)
    root = zarrow.open(tmp_path / "a")
    unit = root["count"].write_unit[0]
    starts = sorted(key[1] for key in dict(written.dask) if str(key[0]).startswith("write-"))
    assert all(start % unit == 0 for start in starts)
    assert len(set(starts)) == len(starts) and root["count"].nchunks_initialized == 0
    assert "column-order" not in root.attrs
    dask.compute(written)
    found = zarrow.open(tmp_path / "a").to_pandas()
    assert_frame_equal(found, expected)
    assert_frame_equal(zarrow.dask.read_table(tmp_path / "a").compute(), expected)
    # Tasks may run again.
    dask.compute(written)
    assert_frame_equal(zarrow.open(tmp_path / "a").to_pandas(), expected)


def test_only_the_columns_of_a_computation_are_read(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a", {name: np.arange(50) for name in "abc"} | {"s": ["x"] * 50})
    for chunk in [*(tmp_path / "a/b/c").rglob("*"), *(tmp_path / "a/s/c").rglob("*")]:
        if chunk.is_file():
            chunk.write_bytes(b"damaged")
    found = zarrow.dask.read_table(tmp_path / "a", partition_rows=20)
    assert found.divisions == (0, 20, 40, 49)
    assert found["a"].sum().compute() == 49 * 25
    assert (found["a"] + found["c"]).max().compute() == 98
    assert found.loc[30:35]["c"].compute().tolist() == list(range(30, 36))
    assert found[["c", "a"]].compute().columns.tolist() == ["c", "a"]
    assert found.index.max().compute() == 49
    with pytest.raises(zarrow.ZarrowError):
        found["b"].compute()


def test_partitions_that_dask_joins_are_all_written(tmp_path: Path) -> None:
    """dask reads several small files in one task if a computation uses few of their columns."""
    expected = pd.DataFrame({f"column{number}": np.arange(200) + number for number in range(30)})
    (tmp_path / "files").mkdir()
    for number in range(20):
        expected.iloc[10 * number :][:10].to_parquet(tmp_path / f"files/{number:02}.parquet")
    frame = dd.read_parquet(tmp_path / "files", filesystem="arrow")[["column3"]] + 0
    assert frame.optimize().npartitions < 20
    written = frame.compute()["column3"].tolist()
    assert sorted(written) == expected["column3"].tolist()
    for name, options in {"a": {}, "b": {"lengths": [10] * 20}}.items():
        zarrow.dask.to_table(frame, tmp_path / name, chunks=7, **options)
        assert zarrow.open(tmp_path / name).to_pandas()["column3"].tolist() == written


def test_lengths_that_are_known_are_not_computed(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a", {"x": np.arange(100)})
    read = zarrow.dask.read_table(tmp_path / "a", partition_rows=7)
    (tmp_path / "a/x/c/0").write_bytes(b"damaged")
    written = zarrow.dask.to_table(read.assign(y=read["x"] + 1), tmp_path / "b", chunks=10, compute=False)
    assert zarrow.open(tmp_path / "b")["y"].shape == (100,)
    with pytest.raises(zarrow.CodecError):
        dask.compute(written)


def test_types_and_lengths_need_no_rows(tmp_path: Path) -> None:
    zarrow.dask.to_table(dd.from_pandas(table(), npartitions=2), tmp_path / "a", chunks=10)
    for file in (tmp_path / "a").rglob("*"):
        if file.is_file() and file.name != "zarr.json" and "categories" not in file.parts:
            file.write_bytes(b"damaged")
    found = zarrow.dask.read_table(tmp_path / "a", partition_rows=30)
    assert len(found) == ROWS
    assert found.dtypes.equals(table().dtypes)
    with pytest.raises(zarrow.ZarrowError):
        found.compute()


def test_sorted_columns_are_indexes_with_divisions(tmp_path: Path) -> None:
    time = pd.Series(pd.date_range("2024-01-01", periods=100, freq="h"))
    root = zarrow.create_group(tmp_path / "a")
    root.create_array("time", data=time.to_numpy(), chunks=10)
    root.create_array("rain", data=np.arange(100), chunks=10)
    root.create_array("step", data=np.arange(100) // 15, chunks=10)
    root.create_array("down", data=np.arange(100)[::-1], chunks=10)
    found = zarrow.dask.read_table(root, sorted_by="time", partition_rows=20)
    assert found.divisions == (*time[::20], time[99]) and found.columns.tolist() == ["down", "rain", "step"]
    assert found.loc["2024-01-02"]["rain"].compute().tolist() == list(range(24, 48))
    # Neighbours with the same element are joined.
    steps = zarrow.dask.read_table(root, ["rain"], sorted_by="step", partition_rows=20)
    assert steps.divisions == (0, 4, 6) and steps.map_partitions(len).compute().tolist() == [60, 40]
    for step in range(7):
        expected = [row for row in range(100) if row // 15 == step]
        assert steps.loc[step]["rain"].compute().tolist() == expected
    with pytest.raises(zarrow.MetadataError, match="'down' is not in ascending order"):
        zarrow.dask.read_table(root, sorted_by="down")
    root["time"][15] = np.datetime64("2025-01-01")
    with pytest.raises(zarrow.MetadataError, match="'time' is not in ascending order"):
        zarrow.dask.read_table(root, sorted_by="time", partition_rows=20).compute()
    zarrow.dask.to_table(dd.from_pandas(table(), npartitions=2), tmp_path / "b")
    names = zarrow.dask.read_table(tmp_path / "b", sorted_by="id", partition_rows=30)
    assert names.divisions == ("r00000", "r00030", "r00060", "r00090", "r00099")
    assert_frame_equal(names.compute(), table())


def test_partitions_are_whole_chunks_or_shards(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a")
    root.create_array("x", shape=10**8, chunks=70_000, shards=2_100_000, dtype="i4")
    root.create_array("y", shape=10**8, chunks=70_000, dtype="i4")
    starts = zarrow.dask.read_table(root).divisions[:-1]
    assert len(starts) > 2 and all(start % 2_100_000 == 0 for start in starts)
    rows = zarrow.dask.read_table(root[100:300_000], partition_rows=70_000)
    assert rows.divisions == (0, 69_900, 139_900, 209_900, 279_900, 299_899) and len(rows) == 299_900
    assert len(zarrow.dask.read_table(root["y",])) == 10**8


def test_columns_of_plain_groups(tmp_path: Path) -> None:
    columns = {
        "optional": pd.array([1, None, 3], "Int64"),
        "open": pd.array([None, True, False], "boolean"),
        "text": pd.array(["a", None, "c"], "str"),
        "float": pd.array([1.5, None, 2.5], "Float64"),
        "words": ["a", "b", "c"],
        "big": np.arange(3, dtype=">i4"),
        "day": np.array(["2024-01-01", "NaT", "2024-01-03"], "M8[D]"),
        "fixed": np.array([b"a", b"bc", b""]),
    }
    zarrow.save(tmp_path / "a", columns, missing="optional")
    root = zarrow.open(tmp_path / "a")
    root.create_array("pairs", data=np.arange(6).reshape(3, 2))
    for rows in (1, 2, 3):
        read = zarrow.dask.read_table(root, [*columns, "pairs"], partition_rows=rows)
        found = read.compute()
        assert all(part.compute().dtypes.equals(read.dtypes) for part in read.partitions)
        assert found["optional"].tolist() == [1, pd.NA, 3] and found["optional"].dtype == "Int64"
        assert found["open"].dtype == "boolean" and found["text"].isna().tolist() == [False, True, False]
        assert found["text"].dtype == found["words"].dtype == "str" and found["float"].dtype == "f8"
        assert found["big"].tolist() == [0, 1, 2] and found["day"].isna().tolist() == [False, True, False]
        assert found["fixed"].tolist() == [b"a", b"bc", b""]
        assert [pair.tolist() for pair in found["pairs"]] == [[0, 1], [2, 3], [4, 5]]
    old = zarrow.create_group(tmp_path / "b", zarr_format=2)
    old.create_array("x", data=[1, 2])
    assert zarrow.dask.read_table(tmp_path / "b")["x"].compute().tolist() == [1, 2]


def test_empty_tables(tmp_path: Path) -> None:
    expected = table(0)
    zarrow.dask.to_table(dd.from_pandas(expected, npartitions=1), tmp_path / "a")
    found = zarrow.dask.read_table(tmp_path / "a")
    assert_frame_equal(found.compute(), expected)
    assert len(found) == 0 and found["kind"].compute().dtype == expected["kind"].dtype
    by_time = zarrow.dask.read_table(tmp_path / "a", sorted_by="time")
    assert by_time.divisions == (None, None) and by_time.compute().empty


def test_names_depend_on_the_table(tmp_path: Path) -> None:
    for name in "ab":
        zarrow.save(tmp_path / name, {"x": [1, 2], "y": [3, 4]})
    names = [zarrow.dask.read_table(tmp_path / name)._name for name in "aab"]
    assert names[0] == names[1] != names[2]
    read = zarrow.dask.read_table(tmp_path / "a", ["x"])
    assert read._name not in names and pickle.loads(pickle.dumps(read))._name == read._name
    zarrow.open(tmp_path / "a").append({"x": [5], "y": [6]})
    assert zarrow.dask.read_table(tmp_path / "a")._name != names[0]
    assert len(read) == 2 and read["x"].compute().tolist() == [1, 2]


@pytest.mark.parametrize("sorted_by", [None, "x"])
def test_a_table_written_anew_is_read_beside_older_dataframes(sorted_by: str | None, tmp_path: Path) -> None:
    held = []
    for turn in range(1, 4):
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        plain = pd.DataFrame({"x": np.arange(30), "y": np.arange(30) * turn})
        zarrow.dask.to_table(dd.from_pandas(plain, npartitions=3), tmp_path / "a")
        for path in (tmp_path / "a", zarrow.open(tmp_path / "a")):
            held.append(zarrow.dask.read_table(path, sorted_by=sorted_by, partition_rows=10))
            assert held[-1]["y"].compute().tolist() == plain["y"].tolist()
            assert int(held[-1]["y"].sum().compute()) == plain["y"].sum()


def test_graphs_pickle_small(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a")
    for number in range(50):
        root.create_array(f"column{number}", shape=10**6, chunks=100, dtype="f8")
    found = zarrow.dask.read_table(root, partition_rows=100)
    assert found.npartitions == 10**4
    assert len(pickle.dumps(found["column7"].optimize())) < 200_000
    assert len(pickle.dumps(found.expr.func)) < 400


def test_tables_in_memory_are_written_by_threads_only() -> None:
    store = zarrow.MemoryStore()
    frame = dd.from_pandas(table(), npartitions=3)
    written = zarrow.dask.to_table(frame, store, component="t", chunks=7, compute=False)
    with pytest.raises(TypeError, match="MemoryStore"):
        pickle.dumps(written)
    written.compute(scheduler="threads")
    assert_frame_equal(zarrow.open_group(store, path="t").to_pandas(), table())
    assert_frame_equal(zarrow.dask.read_table(store, component="t").compute(scheduler="threads"), table())


def test_categories_that_differ_by_partition(tmp_path: Path) -> None:
    parts = [pd.DataFrame({"c": pd.Categorical(values)}) for values in (["b", "a"], ["c", None], ["a"])]
    meta = parts[0].iloc[:0].copy()
    meta["c"] = meta["c"].cat.set_categories([dd.utils.UNKNOWN_CATEGORIES])
    frame = dd.from_map(lambda part: part, parts, meta=meta)
    zarrow.dask.to_table(frame, tmp_path / "a", index=False)
    found = zarrow.open(tmp_path / "a").to_pandas()["c"]
    assert found.dtype.categories.tolist() == ["a", "b", "c"]
    assert found.astype(object).where(found.notna(), None).tolist() == ["b", "a", "c", None, "a"]
    ordered = [part.assign(c=part["c"].cat.as_ordered()) for part in parts]
    with pytest.raises(zarrow.DataTypeError, match="ordered categories that differ"):
        zarrow.dask.to_table(dd.from_map(lambda part: part, ordered, meta=meta), tmp_path / "b")
    known = dd.from_map(lambda part: part, parts, meta=parts[0].iloc[:0])
    with pytest.raises(zarrow.DataTypeError, match="element 'c', expected one of"):
        zarrow.dask.to_table(known, tmp_path / "b")


def test_partitions_that_dask_describes_wrongly_are_refused(tmp_path: Path) -> None:
    calls = []

    def growing(part: pd.DataFrame) -> pd.DataFrame:
        calls.append(0)
        return pd.concat([part] * len(calls))

    plain = pd.DataFrame({"x": [1, 2]})
    for number, (make, error, message) in enumerate(
        [
            (lambda part: part.astype("f8"), zarrow.DataTypeError, "has type float64, expected int64"),
            (lambda part: part.rename(columns={"x": "y"}), zarrow.DataTypeError, "columns"),
            (growing, zarrow.ShapeError, "lengths=.*gives other rows each time"),
        ]
    ):
        frame = dd.from_map(make, [plain], meta=plain.iloc[:0])
        with dask.config.set(scheduler="synchronous"), pytest.raises(error, match=message):
            zarrow.dask.to_table(frame, tmp_path / str(number))
    mixed = pd.DataFrame({"x": np.array(["a", 1], dtype=object)})
    with pytest.raises(ExchangeError, match="not text"):
        zarrow.dask.to_table(dd.from_pandas(mixed, npartitions=1), tmp_path / "mixed")


def test_what_cannot_be_stored_changes_nothing(tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": [1, 2]}), npartitions=1)
    zarrow.dask.to_table(frame, tmp_path / "old")
    before = sorted(tmp_path.rglob("*"))
    zone = frame.assign(t=pd.Timestamp("2024-01-01", tz="UTC"))
    cut: dict[str, Any] = {"mode": "w", "chunks": 3, "shards": 4}
    renamed = frame.rename(columns={"x": "a/b"})
    unknown = frame.astype({"x": "category"}).set_index("x", sort=False, divisions=None)
    read = zarrow.dask.read_table(tmp_path / "old")
    named = dd.from_pandas(pd.DataFrame({"x": [1, 2]}, index=pd.Index([0, 2], name="x")), npartitions=1)
    hidden = frame.rename(columns={"x": "_index"})
    for call, error, message in (
        (lambda: zarrow.dask.to_table(frame, tmp_path / "old"), FileExistsError, r'old\): mode="w" rep'),
        (lambda: zarrow.dask.to_table(zone, tmp_path / "new"), ExchangeError, "column 't'.*UTC.*tz_localize"),
        (lambda: zarrow.dask.to_table(zone.set_index("t", sorted=True), tmp_path / "new"), ExchangeError,
         "the index has type .*UTC.*map_partitions"),
        (lambda: zarrow.dask.to_table(named, tmp_path / "new"), ExchangeError, "named 'x'.*index=False"),
        (lambda: zarrow.dask.to_table(hidden, tmp_path / "new"), ExchangeError, "named '_index': rename"),
        (lambda: zarrow.dask.to_table(hidden, tmp_path / "new", index=False), ExchangeError, "'_index'"),
        (lambda: zarrow.dask.to_table(frame.rename(columns={"x": 1}), tmp_path / "new"), ExchangeError,
         "^the table has the column 1, "),
        (lambda: zarrow.open(tmp_path / "old").to_pandas(rows=5), TypeError, "rows as a slice.* got 5"),
        (lambda: zarrow.dask.to_table(zone, tmp_path / "old", mode="w"), ExchangeError, "UTC"),
        (lambda: zarrow.dask.to_table(read, tmp_path / "old", mode="w"), zarrow.NodeExistsError, "reads"),
        (lambda: zarrow.dask.to_table(read, tmp_path, mode="w"), zarrow.NodeExistsError, "reads"),
        (lambda: zarrow.dask.to_table(frame, tmp_path / "old", mode="w", codec=1), TypeError, "codec"),
        (lambda: zarrow.dask.to_table(frame, tmp_path / "old", **cut), ValueError, "shard"),
        (lambda: zarrow.dask.to_table(frame, tmp_path / "new", dtype="f4"), TypeError, "dtype"),
        (lambda: zarrow.dask.to_table(frame, tmp_path / "new", mode="r"), ValueError, "mode"),
        (lambda: zarrow.dask.to_table(frame, tmp_path / "new", lengths=[1, 1]), zarrow.ShapeError, "2"),
        (lambda: zarrow.dask.to_table(frame["x"], tmp_path / "new"), TypeError, "Series"),
        (lambda: zarrow.dask.to_table(frame.compute(), tmp_path / "new"), TypeError, "DataFrame"),
        (lambda: zarrow.dask.to_table(renamed, tmp_path / "new"), ExchangeError, "/"),
        (lambda: zarrow.dask.to_table(unknown, tmp_path / "new"), zarrow.DataTypeError, "categorize"),
        (lambda: zarrow.dask.read_table(tmp_path / "none"), zarrow.NotFoundError, "none"),
        (lambda: zarrow.dask.read_table(tmp_path / "old", ["y"]), zarrow.NotFoundError, "y"),
        (lambda: zarrow.dask.read_table(tmp_path / "old", ["x", "x"]), zarrow.MetadataError, "twice"),
        (lambda: zarrow.dask.read_table(tmp_path / "old", "x"), TypeError, r"\['x'\]"),
        (lambda: zarrow.dask.read_table(tmp_path / "old", sorted_by="y"), zarrow.NotFoundError, "y"),
        (lambda: zarrow.dask.read_table(tmp_path / "old", partition_rows=0), ValueError, "partition_rows"),
        (lambda: zarrow.dask.read_table(tmp_path / "old" / "x"), TypeError, "array"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()
    assert sorted(tmp_path.rglob("*")) == before
    zarrow.dask.to_table(named, tmp_path / "new", index=False)
    assert zarrow.open(tmp_path / "new").to_pandas()["x"].tolist() == [1, 2]
    assert read.compute()["x"].tolist() == [1, 2]


def test_no_way_of_reading_a_table_lets_it_be_erased(tmp_path: Path) -> None:
    plain = pd.DataFrame({"x": np.arange(30), "k": np.arange(30) % 7})
    zarrow.dask.to_table(dd.from_pandas(plain, npartitions=3), tmp_path / "a", index=False)
    zarrow.dask.to_table(dd.from_pandas(plain, npartitions=3), tmp_path / "b", index=False)
    (tmp_path / "link").symlink_to("a")
    root = zarrow.open(tmp_path / "a")
    read = zarrow.dask.read_table(tmp_path / "a", partition_rows=10)

    def of_closure(number: int, source: Any = (root,)) -> pd.DataFrame:
        return source[0].to_pandas(rows=slice(number, number + 1))

    def series(array: Any) -> Any:
        return dd.from_dask_array(array, columns="x").to_frame()

    frames = {
        "delayed": dd.from_delayed(read.to_delayed(), meta=read._meta),
        "array of dask": read.to_dask_array(lengths=True).to_dask_dataframe(columns=["x", "k"]),
        "array": series(root["x"].to_dask(chunks=10)),
        "path": series(zarrow.dask.from_zarr(tmp_path / "link", "x", chunks=10)),
        "zarr-python": series(da.from_zarr(zarr.open_array(tmp_path / "a/x"))),
        "function": dd.from_map(of_closure, [0, 1], meta=plain.iloc[:0]),
        "method": dd.from_delayed(dask.delayed(root.to_pandas)(), meta=plain),
        "rows": dd.from_delayed(dask.delayed(zarrow.Table.to_pandas)(root[:9]), meta=plain),
        "indexer": dd.from_delayed(
            dask.delayed(lambda column: pd.DataFrame({"x": column[:].numpy()}))(root["x"].oindex),
            meta=plain[["x"]],
        ),
        "join": dd.from_pandas(plain, npartitions=2).merge(read, on="x")[["x"]],
    }
    for way, frame in frames.items():
        for target, component in ((tmp_path / "a", None), (tmp_path, "link"), (root, None), (tmp_path, None)):
            with pytest.raises(zarrow.NodeExistsError, match=r"reads '/x?' in .* erased"):
                zarrow.dask.to_table(frame, target, component=component, mode="w")
        assert_frame_equal(root.to_pandas(), plain)
        zarrow.dask.to_table(frame, tmp_path / "b", mode="w")
        assert zarrow.open(tmp_path / "b")["x"][...].tolist(), way
    held = read.persist()
    zarrow.dask.to_table(held, tmp_path / "a", mode="w", index=False)
    assert_frame_equal(zarrow.open(tmp_path / "a").to_pandas(), plain)


@pytest.mark.parametrize("kind", [zarrow.MemoryStore, zarr.storage.MemoryStore])
def test_a_table_in_memory_does_not_erase_itself(kind: Any) -> None:
    one, other = kind(), kind()
    for store in (one, other):
        zarrow.dask.to_table(dd.from_pandas(table(), npartitions=3), store, component="a/t")
    read = zarrow.dask.read_table(one, component="a/t")
    with dask.config.set(scheduler="synchronous"):
        for path in ("a/t", "/a/t/", "a", "", "a/t/kind"):
            with pytest.raises(zarrow.NodeExistsError, match=r"reads '/a/t'"):
                zarrow.dask.to_table(read, one, component=path, mode="w")
        zarrow.dask.to_table(read, one, component="a/u", mode="w")
        zarrow.dask.to_table(read, other, component="a/t", mode="w")
    for store, path in ((one, "a/t"), (one, "a/u"), (other, "a/t")):
        assert_frame_equal(zarrow.open_group(store, path=path).to_pandas(), table())


def test_a_failed_task_leaves_no_table(tmp_path: Path) -> None:
    def failing(part: pd.DataFrame, number: int) -> pd.DataFrame:
        if number == 2:
            raise RuntimeError("lost")
        return part

    plain = pd.DataFrame({"x": [1, 2]})
    frame = dd.from_map(failing, [plain] * 3, range(3), meta=plain.iloc[:0])
    for index in (True, False):
        with pytest.raises(RuntimeError, match="lost"):
            zarrow.dask.to_table(frame, tmp_path / "a", lengths=[2, 2, 2], index=index, mode="w")
        _expect_unfinished(tmp_path / "a")
        rest = zarrow.dask.to_table(
            frame.partitions[:2], tmp_path / "a", index=index, mode="w", compute=False
        )
        assert rest is not None
        _expect_unfinished(tmp_path / "a")
        group = zarrow.open(tmp_path / "a")
        group.attrs["title"] = "birds"
        for _ in range(2):  # tasks may run again
            rest.compute()
            assert zarrow.open(tmp_path / "a").to_pandas()["x"].tolist() == [1, 2, 1, 2]
        assert group.num_rows == 4
        encoding = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
        expected = {"title": "birds", "column-order": ["x"]} | (encoding if index else {})
        assert group.attrs.asdict() == zarrow.open(tmp_path / "a").attrs.asdict() == expected


def _expect_unfinished(path: Path) -> None:
    group = zarrow.open(path)
    assert "column-order" not in group.attrs
    for read in (
        lambda: zarrow.dask.read_table(path),
        lambda: zarrow.dask.read_table(path, ["x"]),
        lambda: zarrow.dask.read_table(path.parent, component=path.name),
        lambda: zarrow.load(path),
        lambda: group.num_rows,
        lambda: group.schema,
        lambda: group[:1],
        lambda: group["x",],
        lambda: group.to_pandas(),
        lambda: group.to_pandas(["x"]),
        lambda: group.to_polars(),
        lambda: group.to_arrow("x"),
        lambda: pyarrow.table(group),
        lambda: group.scan_polars(),
        lambda: group.scan_arrow(sorted_by="x"),
        lambda: group.to_parquet(path.parent / "parquet"),
        lambda: group.append({"x": [3], "_index": [4]}),
    ):
        with pytest.raises(zarrow.MetadataError, match=r"'/a?' is an unfinished table: .* mode='w'"):
            read()


@pytest.mark.parametrize("index", [True, False])
def test_columns_that_are_saved_finish_a_table(index: bool, tmp_path: Path) -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": [1, 2]}), npartitions=1)
    zarrow.dask.to_table(frame, tmp_path / "a", index=index, compute=False)
    if index:
        zarrow.open(tmp_path / "a")["_index"] = [0, 1, 2]
    zarrow.save(tmp_path / "a", pd.DataFrame({"x": [1, 2, 3]}))
    assert zarrow.open(tmp_path / "a").to_pandas()["x"].tolist() == [1, 2, 3]


def test_threads_read_and_write_tables_at_once(tmp_path: Path) -> None:
    expected = table(500)
    zarrow.dask.to_table(dd.from_pandas(expected, npartitions=5), tmp_path / "a", chunks=10)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            read = zarrow.dask.read_table(tmp_path / "a", partition_rows=33)
            zarrow.dask.to_table(read, tmp_path / str(number), chunks=20, shards=60)
            assert_frame_equal(zarrow.dask.read_table(tmp_path / str(number)).compute(), expected)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
