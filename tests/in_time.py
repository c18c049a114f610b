"""Runs a command of the tests under a time limit, and ends every process that it leaves behind.

    python tests/in_time.py SECONDS COMMAND...

1. This process becomes the subreaper of its descendants: whatever outlives its parent becomes its child.
2. The command runs. After SECONDS, this process prints the descendants that still run, with their states and
   threads, and sends SIGABRT to the command, so that its fault handler prints stacks.
3. When the command has ended, or SIGTERM has come, the remaining descendants are killed. Otherwise an orphan
   would keep the pipe of `make test | tee log` open.

The exit status is the command's, or 124 after a time-out.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
TIMED_OUT = 124  # as coreutils' `timeout`


def descendants(ancestor: int) -> list[int]:
    """Return the processes below `ancestor`, parents before their children."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(file.read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            continue
        children.setdefault(parent, []).append(int(file.parent.name))
    found = [ancestor]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def describe(process: int) -> str:
    """Return one line about a process: its number, state, count of threads and command line."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return f"{process} has ended"
    return f"{process} {status['State']}, threads {status['Threads']}: {command[:200] or status['Name']}"


def kill(processes: list[int]) -> None:
    """Kill the processes, and wait for the children among them."""
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for process in processes:
        try:
            os.waitpid(process, 0)
        except ChildProcessError:
            continue


def run(limit: float, command: list[str]) -> int:
    """Run the command for at most `limit` seconds; return its exit status."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        status = wait(subprocess.Popen(command), limit)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while remaining := descendants(os.getpid()):
            kill(remaining)
    return 128 - status if status < 0 else status


def wait(child: subprocess.Popen[bytes], limit: float) -> int:
    """Wait for the command (step 2); return its status."""
    # The command handles Ctrl-C; this process waits for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return child.wait(limit)
    except subprocess.TimeoutExpired:
        print(
            f"\n{' '.join(map(str, child.args))}: not done after {limit:g} s; still running:", file=sys.stderr
        )
        for process in descendants(os.getpid()):
            print(f"  {describe(process)}", file=sys.stderr, flush=True)
        child.send_signal(signal.SIGABRT)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
        return TIMED_OUT


if __name__ == "__main__":
    sys.exit(run(float(sys.argv[1]), sys.argv[2:]))
