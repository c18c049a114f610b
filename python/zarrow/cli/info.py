"""`zarrow info PATH`: what an array or group is."""

from __future__ import annotations

import argparse
import json

import zarrow
from zarrow.cli import visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow info`."""
    parser.add_argument("path", metavar="PATH", help="an array or group: a folder, or a file:// URL")


def run(arguments: argparse.Namespace) -> int:
    """Print what is at the path, and give the exit status."""
    node = zarrow.open(arguments.path)
    print(repr(node))
    rows = {"format": f"Zarr version {node.zarr_format}"}
    if isinstance(node, zarrow.Array):
        fill = node.fill_value
        rows["fill"] = repr(fill) if fill is None or isinstance(fill, str | bytes) else str(fill)
        if node.dimension_names is not None:
            rows["axes"] = ", ".join("unnamed" if name is None else name for name in node.dimension_names)
    for name, value in rows.items():
        print(f"  {name:7}  {visible(value)}")
    if node.attrs:
        attributes = json.dumps(dict(node.attrs), ensure_ascii=False, indent=2)
        print("\n".join(map(visible, f"attributes {attributes}".split("\n"))))
    return 0
