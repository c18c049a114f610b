"""Runs the remote rows: one process for each peer, in rounds over the peers.

1. The server is started, and each peer's process prepares.
2. The first run of each peer is compared but not counted, except in rows with fresh processes.
3. In each round every peer has its runs; the order rotates by one with each round. The server is configured
   before each run, and queried afterwards.
4. A peer that has used its time skips further rounds.
"""

import contextlib
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benches.process import Process
from benches.remote import data, table
from benches.remote.row import RemoteRow
from benches.remote.rows import all_rows, chosen
from benches.remote.server import Server
from benches.rounds import memory_folder

ENOUGH = 25.0  # seconds of runs, for one peer in one row


@dataclass
class Samples:
    """The measurements of one peer in one row, by run."""

    peer: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    most: list[int] = field(default_factory=list)
    """Requests in flight at the same time."""
    check: str | None = None
    """Checksum of the first run's result."""
    missing: str | None = None
    """Why there are no times, or not all."""


def run(names: list[str], rounds: int, build: Path) -> None:
    """Measure these rows, and write the page if all rows were measured."""
    rows, folder = chosen(names), build / "remote"
    data.write(folder, {row.data for row in rows})
    results = table.Results(build / "results-remote.json")
    for row in rows:
        results.add(row, [asdict(samples) for samples in measure(row, folder, rounds, build / "stderr.log")])
        print(table.row_table(row, results.rows[row.name]), flush=True)
    if all(row.name in results.rows for row in all_rows()):
        print(table.write_page(results))


def measure(row: RemoteRow, folder: Path, rounds: int, log: Path) -> list[Samples]:
    """Run a row with every peer that can take part."""
    all_samples = [Samples(name) for name in row.peers]
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="zarrow-bench-", dir=memory_folder())))
        server = stack.enter_context(Server(folder, log, scratch))

        def started(samples: Samples) -> Process:
            server.behave({})
            command = [
                sys.executable,
                "-m",
                "benches.remote.worker",
                samples.peer,
                row.name,
                str(server.port),
            ]
            process = Process(command, log, scratch)
            samples.missing = process.receive().get("missing")
            return process

        kept = {}
        for samples in all_samples if not row.fresh else []:
            kept[samples.peer] = stack.enter_context(started(samples))
            samples.missing = samples.missing or one_run(
                row, server, kept[samples.peer], samples, 0, counts=False
            )
        for turn in range(rounds):
            first = turn % len(all_samples)
            for samples in all_samples[first:] + all_samples[:first]:
                with contextlib.ExitStack() as own:
                    if samples.missing or sum(samples.seconds) > ENOUGH:
                        continue
                    process = kept.get(samples.peer) or own.enter_context(started(samples))
                    for number in range(row.runs):
                        if samples.missing is None and sum(samples.seconds) <= ENOUGH:
                            seed = turn * row.runs + number
                            samples.missing = one_run(row, server, process, samples, seed, counts=True)
    return all_samples


def one_run(
    row: RemoteRow, server: Server, process: Process, samples: Samples, seed: int, *, counts: bool
) -> str | None:
    """Run once; return the reason if no further run is possible."""
    server.behave({})
    answer: dict[str, Any] = process.ask()
    if "missing" not in answer:
        server.behave(row.manner | ({"seed": seed} if "seed" in row.manner else {}))
        answer = process.ask()
    seen = server.behave({})
    if "missing" in answer:
        return str(answer["missing"])
    samples.check = samples.check or answer.get("check")
    if counts:
        samples.seconds.append(answer["seconds"])
        samples.cpu.append(answer["cpu"])
        samples.peak.append(answer["peak"])
        samples.requests.append(seen["requests"])
        samples.most.append(seen["most"])
    return None
