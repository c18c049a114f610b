"""Calls every entry point with helper threads, first with thread creation refused and then with it allowed.

Arguments: a folder for a store, and the URL of a folder with the array "a".

Each entry point runs in a separate process, forked from one without threads. Its first calls may raise an
`Exception`; they must not hang, panic or end the process. Its last call must work.
"""

from __future__ import annotations

import asyncio
import collections
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import limits
import numpy as np
import obstore.store
import zarr.storage
from fsspec.mapping import FSMap

import zarrow
from zarrow.store_objects.store_adapter import ThreadAdapter

SECONDS = 20
VALUES = np.arange(4096, dtype="i4").reshape(64, 64)
FIELDS = np.zeros(16, [("a", "i4"), ("b", "f4")])
FOLDER, WEB = sys.argv[1:]
NAMED_WEB = WEB.replace("127.0.0.1", "localhost")


class Mapping(collections.UserDict[str, bytes]):
    """A mapping that is called in threads."""


def local(name: str = "a") -> Any:
    return zarrow.open(f"{FOLDER}/group")[name]


def stored_in(store: Any) -> Any:
    array = zarrow.create_array(store, data=VALUES, chunks=(8, 8))
    array[:8] = 1
    array.append(VALUES[:8])
    return array[:64]


def packed() -> Any:
    """Write and read bits of numbers."""
    serializer = {"name": "packbits", "configuration": {"last_bit": 12}}
    array = zarrow.create_array(
        zarrow.MemoryStore(), data=VALUES, chunks=(8, 8), serializer=serializer, compressors=None
    )
    assert np.array_equal(array[...], VALUES)


def mapping() -> Any:
    return stored_in(zarrow.PythonStore(Mapping(), sole_writer=True))


def memory_of_fsspec() -> Any:
    import fsspec

    store = FSMap("/refused", fsspec.filesystem("memory"))
    return zarrow.PythonStore(store, sole_writer=True)


async def iterated() -> Any:
    return [chunk async for _, chunk in local().iter_chunks_async()]


def read_into() -> Any:
    out = np.empty_like(VALUES)
    return asyncio.run(local().read_async(out=out))


ENTRY_POINTS: dict[str, Callable[[], Any]] = {
    "read": lambda: local()[...],
    "read a field": lambda: local("fields")["a"],
    "write": lambda: local().__setitem__(slice(0, 32), 1),
    "packbits": packed,
    "append": lambda: local("grows").append(VALUES[:8]),
    "read_many": lambda: zarrow.read_many([(local(), slice(0, 8)), (local(), slice(8, 16))]),
    "load": lambda: zarrow.load(f"{FOLDER}/group"),
    "tree": lambda: str(zarrow.open(f"{FOLDER}/group").tree()),
    "read_async": lambda: asyncio.run(asyncio.wait_for(local().read_async(), SECONDS / 2)),
    "read_async of a field": lambda: asyncio.run(local("fields").read_async("a")),
    "read_async into out": read_into,
    "read_async of a store that is far": lambda: asyncio.run(zarrow.open(f"{WEB}/a").read_async()),
    "read_many_async": lambda: asyncio.run(zarrow.read_many_async([(local(), 0), (local(), 1)])),
    "write_async": lambda: asyncio.run(local().write_async(0, 1)),
    "open_async": lambda: asyncio.run(zarrow.open_async(f"{FOLDER}/group")),
    "iter_chunks_async": lambda: asyncio.run(iterated()),
    "http": lambda: zarrow.open(f"{WEB}/a")[...],
    "http by name": lambda: zarrow.open(f"{NAMED_WEB}/a")[...],
    "http by name after http": lambda: zarrow.open(f"{NAMED_WEB}/a", storage_options={"max_retries": 1})[...],
    "dict": lambda: stored_in({}),
    "mapping": mapping,
    "mapping after another one": mapping,
    "zarr-python's store": lambda: stored_in(zarr.storage.MemoryStore()),
    "obstore's store": lambda: stored_in(obstore.store.MemoryStore()),
    "fsspec's mapping": lambda: stored_in(memory_of_fsspec()),
}

# Ending threads would make room for others.
ThreadAdapter.IDLE_SECONDS = 60
KEPT = []


def kept_mapping() -> None:
    """Use a mapping, and keep its threads."""
    store = zarrow.PythonStore(Mapping(), sole_writer=True)
    KEPT.append(zarrow.create_array(store, data=VALUES, chunks=(8, 8)))


# Calls before threads are refused: some threads exist then, and others are refused.
BEFORE: dict[str, Callable[[], Any]] = {
    "mapping after another one": kept_mapping,
    "http by name after http": lambda: zarrow.open(f"{WEB}/a")[...],
}


def walk(name: str) -> None:
    """Call an entry point both ways, and end the process."""
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(SECONDS)
    call = ENTRY_POINTS[name]
    zarrow.set_num_threads(4)
    if before := BEFORE.get(name):
        before()
    with limits.no_threads():
        for _ in range(2):
            try:
                call()
                outcome = "worked"
            except Exception as error:
                outcome = f"{type(error).__name__}: {error}"
                assert "panic" not in outcome, outcome
    call()
    print(f"{name}: {outcome}", flush=True)
    os._exit(0)


def main() -> None:
    """Fork a process for each entry point; fail if one did not end well."""
    # A child could use the stacks of its parent's threads.
    zarrow.set_num_threads(1)
    group = zarrow.create_group(f"{FOLDER}/group")
    group.create_array("a", data=VALUES, chunks=(8, 8))
    group.create_array("grows", data=VALUES, chunks=(8, 8))
    group.create_array("fields", data=FIELDS, chunks=4)
    failed = []
    for name in ENTRY_POINTS:
        child = os.fork()
        if not child:
            walk(name)
        _, status = os.waitpid(child, 0)
        if status:
            failed.append(f"{name}: {os.waitstatus_to_exitcode(status)}")
    print("failed:", failed)
    sys.exit(bool(failed))


main()
