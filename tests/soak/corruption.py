"""Chunks with flips, truncation and false sizes, as in the Rust tests, with new damage each time."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Flips and truncations of each chain and layout in one round, which takes some seconds.
TIMES = 300
COMMAND = ["cargo", "test", "--release", "--workspace", "--locked", "--quiet", "--test", "corruption"]


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Run the campaign with one seed after the other."""
    end = time.monotonic() + seconds
    counts = {"rounds": 0}
    while time.monotonic() < end:
        variables = {"ZARROW_CORRUPTIONS": str(TIMES), "ZARROW_TEST_SEED": str(seed + counts["rounds"])}
        result = subprocess.run(
            COMMAND, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr[-4000:]
        counts["rounds"] += 1
    return counts
