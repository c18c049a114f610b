"""Converts text from a store to text that is safe for a terminal, and that the terminal can show.

1. Control characters, such as an escape, are written as Python escapes them.
2. Characters outside the terminal's encoding are escaped too. The lines of a tree are then drawn in ASCII.
3. If the reader closes the output, as `head` does, the command ends silently.
4. In a terminal, long lines continue below, with an indent; another program gets each in one piece.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TextIO

from zarrow._zarrow import _visible
from zarrow.errors import ZarrowError

KINDS_OF_STORES = (
    "a folder, a zip archive, or a URL: file://, s3://, gs://, az://, http://, https://, zip://, or "
    "reference:// and a JSON file of kerchunk's references. "
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
    text = "\n".join(fitted(visible(line), sys.stdout) for line in text.split("\n"))
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def width() -> int:
    """Return the number of columns of the terminal; 80 if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 80


def fitted(line: str, stream: TextIO) -> str:
    """Return a line for this stream, in several if it is wider than the terminal (step 4)."""
    if not stream.isatty():
        return line
    columns = shutil.get_terminal_size().columns
    if len(line) <= columns:
        return line
    import textwrap

    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(
        line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def complain(subcommand: str, text: str) -> None:
    """Print an error in one line on the error stream, if it can be written."""
    name = f"zarrow {subcommand}".rstrip()
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(fitted(f"{name}: {visible(text)}", sys.stderr), file=sys.stderr)


class WrongArgumentError(Exception):
    """An argument is wrong: the command prints the message, and exits with status 2."""


@contextlib.contextmanager
def wrong_arguments() -> Iterator[None]:
    """Raise a `WrongArgumentError` if the block finds that an argument is wrong."""
    try:
        yield
    except ZarrowError:
        raise
    except (TypeError, ValueError) as error:
        raise WrongArgumentError(str(error)) from error


def forget_output() -> None:
    """Leave nothing for Python to write when it ends (step 3)."""
    if sys.stdout is None:
        return
    with contextlib.suppress(OSError):  # In a notebook, the output is no file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
