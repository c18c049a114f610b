"""Memory of this process, and the bytes that it reads and writes."""

import re
import subprocess
import sys
from pathlib import Path

_TOUCH = """
import mmap
memory = mmap.mmap(-1, {nbytes}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_HUGEPAGE)
memory[::4096] = bytes({nbytes} // 4096)
"""


def status(field: str) -> int:
    """Return the bytes of a field such as `VmRSS` (resident now) or `VmHWM` (peak)."""
    match = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert match, field
    return int(match[1]) << 10


def transferred() -> tuple[int, int]:
    """Return the bytes that all threads have read and written so far, by calls and not by mapped files."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]), int(fields["wchar"])


def warm(nbytes: int = 1 << 30) -> None:
    """Use this much memory in another process, and free it.

    A virtual machine gives free memory back to its host, which takes up to ten times as long to provide it
    again. The first process after a pause would pay for that.
    """
    subprocess.run([sys.executable, "-c", _TOUCH.format(nbytes=nbytes)], check=True)


def forget_peak() -> None:
    """Reset `VmHWM` to the current resident memory."""
    Path("/proc/self/clear_refs").write_text("5")
