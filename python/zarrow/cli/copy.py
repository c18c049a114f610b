"""`zarrow copy SOURCE TARGET`: copies an array or a group, with other chunks, codecs or version."""

from __future__ import annotations

import argparse
from typing import Any

import zarrow
from zarrow.cli import plans
from zarrow.cli.arguments import codec, count, extents, slices
from zarrow.cli.terminal import KINDS_OF_STORES, WrongArgumentError, wrong_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow copy`."""
    parser.add_argument("source", metavar="SOURCE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("target", metavar="TARGET", help="the store of the copy: a folder or a URL")
    parser.add_argument("--path", default="", help="where in the target (default: its root)")
    parser.add_argument(
        "--select", type=slices, metavar="SLICES", help="for example day=0:31,x=::2, or 0:31,: by axis"
    )
    parser.add_argument("--chunks", type=extents, help="for example 100,100 or day=365,x=10")
    parser.add_argument("--shards", type=extents, help="for example 1000,1000")
    parser.add_argument("--dtype", help="for example float32; elements that do not fit are an error")
    parser.add_argument("--order", choices=("C", "F"), help="the order of elements in a chunk")
    parser.add_argument("--codec", type=codec, help=plans.CODEC_HELP)
    parser.add_argument("--format", type=int, choices=(2, 3), help="the version of the format")
    parser.add_argument(
        "--raw", action="store_true", help="byte for byte, without decoding; without the options above"
    )
    parser.add_argument(
        "--if-exists",
        choices=("error", "overwrite", "skip"),
        default="error",
        help="existing arrays at the target: copy nothing, replace them, or copy only the others",
    )
    parser.add_argument("--consolidate", action="store_true", help="consolidate metadata in the end")
    parser.add_argument(
        "--passes",
        type=int,
        choices=(1, 2),
        help="copy in one pass, or in two through an array beside the target (default: whichever moves less)",
    )
    plans.configure(parser)
    parser.add_argument("--jobs", type=count, metavar="N", default=1, help="threads, each with --memory")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="only continue an unfinished copy (without it, the same command continues one, or begins)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy, and return the exit status."""
    from zarrow import jobs
    from zarrow.jobs.errors import renamed

    options: dict[str, Any] = {
        "chunks": arguments.chunks,
        "shards": arguments.shards,
        "dtype": arguments.dtype,
        "order": arguments.order,
        "zarr_format": arguments.format,
        "compressors": arguments.codec,
    }
    if arguments.overwrite:
        if arguments.if_exists == "skip":
            raise WrongArgumentError("existing arrays are overwritten or skipped: pass only one of the two")
        arguments.if_exists = "overwrite"
    source = zarrow.open(arguments.source, mode="r")
    with wrong_arguments(), renamed(ledger="--ledger"):
        plan = jobs.copy(
            source,
            arguments.target,
            arguments.path,
            select=arguments.select,
            raw=arguments.raw,
            memory_nbytes=arguments.memory,
            consolidate=arguments.consolidate,
            ledger=arguments.ledger,
            passes=arguments.passes,
            **{name: value for name, value in options.items() if value is not None},
        )
    return plans.run("copy", plan, arguments)
