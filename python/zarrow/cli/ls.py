"""`zarrow ls STORE [NODE]`: the members of a group, one a line."""

from __future__ import annotations

import argparse

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import show, visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow ls`."""
    types.add_node(parser)
    parser.add_argument(
        "-l", "--long", action="store_true", help="also show types, sizes when decoded, and shapes"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the members, and return the exit status."""
    node = zarrow.open(arguments.store, arguments.node, mode="r")
    found = [(arguments.node or node.store, node)] if isinstance(node, zarrow.Array) else _members(node)
    if arguments.json:
        from zarrow.cli.json_output import as_json, describe_briefly

        print(as_json({"members": {name: describe_briefly(each) for name, each in found}}))
    elif not arguments.long:
        for name, each in found:
            show(visible(name) + ("/" if isinstance(each, zarrow.Group) else ""))
    else:
        for row in _aligned([_row(name, each) for name, each in found]):
            show(row)
    return 1 if any(isinstance(each, Exception) for _, each in found) else 0


def _members(group: zarrow.Group) -> list[tuple[str, zarrow.Array | zarrow.Group | Exception]]:
    """Return the members; an unreadable one is its error."""
    from zarrow._zarrow import _members_or_errors

    return [(name, each) for name, each in _members_or_errors(group)]


def _row(name: str, node: zarrow.Array | zarrow.Group | Exception) -> tuple[str, str, str, str]:
    if isinstance(node, Exception):
        return "?", "", visible(name), str(node)
    if isinstance(node, zarrow.Group):
        return "group", "", visible(name) + "/", ""
    from zarrow.api.progress import size

    kind = node.data_type if isinstance(node.data_type, str) else str(node.data_type.get("name"))
    nbytes = "" if node.nbytes is None else size(node.nbytes)
    return visible(kind), nbytes, visible(name), str(node.shape)


def _aligned(rows: list[tuple[str, str, str, str]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    return [
        f"{row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:{widths[2]}}  {row[3]}".rstrip()
        for row in rows
    ]
