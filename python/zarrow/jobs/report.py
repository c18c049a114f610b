"""What runs of a job did, and the passes that a run has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from zarrow.api.progress import Progress
    from zarrow.jobs.assignment import Job


@dataclass(frozen=True, slots=True)
class Report:
    """What a run of a job did.

    Attributes
    ----------
    done : int
        Units that it did.
    skipped : int
        Units that were finished before.
    seconds : float
        Its time.
    """

    done: int
    skipped: int
    seconds: float

    @classmethod
    def joined(cls, reports: Sequence[Report]) -> Report:
        """Return the report of runs at the same time."""
        seconds = max((each.seconds for each in reports), default=0.0)
        return cls(sum(each.done for each in reports), sum(each.skipped for each in reports), seconds)


class _RunsJob(Protocol):
    def __call__(self, job: Job, *, wait: float = ..., progress: Progress | None = ...) -> Report: ...


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass: the number of its units, and the function that runs a job."""

    units: int
    run: _RunsJob
