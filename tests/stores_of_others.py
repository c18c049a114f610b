"""Store objects of other libraries, a tree of arrays for each, and child processes that read it."""

from __future__ import annotations

import collections
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import icechunk
import numpy as np
import pytest
import zarr
import zarr.storage
from obstore.store import LocalStore, MemoryStore

import zarrow

VALUES = np.arange(60 * 40, dtype="i4").reshape(60, 40)
NAMES = ["Oslo", "Rome", "Quito"]


class OwnStore(zarr.storage.MemoryStore):
    """A user's subclass, which the engine must not treat as its parent."""


class OwnMapping(collections.UserDict[str, bytes]):
    """A mapping that is not a dict."""


def icechunk_session() -> Any:
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    return repository.writable_session("main").store


def memory_files(name: str) -> Any:
    fs = fsspec.filesystem("memory")
    if fs.exists(f"/{name}"):
        fs.rm(f"/{name}", recursive=True)
    return fs


# Each kind of store, created in a folder.
KINDS: dict[str, Callable[[Path], Any]] = {
    "dict": lambda _: {},
    "mapping": lambda _: zarrow.PythonStore(OwnMapping(), sole_writer=True),
    "zarr-local": lambda folder: zarr.storage.LocalStore(folder / "local"),
    "zarr-memory": lambda _: zarr.storage.MemoryStore(),
    "zarr-own": lambda _: zarrow.PythonStore(OwnStore(), sole_writer=True),
    "zarr-logging": lambda _: zarrow.PythonStore(
        zarr.storage.LoggingStore(zarr.storage.MemoryStore(), log_level="CRITICAL"), sole_writer=True
    ),
    "zarr-fsspec-local": lambda folder: zarr.storage.FsspecStore.from_url(f"file://{folder}/fsspec"),
    "zarr-fsspec-memory": lambda _: zarrow.PythonStore(
        zarr.storage.FsspecStore.from_mapper(fsspec.FSMap("/from-zarr", memory_files("from-zarr"))),
        sole_writer=True,
    ),
    "zarr-obstore": lambda _: zarr.storage.ObjectStore(MemoryStore()),
    "obstore-local": lambda folder: LocalStore(folder / "obstore", mkdir=True),
    "obstore-memory": lambda _: MemoryStore(),
    "fsmap-local": lambda folder: fsspec.get_mapper(f"file://{folder}/fsmap"),
    "fsmap-memory": lambda _: zarrow.PythonStore(
        fsspec.FSMap("/mapper", memory_files("mapper")), sole_writer=True
    ),
    "icechunk": lambda _: icechunk_session(),
}
# Stores of libraries that do not work in a forked child.
WITHOUT_FORK = {"icechunk", "obstore-memory", "zarr-obstore"}


def fill(store: Any) -> Any:
    """Write a group with arrays of each kind."""
    root = zarrow.create_group(store, attributes={"title": "rain"})
    root.create_array("plain", data=VALUES, chunks=(16, 10))
    root.create_array("group/sharded", data=VALUES, chunks=(8, 8), shards=(32, 24), compressors=None)
    root["names"] = NAMES
    return root


SELECTIONS = [np.s_[...], np.s_[3:50:7, 5], np.s_[::-1, 30:], np.s_[[3, 59, 0]]]


def check(root: Any) -> None:
    for name in ("plain", "group/sharded"):
        for selection in SELECTIONS:
            np.testing.assert_array_equal(np.asarray(root[name].oindex[selection]), VALUES[selection])
    assert root["names"][:].tolist() == NAMES


def in_child(read: Callable[[], None], pipe: Any) -> None:
    try:
        read()
        pipe.send(None)
    except BaseException as error:
        pipe.send(error)
        raise


def run_in_child(start: str, read: Callable[[], None]) -> BaseException | None:
    """Return the exception of `read` in a child process with the start method `start`."""
    context = multiprocessing.get_context(start)
    ours, theirs = context.Pipe()
    child = context.Process(target=in_child, args=(read, theirs))  # type: ignore[attr-defined]
    child.start()
    theirs.close()
    if not ours.poll(60):
        child.kill()
        pytest.fail("the child hangs")
    found: BaseException | None = ours.recv()
    child.join()
    return found
