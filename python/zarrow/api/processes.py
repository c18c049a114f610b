"""Identifies processes, so that another process of the same machine can say whether one has ended.

1. A process is identified by its machine, its number and its start time, since numbers are reused.
2. A machine is identified by its boot id and its namespaces of process numbers and of time: the numbers of
   one container mean nothing in another.
3. Of another machine, or without an identity from the kernel, nothing is known: a process may still run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process; `machine` and `start`, in the kernel's ticks, are 0 if the kernel does not say them."""

    machine: int
    number: int
    start: int

    @classmethod
    def current(cls) -> Process:
        """Return this process: in a forked child, another one than in its parent."""
        number = os.getpid()
        return cls(_machine(), number, _start_of(number) or 0)

    @property
    def is_here(self) -> bool:
        """Whether it is known to be of this machine."""
        return 0 not in (self.machine, self.start) and self.machine == _machine()

    @property
    def has_ended(self) -> bool:
        """Whether it has certainly ended, also if its parent has not noticed yet."""
        if not self.is_here:
            return False
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            # The process belongs to another user, or the number is too large.
            pass
        return _start_of(self.number) not in (self.start, None)


def _machine() -> int:
    """Return 64 bits of a hash (step 2); 0 if the kernel does not say it."""
    try:
        names = [Path("/proc/sys/kernel/random/boot_id").read_text()]
        names.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        return 0
    with contextlib.suppress(OSError):  # Linux before 5.6 has no namespaces of time.
        names.append(str(Path("/proc/self/ns/time").readlink()))
    return int.from_bytes(hashlib.sha256("\n".join(names).encode()).digest()[:8])


def _start_of(number: int) -> int | None:
    """Return when a process started; -1 if only its parent must notice its end, `None` if this is hidden."""
    try:
        line = Path(f"/proc/{number}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The second field may contain spaces, and ends with a parenthesis.
    fields = line.rpartition(")")[2].split()
    state, threads, start = fields[0], int(fields[17]), int(fields[19])
    # The other threads of a process may outlive the first one.
    return -1 if state in "ZXx" and threads <= 1 else start
