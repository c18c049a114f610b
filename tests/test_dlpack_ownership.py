"""The deleter of a DLPack tensor runs exactly once, whatever happens to its capsule.

Each test wraps the deleter of the managed struct: the wrapper counts, and calls the original.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import handwritten

Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# Offsets of the deleter in the two structs of the DLPack ABI.
OFFSETS = {b"dltensor": 56, b"dltensor_versioned": 16}

_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def watch(capsule: Any, called: Callable[[], object]) -> Any:
    """Return the capsule, with a deleter that calls `called` first."""
    name = _name(capsule)
    place = ctypes.c_void_p.from_address(_pointer(capsule, name) + OFFSETS[name])
    original = Deleter(place.value)

    def deleter(managed: int) -> None:
        called()
        original(managed)

    callback = Deleter(deleter)
    # The struct holds a bare address: the callback must outlive it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
    place.value = ctypes.cast(callback, ctypes.c_void_p).value
    return capsule


class Watched:
    """A producer that counts the deletions of its tensors, and records their threads."""

    def __init__(self, tensor: Any, legacy: bool = False) -> None:
        self.tensor, self.legacy = tensor, legacy
        self.threads: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **arguments: Any) -> Any:
        if self.legacy:
            arguments.pop("max_version", None)
        return watch(self.tensor.__dlpack__(**arguments), lambda: self.threads.append(threading.get_ident()))


@pytest.fixture(params=["versioned", "legacy"])
def watched(request, tmp_path):
    tensor = handwritten.tensor(tmp_path, np.arange(1000, dtype=np.float32))
    return Watched(tensor, request.param == "legacy")


def capsule(watched: Watched) -> Any:
    return watched.__dlpack__() if watched.legacy else watched.__dlpack__(max_version=(1, 0))


def test_consumed(watched):
    array = np.from_dlpack(watched)
    view = array[10:]
    del array
    assert watched.threads == [] and view[0] == 10
    del view
    assert len(watched.threads) == 1


def test_consumed_by_jax(tmp_path):
    watched = Watched(handwritten.tensor(tmp_path, np.arange(1000, dtype=np.float32)))
    array = jax.dlpack.from_dlpack(watched)
    assert watched.threads == [] and array[10] == 10
    del array
    gc.collect()
    assert len(watched.threads) == 1


def test_capsules_dropped_unconsumed(watched):
    unused = capsule(watched)
    assert watched.threads == []
    del unused
    assert len(watched.threads) == 1


def test_many_exports_of_one_tensor(watched):
    arrays = [np.from_dlpack(watched) for _ in range(10)]
    watched.tensor = None
    assert all(array[999] == 999 for array in arrays)
    while arrays:
        arrays.pop()
        assert len(watched.threads) == 10 - len(arrays)


def test_an_exception_after_taking(watched):
    def take_and_fail() -> None:
        array = np.from_dlpack(watched)
        raise RuntimeError(array[0])

    with pytest.raises(RuntimeError):
        take_and_fail()
    gc.collect()
    assert len(watched.threads) == 1


def test_refusals_keep_nothing(watched):
    def refused() -> None:
        with contextlib.suppress(TypeError):
            watched.tensor.__dlpack__(no_such_argument=1)

    refused()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        refused()
    assert sys.getallocatedblocks() - before < 100


def test_an_exception_before_taking(watched):
    def fail() -> None:
        unused = capsule(watched)
        raise RuntimeError(repr(unused))

    # The capsule is freed while the exception propagates, and does not change it.
    with pytest.raises(RuntimeError, match="dltensor"):
        fail()
    gc.collect()
    assert len(watched.threads) == 1


def test_a_consumer_of_another_major_version_only_deletes(tmp_path):
    """The version is checked first: NumPy refuses 2.0, and the capsule deletes once."""
    watched = Watched(handwritten.tensor(tmp_path, np.arange(3, dtype=np.int8)))

    class Newer(Watched):
        def __dlpack__(self, **arguments: Any) -> Any:
            exported = super().__dlpack__(**arguments)
            ctypes.c_uint32.from_address(_pointer(exported, b"dltensor_versioned")).value = 2
            return exported

    newer = Newer(watched.tensor)
    with pytest.raises(BufferError):
        np.from_dlpack(newer)
    gc.collect()
    assert len(newer.threads) == 1


def test_on_another_thread(watched):
    arrays = [np.from_dlpack(watched), np.from_dlpack(watched)]
    held = capsule(watched)
    box = [held]
    del held
    thread = threading.Thread(target=lambda: (arrays.clear(), box.clear()))
    thread.start()
    thread.join()
    assert len(watched.threads) == 3 and set(watched.threads) == {thread.ident}


def test_threads_take_and_drop_together(watched):
    def churn() -> None:
        for _ in range(200):
            assert np.from_dlpack(watched)[1] == 1
            capsule(watched)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(watched.threads) == 4 * 200 * 2


def test_arrow_capsules_dropped_and_taken(tmp_path):
    """A capsule releases its Arrow struct unless it was moved; then its owner does."""
    import pyarrow as pa

    tensor = handwritten.tensor(tmp_path, np.arange(10, dtype=np.int64))
    for _ in range(1000):
        tensor.__arrow_c_array__()
        tensor.__arrow_c_schema__()
    array = pa.array(tensor)
    del tensor
    assert array.to_pylist() == list(range(10))
    parts = array.slice(3)
    del array
    assert parts.to_pylist() == list(range(3, 10))


@pytest.mark.parametrize("kept", ["array", "capsule", "tensor", "cycle", "thread-local"])
def test_at_interpreter_exit(tmp_path, kept):
    """Objects alive at the interpreter's exit are deleted once, and nothing crashes."""
    handwritten.tensor(tmp_path, np.arange(1 << 20, dtype=np.float32))
    program = f"""
        import functools, os, sys, threading
        sys.path.insert(0, {str(handwritten.__file__.rpartition("/")[0])!r})
        import numpy as np, zarrow
        from test_dlpack_ownership import watch
        tensor = zarrow.open({str(tmp_path)!r})[...]
        # A function would keep this module's names, and so the array, alive: see `watch`.
        count = functools.partial(os.write, 1, b"deleted\\n")
        class Producer:
            def __dlpack_device__(self): return (1, 0)
            def __dlpack__(self, **arguments): return watch(tensor.__dlpack__(**arguments), count)
        kept = {kept!r}
        if kept == "array":
            array = np.from_dlpack(Producer())
        elif kept == "capsule":
            capsule = Producer().__dlpack__(max_version=(1, 0))
        elif kept == "tensor":
            faces = [tensor.numpy(), memoryview(tensor), tensor[1:], np.from_dlpack(tensor)]
        elif kept == "cycle":
            cycle = [np.from_dlpack(Producer())]
            cycle.append(cycle)
            del cycle
        else:
            local = threading.local()
            local.array = np.from_dlpack(Producer())
        print("end", flush=True)
    """
    # glibc aborts at a second free; the perturbed bytes show a use after the first.
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=100,
        env={"MALLOC_PERTURB_": "165", "PATH": ""},
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    deleted = finished.stdout.removeprefix("end\n")
    assert deleted == ("" if kept == "tensor" else "deleted\n")
