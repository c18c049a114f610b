"""`zarrow repair STORE [NODE]`: drops corrupt chunks, or refills them from a copy."""

from __future__ import annotations

import argparse
import dataclasses

import zarrow
from zarrow.cli.arguments import add_node
from zarrow.cli.terminal import WrongArgumentError, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow repair`."""
    add_node(parser)
    parser.add_argument(
        "--from", dest="copy", metavar="COPY", help="refill from this copy instead of dropping chunks"
    )
    parser.add_argument(
        "--missing", action="store_true", help="with --from: refill missing chunks that the copy has"
    )
    parser.add_argument("--foreign", action="store_true", help="also erase files that belong to no node")
    parser.add_argument(
        "--drop-all", action="store_true", help="drop chunks also in arrays without any sound chunk"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def run(arguments: argparse.Namespace) -> int:
    """Mend the node, print what was done, and return the exit status: 1 if a fault is left."""
    from zarrow.checks import repair

    if arguments.missing and arguments.copy is None:
        raise WrongArgumentError("--missing refills chunks from a copy: add --from COPY")
    # The metadata of a store's own node may be broken.
    node = arguments.store
    if arguments.node:
        node = zarrow.open(node, arguments.node, mode="r" if arguments.dry_run else "r+")
    copy = None if arguments.copy is None else zarrow.open(arguments.copy, arguments.node, mode="r")
    done = repair(
        node,
        copy,
        missing=arguments.missing,
        foreign=arguments.foreign,
        drop_all=arguments.drop_all,
        dry_run=arguments.dry_run,
        progress=True,
    )
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json(dataclasses.asdict(done) | {"is_sound": done.is_sound}))
    else:
        show(str(done))
    return 0 if done.is_sound else 1
