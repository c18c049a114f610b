"""Names the processes that begin ledgers, and says whether they may still run."""

from __future__ import annotations

import secrets
import socket
from typing import Any

from zarrow.api.processes import Process


def new_owner() -> list[Any]:
    """Return the machine, the number of the process, and a token that no other call returns."""
    process = Process.current()
    token = f"{process.machine:x}-{process.start:x}-{secrets.token_hex(4)}"
    return [socket.gethostname(), process.number, token]


def is_here(owner: Any) -> bool:
    """Return whether a process is known to run on this machine."""
    process = _process_of(owner)
    return process is not None and process.is_here and not process.has_ended


def is_alive(owner: Any) -> bool:
    """Return whether a process may still run: of another machine, this is not known."""
    process = _process_of(owner)
    return process is not None and not process.has_ended


def _process_of(owner: Any) -> Process | None:
    """Return the process of an owner; `None` for another value, since people can edit ledgers."""
    match owner:
        case [str(), int(number), str(token)]:
            try:
                machine, start, _ = token.split("-")
                return Process(int(machine, 16), number, int(start, 16))
            except ValueError:
                return None
    return None
