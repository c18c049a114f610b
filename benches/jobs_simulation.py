"""Simulates plans of 10^9 chunks with up to 10,000 workers, by `python -m benches.jobs_simulation`.

1. The plan, its jobs and its ledger are the real ones. The store of the ledger is a mapping that counts
   requests. Each request takes `LATENCY` seconds of simulated time.
2. A unit has 16,384 chunks (256 MB of 16 kB each), which its worker puts with 64 requests at a time. Puts of
   chunks are counted, and nothing is stored.
3. Of all puts, 5 % are lost: half before the store has the value, half after it. A client repeats a put three
   times. If all are lost, the job ends with an error, and a scheduler starts it again.
4. Of the workers, 1 % are killed after the puts of a random unit, which the ledger does not have yet. The
   scheduler starts their jobs again after a minute.
5. Workers run one after the other, each with its clock. They meet only in the ledger: a conflict is a put
   under a key of another worker.
"""

from __future__ import annotations

import argparse
import random
import time
import types
from collections import Counter
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

import zarrow
from zarrow.jobs import ledger
from zarrow.jobs import plan as plan_module
from zarrow.jobs.planning import planned
from zarrow.jobs.units import Unit
from zarrow.jobs.work import Item

CHUNKS = 10**9
CHUNKS_OF_A_UNIT = 1 << 14
LATENCY = 0.03
AT_ONCE = 64
LOST = 0.05
KILLED = 0.01
RESTART = 60.0
TRIES = 4


class Killed(BaseException):
    """The end of a worker."""


class Network:
    """The clock, the requests and the losses of the worker that runs now."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.now = 0.0
        self.worker = -1
        self.at_once = 1
        self.counts: Counter[str] = Counter()

    def monotonic(self) -> float:
        """Return the simulated time, for the ledger."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Wait, in simulated time."""
        self.now += seconds

    def request(self, kind: str, count: int = 1) -> None:
        """Count requests of the ledger."""
        self.counts[kind] += count
        self.now += LATENCY * count / self.at_once

    def put_chunks(self, count: int) -> None:
        """Put chunks until each is stored: a put with a lost answer is repeated, too."""
        while count:
            self.counts["chunk puts"] += count
            self.now += LATENCY * -(-count // AT_ONCE)
            count = int(self.numbers.binomial(count, LOST))


class SimulatedStore(MutableMapping[str, bytes]):
    """The store of the ledger (steps 1 and 3)."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._values: dict[str, bytes] = {}
        self._writers: dict[str, int] = {}

    def __getitem__(self, key: str) -> bytes:
        self._network.request("ledger gets")
        return self._values[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        network = self._network
        for _ in range(TRIES):
            network.request("ledger puts")
            lost = network.chance.random() < LOST
            if not lost or network.chance.random() < 0.5:
                if self._writers.setdefault(key, network.worker) != network.worker:
                    network.counts["conflicts"] += 1
                self._values[key] = value
            if not lost:
                return
        raise OSError("no answer")

    def __delitem__(self, key: str) -> None:
        self._network.request("ledger puts")
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        # A server gives at most 1,000 names at once.
        self._network.request("ledger lists", 1 + len(self._values) // 1000)
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Simulated(Item):
    """Units that count their chunks, and store none (step 2)."""

    network: Network
    killed: set[int]
    done: npt.NDArray[np.uint8]

    def opened(self) -> None:
        """Open nothing."""

    def do(self, function: Any, passes_unit: bool, unit: Unit, target: Any) -> None:
        """Put the chunks of a unit, and be killed if this is the unit."""
        (region,) = unit.region
        self.network.put_chunks(region.stop - region.start)
        self.done[unit.number] += 1
        if unit.number in self.killed:
            self.killed.remove(unit.number)
            raise Killed


def simulate(workers: int, chunks: int) -> dict[str, float]:
    """Run a plan with a number of workers, and return its counts."""
    network = Network(workers)
    clock = types.SimpleNamespace(monotonic=lambda: network.now, sleep=network.sleep)
    with mock.patch.object(ledger, "time", clock), mock.patch.object(plan_module, "time", clock):
        return simulated(network, workers, chunks)


def simulated(network: Network, workers: int, chunks: int) -> dict[str, float]:
    """Run a plan on the clock of a network."""
    began = time.perf_counter()
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(chunks,), chunks=1, dtype="u1")
    done = np.zeros(-(-chunks // CHUNKS_OF_A_UNIT), np.uint8)
    killed: set[int] = set()
    store: Any = zarrow.PythonStore(SimulatedStore(network), sole_writer=True)
    items = {"": Simulated((array,), None, network, killed, done)}
    plan = planned("simulation", items, store, "", store, 2 * CHUNKS_OF_A_UNIT)
    total = len(plan.units)
    assert total == len(done)
    for worker in network.chance.sample(range(workers), round(workers * KILLED)):
        killed.add(network.chance.choice(plan.job(worker, workers).numbers(total)))
    network.worker = 0
    while True:
        try:
            plan.setup()
            break
        except zarrow.StoreError:
            network.now += RESTART
    is_set_up = network.now
    ends, restarts = [], 0
    for worker in range(workers):
        network.worker, network.now = worker, is_set_up
        while True:
            try:
                plan.run(plan.job(worker, workers))
                break
            except (Killed, zarrow.StoreError):
                restarts += 1
                network.now += RESTART
        ends.append(network.now)
    work = network.now = max(ends)
    # The records are read together.
    network.worker, network.at_once = 0, AT_ONCE
    plan.finish()
    assert done.all() and not killed
    return {
        "workers": workers,
        "minutes": work / 60,
        "finish s": network.now - work,
        "chunk puts": network.counts["chunk puts"],
        "ledger puts": network.counts["ledger puts"],
        "ledger gets": network.counts["ledger gets"],
        "ledger lists": network.counts["ledger lists"],
        "restarts": restarts,
        "units repeated": int(np.count_nonzero(done > 1)),
        "conflicts": network.counts["conflicts"],
        "simulated in s": time.perf_counter() - began,
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    given = parser.parse_args()
    for place, workers in enumerate(given.workers):
        row = simulate(workers, given.chunks)
        if place == 0:
            print("| " + " | ".join(row) + " |\n" + "|---" * len(row) + "|")
        print(
            "| "
            + " | ".join(
                f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" for value in row.values()
            )
            + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
