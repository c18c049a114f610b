"""Writers that are killed at any point, as in `test_write_kill.py`, with new kills each time."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import test_write_kill as usual


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Kill writers."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    counts = {"kills": 0, "leftovers": 0}
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            usual.stored_arrays(Path(folder))
            kills, left = usual.run(usual.KILL, folder, 60, rng.getrandbits(31), seconds=120).split()
            counts["kills"] += int(kills)
            counts["leftovers"] += int(left)
    return counts
