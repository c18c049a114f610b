"""Does a whole plan in one process, while other processes may do the same.

1. In a local store, each process enters itself into the ledger as a user, and leaves at the end.
2. The first one to finish deletes the entries of runs, so that the others stop at their next unit. The ledger
   says that the plan is finished, and the last process deletes it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from zarrow.errors import NotFoundError, StaleHandleError, StoreError, ZarrowError
from zarrow.jobs.errors import UnfinishedError
from zarrow.jobs.report import Report
from zarrow.jobs.threads import run_in_threads

if TYPE_CHECKING:
    from zarrow.api.progress import Progress
    from zarrow.jobs.plan import Plan


def complete(plan: Plan, threads: int, progress: Progress | None) -> list[Report]:
    """Run all units of a plan that was set up, finish it, and delete its ledger."""
    ledger = plan._ledger
    user = ledger.add_user()
    try:
        try:
            reports = run_in_threads(plan, plan.job(0, 1), threads, progress=progress)
            plan.finish()
        except (UnfinishedError, StaleHandleError, NotFoundError, StoreError):
            # Another process has finished the plan, and has deleted the ledger.
            if user is None or not plan.is_finished:
                raise
            reports = [Report(0, plan.unit_count, 0.0)]
    except BaseException:
        # The first error counts.
        with contextlib.suppress(ZarrowError):
            if ledger.remove_user(user) and (plan.is_finished or not plan.is_begun):
                plan.forget()
        raise
    if ledger.remove_user(user, is_finished=True):
        plan.forget()
    return reports
