"""Daemon threads inside a call at the interpreter's exit do not end the process by a signal."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import threading, time
    import numpy as np, pyarrow as pa, zarrow

    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(100), chunks=10)
    tensor, arrow = array[...], pa.array([1, 2, 3])
    masked = zarrow.asarray(np.ma.masked_array([1, 2], [0, 1]))

    def loop():
        while True:
            try:
                {call}
            except (IndexError, zarrow.ZarrowError):
                pass

    for _ in range(3):
        threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.3)
"""

CALLS = [
    "array[1000]",
    "array[3]",
    "array.__setitem__(slice(3, 5), 1)",
    'zarrow.open("missing")',
    "repr(array)",
    "repr(tensor)",
    "repr(masked)",
    "zarrow.from_arrow(arrow)",
]

# The main thread ends while a daemon thread is in Python code that the call runs.
NESTED = """
    import threading, time
    import numpy as np, zarrow

    called = threading.Event()

    def code(*arguments, **named):
        called.set()
        while True:
            time.sleep(0.001)

    class User:
        __array__ = __arrow_c_array__ = __dlpack__ = __index__ = __len__ = __bool__ = __fspath__ = code
        __dlpack_device__ = lambda self: (1, 0)

    class Store(dict):
        __getitem__ = code

    zarrow.codecs.register("waits", decode=code, encode=code)
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(100), chunks=10)
    coded = zarrow.create_array(
        zarrow.MemoryStore(), shape=4, chunks=2, dtype="u1", codecs=["bytes", "waits"]
    )
    user = User()

    def run():
        {call}

    threading.Thread(target=run, daemon=True).start()
    assert called.wait(30)
"""

NESTED_CALLS = [
    "array[user]",
    "array[[user]]",
    "array.__setitem__(0, user)",
    "array.__setitem__(slice(0, 2), user)",
    "array.read(out=user)",
    "zarrow.asarray(user)",
    "zarrow.from_arrow(user)",
    "zarrow.from_dlpack(user)",
    "zarrow.create_array(zarrow.MemoryStore(), data=user)",
    "zarrow.open(user)",
    "zarrow.open(Store())",
    "array.resize((user,))",
    "coded.__setitem__(0, 1)",
]


def run(program: str, call: str) -> None:
    program = textwrap.dedent(program).format(call=call)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("call", CALLS)
def test_daemon_threads_at_exit(call: str) -> None:
    run(PROGRAM, call)


@pytest.mark.parametrize("call", NESTED_CALLS)
def test_daemon_threads_in_code_of_users_at_exit(call: str) -> None:
    run(NESTED, call)
