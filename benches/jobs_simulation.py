"""Simulates plans of 10^9 chunks with up to 10,000 workers, by `python -m benches.jobs_simulation`.

1. The plan, its jobs and its ledger are the real ones. Each worker is a thread with its own clock, and waits
   for the answers of a simulated store with conditional puts, which come in the order of simulated time
   (`simulated_store`). Each request takes `LATENCY` seconds.
2. The workers begin within a minute (`--within`), and each calls `setup`: they meet in the ledger.
3. A unit has 16,384 chunks (256 MB of 16 kB each), which its worker puts with 64 requests at a time. Puts of
   chunks are counted, and nothing is stored.
4. Of all puts, 5 % are lost: half before the store has the value, half after it. A client repeats a put three
   times. If all are lost, the job ends with an error, and a scheduler starts it again.
5. Of the workers, 1 % are killed after the puts of a random unit, which the ledger does not have yet. The
   scheduler starts their jobs again after a minute.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrow
from benches.simulated_store import AT_ONCE, LATENCY, LOST, Worker, World
from zarrow.jobs.common_options import planned
from zarrow.jobs.plan import Plan
from zarrow.jobs.units import Unit
from zarrow.jobs.work import Item

CHUNKS = 10**9
CHUNKS_OF_A_UNIT = 1 << 14
KILLED = 0.01
RESTART = 60.0


class Killed(BaseException):
    """The end of a worker."""


@dataclass(frozen=True)
class Simulated(Item):
    """Units that count their chunks, and store none (step 3)."""

    worker: Worker
    numbers: np.random.Generator
    killed: set[int]
    done: npt.NDArray[np.uint8]

    def opened(self) -> None:
        """Open nothing."""

    def do(self, function: Any, passes_unit: bool, unit: Unit, target: Any) -> None:
        """Put the chunks of a unit, and be killed if this is the unit."""
        (region,) = unit.region
        count, seconds = region.stop - region.start, 0.0
        while count:
            self.worker.world.counts["chunk puts"] += count
            seconds += LATENCY * math.ceil(count / AT_ONCE)
            # A put with a lost answer is repeated, too.
            count = int(self.numbers.binomial(count, LOST))
        self.worker.sleep(seconds)
        self.done[unit.number] += 1
        if unit.number in self.killed:
            self.killed.remove(unit.number)
            raise Killed


def simulate(workers: int, chunks: int, killed_workers: int, within: float) -> dict[str, float]:
    """Run a plan with workers that begin within some seconds, and return its counts."""
    began = time.perf_counter()
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(chunks,), chunks=1, dtype="u1")
    done, killed = np.zeros(math.ceil(chunks / CHUNKS_OF_A_UNIT), np.uint8), set[int]()
    numbers = np.random.default_rng(workers)
    world = World(workers)
    set_up, restarts = dict[int, float](), [0]

    def plan_of(worker: Worker) -> Plan:
        items = {"": Simulated((array,), None, worker, numbers, killed, done)}
        return planned("simulation", items, worker.store, "", worker.store, 2 * CHUNKS_OF_A_UNIT)

    def work(worker: Worker) -> None:
        worker.sleep(within * worker.number / workers)
        began, plan, job = worker.now, plan_of(worker), (worker.number, workers)
        while True:
            try:
                plan.setup()
                set_up.setdefault(worker.number, worker.now - began)
                plan.run(plan.job(*job), wait=RESTART)
                return
            except (Killed, zarrow.ZarrowError):
                restarts[0] += 1
                worker.sleep(RESTART)

    with world:
        plan = plan_of(world.worker(0))
        assert len(plan.units) == len(done)
        for number in world.chance.sample(range(workers), killed_workers):
            killed.add(world.chance.choice(plan.job(number, workers).numbers(len(done))))
        ends = world.run([work] * workers)
        (end,) = world.run([lambda worker: plan_of(worker).finish()], max(ends))
    assert done.all() and not killed
    return {
        "workers": workers,
        "setup s": max(set_up.values()),
        "minutes": max(ends) / 60,
        "finish s": end - max(ends),
        **{
            name: world.counts[name]
            for name in ("chunk puts", "ledger puts", "ledger gets", "ledger lists", "conflicts")
        },
        "restarts": restarts[0],
        "units repeated": int(np.count_nonzero(done > 1)),
        "simulated in s": time.perf_counter() - began,
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--within", type=float, default=60.0, help="seconds in which the workers begin")
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    given = parser.parse_args()
    for place, workers in enumerate(given.workers):
        row = simulate(workers, given.chunks, round(workers * KILLED), given.within)
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
