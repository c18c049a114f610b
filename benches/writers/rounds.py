"""Runs the writers in fresh processes, in rounds over them, and reports medians."""

import json
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benches.process import Process
from benches.writers.data import FRAMES, SETS
from benches.writers.peers import WRITERS

Found = dict[str, dict[str, Any]]


def run(names: list[str], rounds: int, build: Path) -> None:
    """Measure these sets, or all, and print tables."""
    results: dict[str, Found] = {}
    for name in names or list(SETS):
        results[name] = measure(name, build, rounds)
        print(table(name, results[name]), flush=True)
    (build / "results-writers.json").write_text(json.dumps(results, indent=1))
    print(f"\n{build / 'results-writers.json'}")


def measure(name: str, build: Path, rounds: int) -> Found:
    """Return the medians of each writer, or why it takes no part."""
    samples: dict[str, list[dict[str, Any]]] = {writer: [] for writer in WRITERS}
    missing: dict[str, str] = {}
    for turn in range(rounds):
        order = list(WRITERS)
        for writer in order[turn % len(order) :] + order[: turn % len(order)]:
            if writer in missing:
                continue
            with TemporaryDirectory(prefix="zarrow-bench-", dir=build) as scratch:
                command = [sys.executable, "-m", "benches.writers.worker", writer, name, scratch]
                with Process(command, build / "stderr.log", Path(scratch)) as process:
                    answer = process.receive()
                    if "missing" not in answer:
                        answer = process.ask()
            if "missing" in answer:
                missing[writer] = answer["missing"]
            else:
                samples[writer].append(answer)
    return {
        writer: {"missing": missing[writer]}
        if writer in missing
        else {key: statistics.median(each[key] for each in runs) for key in runs[0]}
        for writer, runs in samples.items()
    }


def table(name: str, found: Found) -> str:
    """Return the table of one set."""
    chosen = SETS[name]
    nbytes = FRAMES * chosen.side**2 * 2
    lines = [
        f"\n{chosen.title}, chunks {chosen.chunk}, shards {chosen.shard}",
        f"{'':16}{'seconds':>9} {'MiB/s':>7} {'longest append':>15} {'peak':>9} {'CPU':>8}",
    ]
    for writer, measured in found.items():
        if "missing" in measured:
            lines.append(f"{writer:16}{measured['missing'].splitlines()[0][:70]}")
            continue
        lines.append(
            f"{writer:16}{measured['seconds']:9.2f} {nbytes / measured['seconds'] / (1 << 20):7.0f} "
            f"{measured['pause'] * 1000:12.1f} ms {measured['peak'] / (1 << 20):5.0f} MiB "
            f"{measured['cpu']:6.2f} s"
        )
    return "\n".join(lines)
