"""Python threads: they share arrays, run while another reads, and Ctrl-C stops the reading one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

import zarrow
from canary import Canary
from oracle.selections import random_one

THREADS = 16
SECONDS = float(os.environ.get("ZARROW_STRESS_SECONDS", "3"))
SHAPE = (40, 96, 512)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Return arrays of the same numbers with other codecs, shared by all threads."""
    values = np.random.default_rng(11).integers(0, 1000, SHAPE, dtype=np.int32)
    arguments = [
        {"chunks": (10, 48, 100), "compressors": ZstdCodec()},
        {"chunks": (8, 96, 512), "compressors": None},
        {"chunks": (5, 16, 64), "shards": (20, 96, 512), "compressors": BloscCodec()},
    ]
    folder = tmp_path_factory.mktemp("threads")
    for number, each in enumerate(arguments):
        zarr.create_array(folder / str(number), shape=SHAPE, dtype="i4", **each)[:] = values
    arrays = [zarrow.open(folder / str(number)) for number in range(len(arguments))]
    return [*arrays, zarrow.open(folder / "0", cache_bytes=1 << 20)], values


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    values = np.array([f"{number:o}" for number in range(5000)], dtype=object)
    zarr.create_array(folder, shape=(5000,), chunks=(300,), dtype=str)[:] = values
    return zarrow.open(folder), values


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """An array with a hundred thousand missing chunks: reading it takes a while."""
    folder = tmp_path_factory.mktemp("slow")
    zarr.create_array(folder, shape=(100_000_000,), chunks=(1000,), dtype="u1", fill_value=3)
    return zarrow.open(folder)


class Reader:
    """Work of one thread, in a loop, on arrays shared by all threads."""

    def __init__(self, seed, numbers, words, shared):
        self.rng = random.Random(seed)
        self.arrays, self.values = numbers
        self.words = words
        self.shared = shared

    def turn(self):
        work = self.rng.choice(
            [
                self.read,
                self.read_out,
                self.read_batch,
                self.read_mapped,
                self.read_words,
                self.pass_on,
                self.settings,
            ]
        )
        work()

    def selection(self):
        selection = random_one(self.rng, SHAPE)
        return selection, self.values[selection if ... in selection else (*selection, ...)]

    def read(self):
        selection, expected = self.selection()
        tensor = self.rng.choice(self.arrays)[selection]
        faces = [np.asarray(tensor), np.from_dlpack(tensor), np.asarray(memoryview(tensor))]
        del tensor
        self.rng.shuffle(faces)
        while faces:
            assert (faces.pop() == expected).all()

    def read_out(self):
        selection, expected = self.selection()
        canary = Canary(
            expected.shape, np.int32, steps=[self.rng.choice([-2, -1, 1, 2]) for _ in expected.shape]
        )
        self.rng.choice(self.arrays).read(selection, out=canary.out)
        assert (canary.out == expected).all() and canary.is_intact()

    def read_batch(self):
        rows = self.rng.choices(range(SHAPE[0]), k=5)
        batch = zarrow.read_many([(self.arrays[row % len(self.arrays)], row) for row in rows])
        assert (batch.numpy() == self.values[rows]).all()

    def read_mapped(self):
        tensor = self.arrays[1].read(mmap=True)
        assert tensor.is_mapped
        row = self.rng.randrange(SHAPE[0])
        column = pa.array(tensor[row, 0])
        tensor.numpy()[row, 1] = -1
        assert column.to_numpy().tolist() == self.values[row, 0].tolist()

    def read_words(self):
        array, values = self.words
        start = self.rng.randrange(5000)
        decoded = array[start : start + 700]
        assert pa.array(decoded).to_pylist() == values[start : start + 700].tolist()

    def pass_on(self):
        """Take a result that another thread left, and leave one: one thread reads, another drops."""
        row = self.rng.randrange(SHAPE[0])
        tensor = self.rng.choice(self.arrays)[row:]
        other_row, other = self.shared[slot := self.rng.randrange(len(self.shared))]
        self.shared[slot] = (row, tensor)
        if other is not None:
            assert (other[0, ::-1].numpy() == self.values[other_row, ::-1]).all()

    def settings(self):
        zarrow.set_num_threads(self.rng.randint(1, 5))
        zarrow.release_memory()
        zarrow.set_memory_cache(self.rng.choice([0, 4 << 20, 512 << 20]))


def test_sixteen_threads_share_arrays(numbers, words):
    shared = [(0, None)] * 8
    end, turns, errors = time.monotonic() + SECONDS, [0] * THREADS, []

    def work(number):
        reader = Reader(number, numbers, words, shared)
        while time.monotonic() < end and not errors:
            try:
                reader.turn()
            except BaseException as error:
                errors.append(error)
            turns[number] += 1

    before = zarrow.num_threads()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    zarrow.set_num_threads(before)
    zarrow.set_memory_cache(512 << 20)
    if errors:
        raise errors[0]
    assert min(turns) > 0


@pytest.mark.parametrize("read", ["new", "out", "batch"])
def test_other_threads_run_while_one_reads(slow, read):
    out = np.zeros(slow.shape, np.uint8)
    reads = {
        "new": lambda: slow[...].numpy(),
        "out": lambda: slow.read(out=out),
        "batch": lambda: zarrow.read_many([(slow, ...)]).numpy()[0],
    }
    ticks, going, started = [0], [True], threading.Event()

    def tick():
        started.set()
        while going[0]:
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    started.wait()
    # A thread that holds the GIL is not asked for it within this time.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        before = ticks[0]
        result = reads[read]()
        after = ticks[0]
    finally:
        sys.setswitchinterval(interval)
        going[0] = False
        thread.join()
    assert after > before
    assert result.min() == result.max() == 3


@pytest.mark.parametrize(
    "read",
    [
        "array[...]",
        "array.read(out=out)",
        "zarrow.read_many([(array, ...)])",
        "zarrow.read_many([(array, ...)], out=out[None])",
    ],
)
def test_control_c_stops_a_long_read(slow, read):
    program = f"""
        import numpy as np, zarrow
        array = zarrow.open({slow.store!r})
        out = np.zeros(array.shape, np.uint8)
        print("ready", flush=True)
        try:
            while True:
                {read}
        except KeyboardInterrupt:
            print("interrupted", array[:3].tolist())
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=100)
    assert output == "interrupted [3, 3, 3]\n", error


WALKS = """
    import faulthandler, os, signal, sys
    import zarrow

    group = zarrow.create_group(sys.argv[1])
    for level in range(30):
        group.create_group(f"levels/{level}")
    for level in range(30):
        for name in ("a", "b"):
            os.symlink(f"../{level + 1}", os.path.join(sys.argv[1], f"levels/{level}/{name}"))
    faulthandler.dump_traceback_later(60, exit=True)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    walks = {
        "tree": group.tree,
        "members": lambda: group.members(max_depth=None),
        "load": lambda: zarrow.load(sys.argv[1]),
    }
    for name, walk in walks.items():
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            walk()
        except KeyboardInterrupt:
            print(name)
"""


def test_ctrl_c_stops_a_walk_of_links_that_share_groups(tmp_path):
    """Two links from each group to the next one make a hierarchy of 2^30 groups."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(WALKS), tmp_path / "g"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert finished.stdout.split() == ["tree", "members", "load"], finished.stderr


INTERRUPTED_ERROR = """
    import signal, sys
    from pathlib import Path
    import zarrow

    group = zarrow.create_group(sys.argv[1])
    group["x"] = [1, 2, 3]
    group["broken"] = [1]
    Path(sys.argv[1], "broken", "zarr.json").write_text("{")

    def profile(frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.endswith("errors.py"):
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    for walk in (group.items, lambda: zarrow.load(sys.argv[1]), group.arrays):
        sys.setprofile(profile)
        try:
            print("nothing was raised", walk())
        except KeyboardInterrupt:
            print("interrupted")
"""


def test_ctrl_c_while_an_error_is_made_is_raised(tmp_path):
    """A broken member is left out with a warning, but Ctrl-C in its exception is raised."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(INTERRUPTED_ERROR), tmp_path / "g"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert finished.stdout.splitlines() == ["interrupted"] * 3, finished


def test_no_thread_is_started_for_small_reads(tmp_path):
    zarr.create_array(tmp_path, shape=(4, 4), chunks=(4, 4), dtype="u1")[:] = 1
    program = f"""
        import os, zarrow
        zarrow.set_num_threads(8)
        array = zarrow.open({str(tmp_path)!r})
        array[...], array[0], zarrow.read_many([(array, 0), (array, 1)])
        print(len(os.listdir("/proc/self/task")))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


def test_a_descriptor_is_not_left_open(numbers):
    arrays, _ = numbers
    arrays[0][...]
    before = len(list(Path("/proc/self/fd").iterdir()))
    for array in arrays:
        for _ in range(5):
            array[3:30], array.read(mmap=True), zarrow.read_many([(array, 1), (array, 2)])
    assert len(list(Path("/proc/self/fd").iterdir())) == before
