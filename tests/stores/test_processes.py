"""Many processes on one bucket: writers of the same chunks, and workers forked from a reader."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import random
import resource
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from stores.services import Service

pytestmark = pytest.mark.stores

WRITERS, ROUNDS, BLOCK, CHUNK = 8, 12, 7, 50


def test_writers_of_one_chunk_lose_nothing(conditional: Service) -> None:
    """8 processes write blocks of 7 in turn to chunks of 50: every process changes each chunk."""
    url, options = conditional.url("writers.zarr"), conditional.options
    count = WRITERS * ROUNDS * BLOCK
    root = zarrow.create_group(url, storage_options=options)
    kinds: dict[str, dict[str, Any]] = {"plain": {"chunks": CHUNK}, "shards": {"chunks": 5, "shards": CHUNK}}
    for name, kind in kinds.items():
        root.create_array(name, shape=count, dtype="i4", **kind)
    with multiprocessing.get_context("spawn").Pool(WRITERS) as pool:
        pool.map(partial(write_blocks, url, options), range(WRITERS), chunksize=1)
    expected = np.repeat(np.arange(WRITERS * ROUNDS) + 1, BLOCK)
    lost = {name: int((np.asarray(root[name][...]) != expected).sum()) for name in kinds}
    assert lost == dict.fromkeys(kinds, 0)


def write_blocks(url: str, options: dict[str, Any], writer: int) -> None:
    """Write each block of this writer."""
    root = zarrow.open(url, storage_options=options)
    for number in range(writer, WRITERS * ROUNDS, WRITERS):
        for name in ("plain", "shards"):
            root[name][number * BLOCK : (number + 1) * BLOCK] = number + 1


def test_attributes_of_many_writers_all_stay(conditional: Service) -> None:
    url, options = conditional.url("attributes.zarr"), conditional.options
    zarrow.create_group(url, storage_options=options)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(partial(set_attributes, url, options), range(4), chunksize=1)
    found = dict(zarrow.open(url, storage_options=options).attrs)
    assert found == {f"{writer}-{number}": number for writer in range(4) for number in range(5)}


def set_attributes(url: str, options: dict[str, Any], writer: int) -> None:
    """Set five attributes, one after the other."""
    root = zarrow.open(url, storage_options=options)
    for number in range(5):
        root.attrs[f"{writer}-{number}"] = number


ROWS, COLUMNS, EPOCHS, WORKERS, BATCH = 96, 40, 3, 4, 8


def test_workers_that_fork_read_as_loaders_do(s3: Service, tmp_path: Path) -> None:
    """Each epoch forks workers of a parent that also reads, and every row arrives once."""
    values = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
    options = {"chunks": (4, 10), "shards": (16, 20)}
    zarrow.create_array(tmp_path / "a", data=values, **options)
    s3.upload(tmp_path / "a", "loader.zarr")
    array = zarrow.open(s3.url("loader.zarr"), storage_options=s3.options)
    for epoch in range(EPOCHS):
        np.testing.assert_array_equal(np.asarray(array[epoch]), values[epoch])
        order = np.random.default_rng(epoch).permutation(ROWS)
        batches = [sorted(order[start : start + BATCH].tolist()) for start in range(0, ROWS, BATCH)]
        with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
            found = dict(pool.imap_unordered(partial(read_batch, array), enumerate(batches)))
        for number, rows in enumerate(batches):
            np.testing.assert_array_equal(found[number], values[rows])


def read_batch(array: Any, numbered: tuple[int, list[int]]) -> tuple[int, np.ndarray]:
    """Read one batch, as a worker does."""
    number, rows = numbered
    return number, np.array(array.oindex[rows])


CANCELLED = 10_000
AT_ONCE = 50


def sockets() -> int:
    """Return the number of open sockets of this process."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:
            continue
    return sum(link.startswith("socket:") for link in links)


def test_cancelled_reads_leave_nothing(s3: Service, tmp_path: Path) -> None:
    """10,000 reads, cancelled at any moment: no task, no excess socket, no growing memory."""
    values = np.random.default_rng(0).integers(0, 256, (64, 4096), "u1")
    zarrow.create_array(tmp_path / "a", data=values, chunks=(4, 1024), compressors=None)
    s3.upload(tmp_path / "a", "cancelled.zarr")
    array = zarrow.open(s3.url("cancelled.zarr"), storage_options=s3.options)
    rng = random.Random(1)
    ended = {"cancelled": 0, "read": 0}

    async def one() -> None:
        task = asyncio.create_task(array.read_async())
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
        if rng.random() < 0.3:
            await asyncio.sleep(rng.random() / 50)
        task.cancel()
        try:
            await task
            ended["read"] += 1
        except asyncio.CancelledError:
            ended["cancelled"] += 1

    async def many(count: int) -> None:
        for _ in range(count // AT_ONCE):
            await asyncio.gather(*(one() for _ in range(AT_ONCE)))
        assert len(asyncio.all_tasks()) == 1
        np.testing.assert_array_equal(np.asarray(await array.read_async()), values)

    asyncio.run(many(CANCELLED // 2))
    gc.collect()
    before, opened = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sockets()
    threads = len(list(Path("/proc/self/task").iterdir()))
    asyncio.run(many(CANCELLED // 2))
    gc.collect()
    assert sum(ended.values()) == CANCELLED and ended["cancelled"] > CANCELLED // 2
    # Idle connections are bounded by the limit of concurrent requests per host.
    assert sockets() <= max(opened, 256)
    assert len(list(Path("/proc/self/task").iterdir())) <= threads + 1
    # Kilobytes: a result and its bodies are 256 KiB; 5,000 leaked ones would be 1.2 GiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
