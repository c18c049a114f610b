"""The page cache: files are dropped from it before a cold read, and probed."""

import errno
import os
from pathlib import Path

PROBED = 1 << 20  # bytes between two probes


def drop(path: Path) -> float | None:
    """Drop a file, or the files below a folder, from the page cache; return the dropped share."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    gone: list[bool] = []
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            size = os.fstat(descriptor).st_size
            gone += [not cached(descriptor, offset) for offset in range(0, size, PROBED)]
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
        finally:
            os.close(descriptor)
    return sum(gone) / len(gone) if gone else None


def cached(descriptor: int, offset: int) -> bool:
    """Return whether a byte is in the page cache, by a read that must not wait for it."""
    try:
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False


def fill(path: Path) -> None:
    """Read all files below a folder, so that the first reader does not wait for the disk alone."""
    for file in path.rglob("*"):
        if file.is_file():
            file.read_bytes()
