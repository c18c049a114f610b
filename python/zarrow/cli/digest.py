"""`zarrow digest STORE [NODE]`: a digest of the data, which does not depend on chunks, codecs and version."""

from __future__ import annotations

import argparse

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import show


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow digest`."""
    types.add_node(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the digest, and return the exit status."""
    from zarrow.checks import digest

    node = zarrow.open(arguments.store, arguments.node, mode="r")
    found = digest(node, progress=True)
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json({"digest": found, "store": node.store, "path": f"/{node.path}"}))
    else:
        show(found)
    return 0
