"""Writers that are killed at any point, forked, or concurrent: nothing is torn, lost or blocked.

`ZARROW_KILLS=300` kills as often as the project promises; by default a quick sample runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

import zarrow

KILLS = int(os.environ.get("ZARROW_KILLS", "40"))
SEED = int(os.environ.get("ZARROW_TEST_SEED", "0"))


def run(program: str, *arguments: object, seconds: float = 60) -> str:
    """Run a Python program, which must end by itself."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


# Every write of a round stores its number in a whole chunk or in half of one. So all elements of half a chunk
# are equal, whatever is killed when, and never lower than before.
KILL = """
    import json, os, random, signal, sys, time
    from pathlib import Path
    import numpy as np
    import zarrow

    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    names = ["raw", "zstd", "shards", "raw_shards"]
    ROWS, HALF = 4, 20_000

    def write(round, started):
        '''Write rounds until this process is killed.'''
        zarrow.set_num_threads(3)
        group = zarrow.open(folder)
        arrays = [group[name] for name in names]
        os.write(started, b"!")
        while True:
            round += 1
            for array in arrays:
                # Whole chunks first, and then each half separately.
                array[:] = np.uint32(round)
                array[:, :HALF] = np.full((ROWS, HALF), round + 1, np.uint32)
                array[:, HALF:] = np.full((ROWS, HALF), round + 1, np.uint32)
            round += 1
            group.attrs["round"] = round
            group.attrs["text"] = str(round) * 1000

    def leftovers():
        return [path for path in folder.rglob(".zarrow-*")]

    lowest = {name: np.zeros((ROWS, 2), int) for name in names}
    last, left = 0, 0
    for kill in range(kills):
        ready, started = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                write(last, started)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os.read(ready, 1)
        os.close(ready), os.close(started)
        time.sleep(rng.random() * 0.02)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), "the writer failed by itself"
        left += bool(leftovers())

        # Nothing may take long now, least of all a wait for a dead process.
        signal.alarm(20)
        group = zarrow.open(folder)
        for name in names:
            found = group[name][:].numpy().reshape(ROWS, 2, HALF)
            first = found[:, :, 0].astype(int)
            assert (found == found[:, :, :1]).all(), (name, kill, "torn")
            assert (first >= lowest[name]).all(), (name, kill, "lost")
            lowest[name] = first
        attributes = json.loads((folder / "zarr.json").read_text())["attributes"]
        text = attributes.get("text", "")
        assert text == text[: len(text) // 1000] * 1000, "torn"
        last = max([last, attributes.get("round", 0)] + [int(first.max()) for first in lowest.values()])
        if kill % 4 == 3:
            # A process that writes part of each chunk removes the leftovers beside them.
            pid = os.fork()
            if pid == 0:
                for name in names:
                    group[name][:, :1] = lowest[name][:, :1].astype(np.uint32)
                group.attrs["round"] = last + 1
                os._exit(0 if not leftovers() else 3)
            assert os.waitpid(pid, 0)[1] == 0, (hex(pid), leftovers())
        signal.alarm(0)
    print(kills, left)
"""


def stored_arrays(folder):
    """Write the arrays that `KILL` changes."""
    root = zarr.open_group(folder, mode="w")
    shape, halves = (4, 40_000), (2, 5_000)
    root.create_array("raw", shape=shape, chunks=(2, 40_000), dtype="u4", compressors=None, fill_value=0)
    root.create_array(
        "zstd", shape=shape, chunks=(2, 40_000), dtype="u4", compressors=ZstdCodec(), fill_value=0
    )
    root.create_array("shards", shape=shape, chunks=halves, shards=(2, 40_000), dtype="u4", fill_value=0)
    plain = {"compressors": None, "fill_value": 0}
    root.create_array("raw_shards", shape=shape, chunks=halves, shards=(4, 40_000), dtype="u4", **plain)


def test_killed_writers_leave_whole_chunks_and_block_no_writer(tmp_path):
    stored_arrays(tmp_path)
    kills, left = run(KILL, tmp_path, KILLS, SEED, seconds=30 + KILLS).split()
    assert int(kills) == KILLS
    # Otherwise the kills missed all writes.
    assert int(left) > KILLS / 20


PARTS = """
    import sys
    import numpy as np
    import zarrow

    folder, first, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    zarrow.set_num_threads(2)
    for name in sys.argv[4:]:
        array = zarrow.open(folder, name)
        for column in range(first, array.shape[1], processes):
            array[:, column] = np.arange(array.shape[0], dtype=np.uint32) * 1000 + column
"""


def test_processes_that_write_parts_of_one_chunk_lose_nothing(tmp_path):
    """Three processes each write every third column, of chunks and shards of many columns."""
    root, processes = zarr.open_group(tmp_path, mode="w"), 3
    root.create_array("chunks", shape=(40, 60), chunks=(20, 60), dtype="u4", fill_value=7)
    root.create_array("shards", shape=(40, 60), chunks=(10, 6), shards=(40, 60), dtype="u4", fill_value=7)
    program = [sys.executable, "-c", textwrap.dedent(PARTS), str(tmp_path)]
    started = [
        subprocess.Popen([*program, str(first), str(processes), "chunks", "shards"])
        for first in range(processes)
    ]
    assert [process.wait(60) for process in started] == [0] * processes
    expected = np.arange(40)[:, None] * 1000 + np.arange(60)
    for name in ("chunks", "shards"):
        np.testing.assert_array_equal(root[name][:], expected)
    assert not list(tmp_path.rglob(".zarrow-*"))


THREADS = """
    import sys, threading
    import numpy as np
    import zarrow

    zarrow.set_num_threads(3)
    arrays = [zarrow.open(sys.argv[1], name) for name in ("chunks", "shards")]
    errors = []

    def columns(first):
        try:
            for column in range(first, 60, 8):
                for array in arrays:
                    array[:, column] = np.arange(array.shape[0], dtype=np.uint32) * 1000 + column
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=columns, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
"""


def test_threads_that_write_parts_of_one_chunk_lose_nothing(tmp_path):
    root = zarr.open_group(tmp_path, mode="w")
    root.create_array("chunks", shape=(40, 60), chunks=(20, 60), dtype="u4", fill_value=7)
    root.create_array("shards", shape=(40, 60), chunks=(10, 6), shards=(40, 60), dtype="u4", fill_value=7)
    run(THREADS, tmp_path)
    expected = np.arange(40)[:, None] * 1000 + np.arange(60)
    for name in ("chunks", "shards"):
        np.testing.assert_array_equal(root[name][:], expected)


FORK = """
    import os, signal, sys, threading, time
    import numpy as np
    import zarrow

    zarrow.set_num_threads(3)
    array = zarrow.open(sys.argv[1])
    stop = threading.Event()

    def parts():
        number = 0
        while not stop.is_set():
            number += 1
            array[:, :30_000] = np.uint32(number)
            array[:, 30_000:] = np.uint32(number)

    writer = threading.Thread(target=parts)
    writer.start()
    for round in range(12):
        time.sleep(0.01)
        pid = os.fork()
        if pid == 0:
            # The child lacks the thread and its locks, and writes the same chunks as its parent.
            signal.alarm(30)
            array[:, :30_000] = np.uint32(1_000_000 + round)
            found = array[:].numpy()
            # Outlives its parent, with all of its parent's files open.
            time.sleep(0.2)
            os._exit(0 if (found.reshape(4, 2, 30_000) == found.reshape(4, 2, 30_000)[:, :, :1]).all() else 3)
        assert os.waitpid(pid, 0)[1] == 0
    stop.set()
    writer.join()
    array[:] = np.uint32(5)
    assert (array[:].numpy() == 5).all()
"""


@pytest.mark.parametrize("shards", [None, (2, 60_000)], ids=["chunks", "shards"])
def test_a_fork_in_the_middle_of_a_write(tmp_path, shards):
    chunks = (2, 60_000) if shards is None else (2, 15_000)
    zarr.create_array(tmp_path, shape=(4, 60_000), chunks=chunks, shards=shards, dtype="u4", compressors=None)
    run(FORK, tmp_path)
    assert not list(tmp_path.rglob(".zarrow-*"))


ORPHAN = """
    import os, signal, sys, threading, time
    import numpy as np
    import zarrow

    zarrow.set_num_threads(1)
    array = zarrow.open(sys.argv[1])
    reading, writing = os.pipe()

    def parts():
        while True:
            array[:, 1:] = np.uint8(3)

    for round in range(8):
        if os.fork() == 0:
            # The thread usually holds the lock when this process forks and is killed.
            threading.Thread(target=parts, daemon=True).start()
            time.sleep(0.02 + round / 700)
            if os.fork() == 0:
                os.write(writing, str(os.getpid()).encode() + b" ")
                signal.pause()
            os.kill(os.getpid(), signal.SIGKILL)
        assert os.WIFSIGNALED(os.wait()[1])
        orphan = int(os.read(reading, 20))
        signal.alarm(20)
        array[:, 1:] = np.uint8(4)
        assert (array[:, 1:].numpy() == 4).all()
        signal.alarm(0)
        os.kill(orphan, signal.SIGKILL)
"""


def test_a_child_does_not_keep_the_lock_of_a_parent_that_was_killed(tmp_path):
    """It has all of its parent's files open, and may live for long."""
    zarr.create_array(tmp_path, shape=(2, 1 << 21), chunks=(2, 1 << 21), dtype="u1", compressors=None)
    run(ORPHAN, tmp_path)


INTERRUPT = """
    import os, signal, sys, threading, time
    import numpy as np
    import zarrow

    array = zarrow.open(sys.argv[1])
    values = np.random.default_rng(0).integers(0, 99, array.shape, np.uint8)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    rounds = 0
    try:
        while True:
            array[:] = values
            rounds += 1
    except KeyboardInterrupt:
        begun = time.monotonic()
    array[:1] = values[:1]
    print("stopped")
"""


def test_ctrl_c_stops_between_chunks(tmp_path):
    zarr.create_array(
        tmp_path, shape=(64, 1 << 18), chunks=(1, 1 << 18), dtype="u1", compressors=ZstdCodec(level=12)
    )
    assert run(INTERRUPT, tmp_path).strip() == "stopped"
    assert not list(tmp_path.rglob(".zarrow-*"))
    # Stored values are whole.
    assert zarrow.open(tmp_path)[:].shape == (64, 1 << 18)
