"""Finalizers, and methods of stores, that use zarrow on a thread that answers for stores written in Python.

The collector of garbage runs a finalizer on any thread. Calls that would wait for themselves are errors.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap

import fsspec
import numpy as np
import pytest
import zarr
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import zarrow
from zarrow.store_objects.kerchunk_references import ReferenceAdapter
from zarrow.store_objects.mapping import DictAdapter
from zarrow.store_objects.store_adapter import mark_loop


def filled(store):
    """Return a store with two arrays."""
    options = {"data": np.arange(12).reshape(4, 3), "chunks": (2, 3), "zarr_format": 3}
    zarrow.create_array(store, "a", **options)
    zarrow.create_array(store, "b", **options, shards=(4, 3))
    return store


def calls_on(store, other):
    """Return calls on a store, which was opened before, and on another empty one."""
    group = zarrow.open(store)
    arrays = [group["a"], group["b"]]
    return [
        lambda: zarrow.open(store),
        lambda: zarrow.save(other, np.zeros(3)),
        lambda: zarrow.create_array(other, shape=3, chunks=3, dtype="f8", overwrite=True),
        *(lambda array=array: array[:] for array in arrays),
        *(lambda array=array: array[1:3, 1] for array in arrays),
        *(lambda array=array: array.__setitem__((slice(None),), 5) for array in arrays),
        *(lambda array=array: array.__setitem__((1, 1), 5) for array in arrays),
        *(lambda array=array: array.append(np.zeros((1, 3), array.dtype)) for array in arrays),
        *(lambda array=array: array.refresh() for array in arrays),
        lambda: zarrow.read_many(arrays),
        lambda: zarrow.write_many([(array, slice(None), 1) for array in arrays]),
        lambda: list(group),
        lambda: group["a"],
        lambda: group.create_array("c", shape=3, chunks=3, dtype="f8"),
        lambda: group.__delitem__("a"),
        lambda: group.attrs.update({"x": 1}),
    ]


def outcomes(calls):
    found = []
    for call in calls:
        try:
            call()
            found.append(None)
        except Exception as error:
            found.append(error)
    return found


def all_refused(errors):
    return all(
        isinstance(error, zarrow.UnsupportedError) and "on the thread that answers" in str(error)
        for error in errors
    )


def test_calls_on_the_thread_that_takes_requests_are_errors(monkeypatch):
    store, found = filled({}), []
    calls = calls_on(store, {})

    def put(self, key, value):
        if not found:
            found.append(None)
            found.extend(outcomes(calls))
        self.store[key] = value

    before = dict(store)
    monkeypatch.setattr(DictAdapter, "_set", put)
    zarrow.save({}, np.zeros(3))
    assert len(found) == 1 + len(calls) and all_refused(found[1:])
    assert store == before
    assert outcomes(calls) == [None] * len(calls)


class Hooked(zarr.storage.MemoryStore):
    """Calls a function once, on the loop of zarr-python."""

    hook = None

    async def get(self, *arguments, **options):
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        return await super().get(*arguments, **options)


def test_calls_on_the_loop_of_a_store_are_errors():
    """Stores that need no loop can be used there."""
    needing = calls_on(filled(Hooked()), Hooked())
    free = calls_on(filled({}), {})
    store, found = Hooked(), []
    zarrow.create_array(store, data=np.arange(3), chunks=3)
    store.hook = lambda: found.extend([outcomes(needing), outcomes(free)])
    assert zarrow.open(store)[:].tolist() == [0, 1, 2]
    refused, done = found
    # The store refuses parts of chunks anyway.
    assert len(refused) == len(needing)
    assert all(isinstance(error, zarrow.UnsupportedError) for error in refused)
    assert done == [None] * len(free)


UNKNOWN_LOOP = """
    import numpy as np, zarr, zarrow
    other = zarr.storage.MemoryStore()
    zarr.create_array(other, name="a", data=np.arange(6), chunks=(2,))

    class Store(zarr.storage.MemoryStore):
        async def get(self, key, *arguments, **options):
            try:
                zarrow.open(other)["a"][:]
            except zarrow.UnsupportedError:
                print("refused")
            return await super().get(key, *arguments, **options)

    zarr.create_array(Store(), name="b", data=np.arange(6), chunks=(2,))
"""


def test_calls_on_a_loop_that_has_asked_no_store_are_errors():
    run = [sys.executable, "-c", textwrap.dedent(UNKNOWN_LOOP)]
    assert "refused" in subprocess.run(run, capture_output=True, text=True, timeout=60, check=True).stdout


class Bytes(AsyncFileSystem):
    """Files in memory, by the loop of fsspec."""

    cachable = False
    hook = None

    def __init__(self, **options):
        super().__init__(**options)
        self.files = MemoryFileSystem()

    async def _cat_file(self, path, start=None, end=None, **options):
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        return self.files.cat_file(path, start=start, end=end)

    async def _pipe_file(self, path, value, mode="overwrite", **options):
        self.files.pipe_file(path, value)

    async def _info(self, path, **options):
        return self.files.info(path)

    async def _ls(self, path, detail=True, **options):
        return self.files.ls(path, detail=detail)

    async def _rm_file(self, path, **options):
        self.files.rm_file(path)

    async def _mkdir(self, *arguments, **options):
        pass

    async def _makedirs(self, *arguments, **options):
        pass


def test_calls_on_the_loop_of_fsspec_are_errors():
    system, found = Bytes(), []
    array = zarrow.create_array(system.get_mapper("/finalizers/a"), data=np.arange(6), chunks=2)
    other = zarrow.create_array(system.get_mapper("/finalizers/b"), data=np.arange(6), chunks=2)
    system.hook = lambda: found.extend(outcomes([lambda: other[:], lambda: zarrow.save({}, np.arange(3))]))
    assert array[:].tolist() == list(range(6))
    assert all_refused(found[:1]) and found[1:] == [None]


def test_a_store_in_a_folder_can_be_used_on_every_thread(tmp_path, monkeypatch):
    found = []

    def put(self, key, value):
        zarrow.save(tmp_path / f"{len(found)}.zarr", np.arange(3))
        found.append(zarrow.load(tmp_path / f"{len(found)}.zarr").tolist())
        self.store[key] = value

    monkeypatch.setattr(DictAdapter, "_set", put)
    zarrow.save({}, np.zeros(3))
    assert found and all(values == [0, 1, 2] for values in found)


def test_coroutines_on_such_a_loop_can_await_stores():
    """An asynchronous call does not wait on the thread."""
    array, found = zarrow.open(filled(zarr.storage.MemoryStore()))["a"], []

    class Store(zarr.storage.MemoryStore):
        async def get(self, *arguments, **options):
            if not found:
                found.append(None)
                found.append((await array.read_async()).tolist())
            return await super().get(*arguments, **options)

    store = zarrow.PythonStore(Store())
    zarrow.create_array(store, data=np.arange(3), chunks=3)
    assert zarrow.open(store)[:].tolist() == [0, 1, 2]
    assert found[1] == np.arange(12).reshape(4, 3).tolist()


class Reading(dict):
    """Reads an array in its methods."""

    in_get = in_set = None

    def __setitem__(self, key, value):
        assert self.in_set is None or self.in_set[0].tolist() == [0, 1, 2]
        super().__setitem__(key, value)

    def __getitem__(self, key):
        assert self.in_get is None or self.in_get[0].tolist() == [0, 1, 2]
        return super().__getitem__(key)


def test_a_mapping_can_read_another_store_in_its_methods():
    store, other = Reading(), zarrow.open(filled({}))["a"]
    array = zarrow.open(filled(store))["b"]
    store.in_get = store.in_set = other
    array[:] = 7
    assert array[:].tolist() == [[7] * 3] * 4


def test_a_mapping_cannot_read_itself_while_it_is_changed():
    """Other changes wait for this one: they have all threads."""
    store = Reading()
    group = zarrow.open(filled(store))
    array = group.create_array("many", shape=64, chunks=1, dtype="i4")
    store.in_set = group["a"]
    with pytest.raises(zarrow.ZarrowError) as raised:
        array[:] = 7
    assert all_refused([raised.value.__cause__ or raised.value])


def test_a_thread_whose_loop_has_ended_can_use_stores():
    store = Hooked()
    zarrow.create_array(store, data=np.arange(3), chunks=3)
    array = zarrow.open(store)

    async def mark():
        mark_loop(asyncio.get_running_loop())

    for _ in range(30):
        asyncio.run(mark())
        assert array[:].tolist() == [0, 1, 2]


@pytest.mark.parametrize("store", ["{}", "Mapping()", "zarr.storage.MemoryStore()"])
@pytest.mark.parametrize("end", ["saved = Saved()", "saved = Saved(); saved.self = saved"])
def test_a_finalizer_at_the_end_of_python_does_not_hang(store, end):
    program = f"""
        import atexit, numpy as np, zarr
        atexit.register(lambda: print(array[:].tolist()))
        import zarrow
        class Mapping(dict):
            pass
        array = zarrow.create_array({store}, data=np.arange(3), chunks=3)
        class Saved:
            def __del__(self, array=array):
                array[:]
        {end}
    """
    run = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "[0, 1, 2]\n"


def test_a_finalizer_on_a_thread_that_loads_references(tmp_path, monkeypatch):
    """It writes by another store of the file system, which waits for the end of loading."""
    raw = tmp_path / "raw"
    raw.write_bytes(np.arange(8, dtype="<i8").tobytes())
    metadata = {"shape": [8], "chunks": [4], "dtype": "<i8", "fill_value": 0, "order": "C"}
    document = json.dumps({"zarr_format": 2, "compressor": None, "filters": None, **metadata})
    parts = {"0": [str(raw), 0, 32], "1": [str(raw), 32, 32]}
    references = {f"{name}/{key}": part for name in "ab" for key, part in parts.items()}
    references |= {"a/.zarray": document, "b/.zarray": document, ".zgroup": json.dumps({"zarr_format": 2})}
    system = fsspec.filesystem("reference", fo=references, remote_protocol="file", skip_instance_cache=True)
    mapper, found = system.get_mapper(""), []
    array, other = zarrow.open(mapper)["a"], zarrow.open(mapper)["b"]
    load = ReferenceAdapter._load

    def loading(self, *arguments):
        if not found:
            found.append(None)
            found.extend(outcomes([lambda: other.__setitem__(slice(4), 7)]))
        return load(self, *arguments)

    monkeypatch.setattr(ReferenceAdapter, "_load", loading)
    assert array[:].tolist() == list(range(8))
    assert len(found) == 2 and all_refused(found[1:])


def test_a_forked_child_of_such_a_thread_can_use_stores():
    program = """
        import os, numpy as np, zarrow
        from zarrow.store_objects.mapping import DictAdapter
        array = zarrow.create_array({}, data=np.arange(6), chunks=2)
        def put(self, key, value):
            self.store[key] = value
            if (child := os.fork()) == 0:
                os._exit(0 if array[:].tolist() == [0, 1, 2, 3, 4, 5] else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            DictAdapter._set = set_value
        set_value, DictAdapter._set = DictAdapter._set, put
        zarrow.save({}, np.zeros(3))
    """
    run = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    assert subprocess.run(run, capture_output=True, text=True, timeout=60, check=True).stdout == "0\n"


PROGRAM = """
    import gc, sys, threading, time
    import numpy as np
    import zarrow
    from zarrow.store_objects import store_adapter

    class Mapping(dict):
        "Is called in threads."

    make = {"dict": dict, "mapping": Mapping, "declared": Mapping}[sys.argv[1]]

    def opened(store):
        if sys.argv[1] == "declared":
            return zarrow.PythonStore(store, sole_writer=True)
        return store

    shared, ends, refused = opened(make()), [], []
    zarrow.create_array(shared, "own", shape=4, chunks=2, dtype="i8")

    class Saved:
        "A cycle that saves itself when it is collected."

        def __init__(self):
            self.self = self

        def __del__(self):
            try:
                zarrow.open(shared, "own")[:] = 7
                zarrow.save(opened(make()), np.zeros(3))
                ends.append(threading.current_thread().name)
            except zarrow.UnsupportedError:
                refused.append(threading.current_thread().name)

    # Threads of a mapping end at once, so that many start.
    store_adapter.ThreadAdapter.IDLE_SECONDS = 0.001
    gc.set_threshold(int(sys.argv[2]))
    array = zarrow.create_array(shared, "a", shape=64, chunks=2, dtype="i8")
    for number in range(150):
        Saved()
        if number % 3 == 0:
            gc.collect()
        array[:] = 1
        array[1:63:3]
    gc.set_threshold(700)
    # A collection does nothing while another thread collects.
    while len(ends) + len(refused) < 150:
        gc.collect()
        time.sleep(0.01)
    print(len(ends), len(refused))
"""


@pytest.mark.parametrize("threshold", ["1", "20", "200"])
@pytest.mark.parametrize("store", ["dict", "mapping", "declared"])
def test_finalizers_on_any_thread_do_not_hang(store, threshold):
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), store, threshold]
    run = subprocess.run(program, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    ended, refused = map(int, run.stdout.split())
    assert ended + refused == 150 and ended >= 50
