"""Waits of a caller for other threads, which Ctrl-C ends.

After a signal, the system may resume a wait instead of ending it: a library can ask for that (`SA_RESTART`),
and polars does. Python then sees Ctrl-C only at the end of the wait. So each wait here is short, and is
repeated.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable

_SECONDS = 0.1


def wait(condition: threading.Condition) -> None:
    """Wait for a notification, or a short time: call it again until the condition holds."""
    condition.wait(_SECONDS)


def join(thread: threading.Thread, until: float = math.inf) -> None:
    """Wait until a thread has ended, or until a time of `time.monotonic()`."""
    while thread.is_alive() and (left := until - time.monotonic()) > 0:
        thread.join(min(left, _SECONDS))


def join_others(threads: Iterable[threading.Thread], until: float) -> None:
    """Wait until threads have ended, this one aside, or until a time of `time.monotonic()`."""
    for thread in threads:
        if thread is not threading.current_thread():
            join(thread, until)
