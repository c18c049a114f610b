"""Reads and writes in an event loop: the same values, concurrent, cancelled, on any loop."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

import zarrow


@pytest.fixture
def values() -> np.ndarray:
    return np.arange(60 * 44, dtype="u4").reshape(60, 44)


@pytest.fixture(params=["folder", "memory"])
def array(request: pytest.FixtureRequest, tmp_path: Any, values: np.ndarray) -> zarrow.Array:
    store = tmp_path / "a.zarr" if request.param == "folder" else zarrow.MemoryStore()
    return zarrow.create_array(store, data=values, chunks=(16, 12))


def test_a_read_is_that_of_read(array: zarrow.Array, values: np.ndarray) -> None:
    async def reads() -> list[Any]:
        selections = [..., (slice(3, 50, 2), 7), [5, 1, 1], (..., slice(None, None, -1)), 0]
        return [(selection, await array.read_async(selection)) for selection in selections]

    for selection, found in asyncio.run(reads()):
        np.testing.assert_array_equal(found.numpy(), values[selection])


@pytest.mark.parametrize("options", [{"order": "F"}, {"mmap": True}])
def test_options_of_read_only_say_what_to_type(array: zarrow.Array, options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(TypeError, match=rf"no {name}=: type await asyncio.to_thread\(array.read, "):
        asyncio.run(array.read_async(..., **options))


def test_many_reads_at_once_each_give_their_own(array: zarrow.Array, values: np.ndarray) -> None:
    async def rows() -> list[Any]:
        return await asyncio.gather(*(array.read_async(number % 60) for number in range(500)))

    for number, row in enumerate(asyncio.run(rows())):
        np.testing.assert_array_equal(row.numpy(), values[number % 60])


def test_a_read_into_memory_of_the_callers(array: zarrow.Array, values: np.ndarray) -> None:
    out = np.zeros((60, 44), "u4", order="F")
    assert asyncio.run(array.read_async(out=out)) is out
    np.testing.assert_array_equal(out, values)
    with pytest.raises(ValueError, match="out has shape"):
        asyncio.run(array.read_async(0, out=out))


def test_errors_are_those_of_read(array: zarrow.Array) -> None:
    with pytest.raises(IndexError):
        asyncio.run(array.read_async(1000))

    async def writes_nothing_fitting() -> None:
        await array.write_async(slice(0, 2), np.zeros((3, 44), "u4"))

    with pytest.raises(ValueError, match="shape"):
        asyncio.run(writes_nothing_fitting())


def test_fields_strings_and_masks() -> None:
    structures = np.array([(1, 2.5), (3, 4.5)], dtype=[("x", "i2"), ("y", "f4")])
    array = zarrow.create_array(zarrow.MemoryStore(), data=structures)
    assert asyncio.run(array.read_async("y")).tolist() == [2.5, 4.5]
    out = np.zeros(2, "f4")
    asyncio.run(array.read_async("y", out=out))
    assert out.tolist() == [2.5, 4.5]
    texts = zarrow.create_array(zarrow.MemoryStore(), data=["a", "né", ""])
    assert asyncio.run(texts.read_async()).tolist() == ["a", "né", ""]
    numbers = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(4))
    assert asyncio.run(numbers.read_async(mask=2)).tolist() == [0, 1, None, 3]


def test_writes(array: zarrow.Array, values: np.ndarray) -> None:
    async def writes() -> None:
        await asyncio.gather(*(array.write_async(number, values[number] + 1) for number in range(60)))

    asyncio.run(writes())
    np.testing.assert_array_equal(array[...].numpy(), values + 1)


def test_opening_and_batches(array: zarrow.Array, values: np.ndarray, tmp_path: Any) -> None:
    async def batch() -> Any:
        return await zarrow.read_many_async([(array, slice(start, start + 3)) for start in (0, 7, 50)])

    found = asyncio.run(batch()).numpy()
    np.testing.assert_array_equal(found, np.stack([values[start : start + 3] for start in (0, 7, 50)]))

    async def opened() -> Any:
        return await zarrow.open_async(tmp_path / "nothing.zarr", mode="r")

    with pytest.raises(zarrow.NotFoundError):
        asyncio.run(opened())


def test_iteration_over_chunks(array: zarrow.Array, values: np.ndarray) -> None:
    async def read(prefetch: int) -> np.ndarray:
        found = np.zeros_like(values)
        async for place, chunk in array.iter_chunks_async(prefetch=prefetch):
            found[place] = chunk.numpy()
        return found

    for prefetch in (0, 1, 5, 100):
        np.testing.assert_array_equal(asyncio.run(read(prefetch)), values)

    async def first() -> tuple[slice, ...]:
        async with aclosing(array.iter_chunks_async(prefetch=8)) as chunks:
            async for place, _ in chunks:
                return place
        raise AssertionError

    assert asyncio.run(first()) == (slice(0, 16), slice(0, 12))
    with pytest.raises(ValueError, match="prefetch"):
        asyncio.run(read(-1))


def test_several_loops_at_once(array: zarrow.Array, values: np.ndarray) -> None:
    found: list[Any] = []

    async def rows() -> list[Any]:
        return await asyncio.gather(*(array.read_async(number) for number in range(60)))

    threads = [threading.Thread(target=lambda: found.append(asyncio.run(rows()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for of_loop in found:
        np.testing.assert_array_equal([row.numpy() for row in of_loop], values)


def test_uvloop(array: zarrow.Array, values: np.ndarray) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def reads() -> Any:
        rows = await asyncio.gather(*(array.read_async(number) for number in range(60)))
        await array.write_async(0, values[0] + 1)
        task = asyncio.ensure_future(array.read_async())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        chunks = [chunk.shape async for _, chunk in array.iter_chunks_async(prefetch=3)]
        return rows, chunks, await zarrow.read_many_async([(array, 0), (array, 59)])

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows, chunks, ends = runner.run(reads())
    np.testing.assert_array_equal([row.numpy() for row in rows], values)
    assert len(chunks) == 16
    np.testing.assert_array_equal(ends.numpy(), [values[0] + 1, values[59]])


class SlowCodec:
    """A codec that blocks until released, so that a test controls how long a read is under way."""

    codec_id = "test.slow-for-await"
    begun = threading.Event()
    go_on = threading.Event()

    def encode(self, data: Any) -> bytes:
        return bytes(data)

    def decode(self, data: Any, out: Any = None) -> bytes:
        type(self).begun.set()
        type(self).go_on.wait(30)
        return bytes(data)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SlowCodec:
        return cls()


def test_a_cancelled_read_has_ended_before_its_task_resumes() -> None:
    zarrow.codecs.register(SlowCodec)
    values = np.arange(8, dtype="i8")
    array = zarrow.create_array(
        zarrow.MemoryStore(), data=values, chunks=(2,), compressors=[{"name": SlowCodec.codec_id}]
    )
    out = np.zeros(8, "i8")

    async def cancelled() -> None:
        SlowCodec.begun.clear()
        SlowCodec.go_on.clear()
        task = asyncio.ensure_future(array.read_async(out=out))
        while not SlowCodec.begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done(), "the codec still has a chunk of out"
        SlowCodec.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = out.copy()
        await asyncio.sleep(0.05)
        np.testing.assert_array_equal(out, before)

    asyncio.run(cancelled())
    SlowCodec.go_on.set()
    np.testing.assert_array_equal(array[...].numpy(), values)


def test_ten_thousand_cancelled_reads_leave_nothing(array: zarrow.Array, values: np.ndarray) -> None:
    async def cancel_many(count: int) -> None:
        tasks = [asyncio.ensure_future(array.read_async(number % 60)) for number in range(count)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(asyncio.all_tasks()) == 1

    def held() -> int:
        gc.collect()
        kinds = {"Tensor", "_Detached", "Future"}
        return sum(1 for found in gc.get_objects() if type(found).__name__ in kinds)

    asyncio.run(cancel_many(100))
    before, threads = held(), threading.active_count()
    for _ in range(10):
        asyncio.run(cancel_many(1000))
    assert held() <= before
    assert threading.active_count() <= threads
    np.testing.assert_array_equal(asyncio.run(array.read_async()).numpy(), values)


def test_a_loop_closed_during_a_read(array: zarrow.Array) -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(array.read_async())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    del task
    gc.collect()
    assert asyncio.run(array.read_async(0)).shape == (44,)


def test_a_read_that_ends_while_the_interpreter_does(tmp_path: Any) -> None:
    """The callback releases the GIL, and never gets it back."""
    code = """
        import sys, threading, time
        import zarrow
        from zarrow._zarrow import _read_detached

        class SlowEnd:
            def __del__(self, sleep=time.sleep):
                sleep(0.5)

        told, sys.slow_end = threading.Event(), SlowEnd()

        def tell(decoded, error):
            told.set()
            time.sleep(0.2)

        array = zarrow.zeros(4)
        _read_detached(array, ..., None, None, tell)
        told.wait()
        print("end")
    """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
