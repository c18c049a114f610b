"""Ends the command `zarrow` silently at a Ctrl-C while its modules are imported.

1. Python would print a traceback from the middle of an import. Until `zarrow.cli.main` begins, a handler ends
   the process with status 130. Nothing is written or locked before.
2. Only the command gets the handler. A program that imports zarrow, or ignores the signal, keeps its own.
3. The import of this module installs the handler. Python's own start comes before, and is not covered.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_STATUS = 130


def _begin() -> None:
    """Install the handler, if this process is the command (steps 1 and 2)."""
    if not _is_command():
        return
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def end() -> None:
    """Restore Python's handler, which raises `KeyboardInterrupt`."""
    import signal

    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: Any) -> None:
    os._exit(_STATUS)


def _is_command() -> bool:
    """Return whether the process was started as `zarrow` or `python -m zarrow`."""
    if "-m" in sys.orig_argv:
        return sys.orig_argv[sys.orig_argv.index("-m") + 1 :][:1] == ["zarrow"]
    # A process that multiprocessing starts has the same `sys.argv`, but no such file.
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return file is not None and os.path.basename(file) in ("zarrow", "zarrow.exe")  # noqa: PTH119 -- pathlib takes 10 ms


# On import, so that `zarrow/__init__.py` need not run anything between its imports.
_begin()
