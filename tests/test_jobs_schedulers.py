"""Jobs under schedulers, in processes; and plans of other things than arrays and functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import jobs
from zarrow.jobs import environment


def test_plans_of_other_things_than_arrays_and_functions_are_refused(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "g.zarr")
    array: Any = group.create_array("a", data=np.arange(20.0), chunks=5)
    odd: Any = None
    for make, words in (
        (lambda: jobs.map(odd, array, tmp_path / "m.zarr"), "a function that is called for each unit"),
        (lambda: jobs.write(odd, array), "a function that is called"),
        (lambda: jobs.append(3, array, 2), "a function that is called"),  # type: ignore[arg-type]
        (lambda: jobs.collect("f", array), "a function that is called"),  # type: ignore[arg-type]
        (lambda: jobs.write(print, np.ones(3)), "a group of a store as the target"),  # type: ignore[arg-type]
        (lambda: jobs.append(print, group, 4), "is for arrays: of a group, pass"),  # type: ignore[arg-type]
        (lambda: jobs.copy(array, tmp_path / "x", attributes=3), "attributes as a mapping"),  # type: ignore[arg-type]
        (lambda: jobs.copy(array, tmp_path / "x").run(0), "a job of the plan"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=words):
            make()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.zarr"]


@pytest.mark.parametrize("scheduler", environment.SCHEDULERS, ids=lambda scheduler: scheduler.name)
def test_jobs_run_under_each_scheduler(tmp_path: Path, scheduler: environment.Scheduler) -> None:
    """In processes with these variables: a dict takes None as a name, and `os.environ` does not."""
    zarrow.save(tmp_path / "a.zarr", np.arange(10))
    (tmp_path / "mine.py").write_text(
        "import zarrow\nfrom zarrow import jobs\n"
        "def plan():\n"
        "    return jobs.copy(zarrow.open('a.zarr'), 'b.zarr', chunks=1, memory_nbytes=1)\n",
        encoding="utf-8",
    )
    others = {
        name for each in environment.SCHEDULERS for name in (each.index, each.count, each.first, each.step)
    }
    variables = {name: value for name, value in os.environ.items() if name not in others}
    running = []
    for index in range(2):
        own = {scheduler.index: str(index + (scheduler.first is not None))}
        own |= {name: value for name, value in ((scheduler.count, "2"), (scheduler.first, "1")) if name}
        count = [] if scheduler.count else ["--count", "2"]
        command = [sys.executable, "-m", "zarrow.jobs", "mine.py:plan", *count]
        running.append(
            subprocess.Popen(command, cwd=tmp_path, env=variables | own, stderr=subprocess.PIPE, text=True)
        )
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert zarrow.load(tmp_path / "b.zarr").tolist() == list(range(10))
