"""Runs the attacks in turn until the time is up, and prints their counts.

1. Each attack runs in a separate process, to distinguish a crash from a detected fault.
2. It gets a new seed each time, which is printed: `python -m soak NAME --seed SEED` draws the same cases
   again.
3. Counts are added up, and printed after each turn, so that an interrupted run has reported them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import soak

HERE = Path(__file__).resolve().parent
# An attack that takes this many times its given time is hanging, unless it has its own LONGEST.
PATIENCE = 10


def names() -> list[str]:
    """Return every attack."""
    return sorted(module.name for module in pkgutil.iter_modules([str(HERE)]) if module.name[0] != "_")


def run_one(name: str, seconds: float, seed: int) -> None:
    """Run one attack, in its process."""
    module = importlib.import_module(f"{soak.__name__}.{name}")
    print(json.dumps(module.attack(seconds, seed)))


def start(name: str, seconds: float, seed: int) -> tuple[dict[str, int], str]:
    """Run one attack in a separate process; return its counts, and its fault if it found one."""
    longest = getattr(importlib.import_module(f"{soak.__name__}.{name}"), "LONGEST", 60 + PATIENCE * seconds)
    command = [sys.executable, "-m", "soak", name, "--seconds", str(seconds), "--seed", str(seed), "--here"]
    try:
        result = subprocess.run(
            command,
            cwd=HERE.parent,
            capture_output=True,
            text=True,
            timeout=longest,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}, "hangs"
    if result.returncode:
        return {}, f"exit status {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-4000:]}"
    return json.loads(result.stdout.splitlines()[-1]), ""


def main() -> int:
    """Run the command line; return 1 for a fault."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("attacks", nargs="*", help=f"of {', '.join(names())}; default: all")
    parser.add_argument("--seconds", type=float, default=600, help="how long in all")
    parser.add_argument("--turn", type=float, default=30, help="how long one attack at a time")
    parser.add_argument("--seed", type=int, help="the first seed; a new one unless said")
    parser.add_argument("--here", action="store_true", help="run one attack in this process")
    options = parser.parse_args()
    chosen = options.attacks or names()
    if unknown := set(chosen) - set(names()):
        parser.error(f"unknown attacks: {', '.join(sorted(unknown))}")
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4))
    if options.here:
        run_one(chosen[0], options.seconds, seed)
        return 0

    seeds = random.Random(seed)
    end = time.monotonic() + options.seconds
    totals: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    faults = 0
    while time.monotonic() < end:
        for name in chosen:
            seconds = min(options.turn, end - time.monotonic())
            if seconds <= 0:
                break
            this = seed if options.seed is not None and not any(totals.values()) else seeds.getrandbits(32)
            counts, fault = start(name, seconds, this)
            totals[name].update(counts, turns=1)
            if fault:
                faults += 1
                print(f"FAULT in {name}, --seed {this}: {fault}", flush=True)
            line = ", ".join(f"{count:,} {what}" for what, count in totals[name].items())
            print(f"{name:<16} {line}", flush=True)
    print(f"{faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
