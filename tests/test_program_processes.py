"""zarr-python and xarray on zarrow in many processes: no write is lost, and no read hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from program_processes import METHODS, PIPELINE

PROGRAM = Path(__file__).with_name("program_processes.py")
SECONDS = 120
# `test_zarr_pipeline_processes.py` has the other ones.
CASES = [*(("xarray", method) for method in METHODS), ("zarr", "dask-threads"), ("zarr", "dask-processes")]


def run(*arguments: object) -> None:
    command = [sys.executable, PROGRAM, *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | PIPELINE, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_processes_of_three_libraries_lose_no_write_to_a_shard(tmp_path):
    run("write", tmp_path / "store", 1)


@pytest.mark.parametrize(("library", "method"), CASES)
def test_processes_and_threads_read_like_their_parent(tmp_path, library, method):
    run("read", tmp_path / "store", library, method)
