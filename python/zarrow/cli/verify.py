"""`zarrow verify STORE [NODE]`: which chunks are stored, missing or corrupt, and which files are foreign."""

from __future__ import annotations

import argparse
import dataclasses

import zarrow
from zarrow.cli.arguments import add_node
from zarrow.cli.terminal import show


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow verify`."""
    add_node(parser)
    parser.add_argument(
        "--deep", action="store_true", help="read all elements, not only of arrays with checksums"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the result, and return the exit status: 1 if a chunk or a node cannot be read."""
    from zarrow.checks import verify

    # The metadata of a store's own node may be broken.
    node = zarrow.open(arguments.store, arguments.node, mode="r") if arguments.node else arguments.store
    found = verify(node, deep=arguments.deep, progress=True)
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json(dataclasses.asdict(found) | {"is_sound": found.is_sound}))
    else:
        show(str(found))
    return 0 if found.is_sound else 1
