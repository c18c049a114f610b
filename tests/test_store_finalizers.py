"""Finalizers, and methods of stores, that use zarrow on a thread that answers for stores written in Python.

The collector of garbage runs a finalizer on any thread. Calls that would wait for themselves are errors.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import zarr

import zarrow
from zarrow.store_objects.mapping import DictAdapter


@pytest.fixture
def other():
    store = {}
    zarrow.create_array(store, "a", data=np.arange(12).reshape(4, 3), chunks=(2, 3), zarr_format=3)
    zarrow.create_array(
        store, "b", data=np.arange(12).reshape(4, 3), chunks=(2, 3), shards=(4, 3), zarr_format=3
    )
    return store


@pytest.fixture
def calls(other):
    """Calls on another store, which was opened before."""
    group = zarrow.open(other)
    arrays = [group["a"], group["b"]]
    return [
        lambda: zarrow.open(other),
        lambda: zarrow.save({}, np.zeros(3)),
        lambda: zarrow.create_array({}, shape=3, chunks=3, dtype="f8"),
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


def test_calls_on_the_thread_that_takes_requests_are_errors(calls, other, monkeypatch):
    found = []

    def put(self, key, value):
        if not found:
            found.append(None)
            found.extend(outcomes(calls))
        self.store[key] = value

    before = dict(other)
    monkeypatch.setattr(DictAdapter, "_set", put)
    zarrow.save({}, np.zeros(3))
    assert len(found) == 1 + len(calls)
    for error in found[1:]:
        assert isinstance(error, zarrow.UnsupportedError) and "on the thread that answers" in str(error)
    assert other == before
    assert outcomes(calls) == [None] * len(calls)


def test_calls_on_the_loop_of_zarr_python_are_errors(calls, tmp_path):
    found = []

    class Store(zarr.storage.MemoryStore):
        async def get(self, *arguments, **options):
            if not found:
                found.extend(outcomes(calls))
            return await super().get(*arguments, **options)

    store = zarrow.PythonStore(Store())
    zarrow.create_array(store, data=np.arange(3), chunks=3)
    zarrow.open(store)[:]
    assert len(found) == len(calls)
    assert all(isinstance(error, zarrow.UnsupportedError) for error in found)


def test_a_store_in_a_folder_can_be_used_on_every_thread(tmp_path, monkeypatch):
    found = []

    def put(self, key, value):
        zarrow.save(tmp_path / f"{len(found)}.zarr", np.arange(3))
        found.append(zarrow.load(tmp_path / f"{len(found)}.zarr").tolist())
        self.store[key] = value

    monkeypatch.setattr(DictAdapter, "_set", put)
    zarrow.save({}, np.zeros(3))
    assert found and all(values == [0, 1, 2] for values in found)


def test_coroutines_on_such_a_loop_can_await_stores(other):
    """An asynchronous call does not wait on the thread."""
    array, found = zarrow.open(other)["a"], []

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


def test_a_mapping_can_use_another_store_in_its_methods(other):
    array = zarrow.open(other)["a"]

    class Store(dict):
        def __setitem__(self, key, value):
            assert array[0].tolist() == [0, 1, 2]
            super().__setitem__(key, value)

        def __getitem__(self, key):
            assert array[0].tolist() == [0, 1, 2]
            return super().__getitem__(key)

    store = zarrow.PythonStore(Store())
    zarrow.create_array(store, data=np.arange(30), chunks=3)
    assert zarrow.open(store)[:].tolist() == list(range(30))


PROGRAM = """
    import gc, sys, threading
    import numpy as np
    import zarrow

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

    gc.set_threshold(20)
    array = zarrow.create_array(shared, "a", shape=64, chunks=2, dtype="i8")
    for number in range(150):
        Saved()
        if number % 3 == 0:
            gc.collect()
        array[:] = 1
        array[1:63:3]
    gc.set_threshold(700)
    gc.collect()
    print(len(ends), len(refused))
"""


@pytest.mark.parametrize("store", ["dict", "mapping", "declared"])
def test_finalizers_on_any_thread_do_not_hang(store):
    program = textwrap.dedent(PROGRAM)
    run = subprocess.run([sys.executable, "-c", program, store], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    ended, refused = map(int, run.stdout.split())
    assert ended + refused == 150 and ended >= 50
