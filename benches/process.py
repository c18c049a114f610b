"""The parent's side of a peer's process: lines go in, lines of JSON come out."""

import contextlib
import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any, Self

PATIENCE = 180.0  # time limit of an answer, in seconds


class Process:
    """A process that answers each line, bound to the first `cpus` CPUs if given.

    It writes only to `scratch`, because it is killed at the end and cannot remove files.
    """

    def __init__(self, command: list[str], log: Path, scratch: Path, cpus: int | None = None) -> None:
        here = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(here)[:cpus])  # inherited by the process
        try:
            with log.open("ab") as errors:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=os.environ | {"TMPDIR": str(scratch)},
                )
        finally:
            os.sched_setaffinity(0, here)

    def send(self, line: str = "") -> None:
        """Send a line; the process may already be dead."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # `receive` reports how it died
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for an answer; return `{"missing": reason}` without one."""
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            return {"missing": f"no answer within {PATIENCE:.0f} s"}
        line = self.process.stdout.readline()
        if not line:
            return {"missing": f"the process ended with {self.process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self) -> dict[str, Any]:
        """Run the task once."""
        self.send()
        return self.receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
