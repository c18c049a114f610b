"""Store objects that fail, hang, give wrong answers or are closed."""

from __future__ import annotations

import asyncio
import collections
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.storage

import zarrow
from stores_of_others import (
    VALUES,
    check,
    fill,
)
from zarrow.errors import StoreError, StorePermissionError

pytestmark = pytest.mark.filterwarnings(
    # Python warns about every fork of a process with threads; these tests cover zarrow's promises for forks.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    r"ignore:os.fork\(\) was called:RuntimeWarning",
    "ignore::zarr.errors.ZarrUserWarning",
)


class Failing(zarr.storage.MemoryStore):
    """A store with programmed answers."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        super().__init__()
        self.answer: Callable[[Any], Any] | None = None
        self.later = answer

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        found = await super().get(key, prototype, byte_range)
        if self.answer is None or key.endswith("zarr.json"):
            return found
        return self.answer(found)


def raising(error: BaseException) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        raise error

    return answer


def failing(answer: Callable[[Any], Any]) -> Any:
    store = Failing(answer)
    root = zarr.create_group(store)
    root.create_array("a", data=np.arange(64, dtype="u1"), chunks=(8,), compressors=None)
    root.create_array("s", data=np.arange(64, dtype="u1"), chunks=(8,), shards=(32,), compressors=None)
    store.answer = answer
    return zarrow.open(store)


def test_store_exceptions_are_the_cause() -> None:
    for name in ("a", "s"):
        with pytest.raises(StoreError, match="no such luck") as caught:
            failing(raising(LookupError("no such luck")))[name][...]
        assert isinstance(caught.value.__cause__, LookupError)
        assert caught.value.store == "<test_store_failures.Failing>" and caught.value.path == name
        with pytest.raises(StorePermissionError):
            failing(raising(PermissionError("not for you")))[name][...]
        with pytest.raises(StoreError, match="cancelled"):
            failing(raising(asyncio.CancelledError()))[name][...]
        with pytest.raises(SystemExit):
            failing(raising(SystemExit(3)))[name][...]
    # The asking thread still exists.
    check(fill({}))


@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), PermissionError(13, "no"), TimeoutError("slow")]
)
def test_members_that_the_store_cannot_read_are_errors(error: OSError) -> None:
    class Members(dict[str, bytes]):
        def __getitem__(self, key: str) -> bytes:
            if key == "bad/zarr.json" and fails:
                raise error
            return super().__getitem__(key)

    fails = False
    store = zarrow.PythonStore(Members(), sole_writer=True)
    group = zarrow.create_group(store)
    group["bad"], group["good"] = [1], [2]
    fails = True
    expected = StorePermissionError if isinstance(error, PermissionError) else StoreError
    lists = [group.items, group.values, group.arrays, group.groups, group.array_keys, group.members]
    for act in (*lists, lambda: zarrow.load(store)):
        with pytest.raises(expected, match='path "bad"'):
            act()
    assert group.keys() == ["bad", "good"]
    fails = False
    assert list(zarrow.load(store)) == ["bad", "good"]


def test_answers_of_wrong_types_and_lengths_are_errors() -> None:
    def longer(found: Any) -> Any:
        return type(found).from_bytes(found.to_bytes() + b"more")

    def shorter(found: Any) -> Any:
        return type(found).from_bytes(found.to_bytes()[:-1])

    for answer in (longer, shorter, lambda _: "text", lambda _: 7, lambda _: [b"a"], lambda _: b""):
        for name in ("a", "s"):
            with pytest.raises(zarrow.ZarrowError) as caught:
                failing(answer)[name][...]
            assert caught.value.kind not in ("internal", "interrupted"), (name, caught.value)
    # None means that the key is missing.
    assert failing(lambda _: None)["a"][...].tolist() == [0] * 64


@pytest.mark.parametrize("value", [None, "text", 7, [1], object()])
def test_a_mapping_of_no_bytes(value: Any) -> None:
    with pytest.raises(StoreError, match="expected bytes"):
        zarrow.open({"zarr.json": value})


def test_values_may_be_any_buffer() -> None:
    store: dict[str, Any] = {}
    zarrow.create_array(store, data=VALUES, chunks=(16, 10))
    for make in (bytearray, memoryview, lambda value: np.frombuffer(value, "i1")):
        other = {key: make(value) for key, value in store.items()}
        np.testing.assert_array_equal(np.asarray(zarrow.open(other)[...]), VALUES)


def test_a_store_that_was_closed(tmp_path: Path) -> None:
    import dbm.dumb

    with dbm.dumb.open(str(tmp_path / "file"), "n") as database:
        root = fill(zarrow.PythonStore(Encoded(database), sole_writer=True))
        check(root)
    with pytest.raises(StoreError, match="closed") as caught:
        root["plain"][...]
    assert caught.value.__cause__ is not None


class Encoded(collections.UserDict[str, bytes]):
    """A Python database as a mapping of keys to bytes."""

    def __init__(self, database: Any) -> None:
        self.data = database

    def __iter__(self) -> Iterator[str]:
        return (key.decode() for key in self.data)

    def __contains__(self, key: object) -> bool:
        return key in self.data


HANGING = """
import os, sys, threading, time, asyncio
import numpy as np, zarr, zarr.storage, zarrow

class Hangs(zarr.storage.MemoryStore):
    hangs = False
    async def get(self, key, prototype, byte_range=None):
        if self.hangs and not key.endswith("zarr.json"):
            await asyncio.sleep(3600)
        return await super().get(key, prototype, byte_range)

class Blocks(dict):
    hangs = False
    def __getitem__(self, key):
        if self.hangs and not key.endswith("zarr.json"):
            time.sleep(3600)
        return super().__getitem__(key)

for store in (Hangs(), Blocks()):
    array = zarrow.create_array(store, data=np.arange(100), chunks=10)
    store.hangs = True
    threading.Timer(0.3, lambda: os.kill(os.getpid(), __import__("signal").SIGINT)).start()
    try:
        array[...]
    except KeyboardInterrupt:
        print("interrupted")
    store.hangs = False
print("end", flush=True)
"""


def test_a_store_that_hangs_is_stopped_by_ctrl_c_and_the_process_ends() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.stdout.split() == ["interrupted", "interrupted", "end"], finished.stderr
    assert finished.returncode == 0, finished.stderr


def test_a_cancelled_read_cancels_the_stores_coroutine() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    class Waits(zarr.storage.MemoryStore):
        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            if not key.startswith("c/"):
                return await super().get(key, prototype, byte_range)
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled.set()
                raise

    array = zarrow.create_array(Waits(), shape=8, dtype="u1", chunks=8)

    async def read() -> None:
        task = asyncio.ensure_future(array.read_async())
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())
    assert cancelled.wait(30)
