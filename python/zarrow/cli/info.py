"""`zarrow info STORE [NODE]`: a summary of an array or group."""

from __future__ import annotations

import argparse
import json

import zarrow
from zarrow.cli.terminal import KINDS_OF_STORES, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow info`."""
    parser.add_argument("store", metavar="STORE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("node", metavar="NODE", nargs="?", default="", help="the path of a node in the store")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(arguments: argparse.Namespace) -> int:
    """Print the node at the path, and return the exit status."""
    node = zarrow.open(arguments.store, arguments.node, mode="r")
    if arguments.json:
        from zarrow.cli.description import as_json, describe

        print(as_json(describe(node)))
        return 0
    show(repr(node))
    show(f"  format   Zarr version {node.zarr_format}")
    if node.attrs:
        show(f"attributes {json.dumps(dict(node.attrs), ensure_ascii=False, indent=2)}")
    return 0
