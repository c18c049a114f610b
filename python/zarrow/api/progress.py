"""Shows the progress of long calls: to a function, or as a bar in a terminal.

1. A bar is drawn on the standard error stream, at most ten times a second, and only in a terminal or a
   notebook.
2. A terminal that fails, or was closed, ends the bar and not the call.
3. It has the rate and the time that is left, from the mean rate so far. The first report of work that
   resumes is no part of the rate.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Self, TextIO, TypeAlias

Progress: TypeAlias = Callable[[int, int], object]
"""Called with how much is done, and how much there is."""

_INTERVAL = 0.1

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(nbytes: int) -> str:
    """Return a number of bytes as text, in three digits."""
    value, unit = float(nbytes), 0
    while value >= 999.5 and unit + 1 < len(_UNITS):
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if value >= 99.5 or unit == 0 else f"{value:.3g} {_UNITS[unit]}"


class Bar:
    """A bar for `progress=`, in a `with` block. Amounts are bytes, unless `as_text` shows others."""

    def __init__(
        self,
        label: str,
        as_text: Callable[[int], str] = size,
        stream: TextIO | None = None,
        *,
        resumes: bool = False,
    ) -> None:
        self._label = label
        self._as_text = as_text
        self._stream = sys.stderr if stream is None else stream
        self._began = self._drawn = time.monotonic()
        self._first = None if resumes else 0
        self._is_shown = _is_shown(self._stream)
        self._has_line = False

    def __call__(self, done: int, total: int) -> None:
        """Draw how much is done (steps 1 to 3)."""
        if self._first is None:
            self._first = done
        now = time.monotonic()
        if not self._is_shown or (now - self._drawn < _INTERVAL and done < total):
            return
        self._drawn = now
        self._has_line = True
        rate = (done - self._first) / (now - self._began) if now > self._began else 0.0
        self._write("\r" + line(self._label, done, total, rate, self._width(), self._as_text))

    def clear(self) -> None:
        """Erase the line, before other text is written to the terminal."""
        if self._has_line:
            self._write("\r" + " " * max(0, self._width() - 1) + "\r")
            self._has_line = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # Step 2.
            self._is_shown = self._has_line = False

    def _width(self) -> int:
        try:
            # The output may be a file, while the bar is in a terminal.
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (AttributeError, OSError, ValueError):
            import shutil

            return shutil.get_terminal_size().columns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._has_line:
            self._write("\n")


@contextlib.contextmanager
def reporting(
    progress: Progress | bool | None,
    label: str,
    as_text: Callable[[int], str] = size,
    *,
    resumes: bool = False,
) -> Iterator[Progress | None]:
    """Return the function to call for an argument `progress=`: of True, a bar that ends with the block.

    Raises
    ------
    TypeError
        The argument is no function.
    """
    if progress is True:
        with Bar(label, as_text, resumes=resumes) as bar:
            yield bar
    elif progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress is a function, or True for a bar, got {type(progress).__name__}")


def _is_shown(stream: TextIO | None) -> bool:
    """Return whether a bar can be drawn on a stream (step 1)."""
    try:
        return stream is not None and (stream.isatty() or _is_notebook(stream))
    except (AttributeError, OSError, ValueError):
        # The stream is no file, or is closed.
        return False


def _is_notebook(stream: TextIO) -> bool:
    """Return whether a stream is shown in a notebook, where a line can be drawn again."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"


def line(
    label: str, done: int, total: int, rate: float, width: int, as_text: Callable[[int], str] = size
) -> str:
    """Return the line of a bar. It fills the width except for the last column."""
    part = 1.0 if total <= 0 else min(1.0, done / total)
    text = f" {part:4.0%}  {as_text(done)} of {as_text(total)}"
    if rate > 0:
        text += f"  {as_text(round(rate))}/s"
        text += f"  {_time((total - done) / rate)} left" if done < total else ""
    room = width - 4 - len(label) - len(text)
    bar = f" [{'#' * round(part * room):-<{room}}]" if room >= 4 else ""
    return f"{label}{bar}{text}"[: max(0, width - 1)].ljust(max(0, width - 1))


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
