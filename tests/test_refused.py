"""If the system refuses threads and files, calls raise errors; the same call works later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zarrow

FOLDER = Path(__file__).parent / "refused"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


def run(script: str, *arguments: object) -> None:
    """Run a script in a new process."""
    done = subprocess.run(
        [sys.executable, FOLDER / script, *map(str, arguments)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-5000:])


def test_each_entry_point_without_threads(tmp_path: Path, web: str) -> None:
    zarrow.create_array(tmp_path / "web" / "a", data=np.arange(64).reshape(8, 8), chunks=(8, 4))
    run("threads.py", tmp_path, web)


def test_a_first_store_with_few_descriptors() -> None:
    run("files.py")
