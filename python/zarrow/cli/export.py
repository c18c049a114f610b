"""`zarrow export STORE FILE`: writes an array or a table to a file of another format."""

from __future__ import annotations

import argparse
from pathlib import Path

import zarrow
from zarrow.cli.terminal import KINDS_OF_STORES, show, wrong_arguments

FORMATS = ("npy", "raw", "safetensors", "parquet", "arrow")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow export`."""
    parser.add_argument("store", metavar="STORE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("file", metavar="FILE", help="ends with .npy, .bin, .safetensors, .parquet or .arrow")
    parser.add_argument("--format", choices=FORMATS, help="the format (default: by the end of the name)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be written")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(arguments: argparse.Namespace) -> int:
    """Export, and return the exit status."""
    from zarrow.files.formats import format_of

    node = zarrow.open(arguments.store, mode="r")
    with wrong_arguments():
        chosen = format_of(arguments.file, arguments.format)
        zarrow.files.export_file(
            node,
            arguments.file,
            format=chosen,
            overwrite=arguments.overwrite,
            dry_run=arguments.dry_run,
            progress=True,
        )
    if arguments.json:
        from zarrow.cli.json_output import as_json

        size = {} if arguments.dry_run else {"nbytes": Path(arguments.file).stat().st_size}
        print(as_json({"file": arguments.file, "format": chosen, **size}))
    elif arguments.dry_run:
        kind = "array" if isinstance(node, zarrow.Array) else "group"
        show(f"would write {arguments.file} from the {kind} {node.store}")
    return 0
