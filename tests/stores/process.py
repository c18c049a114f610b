"""A server process owned by the tests: on a free port, awaited, and ended by its id."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

PATIENCE_SECONDS = 60
PRCTL, PR_SET_PDEATHSIG = ctypes.CDLL(None).prctl, 1
# Another process may take the free port before the server starts.
ATTEMPTS = 3


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def end_with_parent() -> None:
    """Make the kernel end this process when its parent ends, for any reason."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """A running server, with its output in `log`."""

    def __init__(
        self,
        command: Callable[[int], list[str]],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        for _ in range(ATTEMPTS):
            self.port = free_port()
            with log.open("wb") as output:
                self.process = subprocess.Popen(
                    command(self.port),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **(environment or {})},
                    preexec_fn=end_with_parent,
                )
            if self._answers():
                return
            self.stop()
        raise RuntimeError(f"{log.stem} does not start: {log.read_text(errors='replace')[-2000:]}")

    def _answers(self) -> bool:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.02)
        return False

    def stop(self) -> None:
        """End the process, and wait for its end."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
