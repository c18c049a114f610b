"""Streams in a bucket: an array grows after its chunks, beside other writers, kills and failures."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from counted_bucket import Bucket, counted_bucket
from round_trips import in_few_round_trips
from test_stream import frames
from test_stream_levels import expect_levels, movie, numbered
from zarrow._zarrow import _StoredValues
from zarrow.groups import append_claims, appended_chunks
from zarrow.groups.append_claims import split
from zarrow.groups.array_documents import ArrayDocuments, key_of
from zarrow.stream import Writer, follow

pytestmark = pytest.mark.small_files


@pytest.fixture(scope="module")
def served() -> Iterator[Bucket]:
    with counted_bucket() as found:
        yield found


@pytest.fixture
def bucket(served: Bucket) -> Iterator[Bucket]:
    yield served
    served.refuses = lambda _: False


def place(bucket: Bucket, name: str) -> zarrow.CloudStore:
    return zarrow.CloudStore(bucket.url(name), storage_options=bucket.options)


def created(store: Any, unit: int = 4, path: str = "x", **options: Any) -> zarrow.Array:
    return zarrow.create_array(store, path, shape=(0, 3), chunks=(unit, 3), dtype="i4", **options)


def opened(store: Any, path: str = "x") -> zarrow.Array:
    return zarrow.open_array(store, path=path, mode="r+")


def is_put(environment: dict[str, Any], part: str) -> bool:
    return environment["REQUEST_METHOD"] == "PUT" and part in environment["PATH_INFO"]


def each_once(array: Any, frames_of: dict[int, int]) -> None:
    """Check that an array has the frames of each writer in order: rows `[writer, number, -number]`."""
    stored = np.asarray(array[...])
    assert (stored[:, 1] == -stored[:, 2]).all()
    for writer, count in frames_of.items():
        assert stored[stored[:, 0] == writer, 1].tolist() == list(range(count))
    assert len(stored) == sum(frames_of.values())


@pytest.mark.parametrize(
    "layout", [{}, {"shards": (8, 3)}, {"zarr_format": 2}, {"zarr_format": 2, "fill_value": None}]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_an_array_grows_after_its_chunks_are_stored(
    bucket: Bucket, layout: dict[str, Any], axis: int
) -> None:
    """Before each put, a reader sees all elements of the shape."""
    name = f"order {axis} {len(layout)} {layout.get('zarr_format')}"
    store = place(bucket, name)
    shape, chunks = ([0, 3], [4, 2]) if axis == 0 else ([3, 0], [2, 4])
    if "shards" in layout:
        layout = {"shards": (8, 4) if axis == 0 else (4, 8)}
    array = zarrow.create_array(store, "x", shape=shape, chunks=chunks, dtype="i4", **layout)
    values = np.arange(1, 3 * 60 + 1, dtype="i4").reshape(60, 3)
    seen: list[int] = []

    def look(environment: dict[str, Any]) -> bool:
        if is_put(environment, "/x/"):
            bucket.refuses = lambda _: False
            found = np.moveaxis(np.asarray(zarrow.open(reader, "x")[...]), axis, 0)
            seen.append(len(found))
            is_equal.append(np.array_equal(found, values[: len(found)]))
            bucket.refuses = look
        return False

    is_equal: list[bool] = []
    reader = place(bucket, name)
    bucket.refuses = look
    with Writer(array, axis, memory_nbytes=600, interval=0) as writer:
        done = 0
        for step in itertools.cycle([1, 4, 8, 3, 20]):
            if done >= 60:
                break
            writer.append(np.moveaxis(values[done : done + step], 0, axis))
            done = min(60, done + step)
            if step in (1, 8):
                assert writer.flush() == done
                found = np.asarray(zarrow.open(store, "x")[...])
                np.testing.assert_array_equal(np.moveaxis(found, axis, 0), values[:done])
    assert all(is_equal) and len(set(seen)) > 5
    np.testing.assert_array_equal(np.moveaxis(np.asarray(opened(store)[...]), axis, 0), values)


FOLLOWER = """
import sys, zarrow
from zarrow.stream import follow
store = zarrow.CloudStore(sys.argv[1], storage_options=eval(sys.argv[2]))
for part in follow(zarrow.open(store, "x"), start=0, interval=0.001, idle=60):
    for row in part.tolist():
        print(*row, flush=True)
"""


class Follower:
    """A process that follows an array."""

    def __init__(self, bucket: Bucket, name: str) -> None:
        command = [sys.executable, "-c", FOLLOWER, bucket.url(name), repr(bucket.options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def take(self, count: int) -> np.ndarray[Any, Any]:
        assert self.process.stdout is not None
        rows = [self.process.stdout.readline().split() for _ in range(count)]
        return np.array(rows, "i4")

    def end(self) -> str:
        """Return what else was followed."""
        self.process.kill()
        return self.process.communicate()[0].strip()


@pytest.mark.parametrize("pause", [0, 0.01])
def test_a_process_follows_each_frame_once_and_no_fill_value(bucket: Bucket, pause: float) -> None:
    """Also from a slow server, and when frames are stored in part of a chunk."""
    name = f"followed {pause}"
    array = created(place(bucket, name))
    bucket.refuses = lambda environment: bool(is_put(environment, "/x/c/") and time.sleep(pause))
    follower = Follower(bucket, name)
    try:
        with Writer(array, memory_nbytes=20 * 12, interval=0) as writer:
            for number in range(120):
                writer.append(frames(number + 1, number + 2))
                if number % 7 == 0:
                    writer.flush()
        np.testing.assert_array_equal(follower.take(120), frames(1, 121))
    finally:
        rest = follower.end()
    assert rest == ""


STREAMER = """
import itertools, sys, zarrow
from zarrow.stream import Writer
store = zarrow.CloudStore(sys.argv[1], storage_options=eval(sys.argv[2]))
writer = Writer(zarrow.open_array(store, path="x", mode="r+"), interval=0)
for number in itertools.count(1):
    writer.append([number] * 3)
    if number % 5 == 0:
        print(writer.flush(), flush=True)
"""


@pytest.mark.parametrize("part", ["/x/c/", "/x/zarr.json"])
def test_a_killed_writer_leaves_whole_frames_and_the_next_one_continues(
    bucket: Bucket, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends during a put, which the server stores or not."""
    for at, number in enumerate((2, 9, 16, 23)):
        name = f"killed {part.rpartition('/')[2]} {number}"
        store, seen, child = place(bucket, name), itertools.count(), list[Any]()
        created(store)
        follower, flushed = Follower(bucket, name), 0
        began = threading.Event()

        def kill(
            environment: dict[str, Any],
            number: int = number,
            seen: Any = seen,
            child: Any = child,
            began: Any = began,
        ) -> bool:
            if is_put(environment, part) and next(seen) == number:
                began.wait()
                child[0].kill()
                child[0].wait()
                return number % 2 == 1
            return False

        bucket.refuses = kill
        command = [sys.executable, "-c", STREAMER, bucket.url(name), repr(bucket.options)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            child.append(process)
            began.set()
            assert process.stdout is not None
            for line in process.stdout:
                flushed = int(line)
        assert process.returncode == -signal.SIGKILL
        bucket.refuses = lambda _: False
        stored = np.asarray(opened(store)[...])
        assert len(stored) >= flushed
        np.testing.assert_array_equal(stored, frames(1, len(stored) + 1))
        if at == 3:
            document = bucket.client.get_object(Bucket=bucket.name, Key=f"{name}/x/zarr.json")["Body"].read()
            assert part != "/x/c/" or split(document)[1] is not None
            # The kernel says that the process has ended: its claim does not last until it is abandoned.
            monkeypatch.setattr(append_claims, "_ARRIVAL", 0.2)
            with Writer(opened(store)) as writer:
                writer.append(np.zeros((9, 3), "i4"))
            np.testing.assert_array_equal(opened(store)[...], np.concatenate([stored, np.zeros((9, 3))]))
            stored = np.asarray(opened(store)[...])
        np.testing.assert_array_equal(follower.take(len(stored)), stored)
        assert follower.end() == ""


def test_a_refused_request_is_an_error_and_leaves_whole_frames(bucket: Bucket) -> None:
    failures = 0
    for number in itertools.count():
        store, seen = place(bucket, f"refused {number}"), itertools.count()
        with Writer(created(store), interval=10) as writer:
            writer.append(frames(1, 7))
            writer.flush()
        writer = Writer(opened(store), interval=10)
        bucket.refuses = lambda _, seen=seen, number=number: next(seen) == number  # type: ignore[misc]
        writer.append(frames(7, 13))
        try:
            writer.close()
        except zarrow.ZarrowError:
            failures += 1
            bucket.refuses = lambda _: False
            found = np.asarray(opened(store)[...])
            # A request after the growth may have failed.
            np.testing.assert_array_equal(found, frames(1, len(found) + 1))
            assert len(found) in (6, 12)
        bucket.refuses = lambda _: False
        key = f"refused {number}/x/zarr.json"
        document = bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read()
        if split(document)[1] is None:
            with Writer(opened(store)) as writer:
                # Fill values replace chunks that the failed writer has left.
                writer.append(np.zeros((7, 3), "i4"))
            assert not opened(store)[-7:].numpy().any()
        if next(seen) <= number:
            break
    assert failures > 4


@pytest.mark.parametrize("resumes", [False, True], ids=["waits end", "waits resume"])
def test_ctrl_c_ends_a_flush_that_a_slow_server_delays(bucket: Bucket, resumes: bool) -> None:
    store, is_sent, may = place(bucket, f"interrupted {resumes}"), threading.Event(), threading.Event()
    in_time = []
    writer = Writer(created(store), interval=10)

    def interrupts(environment: dict[str, Any]) -> bool:
        if is_put(environment, "/x/c/") and not is_sent.is_set():
            is_sent.set()
            os.kill(os.getpid(), signal.SIGINT)
            in_time.append(may.wait(60))
        return False

    bucket.refuses = interrupts
    writer.append(frames(1, 9))
    # As handlers of other libraries do, such as that of polars: the system then resumes a wait.
    signal.siginterrupt(signal.SIGINT, not resumes)
    try:
        with pytest.raises(KeyboardInterrupt):
            writer.flush()
    finally:
        signal.siginterrupt(signal.SIGINT, True)
    may.set()
    writer.close()
    assert in_time == [True]
    np.testing.assert_array_equal(opened(store)[...], frames(1, 9))


def test_a_server_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    """It could not tell that another writer has changed the array."""
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import threading
import boto3, zarrow
from werkzeug.serving import make_server
from stores.s3_by_moto import Quiet, application
from test_cloud import KEY, SECRET
from zarrow.stream import Writer

def ignoring(environment, start_response):
    for name in [name for name in environment if name.startswith("HTTP_IF_")]:
        del environment[name]
    return application(environment, start_response)

server = make_server("127.0.0.1", 0, ignoring, threaded=True, request_handler=Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
options = {"endpoint_url": f"http://127.0.0.1:{server.server_port}", "region_name": "us-east-1"}
client = boto3.client("s3", aws_access_key_id=KEY, aws_secret_access_key=SECRET, **options)
client.create_bucket(Bucket="bucket")
given = {"key": KEY, "secret": SECRET, "client_kwargs": options}
store = zarrow.CloudStore("s3://bucket/data", storage_options=given)
array = zarrow.create_array(store, "x", shape=(0, 3), chunks=(4, 3), dtype="i4")
before = client.get_object(Bucket="bucket", Key="data/x/zarr.json")["Body"].read()

def stream():
    with Writer(array) as writer:
        writer.append([1, 2, 3])

def append():
    zarrow.open(store, mode="r+").append({"x": [[1, 2, 3]]})

for change in (stream, append, stream):
    try:
        change()
    except zarrow.UnsupportedError as error:
        assert "no conditional writes" in str(error)
    else:
        sys.exit("was not refused")
assert client.get_object(Bucket="bucket", Key="data/x/zarr.json")["Body"].read() == before
"""
    command = [sys.executable, "-c", program, Path(__file__).parent]
    found = subprocess.run(command, cwd=tmp_path, timeout=120, check=False, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")


def test_claims_are_renewed_while_chunks_are_stored(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a renewal is stored while the document is checked."""
    monkeypatch.setattr(append_claims, "_RENEWAL", 0.005)
    created(place(bucket, "renewed"), path="x")
    bucket.refuses = lambda environment: bool(is_put(environment, "/x/c/") and time.sleep(0.03))

    def stream(name: int) -> None:
        with Writer(opened(place(bucket, "renewed")), memory_nbytes=200, interval=0) as writer:
            for number in range(15):
                writer.append([name, number, -number])

    threads = [threading.Thread(target=stream, args=(name,)) for name in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    each_once(opened(place(bucket, "renewed")), {1: 15, 2: 15})


def test_frames_are_stored_in_a_bucket_at_exit(bucket: Bucket) -> None:
    created(place(bucket, "exit"))
    program = STREAMER.partition("for number")[0].replace("interval=0", "interval=10")
    command = [sys.executable, "-c", f"{program}writer.append([[1] * 3] * 6)", bucket.url("exit")]
    subprocess.run([*command, repr(bucket.options)], timeout=60, check=True)
    assert opened(place(bucket, "exit"))[...].tolist() == [[1, 1, 1]] * 6


def test_two_writers_take_turns(bucket: Bucket) -> None:
    program = """
import sys, zarrow
from zarrow.stream import Writer
store = zarrow.CloudStore(sys.argv[1], storage_options=eval(sys.argv[2]))
with Writer(zarrow.open_array(store, path="x", mode="r+"), memory_nbytes=100, interval=0) as writer:
    for number in range(40):
        writer.append([int(sys.argv[3]), number, -number])
"""
    created(place(bucket, "two"))
    command = [sys.executable, "-c", program, bucket.url("two"), repr(bucket.options)]
    processes = [subprocess.Popen([*command, str(name)]) for name in (1, 2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    each_once(opened(place(bucket, "two")), {1: 40, 2: 40})


@pytest.mark.parametrize("unit", [1, 4])
def test_an_append_at_any_moment_keeps_the_elements_of_both(bucket: Bucket, unit: int) -> None:
    """`Array.append` knows no claims: it runs before the first request of a writer, before the second, ..."""

    def is_beside(number: int) -> bool:
        """Append before a request; return whether there is one of this number."""
        store, seen = place(bucket, f"beside {unit} {number}"), itertools.count()
        with Writer(created(store, unit), interval=10) as writer:
            writer.append([[1, at, -at] for at in range(6)])

        def append() -> None:
            other = opened(place(bucket, f"beside {unit} {number}"))
            other.append(np.array([[2, at, -at] for at in range(3)], "i4"))

        thread = threading.Thread(target=append)

        def interfere(_: dict[str, Any]) -> bool:
            if next(seen) == number:
                thread.start()
                thread.join(60)
            return False

        writer = Writer(opened(store), interval=10)
        bucket.refuses = interfere
        writer.append([[1, at, -at] for at in range(6, 17)])
        writer.close()
        bucket.refuses = lambda _: False
        if next(seen) <= number:
            return False
        # A request that waits long is sent again, and its answer is used.
        thread.join(60)
        each_once(opened(store), {1: 17, 2: 3})
        return True

    assert sum(1 for _ in itertools.takewhile(is_beside, itertools.count())) > 6


@pytest.mark.parametrize("unit", [1, 4])
def test_an_append_at_any_moment_of_a_tables_append_is_kept(bucket: Bucket, unit: int) -> None:
    """`Group.append` may be refused; then none of its rows is there."""

    def rows(first: int, start: int, stop: int) -> np.ndarray[Any, Any]:
        return np.array([[first, at, -at] for at in range(start, stop)], "i4")

    def is_beside(number: int) -> bool:
        name, seen = f"columns {unit} {number}", itertools.count()
        created(place(bucket, name), unit, "t/x")
        table = zarrow.open(place(bucket, name), "t", mode="r+")
        table.append({"x": rows(1, 0, 5)})
        thread = threading.Thread(target=lambda: opened(place(bucket, name), "t/x").append(rows(2, 0, 3)))

        def interfere(_: dict[str, Any]) -> bool:
            if next(seen) == number:
                thread.start()
                thread.join(60)
            return False

        bucket.refuses, count = interfere, 12
        try:
            table.append({"x": rows(1, 5, 12)})
        except zarrow.StaleHandleError:
            count = 5
        bucket.refuses = lambda _: False
        if next(seen) <= number:
            return False
        thread.join(60)
        each_once(opened(place(bucket, name), "t/x"), {1: count, 2: 3})
        return True

    assert sum(1 for _ in itertools.takewhile(is_beside, itertools.count())) > 6


def test_a_claim_that_was_lost_in_a_pause_loses_no_row(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer takes the turn after a pause, and stores as many rows."""
    monkeypatch.setattr(append_claims, "_ABANDONED", 0.5)
    monkeypatch.setattr(append_claims, "_RENEWAL", 60)
    store = place(bucket, "pause")
    created(store, path="t/x")
    table = zarrow.open(place(bucket, "pause"), "t", mode="r+")
    put, paused = appended_chunks.AppendedChunks.put, []

    def pause(*given: Any) -> None:
        if not paused:
            paused.append(True)
            with Writer(opened(store, "t/x"), interval=10) as writer:
                writer.append(frames(100, 104))
        put(*given)

    monkeypatch.setattr(appended_chunks.AppendedChunks, "put", pause)
    table.append({"x": frames(0, 4)})
    found = opened(store, "t/x")[...].tolist()
    assert found == [*frames(100, 104).tolist(), *frames(0, 4).tolist()]


def test_rows_are_appended_to_a_table_beside_a_writer(bucket: Bucket) -> None:
    """`Group.append` and a writer wait for each other."""
    store = place(bucket, "table")
    created(store, path="t/x")
    table = zarrow.open(place(bucket, "table"), "t", mode="r+")

    def append() -> None:
        for number in range(8):
            table.append({"x": np.array([[2, number, -number]], "i4")})

    thread = threading.Thread(target=append)
    with Writer(opened(store, "t/x"), memory_nbytes=100, interval=0) as writer:
        thread.start()
        for number in range(60):
            writer.append([1, number, -number])
    thread.join(120)
    each_once(opened(store, "t/x"), {1: 60, 2: 8})


@pytest.mark.parametrize("version", [2, 3])
def test_an_array_that_was_replaced_is_refused(bucket: Bucket, version: Any) -> None:
    store = place(bucket, f"replaced {version}")
    for change in ({"dtype": "u4"}, {"chunks": (5, 3)}, {"shape": (0, 4), "chunks": (4, 4)}):
        writer = Writer(created(store, zarr_format=version, overwrite=True), interval=10)
        given: dict[str, Any] = {"shape": (0, 3), "chunks": (4, 3), "dtype": "i4", "zarr_format": version}
        zarrow.create_array(store, "x", **given | change, overwrite=True)
        writer.append(frames(0, 4))
        with pytest.raises(zarrow.StaleHandleError, match="was replaced: open it again"):
            writer.close()
        assert zarrow.open(store, "x").shape[0] == 0
    writer = Writer(created(store, zarr_format=version, overwrite=True), interval=10)
    del zarrow.open(store, mode="r+")["x"]
    writer.append(frames(0, 4))
    with pytest.raises(zarrow.NotFoundError, match="the array was erased"):
        writer.close()


def test_consolidated_metadata_follow(bucket: Bucket) -> None:
    store = place(bucket, "consolidated")
    group = zarrow.create_group(store)
    array = group.create_array("x", shape=(0, 3), chunks=(4, 3), dtype="i4")
    zarrow.consolidate_metadata(store)
    with Writer(array, interval=10) as writer:
        writer.append(frames(0, 4))
        writer.flush()
        writer.append(frames(4, 6))
    found = zarrow.open(store, mode="r")
    assert found._is_consolidated()
    assert found["x"].shape == (6, 3)


def test_levels_of_an_image_grow_in_a_bucket(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    # Runs are stored part by part.
    monkeypatch.setattr(appended_chunks, "_BATCH_NBYTES", 1000)
    store = place(bucket, "image")
    image = movie(store)
    for count in (7, 5):
        before = image.multiscales[0].array.shape[0]
        with Writer(image, interval=0.05) as writer:
            for number in range(before, before + count):
                writer.append(numbered(number, number + 1))
                if number % 3 == 0:
                    writer.flush()
    expect_levels(zarrow.open(place(bucket, "image")), numbered(0, 12))


@in_few_round_trips(counted_bucket)
def test_frames_are_stored_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    del tmp_path
    with Writer(created(place(bucket, "counted")), interval=10) as writer:
        for count, most in ((16, 7), (16, 5), (6, 5), (10, 7)):
            writer.append(frames(0, count))
            bucket.expect(writer.flush, most)


@pytest.mark.parametrize("version", [2, 3])
def test_a_look_at_an_array_without_new_elements_is_one_request(bucket: Bucket, version: Any) -> None:
    array = created(place(bucket, f"look {version}"), zarr_format=version)
    array.append(frames(0, 4))
    looks: list[str] = []
    parts = follow(opened(place(bucket, f"look {version}")), interval=0, idle=60)

    def seen(environment: dict[str, Any]) -> bool:
        looks.append(environment["PATH_INFO"])
        if len(looks) == 20:
            array.append(frames(4, 5))
        return False

    bucket.refuses = seen
    assert next(parts).tolist() == frames(4, 5).tolist()
    bucket.refuses = lambda _: False
    # In version 2, the first look has four requests.
    assert len(set(looks[4:19])) == 1


def test_an_equal_document_of_another_writer_is_not_put_back(bucket: Bucket) -> None:
    store = place(bucket, "equal")
    key = key_of(created(store))
    values = _StoredValues(store, create=False)
    documents = ArrayDocuments(values, [key])
    after = {key: documents.longer(key, 0, 4)}
    [(_, version)] = values.get_versions([key])
    assert values.set_if(key, after[key], version)
    kept: list[str] = []
    assert documents.replace(after, kept) == key and kept == []
    assert opened(store).shape[0] == 4
