"""`zarrow tree STORE [NODE]`: the hierarchy below a group."""

from __future__ import annotations

import argparse
import sys

import zarrow
from zarrow.cli.terminal import KINDS_OF_STORES, show, visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow tree`."""
    parser.add_argument("store", metavar="STORE", help="a group: " + KINDS_OF_STORES)
    parser.add_argument(
        "node", metavar="NODE", nargs="?", default="", help="the path of a group in the store"
    )
    parser.add_argument(
        "--depth", type=_levels, metavar="LEVELS", help="how many levels to show; all if not given"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def _levels(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of levels, such as 2, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Print the tree below the path, and give the exit status."""
    node = zarrow.open(arguments.store, arguments.node, mode="r")
    if not isinstance(node, zarrow.Group):
        place = f"{node.store}/{node.path}" if node.path else node.store
        print(f"zarrow tree: {visible(place)} is an array, with nothing below it", file=sys.stderr)
        return 1
    if arguments.json:
        from zarrow.cli.json_output import as_json, describe_tree

        print(as_json(describe_tree(node, arguments.depth)))
    else:
        show(str(node.tree(arguments.depth)))
    return 0
