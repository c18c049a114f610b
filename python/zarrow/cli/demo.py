"""`zarrow demo`: shows on real data that nothing is copied on the way."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow demo`; `make demo` gives them all."""
    build = Path("build")
    parser.add_argument("--data", type=Path, default=build / "data", help="the unpacked data packages")
    parser.add_argument("--folder", type=Path, default=build / "demo", help="where stores and map are kept")
    parser.add_argument(
        "--masked-writer",
        type=Path,
        default=Path("target/release/examples/write_masked"),
        help="the built Rust example that writes the arrays with missing values",
    )
    parser.add_argument("--only", metavar="LIBRARY,...", help="hand arrays to these libraries only")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo with every library that is installed, or those asked for, and give the exit status."""
    from zarrow import demo

    libraries = demo.installed()
    if arguments.only:
        libraries = [name for name in libraries if name in arguments.only.split(",")]
    try:
        demo.run(arguments.data, arguments.folder, arguments.masked_writer, libraries)
    except FileNotFoundError as error:
        print(f"zarrow demo: {error}", file=sys.stderr)
        return 2
    return 0
