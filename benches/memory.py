"""Memory of this process, and the bytes that it reads and writes."""

import re
from pathlib import Path


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
