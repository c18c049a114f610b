"""Concurrent changes of one hierarchy by processes and threads: exactly the returned changes are stored.

1. Workers create, append, replace, erase, set attributes and consolidate in one store, each by turns.
2. Each keeps a journal of returned changes.
3. At the end each node in the store matches the journals.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import zarrow

PROCESSES, THREADS = 3, 2
# Time that workers share one store before it is checked.
ROUND = 5.0


def work(folder: str, name: str, seed: int, end: float) -> dict[str, Any]:
    """Change the store until the time is up, and return the journal."""
    rng = random.Random(seed)
    journal: dict[str, Any] = {
        "created": [],
        "won": [],
        "appended": [],
        "erased": 0,
        "attribute": 0,
        "done": 0,
    }
    root = zarrow.open(folder)
    log = root["log"]
    number = 0
    while time.time() < end:
        number += 1
        match rng.choice(["create", "contend", "append", "replace", "erase", "attribute", "consolidate"]):
            case "create":
                zarrow.create_array(folder, f"own/{name}-{number}", data=[number])
                journal["created"].append(f"{name}-{number}")
            case "contend":
                path = f"contended/{int(end - time.time()) * 3 + rng.randrange(3)}"
                try:
                    if rng.random() < 0.5:
                        zarrow.create_array(folder, path, data=[1])
                    else:
                        zarrow.create_group(folder, path)
                    journal["won"].append(path)
                except zarrow.NodeExistsError:
                    pass
            case "append":
                rows = rng.randrange(1, 20)
                log.append(np.full(rows, number * 1000 + int(name), "i8"))
                journal["appended"].append([number * 1000 + int(name), rows])
                if rng.random() < 0.2:
                    log = zarrow.open(folder, "log")
            case "replace":
                size = rng.randrange(1, 5000)
                root["replaced"] = np.full(size, size, rng.choice(["i4", "i8", "f8"]))
                # Another worker may be replacing it, and the read may see either.
            case "erase":
                path = f"erased/{name}"
                zarrow.create_array(folder, path, data=[1])
                member = root[path]
                del root[path]
                journal["erased"] += 1
                assert path not in zarrow.open(folder), "an erased array is there"
                try:
                    member[0] = 2
                except (zarrow.NotFoundError, zarrow.StaleHandleError):
                    pass
                else:
                    raise AssertionError("a write to an array that is gone returned")
            case "attribute":
                root.attrs[name] = number
                journal["attribute"] = number
            case "consolidate":
                zarrow.consolidate_metadata(folder)
        journal["done"] += 1
    return journal


def process(folder: str, first: int, seed: int, end: float) -> None:
    """Run one process of workers, and print their journals."""
    journals: dict[str, Any] = {}

    def run(name: str) -> None:
        journals[name] = work(folder, name, seed + int(name), end)

    threads = [threading.Thread(target=run, args=(str(first + number),)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journals) == THREADS, "a worker failed"
    print(json.dumps(journals))


def check(folder: str, journals: dict[str, Any], seed: int) -> Counter[str]:
    """Compare the store with the journals."""
    counts: Counter[str] = Counter()
    root = zarrow.open(folder)
    consolidated = zarrow.consolidate_metadata(folder) if seed % 2 else root
    created = [name for journal in journals.values() for name in journal["created"]]
    for group in (root, consolidated):
        members = group["own"].keys() if "own" in group else []
        assert sorted(members) == sorted(created), (seed, set(members) ^ set(created))
    won = Counter(path for journal in journals.values() for path in journal["won"])
    assert all(times == 1 for times in won.values()), (seed, "two have created", won)
    assert all(path in root for path in won), (seed, won)
    appended = Counter(
        {number: rows for journal in journals.values() for number, rows in journal["appended"]}
    )
    values, times = np.unique(root["log"][...].numpy(), return_counts=True)
    assert dict(zip(values.tolist(), times.tolist(), strict=True)) == dict(appended), (seed, "log")
    found = root["replaced"][...].numpy()
    assert (found == len(found)).all(), (seed, "replaced")
    for name, journal in journals.items():
        assert root.attrs.get(name, 0) == journal["attribute"], (seed, name)
        counts["changes"] += journal["done"]
        counts["erased"] += journal["erased"]
    assert not root["erased"].keys() if "erased" in root else True, (seed, "erased")
    counts += Counter(created=len(created), contended=len(won), appends=len(appended))
    return counts


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Run workers on one store, and check the result."""
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seed += 1
        with tempfile.TemporaryDirectory() as folder:
            root = zarrow.open(folder, mode="a")
            root.create_array("log", shape=(0,), chunks=16, dtype="i8")
            root["replaced"] = [1]
            if seed % 2:
                root.consolidate_metadata()
            stop = time.time() + ROUND
            program = f"import soak.documents as own; own.process({folder!r}, %d, {seed}, {stop})"
            started = [
                subprocess.Popen(
                    [sys.executable, "-c", program % (number * THREADS)],
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=Path(__file__).parents[1],
                )
                for number in range(PROCESSES)
            ]
            journals: dict[str, Any] = {}
            for worker in started:
                output, _ = worker.communicate()
                assert worker.returncode == 0, seed
                journals |= json.loads(output)
            counts += check(folder, journals, seed)
            counts["rounds"] += 1
    return dict(counts)
