"""`zarrow bench STORE [NODE]`: measures how fast a store is opened, scanned and read in pieces."""

from __future__ import annotations

import argparse
import math

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import show

_SECONDS = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow bench`."""
    types.add_node(parser)
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=_SECONDS,
        help=f"time of all measurements together (default: {_SECONDS:.0f})",
    )
    parser.add_argument(
        "--bytes",
        type=types.size,
        default="1G",
        metavar="SIZE",
        help="elements that each measurement reads at most (default: 1G)",
    )


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (found > 0 and math.isfinite(found)):
        raise argparse.ArgumentTypeError(f"expected a number of seconds such as 10 or 0.5, got {text!r}")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Print the measurements, and return the exit status. After Ctrl-C, print the finished ones."""
    from zarrow.api.progress import reporting
    from zarrow.checks.benchmarking import Run

    node = zarrow.open(arguments.store, arguments.node, mode="r")
    benchmark = Run(node, max_nbytes=arguments.bytes, seconds=arguments.seconds)
    is_interrupted = False
    try:
        with reporting(True, "bench", "{} steps".format) as bar:
            benchmark.complete(bar)
    except KeyboardInterrupt:
        is_interrupted = True
    except zarrow.ZarrowError:
        if not arguments.json:
            show(str(benchmark.found))
        raise
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json(benchmark.found.summary() | {"is_interrupted": is_interrupted}))
    else:
        show(str(benchmark.found))
    return 130 if is_interrupted else 0
