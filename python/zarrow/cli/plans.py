"""Runs a plan of work from the command line: its arguments, and its output."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from zarrow.cli import arguments as types
from zarrow.cli.terminal import show

if TYPE_CHECKING:
    from zarrow.jobs import Plan

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
    parser.add_argument("--overwrite", action="store_true", help="erase existing nodes at the target")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(label: str, plan: Plan, arguments: argparse.Namespace) -> int:
    """Do a plan, or a job of it, and return the exit status."""
    from zarrow.api.progress import Bar
    from zarrow.cli.description import as_json

    if arguments.dry_run:
        if arguments.json:
            arrays = {
                path: {"units": len(grid), "block": list(grid.block)}
                for path, grid in plan.units.grids.items()
            }
            print(as_json({"units": len(plan.units), "fingerprint": plan.fingerprint, "arrays": arrays}))
        else:
            show(plan.describe())
        return 0
    index, count = arguments.job or (0, 1)
    if index == 0:
        plan.setup(overwrite=arguments.overwrite)
    with Bar(label, "{} units".format) as bar:
        report = plan.run(plan.job(index, count), wait=_SETUP_WAIT, progress=bar)
    left = plan.remaining()
    if not left:
        plan.finish()
        if arguments.job is None:
            plan.forget()
    if arguments.json:
        print(
            as_json({"done": report.done, "before": report.skipped, "left": left, "units": len(plan.units)})
        )
    else:
        show(f"{report.done} units done, {report.skipped} before, {left} left")
    return 0
