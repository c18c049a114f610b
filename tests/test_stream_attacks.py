"""Streams lose and change no element when callers, the system or other processes interfere."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from test_stream import Slow, created, frames, threads_end
from zarrow.stream import Writer, follow


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)


FRAMES = [
    ("i4", np.array([1 << 40, 1])),
    ("i8", np.array([1 << 63, 1], "u8")),
    ("i2", np.array([40000, 1], "u2")),
    ("u2", np.array([3, 65535], "i4")),
    ("u2", np.array([-1, 5], "i4")),
    ("U2", np.array(["abcdef", "b"])),
    ("S2", np.array([b"abcdef", b"b"])),
    ("M8[s]", np.array(["2020-01-01T00:00:00.5", "2021"], "M8[ns]")),
    ("f4", np.ma.masked_equal(np.array([1, 2], "f4"), 2)),
    ("f4", np.ma.masked_array(np.array([1, 2], "f4"))),
    ("int4", [1, 200]),
    ("i2", [1, 1 << 20]),
    ("f4", [1, None]),
    (">i4", np.array([1, 2, 3, 4], ">i8")[::-2]),
    ("f4", np.array([1.5, 1e300])),
    ("bfloat16", np.array([1.5, 3], "f4")),
    ("f8", np.array([1.5, 3], "f2")),
    ("f4", zarrow.from_numpy(np.array([1.5, 2], "f4"))),
    ([("a", "i2"), ("b", "f4")], np.array([(1, 2), (3, 4)], [("b", "f4"), ("a", "i2")])),
    ("?", np.array([1, 0])),
]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("dtype", "frame"), FRAMES)
def test_frames_are_converted_as_by_append(dtype: Any, frame: Any) -> None:
    """No integer wraps, no text or time is cut, and no mask is dropped."""

    def result(is_stream: bool) -> Any:
        array = zarrow.create_array(zarrow.MemoryStore(), shape=(0, 2), chunks=(2, 2), dtype=dtype)
        try:
            if is_stream:
                with Writer(array) as writer:
                    writer.append(frame)
            else:
                array.append([frame] if isinstance(frame, list) else np.expand_dims(frame, 0))
        except (zarrow.DataTypeError, OverflowError) as error:
            assert array.shape == (0, 2)
            return type(error)
        return repr(np.asarray(array[...]).tolist())

    if isinstance(frame, zarrow.Tensor):
        assert result(True) == "[[1.5, 2.0]]"
    else:
        assert result(True) == result(False)


def test_arrays_of_different_write_units_share_the_memory() -> None:
    group = zarrow.create_group(zarrow.MemoryStore())
    image = group.create_array("image", shape=(0, 10), chunks=(1, 10), dtype="u1")
    at = group.create_array("at", shape=(0,), chunks=(100,), dtype="u1")
    for memory_nbytes in (220, 221, 230, 1000):
        with Writer({"image": image, "at": at}, memory_nbytes=memory_nbytes):
            pass
    with pytest.raises(ValueError, match="need 220 bytes"):
        Writer({"image": image, "at": at}, memory_nbytes=219)


def test_an_array_is_passed_once(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "g.zarr")
    array = group.create_array("a", shape=(0,), chunks=(4,), dtype="i4")
    other = zarrow.open_array(tmp_path / "g.zarr" / "a", mode="r+")
    for mapping in ({"x": array, "y": array}, {"x": array, "y": other}):
        with pytest.raises(ValueError, match="'x' and 'y' are the same array"):
            Writer(mapping)


def test_a_read_only_array_is_refused_at_once(tmp_path: Path) -> None:
    created(tmp_path / "a.zarr")
    with pytest.raises(zarrow.ReadOnlyError, match="is read-only"):
        Writer(zarrow.open_array(tmp_path / "a.zarr", mode="r"))


def test_a_thread_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    array = created(zarrow.MemoryStore())

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="start new thread"):
            Writer(array)
    with Writer(array) as writer:
        writer.append([1, 2, 3])
    assert array.shape == (1, 3)


def test_a_long_interval_stores_frames_that_are_flushed() -> None:
    array = created(zarrow.MemoryStore())
    with Writer(array, interval=float("inf")) as writer:
        writer.append(frames(0, 3))
        assert writer.flush() == 3
    array.append(frames(3, 4))
    assert next(follow(array, start=0, interval=float("inf"))).shape == (4, 3)


class Collecting(Slow):
    """A mapping in which each stored chunk collects garbage."""

    def __setitem__(self, key: str, value: bytes) -> None:
        super().__setitem__(key, value)
        if "c/" in key:
            gc.collect()


@pytest.mark.filterwarnings("ignore:a Writer was not closed")
def test_a_writer_may_be_collected_in_its_own_thread() -> None:
    store = Collecting()
    array = created(zarrow.PythonStore(store, sole_writer=True))
    store.may.clear()
    gc.disable()
    try:
        writer = Writer(array, interval=0)
        writer.append(frames(0, 4))
        writer.append(frames(4, 6))
        cycle: list[Any] = [writer]
        cycle.append(cycle)
        del writer, cycle
        store.may.set()
        threads_end()
    finally:
        gc.enable()
        gc.collect()
    threads_end()
    assert zarrow.open_array(store)[:, 0].tolist() == list(range(6))


def test_frames_are_stored_at_exit_where_warnings_are_errors(tmp_path: Path) -> None:
    created(tmp_path / "a.zarr")
    program = """
import sys, warnings, zarrow
from zarrow.stream import Writer
warnings.simplefilter("error")
writer = Writer(zarrow.open_array(sys.argv[1], mode="r+"), interval=10)
writer.append([4, 5, 6])
"""
    assert "not closed" in run(program, tmp_path / "a.zarr").stderr
    assert zarrow.load(tmp_path / "a.zarr").tolist() == [[4, 5, 6]]


def test_an_error_that_nobody_asked_for_is_printed_at_exit(tmp_path: Path) -> None:
    program = """
import shutil, sys, zarrow
from zarrow.stream import Writer
writer = Writer(zarrow.open_array(sys.argv[1], mode="r+"), interval=0 if sys.argv[2] == "now" else 10)
shutil.rmtree(sys.argv[1])
writer.append([[4, 5, 6]] * 4)
if sys.argv[2] == "now":
    writer._state._thread.join(60)
if sys.argv[2] == "collected":
    del writer
"""
    for when in ("now", "at exit", "collected"):
        created(tmp_path / "a.zarr")
        assert run(program, tmp_path / "a.zarr", when).stderr.count("NotFoundError") == 1, when


def test_an_error_of_the_block_tells_what_was_not_stored(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "group.zarr")
    array = group.create_array("a", shape=(0, 3), chunks=(4, 3), dtype="i4")
    with pytest.raises(RuntimeError, match="mine") as raised, Writer(array, interval=10) as writer:
        writer.append([1, 2, 3])
        del group["a"]
        raise RuntimeError("mine")
    (note,) = raised.value.__notes__
    assert "1 frames, 0 stored" in note


def test_an_error_that_is_raised_often_does_not_grow(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "group.zarr")
    array = group.create_array("a", shape=(0, 3), chunks=(4, 3), dtype="i4")
    writer = Writer(array)
    del group["a"]
    writer.append([1, 2, 3])
    lengths = set()
    for _ in range(5):
        with pytest.raises(zarrow.NotFoundError) as raised:
            writer.flush()
        lengths.add(len(traceback.extract_tb(raised.value.__traceback__)))
    assert len(lengths) <= 2
    with pytest.raises(zarrow.NotFoundError):
        writer.close()


INTERRUPTED = """
import os, signal, sys, threading, zarrow
from test_stream import Slow, created, frames
from zarrow.stream import Writer

class Blocked(Slow):
    is_sent = False

    # Ctrl-C for the main thread, while the store blocks.
    def __setitem__(self, key, value):
        if "c/" in key and not self.may.is_set() and not self.is_sent:
            self.is_sent = True
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        super().__setitem__(key, value)

store = Blocked()
array = created(zarrow.PythonStore(store, sole_writer=True))
store.may.clear()
writer = Writer(array, memory_nbytes=8 * 12, interval=0)
for call in (lambda: writer.append(frames(0, 50)), writer.close):
    try:
        call()
    except KeyboardInterrupt:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.exit("was not interrupted")
try:
    writer.flush()
except ValueError:
    pass
try:
    while True:
        threading.Event().wait(1)
except KeyboardInterrupt:
    store.may.set()
writer.close()
assert array[:, 0].tolist() == list(range(writer.accepted)), array[:, 0]
assert 8 <= writer.accepted == writer.stored
"""


def test_ctrl_c_ends_each_wait_and_loses_nothing() -> None:
    program = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{INTERRUPTED}"
    assert run(program).stderr == ""


def test_a_full_disk_is_told_and_flushed_frames_stay(tmp_path: Path) -> None:
    program = """
import resource, signal, sys, numpy, zarrow
from zarrow.stream import Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
array = zarrow.create_array(sys.argv[1], shape=(0, 3), chunks=(1000, 3), dtype="i4", compressors=None)
writer = Writer(array, interval=0)
writer.append(numpy.ones((500, 3), "i4"))
assert writer.flush() == 500
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))
writer.append(numpy.ones((700, 3), "i4"))
for call in (writer.flush, writer.close):
    try:
        call()
    except zarrow.StoreError:
        pass
    else:
        sys.exit("no error")
assert writer.stored == 500
"""
    assert run(program, tmp_path / "a.zarr").stderr == ""
    stored = zarrow.load(tmp_path / "a.zarr")
    assert len(stored) == 500
    assert (stored == 1).all()


def test_two_processes_stream_into_one_array(tmp_path: Path) -> None:
    program = """
import sys, zarrow
from zarrow.stream import Writer
array = zarrow.open_array(sys.argv[1], mode="r+")
with Writer(array, memory_nbytes=100, interval=0) as writer:
    for number in range(100):
        writer.append([int(sys.argv[2]), number, -number])
"""
    created(tmp_path / "a.zarr")
    processes = [
        subprocess.Popen([sys.executable, "-c", program, tmp_path / "a.zarr", str(name)]) for name in (1, 2)
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    stored = zarrow.load(tmp_path / "a.zarr")
    assert len(stored) == 200
    for name in (1, 2):
        own = stored[stored[:, 0] == name]
        assert own[:, 1].tolist() == list(range(100))
        assert own[:, 2].tolist() == [-number for number in range(100)]


def test_follow_starts_at_the_end_when_it_is_called() -> None:
    array = created(zarrow.MemoryStore())
    array.append(frames(0, 3))
    parts = follow(array, interval=0, idle=0)
    array.append(frames(3, 5))
    assert [part.tolist() for part in parts] == [frames(3, 5).tolist()]


def test_options_of_follow_are_checked_at_once() -> None:
    array = created(zarrow.MemoryStore())
    array.append(frames(0, 3))
    for wrong in (-1, 4):
        with pytest.raises(ValueError, match=f"start is {wrong}, expected a number from 0 to 3"):
            follow(array, start=wrong)
    with pytest.raises(ValueError, match="interval is -1"):
        follow(array, interval=-1)
    with pytest.raises(ValueError, match="idle is nan"):
        follow(array, idle=float("nan"))
    with pytest.raises(zarrow.ShapeError, match="axis 2 does not exist"):
        follow(array, 2)


def test_follow_reads_parts_that_fit_into_memory() -> None:
    array = created(zarrow.MemoryStore())
    array.append(frames(0, 30))
    parts = list(follow(array, start=3, idle=0, memory_nbytes=12 * 9))
    assert [len(part) for part in parts] == [5, 8, 8, 6]
    np.testing.assert_array_equal(np.concatenate(parts), frames(3, 30))
    assert len(list(follow(array, start=0, idle=0, memory_nbytes=1))) == 8


@pytest.mark.parametrize("change", ["smaller", "type", "chunks", "frame", "group", "erased"])
def test_follow_yields_nothing_of_an_array_that_changed(tmp_path: Path, change: str) -> None:
    group = zarrow.create_group(tmp_path / "g.zarr")
    array = group.create_array("a", shape=(0, 3), chunks=(4, 3), dtype="i4")
    array.append(frames(0, 9))
    parts: Iterator[Any] = follow(zarrow.open_array(tmp_path / "g.zarr" / "a"), start=0, interval=0)
    assert len(next(parts)) == 9
    options: dict[str, Any] = {"shape": (12, 3), "chunks": (4, 3), "dtype": "i4", "overwrite": True}
    if change == "smaller":
        array.resize((5, 3))
    elif change == "group":
        group.create_group("a", overwrite=True)
    elif change == "erased":
        del group["a"]
    else:
        changes: dict[str, Any] = {"type": {"dtype": "u4"}, "chunks": {"chunks": (5, 3)}}
        changes["frame"] = {"shape": (12, 2)}
        group.create_array("a", **options | changes[change])
    with pytest.raises((zarrow.StaleHandleError, zarrow.NotFoundError, zarrow.NodeTypeError)):
        next(parts)


def test_follow_yields_no_fill_values_of_elements_that_were_cut_off(tmp_path: Path) -> None:
    """Another writer makes the array smaller after the follower has seen its length."""
    array = created(tmp_path / "a.zarr")
    array.append(frames(1, 10))
    reader = zarrow.open_array(tmp_path / "a.zarr")
    parts = follow(reader, start=0)
    array.resize((2, 3))
    with pytest.raises(zarrow.StaleHandleError, match="2 elements there, but had 9 before"):
        next(parts)


def test_ctrl_c_ends_follow(tmp_path: Path) -> None:
    created(tmp_path / "a.zarr")
    program = """
import sys, zarrow
from zarrow.stream import follow
parts = follow(zarrow.open_array(sys.argv[1]), interval=1000)
print("follows", flush=True)
next(parts)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "a.zarr"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert said.rstrip().endswith(b"KeyboardInterrupt")


def test_a_writer_that_failed_is_freed(tmp_path: Path) -> None:
    """Its error refers to the calls that raised it, and these to the writer."""

    class Local:
        pass

    def session(way: str) -> weakref.ref[Local]:
        local = Local()
        array = created(zarrow.MemoryStore())
        writer = Writer(array)
        writer.append(frames(0, 3))
        zarrow.open_group(array.__reduce__()[1][0], mode="w")
        with contextlib.suppress(zarrow.ZarrowError):
            if way == "with":
                with writer:
                    writer.append(frames(3, 4))
            else:
                getattr(writer, way)()
            pytest.fail("the store did not fail")
        return weakref.ref(local)

    for way in ("with", "flush", "close"):
        kept = session(way)
        threads_end()
        gc.collect()
        assert kept() is None, way
