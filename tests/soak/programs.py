"""zarr-python and xarray on zarrow in many processes: no write is lost, and no read hangs.

The program of `tests/test_program_processes.py`, which runs each case once, with random cases.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from program_processes import LIBRARIES, METHODS, PIPELINE

PROGRAM = Path(__file__).resolve().parent.parent / "program_processes.py"
PATIENCE = 120


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Start programs until the time is up; count them."""
    choose = random.Random(seed)
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            store = str(Path(folder, "store"))
            if choose.random() < 0.3:
                case = ["write", store, str(choose.getrandbits(32))]
                counts["writes"] += 1
            else:
                case = ["read", store, choose.choice([*LIBRARIES]), choose.choice(METHODS)]
                counts[f"{case[2]} {case[3]}"] += 1
            command = [sys.executable, str(PROGRAM), *case]
            done = subprocess.run(
                command, env=os.environ | PIPELINE, capture_output=True, text=True, timeout=PATIENCE
            )
            assert done.returncode == 0, f"seed {seed}, {case}: {done.stdout}{done.stderr}"
    return dict(counts)
