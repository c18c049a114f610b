"""Processes that end, fork or get Ctrl-C while they iterate over a loader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

HEAD = """
    import os, signal, sys, threading, time
    import numpy as np, zarrow
    from zarrow import data

    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(100_000), chunks=10)
    plan = data.Plan(array, 10, order="shuffle", window_nbytes=4000)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(HEAD) + textwrap.dedent(program)
    return subprocess.run(
        [sys.executable, "-W", "ignore:This process", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_interpreter_exits_during_an_iteration() -> None:
    for transform in ("None", "lambda batch: batch * 2", "lambda batch: time.sleep(0.1)"):
        done = run(f"iterator = iter(data.Loader(plan, transform={transform})); next(iterator)")
        assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_the_threads() -> None:
    done = run("""
        slow = lambda batch: time.sleep(0.5)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            for _ in data.Loader(plan, transform=slow):
                pass
        except KeyboardInterrupt:
            for thread in threading.enumerate():
                if thread.name == "zarrow-data":
                    thread.join(30)
                    print(thread.is_alive())
    """)
    assert set(done.stdout.split()) <= {"False"} and not done.stderr


@pytest.mark.parametrize(
    ("place", "waits"),
    [("transform=hang", "next(iterator)"), ("allocate=hang", "entered.wait(30) and time.sleep(60)")],
)
def test_ctrl_c_leaves_a_function_that_hangs_behind(place: str, waits: str) -> None:
    """In the wait for a batch, and between two batches. Without Ctrl-C, a wait here would be endless."""
    done = run(f"""
        from zarrow.data import prefetch
        prefetch.CLOSE_SECONDS = prefetch._EXIT_SECONDS = 1e6
        entered = threading.Event()

        def hang(_):
            entered.set()
            time.sleep(1e6)

        def interrupt():
            entered.wait(30)
            os.kill(os.getpid(), signal.SIGINT)

        iterator = iter(data.Loader(plan, {place}))
        threading.Thread(target=interrupt).start()
        {waits}
    """)
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_iterates_anew() -> None:
    done = run("""
        loader = data.Loader(plan, transform=lambda batch: batch + 1)
        iterator = iter(loader)
        next(iterator)
        child = os.fork()
        if not child:
            signal.alarm(30)
            try:
                next(iterator)
            except RuntimeError as error:
                assert "forked child" in str(error)
            loader.set_epoch(0)
            count = sum(map(len, loader))
            del iterator
            sys.exit(0 if count == 100_000 else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, sum(map(len, iterator)))
    """)
    assert (done.stdout, done.stderr) == ("0 99990\n", "")
