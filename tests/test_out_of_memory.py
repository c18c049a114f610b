"""Memory that is not there is a MemoryError, whichever allocation fails, and never the end of the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "out_of_memory"


def run(*arguments: object, environment: dict[str, str] | None = None) -> list[str]:
    """Run `operations.py` in a process of its own, and give the lines that it prints."""
    command = [sys.executable, FOLDER / "operations.py", *map(str, arguments)]
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[-1:] == ["done"], (done.returncode, lines[-3:], done.stderr[-3000:])
    return lines


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.skipif(
    not os.confstr("CS_GNU_LIBC_VERSION"), reason="the allocator is that of the GNU C library"
)
def test_each_allocation_may_fail(tmp_path: Path) -> None:
    shim = tmp_path / "failing.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, FOLDER / "failing.c"], check=True)
    lines = run("single", environment={"LD_PRELOAD": str(shim), "OPENBLAS_NUM_THREADS": "1"})
    assert len(lines) > 400


@pytest.mark.parametrize("kind", ["optional", "blosc"])
def test_an_address_space_that_is_full(kind: str, tmp_path: Path) -> None:
    run(kind, tmp_path / "a", environment={"OPENBLAS_NUM_THREADS": "1"})
