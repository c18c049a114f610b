"""A forked child reads like its parent, whatever the parent was doing."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

# Start of every program below. An alarm ends a hanging child, which counts as a failure.
HEAD = """
    import os, signal, sys, threading, time
    import zarrow

    plain = zarrow.open(sys.argv[1], "plain")
    # Caches have locks too.
    sharded = zarrow.open(sys.argv[1], "sharded", cache_bytes=1 << 19)
    EXPECTED = bytes(range(256)) * 256 * 16

    def is_right():
        '''Read all 64 chunks of both arrays.'''
        return bytes(plain[...]) == bytes(sharded[...]) == EXPECTED

    def child():
        '''Read in a child; the exit status says how it went.'''
        signal.alarm(30)
        status = 2
        try:
            status = 0 if is_right() else 1
        finally:
            os._exit(status)

    def fork():
        pid = os.fork()
        if pid == 0:
            child()
        return pid

    def wait(pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    zarrow.set_num_threads(3)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Write two arrays of 64 chunks of 16 KiB each."""
    folder = tmp_path_factory.mktemp("fork")
    values = np.tile(np.arange(256, dtype=np.uint8), (16, 256))
    for name, shards in {"plain": None, "sharded": (4, 65536)}.items():
        array = zarr.create_array(
            folder,
            name=name,
            shape=(16, 65536),
            chunks=(1, 16384),
            shards=shards,
            dtype="u1",
            compressors=ZstdCodec(),
        )
        array[:] = values
        assert array.chunks == (1, 16384)
    return folder


@pytest.fixture(scope="module")
def large_store(tmp_path_factory):
    """An array with a million missing chunks: reading it takes a while."""
    folder = tmp_path_factory.mktemp("large")
    zarr.create_array(folder, shape=(100_000_000,), chunks=(100,), dtype="u1", fill_value=3)
    return folder


def run(program, *arguments):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c"]
    code = textwrap.dedent(HEAD) + textwrap.dedent(program)
    command += [code, *map(str, arguments)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


def test_two_hundred_forks_after_use(store):
    program = """
        assert is_right()
        statuses = [wait(fork()) for _ in range(200)]
        assert is_right()
        print(len(statuses), *set(statuses))
    """
    assert run(program, store) == ["200", "0"]


def test_two_hundred_forks_while_threads_read(store):
    program = """
        going, reads = True, [0, 0]
        def read(number):
            while going:
                assert is_right()
                reads[number] += 1
        threads = [threading.Thread(target=read, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        statuses = []
        while len(statuses) < 200:
            # Two at a time, so that children also run concurrently.
            statuses += [wait(pid) for pid in [fork(), fork()]]
        going = False
        for thread in threads:
            thread.join()
        print(len(statuses), *set(statuses), min(reads) > 0)
    """
    assert run(program, store) == ["200", "0", "True"]


def test_a_child_of_a_child(store):
    program = """
        assert is_right()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            assert is_right()
            os._exit(wait(fork()))
        print(wait(pid))
    """
    assert run(program, store) == ["0"]


def test_a_fork_before_the_first_read(store):
    assert run("print(wait(fork()), is_right())", store) == ["0", "True"]


def test_forks_while_a_thread_does_everything_for_the_first_time(store):
    """Lazily initialized state, such as NumPy's classes, is not left half-initialized in the child."""
    program = """
        import numpy as np
        array = zarrow.create_array(sys.argv[1] + "-written", shape=6, dtype="f8", overwrite=True)

        def everything():
            array[1:3] = 7
            array[[0, 4]] = [8, 9]
            tensor = zarrow.from_dlpack(np.arange(3))
            return array.dtype, array[np.array([0, 1])].tolist(), tensor.numpy().sum(), zarrow.asarray([1])

        def child():
            signal.alarm(10)
            everything()
            os._exit(0)

        # Fork whenever the thread releases the GIL.
        sys.setswitchinterval(1e-6)
        done, pids = [], []
        thread = threading.Thread(target=lambda: done.append(everything()))
        thread.start()
        while not pids or not done and len(pids) < 100:
            pids.append(fork())
        thread.join()
        print(*set(map(wait, pids)))
    """
    for _ in range(4):
        assert run(program, store) == ["0"]


def test_a_fork_waits_while_another_thread_imports_a_dependency(store, tmp_path):
    """Python locks a module during its import; in a child the lock would never be released."""
    # Replaces NumPy, so that the import lasts until the fork has begun.
    (tmp_path / "numpy.py").write_text("import __main__; __main__.slow_import()")
    program = """
        sys.path.insert(0, sys.argv[2])
        inside, done = threading.Event(), []

        def slow_import():
            # Long enough for the fork to reach its wait; not at all in a child.
            inside.set()
            for _ in range(50):
                time.sleep(0.01)
            done.append(True)

        values = plain[0, :4]

        def use():
            try:
                values.numpy()
            except Exception:
                # Not NumPy.
                pass

        thread = threading.Thread(target=use)
        thread.start()
        inside.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            assert done
            use()
            os._exit(0)
        thread.join()
        print(wait(pid))
    """
    assert run(program, store, tmp_path) == ["0"]


INTERRUPTED = """
    large = zarrow.open(sys.argv[2])
    pids = []

    def long_read(handler, done):
        '''Read until the signal has come in the middle of a read.'''
        def handle(*_):
            # Without this the next signal would arrive inside this handler.
            signal.setitimer(signal.ITIMER_REAL, 0)
            handler()
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.06)
        while not done():
            last = large[...]
        return last
"""


def test_a_fork_in_a_signal_handler_during_a_read(store, large_store):
    """The child reads in the handler, and the parent's read continues."""
    program = """
        def handler():
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            pids.append(fork())
        for _ in range(3):
            count = len(pids)
            last = long_read(handler, lambda: len(pids) > count)
            assert last.numpy().min() == last.numpy().max() == 3
        print(*map(wait, pids))
    """
    assert run(textwrap.dedent(INTERRUPTED) + textwrap.dedent(program), store, large_store) == ["0"] * 3


def test_the_childs_copy_of_a_read_fails_and_the_next_one_works(store, large_store):
    """The child lacks the threads of the parent's read."""
    program = """
        def handler():
            pids.append(os.fork())
        try:
            long_read(handler, lambda: pids)
        except zarrow.InternalError as error:
            assert pids == [0] and "forked" in str(error)
            child()
        print(wait(pids[0]), is_right())
    """
    assert run(textwrap.dedent(INTERRUPTED) + textwrap.dedent(program), store, large_store) == ["0", "True"]


def test_forks_while_threads_read_and_write_a_store_in_memory(store):
    """Children hold no lock, whatever the other threads were doing; values they wrote are whole."""
    program = """
        import threading
        import numpy as np

        memory = zarrow.MemoryStore()
        zarrow.save(memory, x=np.zeros((64, 64), "u8"), text=np.array(["rain"] * 64, "T"))
        group = zarrow.open(memory, cache_bytes=1 << 20)
        SHARDS = {"shape": (64, 64), "chunks": (8, 8), "shards": (32, 32), "dtype": "u8"}
        sharded = zarrow.create_array(memory, "sharded", **SHARDS)
        sharded[:] = 1
        going, rounds = True, [0] * 4

        def everything(number):
            # All elements of a row are equal, because each row is one write.
            group["x"][number * 16 : number * 16 + 16] = np.full((16, 64), rounds[number], "u8")
            rows = group["x"][number * 16 : number * 16 + 16].numpy()
            assert rows.min() == rows.max() == rounds[number]
            assert group["text"][:3].tolist() == ["rain"] * 3
            sharded[number * 16, :] = rounds[number]
            zarrow.from_dlpack(np.arange(3))
            rounds[number] += 1

        def work(number):
            while going:
                everything(number)

        def child():
            # A generous limit for milliseconds of work: a held lock would never be released.
            signal.alarm(60)
            assert zarrow.open(memory)["x"][:].shape == (64, 64)
            everything(0)
            everything(3)
            os._exit(0)

        sys.setswitchinterval(1e-5)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        statuses = []
        while len(statuses) < 200:
            statuses += [wait(pid) for pid in [fork(), fork()]]
        going = False
        for thread in threads:
            thread.join()
        print(len(statuses), *set(statuses), min(rounds) > 0)
    """
    assert run(program, store) == ["200", "0", "True"]
