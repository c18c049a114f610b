"""The random cases of the Rust tests, new ones each time, and more of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = 2000
#: Seconds. It takes minutes, and more if the tests must be built, whatever the given time.
LONGEST = 3600
COMMAND = ["cargo", "test", "--release", "--workspace", "--locked", "--lib", "--tests"]


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Run all tests with this seed, without a time limit; most have no random cases."""
    seeds = dict.fromkeys(["PROPTEST_RNG_SEED", "ZARROW_TEST_SEED"], str(seed))
    variables = {**seeds, "PROPTEST_CASES": str(CASES)}
    result = subprocess.run(
        COMMAND, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return {"runs": 1, "tests": result.stdout.count(" ... ok")}
