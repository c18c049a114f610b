"""Names the processes that begin ledgers, and says whether they may still run."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from typing import Any

# Distinguishes this process from an earlier one with the same number, as in a container that was restarted.
_PROCESS = secrets.token_hex(8)


def new_owner() -> list[Any]:
    """Return the machine, the number of the process, and a token that no other call returns."""
    return [socket.gethostname(), os.getpid(), f"{_PROCESS}-{secrets.token_hex(4)}"]


def is_here(owner: Any) -> bool:
    """Return whether a process is known to run on this machine."""
    is_known = isinstance(owner, list) and owner[:1] == [socket.gethostname()] and sys.platform != "win32"
    return is_known and is_alive(owner)


def is_alive(owner: Any) -> bool:
    """Return whether a process may still run: of another machine, this is not known."""
    match owner:
        case [str(machine), int(process), str(token)]:
            if machine != socket.gethostname() or sys.platform == "win32":
                return True
            if process == os.getpid():
                return token.startswith(_PROCESS)
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return False
            except OSError:
                return True
            return True
        case _:
            return False
