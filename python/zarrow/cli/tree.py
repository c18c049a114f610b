"""`zarrow tree PATH`: the hierarchy below a group."""

from __future__ import annotations

import argparse
import sys

import zarrow
from zarrow.cli import visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow tree`."""
    parser.add_argument("path", metavar="PATH", help="a group: a folder, or a file:// URL")
    parser.add_argument(
        "--depth", type=_levels, metavar="LEVELS", help="how many levels to show; all if not given"
    )


def _levels(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of levels")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Print the tree below the path, and give the exit status."""
    node = zarrow.open(arguments.path)
    if not isinstance(node, zarrow.Group):
        print(
            f"zarrow tree: {visible(arguments.path)} is an array, and has nothing below it", file=sys.stderr
        )
        return 1
    print(node.tree(arguments.depth))
    return 0
