"""Plans of different functions differ; one function has one identity in all processes."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import jobs


def test_another_function_is_another_plan(tmp_path: Path) -> None:
    """A plan never takes units of another function, even of the same name, for its own."""
    zarrow.save(tmp_path / "a.zarr", [3.0, 1.0, 2.0])
    a = zarrow.open_array(tmp_path / "a.zarr")

    def scaled(factor: float) -> Any:
        return lambda values: float(values.max()) * factor

    class Offset:
        def __init__(self, by: float) -> None:
            self.by = by

        def add(self, values: Any) -> float:
            return float(values.max()) + self.by

    functions: list[Any] = [
        lambda values: float(values.max()),
        lambda values: float(values.min()),
        lambda values: sorted(float(each) for each in values)[0] + 1,
        lambda values: sorted(float(each) for each in values)[0] + 2,
        scaled(2.0),
        scaled(3.0),
        functools.partial(np.quantile, q=0.5),
        functools.partial(np.quantile, q=1.0),
        np.min,
        np.max,
    ]
    fingerprints = set()
    for function in functions:
        plan = jobs.collect(function, a)
        carry_out_here(plan)
        assert plan.results() == {0: float(function(np.array([3.0, 1.0, 2.0])))}
        fingerprints.add(plan.fingerprint)
    assert len(fingerprints) == len(functions)
    assert jobs.collect(scaled(2.0), a).fingerprint in fingerprints
    with pytest.raises(TypeError, match="cannot be pickled"):
        jobs.collect(Offset(1.0).add, a)


def carry_out_here(plan: jobs.Plan) -> None:
    """Do a plan that cannot be pickled."""
    plan.setup()
    plan.run(plan.job(0, 1))


def test_a_function_has_one_identity_in_all_processes(tmp_path: Path) -> None:
    program = (
        "import functools\n"
        "from zarrow.jobs.function_identity import identity\n"
        "def outer(names, depth=2):\n"
        "    def inner(values):\n"
        "        return inner(values) if values in {'one', 'two', 'three'} else names\n"
        "    return inner\n"
        "print(identity(outer({'a', 'b', 'c'})), identity(functools.partial(outer, depth=3)))\n"
    )
    (tmp_path / "named.py").write_text(program, encoding="utf-8")
    found = {
        subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
        for arguments in (["named.py"], ["-c", "import named"])
    }
    assert len(found) == 1
