"""Types of arguments that several subcommands take."""

from __future__ import annotations

import argparse
import math
import re

from zarrow.cli.terminal import KINDS_OF_STORES

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_node(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of a subcommand about one node."""
    parser.add_argument("store", metavar="STORE", help="an array or group: " + KINDS_OF_STORES)
    parser.add_argument("node", metavar="NODE", nargs="?", default="", help="the path of a node in the store")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def count(text: str) -> int:
    """Parse a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number such as 10, got {text!r}")
    return int(text)


def extents(text: str) -> dict[str, int] | tuple[int, ...]:
    """Parse extents of axes, in order or by name."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if any("=" in part for part in parts):
            return {name.strip(): int(extent) for name, extent in (part.split("=") for part in parts)}
        return tuple(map(int, parts))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected extents such as 100,100 or day=365, got {text!r}"
        ) from None


def slices(text: str) -> dict[str, slice] | tuple[slice, ...]:
    """Parse slices of axes, in order or by name."""
    parts = [part.strip() for part in text.split(",")]
    try:
        if any("=" in part for part in parts):
            pairs = (part.split("=") for part in parts)
            return {name.strip(): _slice(extent) for name, extent in pairs}
        return tuple(map(_slice, parts))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected slices such as day=0:31,x=::2, or 0:31,: by axis, got {text!r}"
        ) from None


def _slice(text: str) -> slice:
    ends = [int(end) if end.strip() else None for end in text.split(":")]
    if not 2 <= len(ends) <= 3:
        raise ValueError(text)
    return slice(*ends)


def size(text: str) -> int:
    """Parse a number of bytes."""
    match = re.fullmatch(r"([1-9][0-9]*)([KMGT]?)i?B?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 256M or 2G, got {text!r}")
    return int(match[1]) * _SIZES[match[2]]


def job(text: str) -> tuple[int, int]:
    """Parse the index of a job, and the number of jobs."""
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    if match is None or not int(match[1]) < int(match[2]):
        raise argparse.ArgumentTypeError(f"expected a job such as 0/4, up to 3/4, got {text!r}")
    return int(match[1]), int(match[2])


def numbers(text: str) -> tuple[float, ...]:
    """Parse a finite number for each axis."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = (math.nan,)
    if not all(map(math.isfinite, found)):
        raise argparse.ArgumentTypeError(f"expected numbers such as 0.5,0.25, got {text!r}")
    return found


def codec(text: str) -> str | tuple[()]:
    """Parse the name of a compressor; `none` stores raw elements."""
    return () if text == "none" else text
