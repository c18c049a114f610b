"""The codec pipeline of `zarrow.zarr_python` in processes and threads, and over S3 on loopback."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.sync import sync

import zarrow
from zarr_pipelines import LAYOUTS, SHAPE, assert_equal, elements, pair

pytestmark = [
    # Python warns about every fork of a process with threads; these tests cover zarrow's promises for forks.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
]

WRITERS = 8


def created(folder: Any, **options: Any) -> Any:
    with zarrow.zarr_python.enable():
        return zarr.create_array(folder, **{"shape": SHAPE, "dtype": "i4", **options})


def test_nothing_is_imported_before_it_is_needed() -> None:
    program = """
        import sys, zarrow
        assert "zarrow.zarr_python" not in sys.modules
        zarrow.zarr_python.enable
        assert not {"zarr", "numpy", "zarrow.zarr_python.pipeline"} & set(sys.modules)
    """
    lines = [line.strip() for line in program.strip().splitlines()]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=60)


def test_the_variable_chooses_the_pipeline(tmp_path: Path) -> None:
    created(tmp_path, shape=(4,))[:] = 7
    program = (
        "import sys, zarr; array = zarr.open_array(sys.argv[1], mode='r'); "
        "print(type(array._async_array.codec_pipeline).__module__, array[:].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={"ZARR_CODEC_PIPELINE__PATH": "zarrow.zarr_python.CodecPipeline"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "zarrow.zarr_python [7, 7, 7, 7]\n"


def test_settings_are_restored() -> None:
    def path() -> Any:
        return zarr.config.get("codec_pipeline.path")

    before = path()
    with zarrow.zarr_python.enable() as enabled:
        assert path() == "zarrow.zarr_python.CodecPipeline"
        with enabled:
            assert path() == "zarrow.zarr_python.CodecPipeline"
    assert path() == before
    with enabled:
        assert path() == "zarrow.zarr_python.CodecPipeline"
    assert path() == before


def test_arrays_are_pickled_and_compared(tmp_path: Path) -> None:
    array = created(tmp_path)
    array[:] = 3
    for other in (pickle.loads(pickle.dumps(array)), copy.deepcopy(array)):
        assert other == array
        assert zarrow.zarr_python.explain(other).read == "zarrow"
        assert (other[:] == 3).all()


def _read_in_child(array: Any, total: int) -> None:
    assert int(array[:].sum()) == total
    array[0, 0] = 1


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_processes(tmp_path: Path, start: Any) -> None:
    array = created(tmp_path, **LAYOUTS["shards"])
    values = elements(SHAPE, "i4", 1)
    array[:] = values
    assert_equal(values, array[:])
    process = multiprocessing.get_context(start).Process(
        target=_read_in_child, args=(array, int(values.sum())), daemon=True
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert array[0, 0] == 1


def test_threads(tmp_path: Path) -> None:
    array = created(tmp_path, shape=(64, 64), chunks=(8, 8), shards=(32, 32))
    values = elements((64, 64), "i4", 1)
    array[:] = 0

    def work(row: int) -> None:
        array[row] = values[row]
        assert_equal(values[row], array[row])

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(work, range(64)))
    assert_equal(values, array[:])


def _write_rows(folder: str, start: Any, writer: int) -> None:
    with zarrow.zarr_python.enable():
        array = zarr.open_array(folder, mode="r+")
    start.wait(60)
    for row in range(writer, array.shape[0], WRITERS):
        array[row] = row + 1


def test_writers_of_one_shard_lose_nothing(tmp_path: Path) -> None:
    created(tmp_path, shape=(32, 16), chunks=(4, 4), shards=(32, 16))
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WRITERS)
    writers = [
        context.Process(target=_write_rows, args=(str(tmp_path), start, writer), daemon=True)
        for writer in range(WRITERS)
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [process.exitcode for process in writers] == [0] * WRITERS
    found = np.asarray(zarr.open_array(tmp_path, mode="r")[:])
    assert found.tolist() == [[row + 1] * 16 for row in range(32)]


def test_a_cancelled_read_has_ended(tmp_path: Path) -> None:
    array = created(tmp_path, shape=(2000, 2000), chunks=(100, 100))
    array[:] = 1

    async def cancelled() -> None:
        task = asyncio.ensure_future(array.async_array.getitem(...))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert (array[:] == 1).all()


def test_slow_reads_leave_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zarrow.zarr_python import pipeline

    calls: list[str] = []

    class Engine:
        def __init__(self, engine: Any) -> None:
            self.engine = engine

        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(self.engine, name)

    array = created(tmp_path)
    array[:] = 3
    chunks = array.async_array.codec_pipeline.chunks("c/0/0")
    slowed = dataclasses.replace(chunks, engine=Engine(chunks.engine))
    array.async_array.codec_pipeline._state.chunks = slowed
    monkeypatch.setattr(pipeline, "_SLOW_SECONDS", -1.0)
    for _ in range(3):
        # `array[...]` does not use the event loop.
        assert (sync(array.async_array.getitem((slice(2, 4), 5))) == 3).all()
    assert calls == ["read", "begin_read", "begin_read"]


def test_the_event_loop_goes_on_while_a_lock_is_held(tmp_path: Path) -> None:
    """A write that waits for another writer's lock does not block other arrays."""
    array, other = created(tmp_path / "a", **LAYOUTS["shards"]), created(tmp_path / "b")
    with ThreadPoolExecutor(2) as threads:
        pending = [threads.submit(array.__setitem__, (row, slice(None)), row) for row in range(20)]
        for row in range(20):
            other[row] = row
        for write in pending:
            write.result(60)
    assert array[:20, 0].tolist() == other[:20, 0].tolist() == list(range(20))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from stores import s3_by_moto

    with s3_by_moto.running() as url:
        yield url


@pytest.fixture
def bucket(endpoint: str) -> Any:
    import boto3
    from obstore.store import S3Store

    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket="pipeline")

    def store(prefix: str) -> Any:
        return zarr.storage.ObjectStore(
            S3Store(
                "pipeline",
                prefix=prefix,
                endpoint=endpoint,
                region="us-east-1",
                access_key_id="key",
                secret_access_key="secret",
                client_options={"allow_http": True},
            )
        )

    return store


@pytest.mark.parametrize("layout", ["v3", "shards"])
def test_s3(bucket: Any, layout: str) -> None:
    array = created(bucket(layout), **LAYOUTS[layout])
    assert zarrow.zarr_python.explain(array).write == "zarrow"
    values = elements(SHAPE, "i4", 1)
    array[:] = values
    array[3:9, 4:29] = values[3:9, 4:29] + 1
    values[3:9, 4:29] += 1
    own = zarr.open_array(bucket(layout), mode="r")
    for selection in [..., np.s_[2:17:3, 5], np.s_[22, 30]]:
        assert_equal(own[selection], array[selection])
    assert_equal(values, own[...])
    assert_equal(values[[7, 1, 20]], array.oindex[[7, 1, 20]])


def test_writers_of_one_shard_in_s3_lose_nothing(bucket: Any) -> None:
    array = created(bucket("writers"), shape=(16, 16), chunks=(4, 4), shards=(16, 16))
    array[:] = 0
    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(lambda row: array.__setitem__(row, row + 1), range(16)))
    found = np.asarray(array[:])
    assert found.tolist() == [[row + 1] * 16 for row in range(16)]


def test_a_deleted_array_reads_as_in_zarr_python(tmp_path: Path) -> None:
    arrays = pair(tmp_path, shape=SHAPE, dtype="i4", **LAYOUTS["v3"])
    for array in (arrays.own, arrays.engine):
        array[:] = 1
        for file in sorted(Path(array.store.root).rglob("*"), reverse=True):
            if file.is_file():
                file.unlink()
    arrays.equal(lambda array: array[:])
