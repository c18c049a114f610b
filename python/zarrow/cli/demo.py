"""`zarrow demo`: shows that nothing is copied on the way, on an invented world; `make demo`, on real data."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from pathlib import Path

from zarrow.cli.terminal import WrongArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow demo`; `make demo` gives them all."""
    parser.add_argument("--folder", type=Path, help="where stores and map are kept (default: nowhere)")
    parser.add_argument(
        "--data", type=Path, help="packages with real data, unpacked (make demo sets them up)"
    )
    parser.add_argument(
        "--masked-writer",
        type=Path,
        help="with --data: the built Rust example that writes the arrays with missing values",
    )
    parser.add_argument("--only", metavar="LIBRARY,...", help="hand arrays to these libraries only")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo with every library that is installed, or those asked for, and give the exit status."""
    from zarrow import demo

    libraries = demo.installed()
    if arguments.only:
        libraries = [name for name in libraries if name in arguments.only.split(",")]
    if (arguments.data is None) != (arguments.masked_writer is None):
        raise WrongArgumentError("--data and --masked-writer go together")
    try:
        with contextlib.ExitStack() as stack:
            folder = arguments.folder or Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="zarrow-"))
            )
            demo.run(arguments.data, folder, arguments.masked_writer, libraries)
    except FileNotFoundError as error:
        raise WrongArgumentError(str(error)) from error
    return 0
