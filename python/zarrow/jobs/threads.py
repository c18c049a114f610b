"""Runs a job of a plan in several threads, so that reads and writes of a slow store overlap."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from zarrow.api import at_once
from zarrow.jobs.assignment import Job, checked

if TYPE_CHECKING:
    from zarrow.api.progress import Progress
    from zarrow.jobs.plan import Plan, Report


class _StoppedError(Exception):
    """Ends a thread after an error in another one."""


def run_in_threads(
    plan: Plan, job: Job, threads: int, *, wait: float = 0.0, progress: Progress | None = None
) -> list[Report]:
    """Do the units of a job as `Plan.run` does, and return the reports. After an error, all threads end.

    Raises
    ------
    ValueError
        `threads` is less than 1.
    UnfinishedError, StaleHandleError, StoreError, CodecError, OutOfMemoryError
        As `Plan.run`.
    """
    check_threads(threads)
    if threads == 1:
        return [plan.run(job, wait=wait, progress=progress)]
    whole = len(job.numbers(len(plan.units)))
    counts = [0] * threads
    reports: list[Report] = []
    stop = threading.Event()

    def report(part: int, done: int, _: int) -> None:
        counts[part] = done
        if progress is not None:
            progress(sum(counts), whole)
        if stop.is_set():
            raise _StoppedError

    def run(part: int) -> None:
        try:
            done = plan.run(_part(job, part, threads), wait=wait, progress=functools.partial(report, part))
            reports.append(done)
        except _StoppedError:
            pass
        except BaseException:
            stop.set()
            raise

    at_once.run([functools.partial(run, part) for part in range(threads)], threads)
    return reports


def check_threads(threads: int) -> None:
    """Refuse a number of threads below 1.

    Raises
    ------
    ValueError
        The number is below 1.
    """
    if threads < 1:
        raise ValueError(f"threads is at least 1, got {threads}")


def _part(job: Job, part: int, count: int) -> Job:
    """Return one of `count` jobs, which have the units of a job together."""
    index = job.index + part * job.count if job.assign == "spread" else job.index * count + part
    return checked(index, job.count * count, job.assign)
