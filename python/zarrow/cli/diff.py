"""`zarrow diff LEFT RIGHT`: what differs between two arrays or groups."""

from __future__ import annotations

import argparse
import dataclasses
import math

import zarrow
from zarrow.cli.terminal import KINDS_OF_STORES, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow diff`."""
    parser.add_argument("left", metavar="LEFT", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("right", metavar="RIGHT", help="the array or group to compare it with")
    parser.add_argument(
        "--rtol", type=_tolerance, default=0.0, help="relative tolerance of numbers (default: 0)"
    )
    parser.add_argument(
        "--atol", type=_tolerance, default=0.0, help="absolute tolerance of numbers (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, such as 1e-6, got {text!r}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Print each difference, and return the exit status: 1 if there is one."""
    from zarrow.api.progress import Bar
    from zarrow.checks import diff

    nodes = [zarrow.open(store, mode="r") for store in (arguments.left, arguments.right)]
    found = []
    with Bar("diff") as bar:
        for each in diff(nodes[0], nodes[1], rtol=arguments.rtol, atol=arguments.atol, progress=bar):
            found.append(each)
            if not arguments.json:
                bar.clear()
                show(str(each))
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json({"differences": [dataclasses.asdict(each) for each in found]}))
    return 1 if found else 0
