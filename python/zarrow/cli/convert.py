"""`zarrow convert STORE`: from version 2 to version 3 in place, without touching chunks."""

from __future__ import annotations

import argparse
import dataclasses

from zarrow.cli.terminal import KINDS_OF_STORES, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow convert`."""
    parser.add_argument("store", metavar="STORE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("--remove-v2", action="store_true", help="then remove the metadata of version 2")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(arguments: argparse.Namespace) -> int:
    """Convert the store, and return the exit status: 1 if it cannot be converted."""
    from zarrow.checks import convert

    done = convert(arguments.store, remove_v2=arguments.remove_v2, dry_run=arguments.dry_run, progress=True)
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json(dataclasses.asdict(done) | {"is_complete": done.is_complete}))
    else:
        show(str(done))
    return 0 if done.is_complete else 1
