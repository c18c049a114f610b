"""`python -m zarrow.jobs PLAN`: runs one job of a plan, as a scheduler starts it.

1. PLAN is `module:name` or `file.py:name`: a plan, or a function without arguments that returns one; or a
   file with a pickled plan.
2. The job's index and count are arguments, or environment variables of a scheduler: `environment` lists them.
3. Job 0 sets up the plan, and the others wait for it. All run. `--finish` ends the plan afterwards.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pickle
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from zarrow.cli import Parser
from zarrow.errors import ZarrowError
from zarrow.jobs import environment
from zarrow.jobs.errors import renamed
from zarrow.jobs.plan import Plan


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit status: 0; or 1 after an error, or if units are left."""
    parser = Parser(prog="python -m zarrow.jobs", description="Run one job of a plan.")
    parser.add_argument(
        "plan", metavar="PLAN", help="module:name, file.py:name, or a file with a pickled plan"
    )
    parser.add_argument("--index", type=int, help="number of this job, from 0 (default: of the scheduler)")
    parser.add_argument("--count", type=int, help="number of jobs (default: of the scheduler)")
    parser.add_argument("--assign", choices=("contiguous", "spread"), default="contiguous")
    parser.add_argument(
        "--wait", type=float, default=600.0, help="seconds to wait until job 0 has set up the plan"
    )
    parser.add_argument("--overwrite", action="store_true", help="job 0 and --setup erase existing arrays")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--setup", action="store_true", help="only set up the plan")
    only.add_argument("--finish", action="store_true", help="only finish the plan")
    only.add_argument("--status", action="store_true", help="only say how many units are left")
    try:
        given = parser.parse_args(arguments)
    except OSError:
        # Help that cannot be printed.
        return 1
    try:
        with renamed(overwrite="--overwrite", setup="run it with --setup", forget="delete its ledger"):
            return _run(load(given.plan), given)
    except (ZarrowError, ValueError, TypeError) as error:
        print(f"python -m zarrow.jobs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(plan: Plan, given: argparse.Namespace) -> int:
    """Do what the arguments say, and return the exit status."""
    if given.status:
        print(f"{plan.remaining()} of {plan.unit_count} units are left")
    elif given.finish:
        plan.finish()
    elif given.setup:
        plan.setup(overwrite=given.overwrite)
    else:
        job = plan.job(*environment.found(os.environ, given.index, given.count), given.assign)
        if job.index == 0:
            plan.setup(overwrite=given.overwrite)
        expected = sum(len(job.numbers(each.units)) for each in plan._passes())
        report = plan.run(job, wait=given.wait, progress=True)
        print(f"job {job.index} of {job.count}: {report.done} units done, {report.skipped} before")
        if report.done + report.skipped < expected:
            print("other jobs have not finished the first pass: run this job again", file=sys.stderr)
            return 1
    return 0


def load(name: str) -> Plan:
    """Return the plan of this name (step 1).

    Raises
    ------
    ValueError
        There is no such file, module or name.
    TypeError
        It is no plan.
    """
    module, _, attribute = name.rpartition(":")
    if not module:
        path = Path(name)
        if not path.is_file():
            raise ValueError(
                f"expected module:name, file.py:name or a file with a pickled plan, got {name!r}"
            )
        try:
            found = pickle.loads(path.read_bytes())
        except (pickle.UnpicklingError, EOFError, ImportError, AttributeError) as error:
            example = f"{name}:plan" if path.suffix == ".py" else "file.py:plan"
            raise ValueError(
                f"{name!r} is no pickled plan ({error}): add the plan's name to the file, as in {example}"
            ) from error
    else:
        try:
            if module.endswith(".py"):
                found = runpy.run_path(module)[attribute]
            else:
                sys.path.insert(0, "")
                found = getattr(importlib.import_module(module), attribute)
        except (ImportError, FileNotFoundError, KeyError, AttributeError) as error:
            raise ValueError(f"there is no plan {name!r}: {error}") from error
    if callable(found):
        found = found()
    if not isinstance(found, Plan):
        raise TypeError(f"{name!r} is a {type(found).__name__}, expected a Plan")
    return found


if __name__ == "__main__":
    sys.exit(main())
