"""Memory of this process, the bytes that it reads and writes, and the page cache."""

import errno
import os
import re
from pathlib import Path

PROBED = 1 << 20  # bytes between two probes of the page cache


def status(field: str) -> int:
    """Return the bytes of a field such as `VmRSS` (resident now) or `VmHWM` (peak)."""
    match = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match, field
    return int(match[1]) << 10


def transferred() -> tuple[int, int]:
    """Return the bytes that all threads have read and written so far, by calls and not by mapped files."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]), int(fields["wchar"])


def forget_peak() -> None:
    """Reset `VmHWM` to the current resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def drop_cache(path: Path) -> float | None:
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
