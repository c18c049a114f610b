"""Counts the round trips of a client to a server in the same process.

A busy machine can split requests that go together into two round trips. It never joins two that follow each
other. So a test of round trips runs again, in a new folder, before it fails.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

ATTEMPTS = 3
Test = Callable[..., None]


class RoundTripsError(AssertionError):
    """A client made more round trips than a test allows."""


def in_few_round_trips(serve: Callable[[Path], AbstractContextManager[Any]]) -> Callable[[Test], Test]:
    """Pass a server of the test's folder to a test.

    While the test makes too many round trips it runs again, on a new server.
    """

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(tmp_path: Path, **arguments: Any) -> None:
            for attempt in range(1, ATTEMPTS + 1):
                folder = tmp_path / f"attempt{attempt}"
                folder.mkdir()
                try:
                    with serve(folder) as server:
                        test(server, tmp_path=folder, **arguments)
                    break
                except RoundTripsError:
                    if attempt == ATTEMPTS:
                        raise

        # pytest passes the other parameters.
        _, *others = inspect.signature(test).parameters.values()
        vars(run)["__signature__"] = inspect.Signature(others)
        return run

    return decorate


# Waits, for each line of its input, until no thread of its parent runs or waits for a CPU or for a disk.
_SLEEPER = """
import os, sys, time
folder = f"/proc/{os.getppid()}/task"
def sleeps():
    for thread in os.listdir(folder):
        try:
            with open(f"{folder}/{thread}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] in "RD":
                    return False
        except OSError:
            return False
    return True
for _ in sys.stdin:
    last, count = time.monotonic() + 20, 0
    while count < 8 and time.monotonic() < last:
        time.sleep(0.003)
        count = count + 1 if sleeps() else 0
    print(flush=True)
"""


class Rounds:
    """Counts round trips: the server, in this process, answers when every thread of this process waits."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._is_led = False
        self._sleeper = subprocess.Popen(
            [sys.executable, "-S", "-c", _SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.count = 0
        self.requests = 0

    def wait(self) -> None:
        """Wait until the client waits for all answers."""
        with self._condition:
            self.requests += 1
            mine = self.count
            if self._is_led:
                self._condition.wait_for(lambda: self.count > mine)
                return
            self._is_led = True
        assert self._sleeper.stdin is not None and self._sleeper.stdout is not None
        self._sleeper.stdin.write(b"\n")
        self._sleeper.stdin.flush()
        self._sleeper.stdout.readline()
        with self._condition:
            self._is_led = False
            self.count += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Stop counting."""
        self._sleeper.communicate()

    def take(self) -> int:
        """Return the number of round trips since the last call."""
        found, self.count = self.count, 0
        return found

    def expect(self, most: int) -> None:
        """Check that at most `most` round trips were made since the last call."""
        found = self.take()
        if found > most:
            raise RoundTripsError(f"{found} round trips, where {most} are enough")
