"""`zarrow import FILE STORE`: stores the elements of a file of another format."""  # noqa: N999

from __future__ import annotations

import argparse
from typing import Any

import zarrow
from zarrow.cli.arguments import codec, extents
from zarrow.cli.export import FORMATS
from zarrow.cli.plans import CODEC_HELP
from zarrow.cli.terminal import WrongArgumentError, show, wrong_arguments


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
    parser.add_argument("--dry-run", action="store_true", help="only say what would be stored")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def run(arguments: argparse.Namespace) -> int:
    """Import, and return the exit status."""
    from zarrow.files.formats import format_of

    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("shape", "dtype", "chunks", "shards")
        if getattr(arguments, name) is not None
    }
    if arguments.codec is not None:
        options["compressors"] = arguments.codec
    with wrong_arguments():
        chosen = format_of(arguments.file, arguments.format)
        if chosen == "raw" and None in (arguments.shape, arguments.dtype):
            raise WrongArgumentError(
                "a raw file has no header: pass --shape and --dtype, such as --shape 100,200 --dtype '<f4'"
            )
        if chosen in ("parquet", "arrow") and len(options.get("chunks", ())) == 1:
            (options["chunks"],) = options["chunks"]
        node = zarrow.files.import_file(
            arguments.file,
            arguments.store,
            arguments.path,
            format=chosen,
            offset=arguments.offset,
            overwrite=arguments.overwrite,
            dry_run=arguments.dry_run,
            progress=True,
            **options,
        )
    if arguments.json:
        from zarrow.cli.json_output import as_json, describe

        print(as_json(describe(node)))
    elif arguments.dry_run:
        nodes = [node] if isinstance(node, zarrow.Array) else dict(node.members(max_depth=None)).values()
        for each in nodes:
            if isinstance(each, zarrow.Array):
                kind = each.data_type if isinstance(each.data_type, str) else each.dtype
                show(f"would store /{each.path}: {kind} {each.shape} in chunks {each.chunks}")
    return 0
