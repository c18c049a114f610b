"""`zarrow export STORE FILE`: writes an array or a table to a file of another format."""

from __future__ import annotations

import argparse
import sys

import zarrow
from zarrow.cli.terminal import KINDS_OF_STORES, visible

FORMATS = ("npy", "raw", "safetensors", "parquet", "arrow")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow export`."""
    parser.add_argument("store", metavar="STORE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("file", metavar="FILE", help="ends with .npy, .bin, .safetensors, .parquet or .arrow")
    parser.add_argument("--format", choices=FORMATS, help="the format (default: by the end of the name)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def run(arguments: argparse.Namespace) -> int:
    """Export, and return the exit status."""
    from zarrow.api.progress import Bar
    from zarrow.files.formats import format_of

    node = zarrow.open(arguments.store, mode="r")
    try:
        is_table = format_of(arguments.file, arguments.format) in ("parquet", "arrow")
        with Bar("export", "{} rows".format) if is_table else Bar("export") as bar:
            zarrow.files.export_file(
                node,
                arguments.file,
                format=arguments.format,
                overwrite=arguments.overwrite,
                progress=bar,
            )
    except zarrow.ZarrowError:
        raise
    except (TypeError, ValueError) as error:
        print(f"zarrow export: {visible(str(error))}", file=sys.stderr)
        return 2
    return 0
