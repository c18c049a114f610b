"""Converts text from a store to text that is safe for a terminal, and that the terminal can show.

1. Control characters, such as an escape, are written as Python escapes them.
2. Characters outside the terminal's encoding are escaped too. The lines of a tree are then drawn in ASCII.
3. If the reader closes the output, as `head` does, the command ends silently.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator

from zarrow._zarrow import _visible
from zarrow.errors import ZarrowError

KINDS_OF_STORES = (
    "a folder, a zip archive, or a URL: file://, s3://, gs://, az://, http://, https:// or zip://. "
    "Credentials and settings come from the environment, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL"
)

_LINES = str.maketrans({"├": "|", "│": "|", "└": "`", "─": "-", "█": "#"})


def visible(text: str) -> str:
    """Return one line with escapes for what a terminal would obey (step 1), and halves of surrogate pairs."""
    return _visible(text.encode("utf-8", "backslashreplace").decode())


def show(text: str) -> None:
    """Print lines (steps 1 and 2)."""
    if sys.stdout is None:
        # The output was closed before the command began.
        return
    encoding = sys.stdout.encoding or "ascii"
    try:
        "├│└─█".encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_LINES)
    text = "\n".join(map(visible, text.split("\n")))
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def width() -> int:
    """Return the number of columns of the terminal; 80 if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 80


def complain(subcommand: str, text: str) -> None:
    """Print an error in one line on the error stream, if it is open."""
    if sys.stderr is not None:
        print(f"zarrow {subcommand}: {visible(text)}", file=sys.stderr)


@contextlib.contextmanager
def wrong_arguments(subcommand: str) -> Iterator[None]:
    """Exit with status 2 if the block finds that an argument is wrong."""
    try:
        yield
    except ZarrowError:
        raise
    except (TypeError, ValueError) as error:
        complain(subcommand, str(error))
        raise SystemExit(2) from None


def forget_output() -> None:
    """Leave nothing for Python to write when it ends (step 3)."""
    if sys.stdout is None:
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
