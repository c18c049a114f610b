"""`zarrow copy SOURCE TARGET`: copies an array or a group, with other chunks, codecs or version."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

import zarrow
from zarrow.cli.terminal import KINDS_OF_STORES, show, visible

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow copy`."""
    parser.add_argument("source", metavar="SOURCE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("target", metavar="TARGET", help="the store of the copy: a folder or a URL")
    parser.add_argument("--path", default="", help="where in the target (default: its root)")
    parser.add_argument("--chunks", type=_extents, help="for example 100,100 or day=365,x=10")
    parser.add_argument("--shards", type=_extents, help="for example 1000,1000")
    parser.add_argument(
        "--codec", help="a compressor by name, such as zstd or blosc; none stores raw elements"
    )
    parser.add_argument("--format", type=int, choices=(2, 3), help="the version of the format")
    parser.add_argument("--memory", type=_size, default="256M", help="memory for elements (default: 256M)")
    parser.add_argument("--job", type=_job, metavar="I/N", help="do only this part of the work, of N, from 0")
    parser.add_argument("--consolidate", action="store_true", help="consolidate metadata in the end")
    parser.add_argument("--overwrite", action="store_true", help="erase existing nodes at the target")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def _extents(text: str) -> dict[str, int] | tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if any("=" in part for part in parts):
            return {name: int(extent) for name, extent in (part.split("=") for part in parts)}
        return tuple(map(int, parts))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected extents such as 100,100 or day=365, got {text!r}"
        ) from None


def _size(text: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]*)([KMG]?)i?B?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 256M or 2G, got {text!r}")
    return int(match[1]) * _SIZES[match[2]]


def _job(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if match is None or not int(match[1]) < int(match[2]):
        raise argparse.ArgumentTypeError(f"expected a job such as 0/4, up to 3/4, got {text!r}")
    return int(match[1]), int(match[2])


def run(arguments: argparse.Namespace) -> int:
    """Copy, and return the exit status."""
    from zarrow import jobs
    from zarrow.api.progress import Bar
    from zarrow.cli.description import as_json

    options: dict[str, Any] = {
        "chunks": arguments.chunks,
        "shards": arguments.shards,
        "zarr_format": arguments.format,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if arguments.codec is not None:
        options["compressors"] = None if arguments.codec == "none" else arguments.codec
    source = zarrow.open(arguments.source, mode="r")
    try:
        plan = jobs.copy(
            source,
            arguments.target,
            arguments.path,
            memory_nbytes=arguments.memory,
            consolidate=arguments.consolidate,
            **options,
        )
    except zarrow.ZarrowError:
        raise
    except (TypeError, ValueError) as error:
        print(f"zarrow copy: {visible(str(error))}", file=sys.stderr)
        return 2
    if arguments.dry_run:
        if arguments.json:
            arrays = {
                path: {"units": len(grid), "block": list(grid.block)}
                for path, grid in plan.units.grids.items()
            }
            print(as_json({"units": len(plan.units), "fingerprint": plan.fingerprint, "arrays": arrays}))
        else:
            show(plan.describe())
        return 0
    index, count = arguments.job or (0, 1)
    if index == 0:
        plan.setup(overwrite=arguments.overwrite)
    with Bar("copy", "{} units".format) as bar:
        report = plan.run(plan.job(index, count), wait=600.0, progress=bar)
    left = plan.remaining()
    if not left:
        plan.finish()
        if arguments.job is None:
            plan.forget()
    if arguments.json:
        print(
            as_json({"done": report.done, "before": report.skipped, "left": left, "units": len(plan.units)})
        )
    else:
        show(f"{report.done} units copied, {report.skipped} before, {left} left")
    return 0
