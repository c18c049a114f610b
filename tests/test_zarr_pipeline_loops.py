"""Reads of local arrays on an event loop, which begin in the engine's threads."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.indexing import BasicIndexer
from zarr.core.sync import sync

import zarrow
from zarr_versions import needs_new_zarr
from zarrow.zarr_python import pipeline

pytestmark = pytest.mark.small_files

VALUES = np.arange(60 * 40, dtype="f4").reshape(60, 40)


@pytest.fixture
def array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an array on the pipeline; none of its reads is small."""
    monkeypatch.setattr(pipeline, "_SMALL_NBYTES", -1)
    stored = zarr.create_array(
        tmp_path / "a", shape=VALUES.shape, chunks=(5, 4), shards=(20, 40), dtype="f4", fill_value=-1
    )
    stored[...] = VALUES
    with zarrow.zarr_python.enable():
        return zarr.open_array(tmp_path / "a", mode="r").async_array


async def runs(array: Any, starts: list[int]) -> Any:
    """Read runs of rows in one batch, as annbatch does."""
    grid = array._chunk_grid if hasattr(array, "_chunk_grid") else array.metadata.chunk_grid
    indexers = [BasicIndexer((slice(start, start + 3),), array.shape, grid) for start in starts]

    class Runs:
        shape = (3 * len(starts), VALUES.shape[1])
        drop_axes = ()

        def __iter__(self) -> Any:
            for number, indexer in enumerate(indexers):
                for part in indexer:
                    rows = part[2][0]
                    moved = slice(rows.start + 3 * number, rows.stop + 3 * number)
                    yield type(part)(part[0], part[1], (moved, *part[2][1:]), part[3])

    return await array._get_selection(Runs(), prototype=default_buffer_prototype())


def test_reads_at_the_same_time_are_those_of_numpy(array: Any) -> None:
    async def read() -> list[Any]:
        return await asyncio.gather(
            *(runs(array, [start, 40, start + 17]) for start in range(20)),
            array.getitem((slice(3, 50, 7), 5)),
            array.getitem(...),
            array.oindex.getitem(([50, 3, 3], slice(None))),
        )

    *batches, sliced, whole, listed = asyncio.run(read())
    for start, batch in enumerate(batches):
        rows = [row for first in (start, 40, start + 17) for row in range(first, first + 3)]
        assert np.array_equal(batch, VALUES[rows])
    assert np.array_equal(sliced, VALUES[3:50:7, 5]) and np.array_equal(whole, VALUES)
    assert np.array_equal(listed, VALUES[[50, 3, 3]])


def test_a_cancelled_read_ends_before_its_task(array: Any) -> None:
    async def cancel() -> Any:
        tasks = [asyncio.ensure_future(runs(array, [0, 9])) for _ in range(20)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        return ends, await array.getitem(...)

    ends, whole = asyncio.run(cancel())
    assert {type(end) for end in ends} == {asyncio.CancelledError}
    assert np.array_equal(whole, VALUES)


def test_a_damaged_shard_is_zarr_pythons_error(array: Any, tmp_path: Path) -> None:
    shard = tmp_path / "a" / "c" / "0" / "0"
    shard.write_bytes(shard.read_bytes()[:-5] + b"torn!")
    stock = zarr.open_array(tmp_path / "a", mode="r").async_array
    found = []
    for each in (array, stock):
        with pytest.raises(Exception) as error:
            asyncio.run(runs(each, [0, 9]))
        found.append((error.type, str(error.value)))
    assert found[0] == found[1]


@needs_new_zarr
def test_missing_chunks_are_reported(array: Any, tmp_path: Path) -> None:
    (tmp_path / "a" / "c" / "1" / "0").unlink()
    assert (asyncio.run(runs(array, [19]))[1:] == -1).all()
    with zarrow.zarr_python.enable():
        strict = zarr.open_array(tmp_path / "a", mode="r", config={"read_missing_chunks": False}).async_array
    with pytest.raises(zarr.errors.ChunkNotFoundError):
        asyncio.run(runs(strict, [19]))


def _whole(array: Any, queue: Any) -> None:
    queue.put(np.array_equal(sync(array.getitem(...)), VALUES))


def test_forks_during_reads_read(array: Any) -> None:
    context = multiprocessing.get_context("fork")
    for _ in range(5):
        queue = context.Queue()
        with ThreadPoolExecutor(1) as threads:
            read = threads.submit(lambda: sync(array.getitem(...)))
            child = context.Process(target=_whole, args=(array, queue))
            child.start()
            assert np.array_equal(read.result(60), VALUES)
        assert queue.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0
