"""Runs the loaders in fresh processes, in rounds over them, and reports medians; slow ones run once."""

import contextlib
import json
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot

from benches import figures, memory, page_cache
from benches.loaders import data
from benches.loaders.data import SETS
from benches.loaders.peers import LOADERS
from benches.process import Process
from benches.remote.server import Server
from benches.rounds import memory_folder

DELAY_MS = 30
# Seconds of an epoch after which a loader takes no part in further rounds.
ENOUGH = 10.0
PLACES = ("folder", "s3")
Found = dict[str, dict[str, Any]]


def run(names: list[str], rounds: int, build: Path) -> None:
    """Measure these sets, or all, in both places; print tables, and draw the picture."""
    folder, log = build / "loaders", build / "stderr.log"
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Found] = {}
    for name in names or list(SETS):
        try:
            data.write(folder, name)
        except ImportError as error:
            print(f"\n{SETS[name].title}: {error}")
            continue
        for place in PLACES:
            found = results[f"{name}, {place}"] = measure(name, place, folder, rounds, log)
            print(table(name, place, found), flush=True)
    (build / "results-loaders.json").write_text(json.dumps(results, indent=1))
    draw(results, build / "loaders.svg")
    print(f"\n{build / 'results-loaders.json'}\n{build / 'loaders.svg'}")


def measure(name: str, place: str, folder: Path, rounds: int, log: Path) -> Found:
    """Return the medians of each loader, or why it takes no part."""
    page_cache.fill(folder / f"{name}.zarr")
    samples: dict[str, list[dict[str, Any]]] = {peer: [] for peer in LOADERS}
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="zarrow-bench-", dir=memory_folder())))
        port = []
        if place == "s3":
            server = stack.enter_context(Server(folder, log, scratch))
            server.behave({"delay_ms": DELAY_MS})
            port = [str(server.port)]
        for turn in range(rounds):
            order = list(LOADERS)
            for peer in order[turn % len(order) :] + order[: turn % len(order)]:
                if peer in missing or any(run["epoch"] > ENOUGH for run in samples[peer]):
                    continue
                command = [sys.executable, "-m", "benches.loaders.worker", peer, name, str(folder), *port]
                with Process(command, log, scratch) as process:
                    answer = process.receive()
                    if "missing" not in answer:
                        memory.warm()
                        answer = process.ask()
                if "missing" in answer:
                    missing[peer] = answer["missing"]
                else:
                    samples[peer].append(answer)
    return {
        peer: {"missing": missing[peer]}
        if peer in missing
        else {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for peer, runs in samples.items()
    }


def table(name: str, place: str, found: Found) -> str:
    """Return the table of one set."""
    lines = [
        f"\n{SETS[name].title}, {place}",
        f"{'':26}{'shuffle':>8} {'samples/s':>10} {'second':>9} {'first batch':>12} {'peak':>9} "
        f"{'CPU/sample':>11}",
    ]
    for peer, measured in found.items():
        if "missing" in measured:
            lines.append(f"{peer:26}{LOADERS[peer].shuffle:>8} {measured['missing'].splitlines()[0][:60]}")
            continue
        count = SETS[name].samples
        lines.append(
            f"{peer:26}{LOADERS[peer].shuffle:>8} {count / measured['epoch']:10.0f} "
            f"{count / measured['second']:9.0f} {measured['first'] * 1000:9.0f} ms "
            f"{measured['peak'] / (1 << 20):5.0f} MiB {measured['cpu'] * 1e6:8.0f} us"
        )
    return "\n".join(lines)


def draw(results: dict[str, Found], path: Path) -> None:
    """Draw samples per second, of the first and the second epoch."""
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "zarrow", "font.size": 8, "svg.fonttype": "none"})
    figure, panels = pyplot.subplots(
        -(-len(results) // 2),
        2,
        figsize=(12, 2.6 * -(-len(results) // 2)),
        layout="constrained",
        squeeze=False,
    )
    for panel, (title, found) in zip(panels.flat, results.items(), strict=False):
        name, _, place = title.partition(", ")
        measured = {peer: row for peer, row in found.items() if "missing" not in row}
        places = np.arange(len(measured))
        bars = (-0.2, "epoch", "first epoch", "#30638e"), (0.2, "second", "second epoch", "#d1495b")
        for shift, key, label, colour in bars:
            rates = [SETS[name].samples / row[key] for row in measured.values()]
            panel.barh(places + shift, rates, 0.4, color=colour, label=label)
        panel.set(
            xscale="log",
            title=f"{SETS[name].title}, {place}",
            xlabel="samples per second",
            yticks=places,
            yticklabels=list(measured),
        )
        panel.invert_yaxis()
    panels[0][0].legend()
    figures.save(figure, path)
