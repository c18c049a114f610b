"""The command `zarrow`. Each subcommand is a module here, imported when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from zarrow import ZarrowError, __version__, early_interrupt

SUBCOMMANDS = {
    "info": "what an array or group is: shape, type, chunks, codecs, sizes, attributes",
    "ls": "list the members of a group",
    "tree": "the hierarchy below a group",
    "head": "show the first elements of an array, or the first rows of a table",
    "verify": "which chunks are stored, missing or corrupt, and which files are foreign",
    "repair": "drop corrupt chunks, or refill them from a copy",
    "diff": "what differs between two arrays or groups",
    "digest": "a digest of the data, whatever chunks, codecs and version",
    "bench": "measure how fast a store is opened, scanned and read in pieces",
    "copy": "copy an array or a group, with other chunks, codecs or version; resumes after a kill",
    "convert": "from version 2 to version 3 in place, without touching chunks",
    "pyramid": "compute the levels of an OME-Zarr image from its first one; resumes after a kill",
    "export": "write an array or a table to a file: NPY, raw, safetensors, Parquet or Arrow",
    "import": "store the elements of such a file",
    "consolidate": "copy the metadata of all nodes below a group into the group's",
    "rm": "erase an array or a group with everything below it",
    "completion": "print a script for bash, zsh or fish that completes this command",
    "demo": "show on generated data that nothing is copied",
}

_EXAMPLES = """examples:
  zarrow tree world.zarr
  zarrow info world.zarr rain --stats --histogram
  zarrow copy world.zarr s3://bucket/by-place.zarr --chunks day=365,x=10
  zarrow verify world.zarr --deep"""


def build(names: Sequence[str]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser and all subparsers. Only subcommands in `names` get arguments, to start faster."""
    parser: argparse.ArgumentParser = Parser(
        prog="zarrow",
        description="Zarr in, tensors out, without a copy in between.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"zarrow {__version__}")
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    parsers = {}
    for name, summary in SUBCOMMANDS.items():
        parsers[name] = subcommands.add_parser(name, help=summary, description=summary)
        if name in names:
            importlib.import_module(f"zarrow.cli.{name}").configure(parsers[name])
    return parser, parsers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, else the process's arguments, and return the exit status."""
    try:
        early_interrupt.end()
        arguments = sys.argv[1:] if arguments is None else list(arguments)
        parser, parsers = build(arguments[:1])
        if not arguments:
            parser.print_help()
            return 0
        parsed = _parsed(arguments, parser, parsers)
        return _run(parsed, parsers[parsed.subcommand])
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # Help that cannot be printed.
        return _failed(error, "", str)


def _parsed(
    arguments: Sequence[str], parser: argparse.ArgumentParser, parsers: dict[str, argparse.ArgumentParser]
) -> argparse.Namespace:
    """Parse the arguments; for unknown ones say what to type."""
    if not arguments[0].startswith("-") and arguments[0] not in SUBCOMMANDS:
        from zarrow.cli import familiar

        parser.error(familiar.for_subcommand(arguments, list(SUBCOMMANDS)))
    parsed, extra = parser.parse_known_args(arguments)
    if extra:
        from zarrow.cli import familiar

        own = parsers[parsed.subcommand]
        options = [name for action in own._actions for name in action.option_strings]
        own.error(familiar.for_extra(parsed.subcommand, extra, parsed, options))
    return parsed


def _run(parsed: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run a subcommand, and return the exit status."""
    run = importlib.import_module(f"zarrow.cli.{parsed.subcommand}").run
    from zarrow.cli import terminal

    try:
        status = int(run(parsed))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except terminal.WrongArgumentError as error:
        terminal.complain(parsed.subcommand, _in_options(str(error), parser))
        return 2
    except ZarrowError as error:
        terminal.complain(parsed.subcommand, _in_options(str(error), parser))
        return 1
    except OSError as error:
        return _failed(error, parsed.subcommand, lambda text: _in_options(text, parser))


def _failed(error: OSError, subcommand: str, reworded: Callable[[str], str]) -> int:
    """Print an error of the system, and return the exit status."""
    from zarrow.cli import terminal

    # A reader that has closed the output, such as `head`, needs no message.
    if not isinstance(error, BrokenPipeError):
        # The text of the system's errors begins with their numbers.
        text = f"{error.strerror}: {error.filename!r}" if error.filename else error.strerror or str(error)
        terminal.complain(subcommand, reworded(text))
    terminal.forget_output()
    return 1


def _in_options(text: str, parser: argparse.ArgumentParser) -> str:
    """Return a message that names arguments of the subcommand, and no parameters of Python."""
    for action in parser._actions:
        option = action.option_strings[-1] if action.option_strings else str(action.metavar)
        if option == "--overwrite":
            text, replaces, _ = text.partition(": create_array(")
            text += ": pass --overwrite to replace it and everything below it" if replaces else ""
        if action.nargs == 0:
            text = text.replace(f"{action.dest}=True", option)
        # With a value, as in `pass passes=1`, or without one.
        text = re.sub(rf"\bpass {action.dest}=(?=[^\s,;:)])", f"pass {option} ", text)
        text = text.replace(f"pass {action.dest}=", f"pass {option}")
    return text


class Parser(argparse.ArgumentParser):
    """A parser with errors that fit into the terminal. Help that cannot be printed is an error."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is None or file is not sys.stdout:
            super()._print_message(message, file)
            return
        # argparse ignores errors.
        sys.stdout.write(message)
        sys.stdout.flush()

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Print a message in lines that fit, and exit."""
        if message and sys.stderr is not None:
            from zarrow.cli.terminal import fitted

            message = fitted(message.rstrip(), sys.stderr) + "\n"
        super().exit(status, message)
