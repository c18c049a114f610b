"""Runs a job of a plan in several threads, so that reads and writes of a slow store overlap."""

from __future__ import annotations

import functools
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from zarrow.api import concurrent_calls
from zarrow.jobs.assignment import Job, checked

if TYPE_CHECKING:
    from zarrow.api.progress import Progress
    from zarrow.jobs.plan import Plan
    from zarrow.jobs.report import Pass, Report


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
    passes = plan._passes()
    whole = sum(len(job.numbers(each.units)) for each in passes)
    reports: list[Report] = []
    before, seconds = 0, 0.0
    for each in passes:

        def report(done: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + done, whole)

        if threads == 1:
            done = [each.run(job, wait=wait, progress=report)]
        else:
            done = _run_divided(each, job, threads, wait, report)
        reports += [replace(part, seconds=seconds + part.seconds) for part in done]
        before += len(job.numbers(each.units))
        seconds = max((part.seconds for part in reports), default=0.0)
    return reports


def _run_divided(each: Pass, job: Job, threads: int, wait: float, progress: Progress) -> list[Report]:
    """Do one pass of a job."""
    counts = [0] * threads
    reports: list[Report] = []
    stop = threading.Event()

    def report(part: int, done: int, _: int) -> None:
        counts[part] = done
        progress(sum(counts), each.units)
        if stop.is_set():
            raise _StoppedError

    def run(part: int) -> None:
        try:
            divided = _part(job, part, threads)
            reports.append(each.run(divided, wait=wait, progress=functools.partial(report, part)))
        except _StoppedError:
            pass
        except BaseException:
            stop.set()
            raise

    concurrent_calls.run([functools.partial(run, part) for part in range(threads)], threads)
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
