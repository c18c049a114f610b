"""The command `zarrow`. Each subcommand is a module here, imported when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from zarrow import ZarrowError, __version__

_SUBCOMMANDS = {
    "info": "what an array or group is: shape, type, chunks, codecs, sizes, attributes",
    "tree": "the hierarchy below a group",
    "verify": "which chunks are stored, missing or corrupt, and which files are foreign",
    "repair": "drop corrupt chunks, or refill them from a copy",
    "convert": "from version 2 to version 3 in place, without touching chunks",
    "diff": "what differs between two arrays or groups",
    "copy": "copy an array or a group, with other chunks, codecs or version; resumes after a kill",
    "pyramid": "compute the levels of an OME-Zarr image from its first one; resumes after a kill",
    "demo": "show on generated data that nothing is copied",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, else the process's arguments, and return the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(
        prog="zarrow", description="Zarr in, tensors out, without a copy in between."
    )
    parser.add_argument("--version", action="version", version=f"zarrow {__version__}")
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    for name, summary in _SUBCOMMANDS.items():
        subparser = subcommands.add_parser(name, help=summary, description=summary)
        if name in arguments[:1]:
            importlib.import_module(f"zarrow.cli.{name}").configure(subparser)
    parsed = parser.parse_args(arguments)
    run = importlib.import_module(f"zarrow.cli.{parsed.subcommand}").run
    from zarrow.cli import terminal

    try:
        status = int(run(parsed))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except ZarrowError as error:
        print(f"zarrow {parsed.subcommand}: {terminal.visible(str(error))}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader, such as `head`, has closed the output.
        terminal.forget_output()
        return 1
    except OSError as error:
        print(f"zarrow {parsed.subcommand}: {terminal.visible(str(error))}", file=sys.stderr)
        terminal.forget_output()
        return 1
    except KeyboardInterrupt:
        return 130
