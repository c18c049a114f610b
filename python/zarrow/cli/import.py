"""`zarrow import FILE STORE`: stores the elements of a file of another format."""  # noqa: N999

from __future__ import annotations

import argparse
import sys
from typing import Any

import zarrow
from zarrow.cli.arguments import codec, extents
from zarrow.cli.export import FORMATS
from zarrow.cli.plans import CODEC_HELP
from zarrow.cli.terminal import visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow import`."""
    parser.add_argument("file", metavar="FILE", help="ends with .npy, .bin, .safetensors, .parquet or .arrow")
    parser.add_argument("store", metavar="STORE", help="the store of the new node: a folder or a URL")
    parser.add_argument("--path", default="", help="where in the store (default: its root)")
    parser.add_argument("--format", choices=FORMATS, help="the format (default: by the end of the name)")
    parser.add_argument("--shape", type=extents, help="of a raw file, for example 100,200")
    parser.add_argument("--dtype", help="of a raw file, for example <f4")
    parser.add_argument("--offset", type=int, default=0, help="where the elements of a raw file begin")
    parser.add_argument("--chunks", type=extents, help="for example 100,100; of a table, the number of rows")
    parser.add_argument("--shards", type=extents, help="for example 1000,1000")
    parser.add_argument("--codec", type=codec, help=CODEC_HELP)
    parser.add_argument("--overwrite", action="store_true", help="replace an existing node")


def run(arguments: argparse.Namespace) -> int:
    """Import, and return the exit status."""
    from zarrow.api.progress import Bar
    from zarrow.files.formats import format_of

    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("shape", "dtype", "chunks", "shards")
        if getattr(arguments, name) is not None
    }
    if arguments.codec is not None:
        options["compressors"] = arguments.codec
    try:
        is_table = format_of(arguments.file, arguments.format) in ("parquet", "arrow")
        if is_table and len(options.get("chunks", ())) == 1:
            (options["chunks"],) = options["chunks"]
        with Bar("import", "{} rows".format) if is_table else Bar("import") as bar:
            zarrow.files.import_file(
                arguments.file,
                arguments.store,
                arguments.path,
                format=arguments.format,
                offset=arguments.offset,
                overwrite=arguments.overwrite,
                progress=bar,
                **options,
            )
    except zarrow.ZarrowError:
        raise
    except (TypeError, ValueError) as error:
        print(f"zarrow import: {visible(str(error))}", file=sys.stderr)
        return 2
    return 0
