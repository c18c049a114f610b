"""Runs a row: one process for each peer, in rounds over the peers.

1. All peers' processes start and prepare at the same time; a peer that cannot take part gives the reason.
2. In each round every peer runs twice in a row: the first run is discarded, the second one counts. A virtual
   machine gives free memory back to its host within a second, so that the first touch of fresh memory can
   cost ten times its usual price: that falls on the discarded run.
3. The order of the peers rotates by one with each round.
4. A peer that has used its time skips further rounds. If its very first run took longer than that, this run
   counts, and is marked.
"""

import contextlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benches import late, limit
from benches.peers import PEERS
from benches.process import Process
from benches.row import Row
from benches.scale import Scale

ENOUGH = 60.0  # seconds of runs, for one peer in one row


@dataclass
class Samples:
    """The measurements of one peer in one row."""

    peer: str
    remark: str = ""
    """How the peer's data differ from the other peers'."""
    seconds: list[float] = field(default_factory=list)
    """Time of one read, for each round."""
    missing: str | None = None
    """Why there are no times, or not all."""
    peak: int | None = None
    """Peak of resident memory in the first run, minus the resident memory before."""
    read: int | None = None
    """Bytes that the first run read, and"""
    written: int | None = None
    """the bytes that it wrote."""
    check: str | None = None
    """Checksum of the first run's result."""
    dropped: float | None = None
    """Share of the files dropped from the page cache before the run."""
    first_only: bool = False
    """Whether the only time is from the very first run."""


def measure(row: Row, scale: Scale, folder: Path, rounds: int, log: Path) -> list[Samples]:
    """Run a row with every peer that can take part."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="zarrow-bench-", dir=memory_folder())))
        server = stack.enter_context(late.Server(folder, row.late, log, scratch)) if row.late else None
        running: list[tuple[Process, Samples]] = []
        started: list[Process] = []
        all_samples = []
        for name in [*takers(row, folder), *([limit.NAME] if row.limit else [])]:
            samples = Samples(name, remark=PEERS[name].remarks.get(row.data, "") if name in PEERS else "")
            all_samples.append(samples)
            started.append(stack.enter_context(start(name, row, scale, folder, scratch, server, log)))
        for process, samples in zip(started, all_samples, strict=True):
            samples.missing = process.receive().get("missing")
            if samples.missing is None:
                running.append((process, samples))
        spent = dict.fromkeys((samples.peer for _, samples in running), 0.0)
        for turn in range(rounds if running else 0):
            first = turn % len(running)
            for process, samples in running[first:] + running[:first]:
                if samples.missing is None and spent[samples.peer] < ENOUGH:
                    spent[samples.peer] += one_round(process, samples, row.reads)
    return all_samples


def memory_folder() -> Path | None:
    """Return a folder in memory if possible, otherwise the usual temporary folder.

    ext4 scans the entries of recently deleted files for each new file. Files that one round deletes would
    slow the next round more than its writes, in a random order of peers.
    """
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None


def takers(row: Row, folder: Path) -> list[str]:
    """Return the names of the peers that have the data and a task in the row."""
    return [
        name
        for name, peer in PEERS.items()
        if row.peers is None or name in row.peers
        if (folder / f"{row.data}{peer.suffix}").exists()
        if row.peers is not None or peer.rows is None or row.name in peer.rows
        if row.task != "call" or row.name in peer.calls
        if not row.late or peer.reads_http
    ]


def start(
    name: str, row: Row, scale: Scale, folder: Path, scratch: Path, server: late.Server | None, log: Path
) -> Process:
    """Start the process of a peer, or of the limit."""
    if name == limit.NAME:
        process = Process([str(limit.PROGRAM)], log, scratch, row.cpus)
        process.send(limit.request(row, folder, scratch))
    elif server and PEERS[name].is_zarrow:
        process = Process([str(late.PROGRAM), "read"], log, scratch, row.cpus)
        process.send(server.request(row))
    else:
        place = server.url if server else str(folder.resolve())
        worker = [sys.executable, "-m", "benches.worker", name, row.name, scale.name, place]
        process = Process(worker, log, scratch, row.cpus)
    return process


def one_round(process: Process, samples: Samples, reads: int) -> float:
    """Run twice and keep the second time; return the total seconds."""
    discarded = process.ask()
    if not samples.seconds:
        samples.peak, samples.check = discarded.get("peak"), discarded.get("check")
        samples.read, samples.written = discarded.get("read"), discarded.get("written")
    if discarded.get("value", 0) > ENOUGH and not samples.seconds:
        samples.first_only = True
        counted = discarded
    else:
        counted = process.ask() if "value" in discarded else discarded
    samples.missing = counted.get("missing")
    if samples.missing is not None:
        return 0.0
    samples.dropped = counted.get("dropped")
    samples.seconds.append(counted["value"] / reads)
    return float(discarded["value"] + counted["value"])
