"""The time limit of test runs, and that of each test."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

IN_TIME = Path(__file__).with_name("in_time.py")


def run(limit: float, program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, IN_TIME, str(limit), sys.executable, "-c", textwrap.dedent(program)]
    # An orphan that still has the pipe would make this wait.
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_status_and_the_output_pass_through() -> None:
    done = run(50, "import sys; print('said'); sys.exit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "")


def test_orphans_of_the_command_end_with_it() -> None:
    done = run(50, "import os, time; os.fork() or (os.setsid(), time.sleep(1000))")
    assert done.returncode == 0


def test_a_termination_ends_the_command_and_its_orphans() -> None:
    program = "import os, time; print(os.fork() and os.getpid(), flush=True); time.sleep(1000)"
    command = [sys.executable, IN_TIME, "50", sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        running.stdout.readline()
        running.terminate()
        # The command, or a child of it, would keep the pipe open.
        running.stdout.read()
        assert running.wait(30) == 128 + signal.SIGTERM


def test_a_hang_is_ended_and_described() -> None:
    program = """
        import faulthandler, os, time
        faulthandler.enable()
        def waits_for_ever():
            time.sleep(1000)
        os.fork()
        waits_for_ever()
    """
    done = run(3, program)
    assert done.returncode == 124
    assert done.stderr.count("S (sleeping), threads 1") == 2 and "in waits_for_ever" in done.stderr


def test_each_test_has_a_time_limit_that_says_where_it_stood(tmp_path: Path) -> None:
    # A regular expression that backtracks for ever holds the GIL: no signal handler runs.
    hanging = "import re\ndef test_hangs():\n    re.match('(a+)+$', 'a' * 100 + 'b')\n"
    (tmp_path / "test_hanging.py").write_text(hanging)
    settings = Path(__file__).parent.parent / "pyproject.toml"
    command = [sys.executable, "-m", "pytest", "-c", settings, "-o", "faulthandler_timeout=2", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 1 and "in test_hangs" in done.stderr
