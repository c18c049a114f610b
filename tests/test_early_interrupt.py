"""Ctrl-C while the command is imported: no traceback, and status 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("zarrow")

# Python runs this file first. The signal comes when a module is about to be imported.
INTERRUPT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.{handler})
def hook(event, arguments):
    if event == "import" and arguments[0] == "{module}":
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
"""


def interrupted(
    folder: Path, module: str, *arguments: object, handler: str = "default_int_handler"
) -> subprocess.CompletedProcess[str]:
    """Run a program that gets SIGINT at the import of a module."""
    text = INTERRUPT.format(handler=handler, module=module)
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        list(map(str, arguments)),
        capture_output=True, text=True, timeout=100, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


@pytest.mark.parametrize("start", [(COMMAND,), (sys.executable, "-m", "zarrow")], ids=["script", "module"])
@pytest.mark.parametrize(
    "module",
    ["zarrow._zarrow", "zarrow.api.saving", "zarrow.tables.table", "argparse", "zarrow.cli.terminal"],
)
def test_ctrl_c_during_imports_prints_no_traceback(
    tmp_path: Path, module: str, start: tuple[object, ...]
) -> None:
    ended = interrupted(tmp_path, module, *start, "ls", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_program_that_imports_zarrow_gets_keyboard_interrupt(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, "zarrow.api.saving", sys.executable, "-c", "import zarrow")
    assert ended.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in ended.stderr


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    ended = interrupted(tmp_path, "zarrow.api.saving", COMMAND, "--version", handler="SIG_IGN")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("zarrow ")
