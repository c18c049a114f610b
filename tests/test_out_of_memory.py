"""A failed allocation, anywhere, is a MemoryError, and never ends the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "out_of_memory"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the allocator is that of the GNU C library")


def run(script: str, *arguments: object, **environment: object) -> str:
    """Run a script in a separate process, and return its last line."""
    settings = {"OPENBLAS_NUM_THREADS": "1", **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(
        [sys.executable, FOLDER / script, *map(str, arguments)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines[-3:], done.stderr[-3000:])
    return lines[-1]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_each_allocation_may_fail(tmp_path: Path) -> None:
    # LD_PRELOAD is a list, separated by spaces and colons.
    folder = tmp_path if not set(" :") & set(str(tmp_path)) else Path("/dev/shm")
    shim = folder / f"zarrow-failing-{os.getpid()}.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, FOLDER / "failing.c"], check=True)
    # Without pools Python's objects are in the C library's memory, which shows writes to freed objects.
    done, refused = run("operations.py", LD_PRELOAD=shim, PYTHONMALLOC="malloc").split()
    shim.unlink()
    assert done == "done" and int(refused) > 400


@pytest.mark.parametrize("kind", ["optional", "blosc", "plain"])
def test_an_address_space_that_is_full(kind: str, tmp_path: Path) -> None:
    # Large blocks come from the system and return to it, so that the limit applies to them.
    limits = {"MALLOC_MMAP_THRESHOLD_": 1 << 16, "MALLOC_TRIM_THRESHOLD_": 1 << 16}
    done, refused = run("address_space.py", kind, tmp_path / "a", **limits).split()
    assert done == "done" and int(refused) > 10
