"""Rows appended to tables: stores, failures, kills, and several writers at once."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
import zarr.storage

import zarrow
from counted_bucket import Bucket, counted_bucket
from zarrow.groups import append_claims, append_turns, rows
from zarrow.groups.append_claims import ClaimedError, Turns, claimed, split

COLUMNS: dict[str, Any] = {
    "day": pa.array(np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[s]")),
    "flag": [True, None, False],
    "number": [1, None, 3],
    "vector": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6.0).reshape(3, 2)),
    "word": ["x", "y", None],
}
STORES: dict[str, Callable[[Path], Any]] = {
    "folder": lambda path: path / "table.zarr",
    "memory": lambda _: zarrow.MemoryStore(),
    "dict": lambda _: {},
    "zarr": lambda _: zarr.storage.MemoryStore(),
    "fsspec": lambda path: zarrow.PythonStore(fsspec.get_mapper(f"memory://{path}"), sole_writer=True),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return STORES[request.param](tmp_path)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with counted_bucket() as found:
        yield found


def numbered(number: int, count: int = 3) -> dict[str, Any]:
    """Return rows with one number in all columns."""
    return {"a": [number] * count, "b": [float(number)] * count, "c": [str(number)] * count}


def check_numbered(store: Any, numbers: list[int], count: int = 3) -> None:
    """Check that each append is there once, as a whole."""
    found = zarrow.open(store).to_polars()
    assert [float(one) for one in found["a"]] == found["b"].to_list() == [float(one) for one in found["c"]]
    groups = np.asarray(found["a"]).reshape(-1, count)
    assert (groups == groups[:, :1]).all()
    assert sorted(groups[:, 0].tolist()) == sorted(numbers)


@pytest.mark.parametrize("path", ["", "below/table"])
@pytest.mark.parametrize("consolidated", [False, True])
def test_tables_grow_in_any_store(store: Any, path: str, consolidated: bool) -> None:
    table = pa.table(COLUMNS)
    zarrow.save(store, table, path=path, missing="optional")
    if consolidated:
        zarrow.consolidate_metadata(store)
    root = zarrow.open(store, mode="r+")
    group = root[path] if path else root
    for count in (2, 3, 4):
        assert group.append(table) == 3 * count
        assert group.append(table[:0]) == 3 * count
        expected = str(pa.concat_tables([table] * count).to_pydict())
        for found in (group, zarrow.open(store)[path] if path else zarrow.open(store)):
            assert str(pa.table(found).to_pydict()) == expected


@pytest.mark.parametrize("options", [{"chunks": 2}, {"chunks": 2, "shards": 4}, {"zarr_format": 2}])
def test_arrays_of_any_layout_grow(options: dict[str, Any], tmp_path: Path) -> None:
    version = options.pop("zarr_format", 3)
    root = zarrow.create_group(tmp_path, zarr_format=version)
    for name, values in numbered(0).items():
        root.create_array(name, data=values, **options)
    for number in range(1, 5):
        root.append(numbered(number))
    check_numbered(tmp_path, list(range(5)))
    assert zarr.open(tmp_path, mode="r")["a"].shape == (15,)


def test_a_failed_column_leaves_the_old_rows(store: Any) -> None:
    zarrow.save(store, numbered(1))
    root = zarrow.open(store, mode="r+")
    with pytest.raises(zarrow.DataTypeError, match=r"^'b': ") as caught:
        root.append({**numbered(2), "b": ["x"] * 3})
    assert "nothing was appended" in caught.value.__notes__
    check_numbered(store, [1])
    root.append(numbered(3))
    check_numbered(store, [1, 3])


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt()])
def test_an_interrupted_append_leaves_the_old_rows(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarrow.save(tmp_path, numbered(1))
    write = rows._write

    def fail(name: str, *given: Any) -> None:
        if name == "b":
            raise error
        write(name, *given)

    with monkeypatch.context() as patched, pytest.raises(type(error)):
        patched.setattr(rows, "_write", fail)
        zarrow.open(tmp_path, mode="r+").append(numbered(2, 6))
    check_numbered(tmp_path, [1])
    zarrow.open(tmp_path, mode="r+").append(numbered(3, 2) | {"c": ["3"] * 2})
    assert zarrow.open(tmp_path).to_polars()["a"].to_list() == [1, 1, 1, 3, 3]


def _killed(path: Path) -> None:
    write = rows._write

    def kill(name: str, *given: Any) -> None:
        write(name, *given)
        if name == "b":
            os.kill(os.getpid(), signal.SIGKILL)

    rows._write = kill
    zarrow.open(path, mode="r+").append(numbered(2, 10))


def test_a_killed_append_leaves_the_old_rows(tmp_path: Path) -> None:
    zarrow.save(tmp_path, numbered(1))
    child = multiprocessing.get_context("spawn").Process(target=_killed, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    check_numbered(tmp_path, [1])
    root = zarrow.open(tmp_path, mode="r+")
    root.append(numbered(3))
    root["a"].resize(9)
    assert root["a"][...].tolist() == [1, 1, 1, 3, 3, 3, 0, 0, 0]


def test_a_claim_is_replaced_ten_seconds_after_its_process_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The wait begins at the end of the process, also if its claim was seen long before."""
    clock = SimpleNamespace(now=0.0, sleep=lambda _: None)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(append_claims, "time", clock)
    program = "from zarrow.groups.append_claims import _new_number; print(_new_number().hex(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}; input()"], stdin=-1, stdout=-1, text=True
    ) as killed:
        number = bytes.fromhex(killed.stdout.readline())  # type: ignore[union-attr]
        turns = Turns()
        for clock.now in (0.0, 29.0):
            turns.wait(ClaimedError([number]))
            assert not turns.abandoned()
        killed.kill()
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
        for clock.now in (30.0, 39.9):  # Its parent has not waited for it.
            turns.wait(ClaimedError([number]))
            assert not turns.abandoned()
        clock.now = 40.0
        assert turns.abandoned() == {number}
        killed.communicate()
        assert turns.abandoned() == {number}
    turns.wait(ClaimedError([]))
    assert not turns.abandoned()


def test_a_column_that_another_writer_changes_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarrow.save(tmp_path, numbered(1))
    root = zarrow.open(tmp_path, mode="r+")
    write = rows._write

    def change(name: str, *given: Any) -> None:
        write(name, *given)
        # Another library has no lock of ours.
        zarr.open_array(tmp_path / "a", mode="r+").resize(5)

    monkeypatch.setattr(rows, "_write", change)
    with pytest.raises(zarrow.StaleHandleError, match=r"'a/zarr\.json' was changed by another writer"):
        root.append(numbered(2))
    assert root["b"].shape == (3,)
    with pytest.raises(ValueError, match="different lengths"):
        root.append(numbered(2))


@pytest.mark.parametrize("in_memory", [False, True])
def test_appends_to_an_array_and_to_its_table_lose_no_row(tmp_path: Path, in_memory: bool) -> None:
    store: Any = zarrow.MemoryStore() if in_memory else tmp_path
    zarrow.create_group(store).create_array("a", shape=0, chunks=4, dtype="i8")

    def append(first: int) -> None:
        group = zarrow.open(store, mode="r+")
        for number in range(first, first + 30):
            if first % 200:
                group["a"].append([number, number])
            else:
                group.append({"a": [number, number]})

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(append, (100, 200, 300, 400)))
    found = zarrow.open(store)["a"][...].numpy()
    assert (found[::2] == found[1::2]).all()
    assert sorted(found[::2].tolist()) == [
        first + each for first in (100, 200, 300, 400) for each in range(30)
    ]


def test_threads_that_append_lose_no_row(store: Any) -> None:
    zarrow.save(store, numbered(0))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: zarrow.open(store, mode="r+").append(numbered(number)), range(1, 13)))
    check_numbered(store, list(range(13)))


def _append_many(path: Path, first: int, ready: Any) -> None:
    ready.wait()
    for number in range(first, first + 8):
        zarrow.open(path, mode="r+").append(numbered(number))


def test_processes_that_append_lose_no_row(tmp_path: Path) -> None:
    zarrow.save(tmp_path, numbered(0))
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(3)
    children = [context.Process(target=_append_many, args=(tmp_path, first, ready)) for first in (1, 9, 17)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
    check_numbered(tmp_path, list(range(25)))


def test_a_fork_during_an_append_can_append() -> None:
    store = zarrow.MemoryStore()
    zarrow.save(store, numbered(0))
    with append_turns._in_process:
        child = os.fork()
        if child == 0:
            zarrow.open(store, mode="r+").append(numbered(1))
            os._exit(0 if zarrow.open(store).num_rows == 6 else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_writers_to_a_bucket_take_turns(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    store = zarrow.CloudStore(bucket.url("turns"), storage_options=bucket.options)
    zarrow.save(store, numbered(0))
    document = bucket.client.get_object(Bucket=bucket.name, Key="turns/zarr.json")["Body"].read()
    # As in several processes: the claims alone serialize appends.
    monkeypatch.setattr(append_turns, "_in_process", contextlib.nullcontext())

    def append(number: int) -> None:
        zarrow.open(store, mode="r+").append(numbered(number))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(append, range(1, 7)))
    check_numbered(store, list(range(7)))
    with pytest.raises(zarrow.DataTypeError):
        zarrow.open(store, mode="r+").append({**numbered(2), "b": ["x"] * 3})
    check_numbered(store, list(range(7)))
    assert bucket.client.get_object(Bucket=bucket.name, Key="turns/zarr.json")["Body"].read() == document


def test_an_append_that_lost_its_turn_changes_no_row(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    store = zarrow.CloudStore(bucket.url("lost"), storage_options=bucket.options)
    zarrow.save(store, numbered(0))
    write, place = rows._write, {"Bucket": bucket.name, "Key": "lost/a/zarr.json"}

    def change(name: str, *given: Any) -> None:
        write(name, *given)
        if name == "a":
            document, number = split(bucket.client.get_object(**place)["Body"].read())
            assert number is not None
            bucket.client.put_object(**place, Body=claimed(document, number[::-1]))

    monkeypatch.setattr(rows, "_write", change)
    with pytest.raises(zarrow.StaleHandleError, match=r"'a/zarr\.json' was changed by another writer"):
        zarrow.open(store, mode="r+").append(numbered(1))
    check_numbered(store, [0])
    claims = {
        name: split(bucket.client.get_object(**place | {"Key": f"lost/{name}/zarr.json"})["Body"].read())[1]
        for name in "abc"
    }
    assert claims["a"] is not None
    assert claims["b"] is claims["c"] is None


def test_attributes_of_a_group_change_during_an_append(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = zarrow.CloudStore(bucket.url("attributes"), storage_options=bucket.options)
    zarrow.save(store, numbered(0))
    write = rows._write

    def change(name: str, *given: Any) -> None:
        write(name, *given)
        if name == "a":
            zarrow.open(store, mode="r+").attrs["other"] = 1

    monkeypatch.setattr(rows, "_write", change)
    assert zarrow.open(store, mode="r+").append(numbered(1)) == 6
    check_numbered(store, [0, 1])
    assert zarrow.open(store).attrs["other"] == 1


def test_readers_in_a_bucket_see_old_or_new_rows_after_a_conflict(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = zarrow.CloudStore(bucket.url("conflict"), storage_options=bucket.options)
    zarrow.save(store, numbered(0))
    write = rows._write

    def change(name: str, *given: Any) -> None:
        write(name, *given)
        if name == "b":
            zarrow.open(store, mode="r+")["b"].attrs["unit"] = "m"

    monkeypatch.setattr(rows, "_write", change)
    with pytest.raises(zarrow.StaleHandleError, match=r"'b/zarr\.json' was changed"):
        zarrow.open(store, mode="r+").append(numbered(1))
    check_numbered(store, [0])
    assert zarrow.open(store)["b"].attrs["unit"] == "m"


def test_tables_of_pandas_with_an_index_grow(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.date_range("2024", periods=2, name="time"))
    zarrow.save(tmp_path, frame)
    later = frame.shift(2, freq="D")
    assert zarrow.open(tmp_path).append(later) == 4
    pd.testing.assert_frame_equal(
        zarrow.open(tmp_path).to_pandas(), pd.concat([frame, later]), check_freq=False
    )


@pytest.mark.parametrize("options", [{}, {"shards": 8}])
def test_a_failed_append_leaves_no_elements_behind_the_end(tmp_path: Path, options: dict[str, Any]) -> None:
    """They would take place on a full disk, and other libraries would show them after growth."""
    table = zarrow.create_group(tmp_path)
    for name in "xy":
        table.create_array(name, data=np.arange(5), chunks=4, **options)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # A chunk that cannot be written, far behind the end.
    obstacle = tmp_path / "x/c/3"
    (obstacle / "folder").mkdir(parents=True)
    with pytest.raises(OSError) as error:
        table.append({"x": np.arange(60) + 100, "y": np.arange(60) + 100})
    assert error.value.__notes__[-1] == "nothing was appended"
    shutil.rmtree(obstacle)
    stored = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert stored.keys() == before.keys()
    for name in "xy":
        array = zarr.open_array(tmp_path / name, mode="r+")
        array.resize((30,))
        assert array[:].tolist() == [*range(5), *[0] * 25]


@pytest.mark.parametrize("value", [5, "text", np.array(5), np.float64(2)])
def test_a_column_that_is_one_value_is_refused(tmp_path: Path, value: Any) -> None:
    zarrow.save(tmp_path, {"x": [1], "y": [1.0]})
    table = zarrow.open(tmp_path, mode="r+")
    with pytest.raises((TypeError, ValueError), match="'x': "):
        table.append({"x": value, "y": [2.0]})
    assert table.num_rows == 1
