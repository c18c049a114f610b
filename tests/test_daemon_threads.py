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


@pytest.mark.parametrize("call", CALLS)
def test_daemon_threads_at_exit(call: str) -> None:
    program = textwrap.dedent(PROGRAM).format(call=call)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
