"""A timeline of a loader's stages, for Perfetto and Chrome's `about:tracing`.

Source: "Trace Event Format" of Chrome, complete events: times in microseconds.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

# Events of about 200 bytes. Later ones replace the first.
MOST_EVENTS = 100_000


class Trace:
    """The latest events of a loader; threads add to it."""

    def __init__(self) -> None:
        self._events: deque[tuple[str, int, float, float, dict[str, Any]]] = deque(maxlen=MOST_EVENTS)

    def __reduce__(self) -> tuple[type[Trace], tuple[()]]:
        """Pickle as an empty trace: another process has other threads and another clock."""
        return Trace, ()

    def add(self, stage: str, began: float, **details: Any) -> None:
        """Add a stage of this thread from a time of `time.perf_counter` until now."""
        self._events.append((stage, threading.get_native_id(), began, time.perf_counter(), details))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file by the events, as JSON."""
        events = [
            {
                "name": stage,
                "cat": "zarrow.data",
                "ph": "X",
                "ts": began * 1e6,
                "dur": (ended - began) * 1e6,
                "pid": os.getpid(),
                "tid": thread,
                "args": details,
            }
            for stage, thread, began, ended, details in self._events.copy()
        ]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), "utf-8")
