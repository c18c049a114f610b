"""Counts the bytes that this process reads, as Linux counts them.

Linux counts two numbers for each process: bytes of all its read calls, and bytes of storage devices. The
difference came from the system's page cache. Other systems have no such counts, nor does a Linux that hides
`/proc`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_COUNTS = Path("/proc/self/io")


class BytesRead(NamedTuple):
    """Bytes that this process has read since it began.

    Attributes
    ----------
    files : int
        By read calls; `bytes_read` adds about 100 bytes itself.
    devices : int
        From storage devices, rounded to pages, with what the system reads ahead.
    """

    files: int
    devices: int


def bytes_read() -> BytesRead | None:
    """Return the counts, or None on a system without them."""
    try:
        counts = dict(line.split(": ") for line in _COUNTS.read_text(encoding="ascii").splitlines())
        return BytesRead(int(counts["rchar"]), int(counts["read_bytes"]))
    except (OSError, ValueError, KeyError):
        return None
