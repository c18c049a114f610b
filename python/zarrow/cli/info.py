"""`zarrow info STORE [NODE]`: a summary of an array or group, and statistics of an array's elements."""

from __future__ import annotations

import argparse
import itertools
import json
from typing import TYPE_CHECKING

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import WrongArgumentError, show, visible, width

if TYPE_CHECKING:
    from zarrow.checks.summarizing import Summary

_BINS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow info`."""
    types.add_node(parser)
    parser.add_argument("--stats", action="store_true", help="read all elements: range, mean, missing ones")
    parser.add_argument("--histogram", action="store_true", help="read all elements twice: draw a histogram")
    parser.add_argument(
        "--bins", type=types.count, default=_BINS, help=f"bins of the histogram (default: {_BINS})"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the node at the path, and return the exit status."""
    node = zarrow.open(arguments.store, arguments.node, mode="r")
    summary = None
    if arguments.stats or arguments.histogram:
        from zarrow.checks.summarizing import summarize

        if not isinstance(node, zarrow.Array):
            raise WrongArgumentError("--stats and --histogram need an array: add its path")
        summary = summarize(node, bins=arguments.bins if arguments.histogram else 0, progress=True)
    if arguments.json:
        from zarrow.cli.json_output import as_json, describe

        described = describe(node)
        if summary is not None:
            import dataclasses

            described["statistics"] = dataclasses.asdict(summary)
        print(as_json(described))
        return 0
    show(repr(node))
    show(f"  format   Zarr version {node.zarr_format}")
    if node.attrs:
        show(f"attributes {json.dumps(dict(node.attrs), ensure_ascii=False, indent=2)}")
    if summary is not None:
        _show_summary(summary, arguments.stats)
    return 0


def _show_summary(summary: Summary, has_stats: bool) -> None:
    """Print the statistics, and draw the histogram."""
    if has_stats:
        show("statistics")
        for name, value in (
            ("count", summary.count),
            ("missing", summary.missing),
            ("nan", summary.nan),
            ("infinite", summary.infinite),
            ("smallest", summary.smallest),
            ("largest", summary.largest),
            ("mean", summary.mean),
            ("std", summary.std),
        ):
            if value or name not in ("missing", "nan", "infinite"):
                show(f"  {name:9} {_number(value)}")
    if summary.bins is not None and summary.edges is not None:
        for line in histogram(summary.edges, summary.bins, width()):
            show(line)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return visible(f"{value:.6g}" if isinstance(value, float) else str(value))


def histogram(edges: list[float], bins: list[int], columns: int) -> list[str]:
    """Return the lines of a histogram: range of the bin, bar, number of elements."""
    ranges = [f"{low:.6g} to {high:.6g}" for low, high in itertools.pairwise(edges)]
    longest, digits = max(map(len, ranges)), len(str(max(bins)))
    room = max(1, columns - longest - digits - 7)
    most = max(1, *bins)
    # A bin with elements always gets a mark.
    marks = [max(bool(count), round(room * count / most)) for count in bins]
    return [
        f"  {text:>{longest}}  {'█' * mark:{room}}  {count:>{digits}}"
        for text, mark, count in zip(ranges, marks, bins, strict=True)
    ]
