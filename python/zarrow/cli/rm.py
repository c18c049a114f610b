"""`zarrow rm STORE [NODE]`: erases an array or a group with everything below it."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import WrongArgumentError, show, visible


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow rm`."""
    types.add_node(parser)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be erased")


def run(arguments: argparse.Namespace) -> int:
    """Erase the node, and return the exit status: 1 if the user declines."""
    from zarrow.checks.verifying import walk
    from zarrow.groups.places import without_scheme

    node = zarrow.open(arguments.store, arguments.node, mode="r")
    arguments.store = without_scheme(arguments.store)
    below = [each for _, each in walk(node, [])][1:]
    arrays = sum(isinstance(each, zarrow.Array) for each in below)
    place = "/".join(part for part in (str(arguments.store).rstrip("/"), arguments.node.strip("/")) if part)
    what = f"array {visible(place)}"
    if isinstance(node, zarrow.Group):
        what = f"group {visible(place)} with {arrays} arrays and {len(below) - arrays} groups"
    is_link = "://" not in arguments.store and Path(place).is_symlink()
    if is_link:
        what = f"link {visible(place)}, but not its target"
    if not (arguments.yes or arguments.dry_run):
        if sys.stdin is None or not sys.stdin.isatty():
            raise WrongArgumentError(f"this would erase the {what}: add --yes")
        print(f"erase the {what}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return 1
    if not arguments.dry_run:
        _erase(arguments.store, arguments.node.strip("/"))
    if arguments.json:
        from zarrow.cli.json_output import as_json

        kind = "array" if isinstance(node, zarrow.Array) else "group"
        counts = {"arrays": arrays, "groups": len(below) - arrays}
        print(as_json({"kind": kind, **counts, "is_link": is_link, "is_erased": not arguments.dry_run}))
    else:
        show(f"{'would erase' if arguments.dry_run else 'erased'} the {what}")
    return 0


def _erase(store: str, node: str) -> None:
    if "://" not in store:
        # A link keeps its name, because it is removed instead of its target. The end of "a/.." is no name.
        path = Path(store)
        has_name = path.name not in ("", "..")
        store = str(path.parent.resolve() / path.name if has_name else path.resolve())
    # The copies in consolidated groups change with the node if the store is opened at the topmost group.
    while True:
        above, _, name = store.rstrip("/").rpartition("/")
        try:
            zarrow.open_group(above, mode="r")[name]
        except (zarrow.ZarrowError, OSError, ValueError):
            break
        store, node = above, f"{name}/{node}".rstrip("/")
    if node:
        parent, _, name = node.rpartition("/")
        del zarrow.open_group(store, parent)[name]
        return
    if "://" not in store and Path(store).is_symlink():
        Path(store).unlink()
        return
    # The engine erases nodes only: an empty group replaces the root, and its document is erased last.
    from zarrow._zarrow import _StoredValues

    zarrow.create_group(store, overwrite=True)
    _StoredValues(store, create=False).erase("zarr.json")
    if "://" not in store:
        with contextlib.suppress(OSError):
            Path(store).rmdir()
