"""Arrays and groups as Arrow streams: contents, time of reading, consumers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zarrow

ROWS = 1000
WORDS = np.array([f"word {row}" * (row % 5) for row in range(ROWS)])
COLUMNS: dict[str, np.ndarray[Any, Any]] = {
    "flag": np.arange(ROWS) % 3 == 0,
    "height": np.linspace(0, 1, ROWS, dtype=np.float32),
    "image": np.arange(ROWS * 6, dtype=np.int16).reshape(ROWS, 2, 3),
    "number": np.arange(ROWS, dtype=np.int64) * 7,
    "time": np.arange(ROWS).astype("M8[s]"),
    "word": WORDS,
}
CHUNKS = {"flag": 64, "height": 100, "image": 7, "number": 1000, "time": 333, "word": 50}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table") / "table.zarr"
    root = zarr.create_group(folder, attributes={"title": "a table", "version": [1, 2]})
    for name, values in COLUMNS.items():
        dtype = str if values.dtype.kind == "U" else values.dtype
        chunks = (CHUNKS[name], *values.shape[1:])
        names = ("row", "y", "x")[: values.ndim]
        array = root.create_array(name, shape=values.shape, chunks=chunks, dtype=dtype, dimension_names=names)
        array[...] = values
    root["height"].attrs.update({"units": "m", "valid_range": [0, 1], "ARROW:extension:name": "evil"})
    root.create_array("crs", shape=(), dtype="i4")
    root.create_group("other").create_array("short", shape=(3,), dtype="i4")
    return folder


@pytest.fixture
def group(folder: Path) -> zarrow.Group:
    return zarrow.open(folder)


def expected(columns: list[str], rows: slice = slice(None)) -> pa.Table:
    """Return pyarrow's conversion of the NumPy arrays."""
    made = {}
    for name in columns:
        values = COLUMNS[name][rows]
        if values.ndim > 1:
            made[name] = pa.FixedShapeTensorArray.from_numpy_ndarray(values, dim_names=["y", "x"])
        else:
            made[name] = pa.array(values.tolist(), pa.large_string()) if name == "word" else pa.array(values)
    return pa.table(made)


def sql(query: str, **tables: Any) -> list[tuple[Any, ...]]:
    """Query DuckDB, which sees the caller's variables; here they are registered."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(query).fetchall()


def test_a_group_is_a_table(group):
    stream = group.to_arrow()
    assert isinstance(stream, zarrow.ArrowStream)
    assert (stream.num_rows, stream.column_names) == (ROWS, sorted(COLUMNS)), "without groups, without axes"
    table = pa.table(stream)
    table.validate(full=True)
    assert table.equals(expected(sorted(COLUMNS))) and stream.arrow().equals(table)
    assert pa.table(stream).equals(table), "a stream may be read again"
    assert "1000 rows of flag, height" in repr(stream)


def test_rows_are_filtered_by_a_bool(group):
    wanted = COLUMNS["number"][COLUMNS["flag"]].tolist()
    table = pa.table(group.to_arrow(["flag", "number"]))
    assert table.filter(table["flag"])["number"].to_pylist() == wanted
    frame = pl.DataFrame(group.to_arrow(["flag", "number"]))
    assert frame.filter(pl.col("flag"))["number"].to_list() == wanted
    assert sql("SELECT number FROM rows WHERE flag", rows=table) == [(number,) for number in wanted]
    as_bytes = pa.table(group.to_arrow(["flag"], bools="bytes"))
    assert as_bytes["flag"].type == pa.bool8()


def test_columns_are_chosen_in_their_order(group):
    for columns in (["word", "number"], ["image"]):
        assert pa.table(group.to_arrow(columns)).equals(expected(columns))
    table = pa.table(group.to_arrow(["other/short"]))
    assert table.column_names == ["other/short"] and table.num_rows == 3


@pytest.mark.parametrize(
    "rows", [slice(10), slice(-7, None), slice(333, 667), slice(5, 5), slice(990, 5000), slice(7, 3)]
)
def test_rows_are_chosen_as_python_slices(group, rows):
    table = pa.table(group.to_arrow(rows=rows))
    assert table.num_rows == len(range(ROWS)[rows])
    assert table.num_rows == 0 or table.equals(expected(sorted(COLUMNS), rows))
    assert (
        pa.chunked_array(group["number"].to_arrow(rows=rows)).to_pylist() == COLUMNS["number"][rows].tolist()
    )


def test_attributes_are_metadata(group):
    schema = pa.schema(group.to_arrow())
    assert schema.metadata == {b"title": b"a table", b"version": b"[1,2]"}
    height = schema.field("height").metadata
    assert height[b"units"] == b"m" and json.loads(height[b"valid_range"]) == [0, 1]
    assert b"ARROW:extension:name" not in height, "what has a meaning to Arrow is not the user's"
    assert json.loads(schema.field("image").metadata[b"zarr:dimension_names"]) == ["row", "y", "x"]


def test_an_array_is_a_chunked_array(group):
    for name, values in COLUMNS.items():
        chunked = pa.chunked_array(group[name])
        assert chunked.equals(expected([name])[name]), name
        assert pa.chunked_array(group[name].to_arrow(batch_rows=100)).num_chunks == 10
        assert group[name].to_arrow().column_names is None and group[name].to_arrow().num_rows == ROWS
        series = group[name].to_arrow(bools="bits", layout="nested").polars()
        assert len(series) == ROWS and np.array_equal(series.to_numpy(), values)
    flat = pa.chunked_array(group["image"].to_arrow(layout="flat", batch_rows=30))
    assert np.array_equal(flat.to_numpy(), COLUMNS["image"].reshape(-1))


def test_a_consumer_asks_for_its_types(group):
    schema = pa.schema(
        {"flag": pa.bool_(), "word": pa.string_view(), "image": pa.list_(pa.list_(pa.int16(), 3), 2)}
    )
    table = pa.table(group.to_arrow(["flag", "word", "image"]), schema=schema)
    assert table.schema.types == schema.types
    assert table["flag"].to_pylist() == COLUMNS["flag"].tolist()
    assert table["word"].to_pylist() == COLUMNS["word"].tolist()
    assert table["image"].to_pylist() == COLUMNS["image"].tolist()
    assert pa.chunked_array(group["flag"], type=pa.bool_()).to_pylist() == COLUMNS["flag"].tolist()


def test_polars_and_duckdb_take_it(group):
    frame = pl.DataFrame(group.to_arrow(layout="nested", bools="bits"))
    assert frame.schema["image"] == pl.Array(pl.Int16, (2, 3)) and frame.schema["flag"] == pl.Boolean
    for name, values in COLUMNS.items():
        assert np.array_equal(frame[name].to_numpy(), values), name
    assert group.to_arrow(["number"]).polars()["number"].sum() == COLUMNS["number"].sum()
    table = group.to_arrow(layout="nested")
    query = "select count(*), sum(number), max(word), sum(image[2][3]), count(*) filter (flag) from t"
    image = int(COLUMNS["image"][:, 1, 2].sum())
    answer = (ROWS, COLUMNS["number"].sum(), max(WORDS.tolist()), image, COLUMNS["flag"].sum())
    assert sql(query, t=table) == [answer]
    t = table  # DuckDB finds it by its name
    assert duckdb.sql("select max(time) from t").fetchall()[0][0].timestamp is not None and t is table


def batches(stream: zarrow.ArrowStream) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(stream)


def test_batches_are_whole_chunks_of_all_columns(group):
    stream = group.to_arrow(["flag", "height"])
    assert stream.batch_rows % 1600 == 0, "the least common multiple of 64 and 100"
    sizes = [batch.num_rows for batch in batches(group.to_arrow(rows=slice(50, 333), batch_rows=100))]
    assert sizes == [50, 100, 100, 33], "batches begin at multiples, wherever the rows begin"


def test_batches_are_read_on_request(folder, tmp_path):
    copied = shutil.copytree(folder, tmp_path / "copy")
    reader = batches(zarrow.open(copied).to_arrow(["number", "height"], batch_rows=100))
    assert reader.read_next_batch()["height"].to_pylist() == COLUMNS["height"][:100].tolist()
    (copied / "height" / "c" / "1").unlink()
    (copied / "height" / "c" / "2").write_bytes(b"no zstd frame")
    assert set(reader.read_next_batch()["height"].to_pylist()) == {0.0}, "its chunk had gone when it was read"
    for _ in range(2):
        with pytest.raises(OSError, match=r"copy.*height.*chunk \[2\].*zstd"):
            reader.read_next_batch()


def run(program: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture
def large(tmp_path) -> Path:
    """A table of 800 MB without stored chunks."""
    root = zarr.create_group(tmp_path)
    for name in ("x", "y"):
        root.create_array(name, shape=(50_000_000,), chunks=(100_000,), dtype="f8", fill_value=1.0)
    return tmp_path


def test_memory_is_bounded_by_a_batch(large):
    program = f"""
        import pyarrow, resource, zarrow
        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        stream = zarrow.open({str(large)!r}).to_arrow(batch_rows=500_000)
        before, rows = peak(), 0
        for batch in pyarrow.RecordBatchReader.from_stream(stream):
            rows += batch.num_rows
        print(rows, pyarrow.total_allocated_bytes(), (peak() - before) >> 10)
    """
    rows, allocated, mebibytes = map(int, run(program).split())
    assert rows == 50_000_000 and allocated == 0, "nothing is copied"
    assert mebibytes < 100, "a batch has 8 MB, and the next one may be read before it is dropped"


def test_control_c_stops_a_stream(large):
    program = f"""
        import pyarrow, signal, threading, time, zarrow
        group = zarrow.open({str(large)!r})
        def interrupt():
            time.sleep(0.3)
            signal.raise_signal(signal.SIGINT)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            while True:
                group.to_arrow(batch_rows=50_000_000).arrow()
        except KeyboardInterrupt:
            print("interrupted")
        thread.join()
        print(pyarrow.table(group.to_arrow(rows=slice(3)))["x"].to_pylist())
    """
    assert run(program) == "interrupted\n[1.0, 1.0, 1.0]\n"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    columns=st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True),
    start=st.integers(-1100, 1100),
    stop=st.integers(-1100, 1100),
    batch=st.integers(1, 1200),
)
def test_any_rows_in_any_batches_are_the_same_table(group, columns, start, stop, batch):
    rows = slice(start, stop)
    table = pa.table(group.to_arrow(columns, rows=rows, batch_rows=max(batch, 20)))
    wanted = expected(columns, rows) if len(range(ROWS)[rows]) else table
    assert table.equals(wanted) and table.num_rows == len(range(ROWS)[rows])


def test_arrays_that_are_not_a_table_are_refused(group, folder):
    with pytest.raises(zarrow.ShapeError, match='"number" has 1000 rows, "other/short" has 3') as raised:
        group.to_arrow(["number", "other/short"])
    assert raised.value.kind == "shape" and isinstance(raised.value, ValueError)
    with pytest.raises(zarrow.ShapeError, match="0-d array"):
        group.to_arrow(["crs"])
    with pytest.raises(zarrow.ShapeError, match="0-d array"):
        pa.chunked_array(group["crs"])
    with pytest.raises(zarrow.NodeTypeError, match="a group"):
        group.to_arrow(["other"])
    with pytest.raises(zarrow.NotFoundError):
        group.to_arrow(["missing"])
    with pytest.raises(zarrow.ShapeError, match="a table needs at least one array"):
        group.to_arrow([])
    with pytest.raises(ValueError, match="without a step"):
        group.to_arrow(rows=slice(0, 10, 2))
    for batch_rows in (0, -1):
        with pytest.raises((ValueError, OverflowError)):
            group.to_arrow(batch_rows=batch_rows)
    days = zarr.create_array(folder.parent / "days", shape=(3,), dtype="M8[W]", zarr_format=2)
    with pytest.raises(zarrow.ExchangeError, match="s, ms, us or ns"):
        pa.chunked_array(zarrow.open(folder.parent / "days"))
    assert days.shape == (3,)


def test_threads_read_streams_of_one_object(group):
    stream, wanted, found = group.to_arrow(batch_rows=90), expected(sorted(COLUMNS)), []

    def read() -> None:
        for _ in range(3):
            found.append(pa.table(stream).equals(wanted))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 12


def test_a_stream_is_an_iterable_of_its_batches(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "t.zarr", {"x": np.arange(10), "name": [str(n) for n in range(10)]})
    stream = zarrow.open(tmp_path / "t.zarr").to_arrow(batch_rows=4)
    for _ in range(2):
        batches = list(stream)
        assert [batch.num_rows for batch in batches] == [4, 4, 2]
        assert pa.Table.from_batches(batches).equals(stream.arrow())
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10.0), chunks=(4,))
    assert [x for chunk in array.to_arrow() for x in chunk.to_pylist()] == list(range(10))
