"""The random cases of `make test`, new ones each time: oracles, round trips, the state machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = ["test_state_machine.py", "test_round_trips.py", "test_oracle.py", "test_oracle_hierarchy.py"]


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Run one of the files with this seed, without a time limit."""
    name = FILES[seed % len(FILES)]
    environment = {**os.environ, "ZARROW_TEST_SEED": str(seed), "ZARROW_STATE_MACHINE": "200"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", name]
    result = subprocess.run(
        command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-6000:]
    passed = next(word for word in result.stdout.splitlines()[-1].split() if word.isdigit())
    return {"tests": int(passed)}
