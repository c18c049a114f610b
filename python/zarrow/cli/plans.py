"""Runs a plan of work from the command line: its arguments, and its output."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from zarrow.cli import arguments as types
from zarrow.cli.terminal import complain, show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zarrow.jobs import Plan, Report

CODEC_HELP = "a compressor by name, such as zstd or blosc; none stores raw elements"

# Seconds to wait for job 0, which creates the arrays.
_SETUP_WAIT = 600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all commands that run a plan."""
    parser.add_argument(
        "--memory", type=types.size, default="256M", help="memory for elements (default: 256M)"
    )
    parser.add_argument(
        "--job", type=types.job, metavar="I/N", help="do only this part of the work, of N, from 0"
    )
    parser.add_argument(
        "--ledger", metavar="STORE", help="the store of the finished parts (default: beside the target)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing arrays at the target")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(label: str, plan: Plan, arguments: argparse.Namespace) -> int:
    """Do a plan, or a job of it, and return the exit status."""
    from zarrow.cli.json_output import as_json
    from zarrow.jobs.errors import UnfinishedError, renamed

    if arguments.dry_run:
        show(as_json(plan.summary()) if arguments.json else plan.describe())
        return 0
    if_exists = getattr(arguments, "if_exists", "overwrite" if arguments.overwrite else "error")
    existing = {"overwrite": if_exists == "overwrite", "skip_existing": if_exists == "skip"}
    if getattr(arguments, "resume", False) and not plan.is_begun:
        complain(label, f"there is no unfinished {label} with these options")
        return 1
    was_finished = plan.is_finished
    try:
        with renamed(overwrite="--overwrite", memory_nbytes="--memory", ledger="--ledger"):
            report, left = _done(label, plan, arguments, existing)
    except (OverflowError, FloatingPointError) as error:
        # Elements that do not fit the new type.
        complain(label, str(error))
        return 1
    except UnfinishedError as error:
        # Its advice is for programs.
        reason, _, _ = str(error).partition(": ")
        complain(
            label, f"{reason}: run the command again; or, if no other process runs it, delete {plan.ledger!r}"
        )
        return 1
    if arguments.json:
        print(
            as_json({"done": report.done, "before": report.skipped, "left": left, "units": plan.unit_count})
        )
    else:
        show(f"{report.done} units done, {report.skipped} before, {left} left")
    if was_finished and arguments.job is not None and not report.done:
        complain(label, f"it was finished before: delete {plan.ledger!r} to do it again")
    return 0


def _done(
    label: str, plan: Plan, arguments: argparse.Namespace, existing: Mapping[str, bool]
) -> tuple[Report, int]:
    """Do a plan or a job; return its report and the number of units left."""
    from zarrow.api.progress import reporting
    from zarrow.jobs.report import Report
    from zarrow.jobs.threads import run_in_threads

    threads = getattr(arguments, "jobs", 1)
    if arguments.job is None:
        return plan.complete(**existing, threads=threads, progress=True), 0
    if arguments.job[0] == 0:
        plan.setup(**existing)
    job = plan.job(*arguments.job)
    with reporting(True, label, "{} units".format, resumes=True) as bar:
        report = Report.joined(run_in_threads(plan, job, threads, wait=_SETUP_WAIT, progress=bar))
    left = plan.remaining()
    if not left:
        plan.finish()
    return report, left
