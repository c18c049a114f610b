"""Limits of this process during a `with`: no new thread, no more files.

Threads are refused through the address space: each stack takes a GiB, which does not fit. All other
allocations still succeed.
"""

from __future__ import annotations

import os

# Read by Rust when the first thread starts.
os.environ["RUST_MIN_STACK"] = str(1 << 30)

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOM_NBYTES = 512 << 20

threading.stack_size(1 << 30)


@contextmanager
def no_threads() -> Iterator[None]:
    """Make the system refuse every thread."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used = pages * os.sysconf("SC_PAGE_SIZE")
    with _limited(resource.RLIMIT_AS, used + ROOM_NBYTES):
        yield


@contextmanager
def few_files(count: int) -> Iterator[None]:
    """Make the system refuse files beyond `count` more than are open."""
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
    with _limited(resource.RLIMIT_NOFILE, max(held) + 1):
        for file in held[-count:] if count else []:
            os.close(file)
        try:
            yield
        finally:
            for file in held[: len(held) - count]:
                os.close(file)


@contextmanager
def _limited(kind: int, limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))
