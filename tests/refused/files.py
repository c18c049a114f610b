"""Opens a first Python store with few file descriptors left, and again with enough of them.

The first call may raise an `Exception`; it must not hang or end the process. The second call must work.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

import limits

import zarrow

SECONDS = 20


def walk(count: int) -> None:
    """Open with this number of descriptors, and end the process."""
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(SECONDS)
    with limits.few_files(count):
        try:
            zarrow.create_array({}, shape=4, dtype="i4")[...]
            outcome = "worked"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
    assert zarrow.create_array({}, data=[1, 2])[...].tolist() == [1, 2]
    print(f"{count}: {outcome}", flush=True)
    os._exit(0)


def main() -> None:
    """Fork a process for each number of descriptors; fail if one did not end well."""
    # Python's imports need descriptors too.
    import zarrow.store_objects.event_loop
    import zarrow.store_objects.mapping  # noqa: F401

    failed = []
    for count in range(12):
        child = os.fork()
        if not child:
            walk(count)
        _, status = os.waitpid(child, 0)
        if status:
            failed.append(f"{count}: {os.waitstatus_to_exitcode(status)}")
    print("failed:", failed)
    sys.exit(bool(failed))


main()
