"""`zarrow pyramid SOURCE [TARGET]`: computes the levels of an OME-Zarr image from its first one."""

from __future__ import annotations

import argparse
from typing import Any

import zarrow
from zarrow.cli import plans
from zarrow.cli.arguments import codec, extents, numbers
from zarrow.cli.terminal import KINDS_OF_STORES, WrongArgumentError, wrong_arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow pyramid`."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the first level: an array, an image, or a group with an array 0: " + KINDS_OF_STORES,
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        nargs="?",
        help="the store of a new image (default: the levels are stored beside the first one)",
    )
    parser.add_argument("--path", default="", help="where in the target (default: its root)")
    parser.add_argument(
        "--method",
        choices=("mean", "mode", "nearest"),
        default="mean",
        help="how neighbours become one element: mode for labels (default: mean)",
    )
    parser.add_argument(
        "--levels", type=int, help="the number of levels with the first one (default: until 256 elements)"
    )
    parser.add_argument(
        "--factors", type=extents, default=2, help="for example 2, or z=1,y=2,x=2 (default: 2)"
    )
    parser.add_argument("--axes", help="for example zyx (default: the names of the array's dimensions)")
    parser.add_argument("--scale", type=numbers, help="the size of a pixel along each axis, such as 0.5,0.5")
    parser.add_argument("--unit", help="the unit of the axes in space, such as micrometer")
    parser.add_argument("--name", help="the name of the image")
    parser.add_argument("--version", choices=("0.4", "0.5"), help="the version of OME-Zarr (default: 0.5)")
    parser.add_argument("--chunks", type=extents, help="for example 256,256 or y=256,x=256")
    parser.add_argument("--shards", type=extents, help="for example 1024,1024")
    parser.add_argument("--codec", type=codec, help=plans.CODEC_HELP)
    plans.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compute the levels, and return the exit status."""
    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("levels", "axes", "scale", "unit", "name", "version", "chunks", "shards", "ledger")
        if getattr(arguments, name) is not None
    }
    if arguments.codec is not None:
        options["compressors"] = arguments.codec
    factors = arguments.factors
    if isinstance(factors, tuple):
        if len(factors) != 1:
            raise WrongArgumentError("expected --factors as 2 or z=1,y=2,x=2")
        factors = factors[0]
    from zarrow.jobs.errors import renamed

    with wrong_arguments(), renamed(ledger="--ledger"):
        plan = zarrow.ome.plan_pyramid(
            arguments.source,
            arguments.target,
            arguments.path,
            method=arguments.method,
            factors=factors,
            memory_nbytes=arguments.memory,
            **options,
        )
    return plans.run("pyramid", plan, arguments)
