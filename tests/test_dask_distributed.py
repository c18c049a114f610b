"""dask.distributed with four worker processes, some of them killed: nothing is lost, and nothing hangs."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray
import zarr

import zarrow
import zarrow.dask
import zarrow.xarray
from kill_counts import kills
from zarrow import jobs

distributed: Any = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")

SHAPE, CHUNKS, SHARDS = (40, 60), (5, 6), (10, 12)
WORKERS, KILLS, SECONDS = 4, kills(2), 120
SEED = int(os.environ.get("ZARROW_TEST_SEED", "0"))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Start the workers once, without a dashboard, on loopback."""
    settings = {"distributed.scheduler.allowed-failures": 20, "distributed.worker.memory.terminate": False}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def values() -> np.ndarray:
    return np.arange(np.prod(SHAPE), dtype="f8").reshape(SHAPE)


def slowly(block: np.ndarray) -> np.ndarray:
    """Leave time for a kill."""
    time.sleep(0.02)
    return block


def current_pid(dask_worker: Any = None) -> int | None:
    """Return the process of a nanny's worker; `None` while it restarts."""
    process = dask_worker.process
    return None if process is None or process.process is None else process.pid


def kill_workers(client: Any, seed: int, is_done: threading.Event) -> None:
    """Kill workers at random moments. The nanny of each starts another one."""
    rng = random.Random(seed)
    for _ in range(KILLS):
        if is_done.wait(rng.uniform(0.02, 0.25)):
            return
        # The nanny of a worker answers also while the worker computes.
        pids = client.run(current_pid, nanny=True, on_error="ignore").values()
        if running := [pid for pid in pids if pid is not None]:
            process = rng.choice(running)
        else:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def with_kills(client: Any, seed: int, work: Callable[[], Any]) -> Any:
    """Run something while workers are killed; fail if it takes too long."""
    is_done = threading.Event()
    killer = threading.Thread(target=kill_workers, args=(client, seed, is_done))
    killer.start()
    try:
        return work()
    finally:
        is_done.set()
        killer.join()


def waited(client: Any, collection: Any) -> Any:
    """Compute within a limit of time."""
    return client.compute(collection).result(timeout=SECONDS)


def test_arrays_are_read_and_written_while_workers_are_killed(client: Any, tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=values(), chunks=CHUNKS, shards=SHARDS)
    source = zarrow.dask.from_zarr(tmp_path / "a.zarr", chunks=(7, 9)).map_blocks(slowly)

    def work() -> None:
        # Blocks end within shards of the target.
        stored = zarrow.dask.to_zarr(
            source + 1, tmp_path / "b.zarr", chunks=(4, 5), shards=(8, 20), compute=False
        )
        waited(client, stored)

    with_kills(client, SEED, work)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "b.zarr", mode="r")[...], values() + 1)


def slowly_frame(part: pd.DataFrame) -> pd.DataFrame:
    """Leave time for a kill."""
    time.sleep(0.02)
    return part


def test_tables_are_read_and_written_while_workers_are_killed(client: Any, tmp_path: Path) -> None:
    words = pd.Categorical([f"w{row % 7}" for row in range(400)])
    expected = pd.DataFrame({"rain": np.arange(400.0), "word": words, "text": list("abcd") * 100})
    zarrow.dask.to_table(dd.from_pandas(expected, npartitions=3), tmp_path / "a.zarr", chunks=10, index=False)
    read = zarrow.dask.read_table(tmp_path / "a.zarr", partition_rows=17)
    source = read.map_partitions(slowly_frame, meta=read._meta)

    def work() -> None:
        # Partitions end within shards of the target.
        stored = zarrow.dask.to_table(source, tmp_path / "b.zarr", chunks=12, shards=36, compute=False)
        waited(client, stored)

    with_kills(client, SEED + 3, work)
    found = zarrow.open(tmp_path / "b.zarr").to_pandas()
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert found["word"].dtype == words.dtype


def test_datasets_of_xarray_are_those_of_the_stock_engine(client: Any, tmp_path: Path) -> None:
    coordinates = {"day": np.arange(SHAPE[0])}
    dataset = xarray.Dataset({"rain": (("day", "place"), values(), {"units": "mm"})}, coords=coordinates)
    dataset.to_zarr(tmp_path / "a.zarr", encoding={"rain": {"chunks": (5, 60)}})
    ours = xarray.open_dataset(tmp_path / "a.zarr", engine="zarrow", chunks={})
    stock = xarray.open_dataset(tmp_path / "a.zarr", engine="zarr", chunks={})
    xarray.testing.assert_identical(ours.compute(), stock.compute())

    def work() -> None:
        # Blocks end within shards.
        mean = ours.rain.rolling(day=3, min_periods=1).mean().to_dataset().chunk(day=9, place=25)
        options = {"encoding": {"rain": {"chunks": (8, 10), "shards": (16, 20)}}, "safe_chunks": False}
        stored = zarrow.xarray.to_zarr(mean, tmp_path / "b.zarr", compute=False, **options)
        waited(client, stored)

    with_kills(client, SEED + 1, work)
    expected = stock.rain.rolling(day=3, min_periods=1).mean().compute()
    found = xarray.open_zarr(tmp_path / "b.zarr").rain.compute()
    np.testing.assert_array_equal(found, expected)


def run_job(plan: jobs.Plan, index: int, count: int) -> int:
    return plan.run(plan.job(index, count)).done


def sums(block: np.ndarray) -> np.ndarray:
    time.sleep(0.05)
    return block * 2


def test_plans_are_carried_out_by_workers_that_are_killed(client: Any, tmp_path: Path) -> None:
    source = zarrow.create_array(tmp_path / "a.zarr", data=values(), chunks=CHUNKS)
    plan = jobs.map(sums, source, tmp_path / "b.zarr", chunks=(8, 10), memory_nbytes=4000)
    plan.setup()

    def work() -> None:
        futures = [client.submit(run_job, plan, index, 6, pure=False) for index in range(6)]
        for future in futures:
            future.result(timeout=SECONDS)

    with_kills(client, SEED + 2, work)
    plan.finish()
    np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), values() * 2)


def write_row(array: zarrow.Array, row: int) -> None:
    array[row] = values()[row]


def test_tasks_that_share_shards_lose_nothing(client: Any, tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=SHAPE, dtype="f8", chunks=CHUNKS, shards=SHARDS)
    for future in client.map(write_row, [array] * SHAPE[0], range(SHAPE[0]), pure=False):
        future.result(timeout=SECONDS)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a.zarr", mode="r")[...], values())
