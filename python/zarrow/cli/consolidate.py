"""`zarrow consolidate STORE [NODE]`: copies the metadata of all nodes below a group into the group's."""

from __future__ import annotations

import argparse
import sys

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import show, visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow consolidate`."""
    types.add_node(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def run(arguments: argparse.Namespace) -> int:
    """Consolidate the metadata, and return the exit status."""
    node = zarrow.open(arguments.store, arguments.node, mode="r" if arguments.dry_run else "r+")
    if not isinstance(node, zarrow.Group):
        print(
            f"zarrow consolidate: {visible(arguments.store)} is an array, expected a group", file=sys.stderr
        )
        return 1
    count = _count(node) if arguments.dry_run else _consolidate(node)
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json({"nodes": count, "is_consolidated": node._is_consolidated()}))
    else:
        show(f"metadata of {count} nodes {'would be ' if arguments.dry_run else ''}consolidated")
    return 0


def _count(node: zarrow.Group) -> int:
    return node._without_consolidated().nmembers(max_depth=None)


def _consolidate(node: zarrow.Group) -> int:
    """Consolidate the metadata with a bar, and return the number of nodes below the group."""
    from zarrow.api.progress import Bar

    documents = 1

    def report(done: int, total: int) -> None:
        nonlocal documents
        documents = total
        bar(done, total)

    with Bar("consolidate", "{} documents".format) as bar:
        node.consolidate_metadata(progress=report)
    return documents - 1
