"""Runs type checkers in other processes.

mypy can be called from Python, but it then ends the exemption from garbage collection that `conftest` gives
the collected tests, and leaves its own million objects to each later collection.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def mypy(*arguments: str | Path) -> list[str]:
    """Return the lines that mypy prints."""
    command = [sys.executable, "-m", "mypy", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


def pyright(folder: Path) -> list[dict[str, Any]]:
    """Return what pyright finds in the programs of a folder."""
    settings = folder / "pyrightconfig.json"
    settings.write_text(json.dumps({"typeCheckingMode": "standard", "include": ["."]}), encoding="utf-8")
    # A pyright that comes with Node.js; its additional rules are off in the standard mode.
    program = Path(sys.executable).with_name("basedpyright")
    command = [program, "--pythonpath", sys.executable, "--outputjson", "--project", settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return found
