"""The random cases of the Rust tests, others each time, and more of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = 2000
#: Seconds. It takes minutes, and more where the tests have to be built, however few it is given.
LONGEST = 3600
COMMAND = ["cargo", "test", "--release", "--workspace", "--locked", "--lib", "--tests"]


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Run all tests with this seed, which take as long as they take; most have no random cases."""
    seeds = dict.fromkeys(["PROPTEST_RNG_SEED", "ZARROW_TEST_SEED"], str(seed))
    variables = {**seeds, "PROPTEST_CASES": str(CASES)}
    result = subprocess.run(
        COMMAND, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    return {"runs": 1, "tests": result.stdout.count(" ... ok")}
