"""Finds the index of this job and the count of jobs in the environment of a scheduler.

1. Index and count from arguments are taken first.
2. A scheduler that gives both is taken next. The indices of a SLURM array need not start at 0.
3. Kubernetes and PBS give the index alone: the count must be an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Scheduler:
    """The environment variables of a scheduler."""

    name: str
    index: str
    count: str | None
    first: str | None = None
    step: str | None = None


# Arrays of jobs come before the processes of one job, which have both.
SCHEDULERS = (
    Scheduler(
        "SLURM array",
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        "SLURM_ARRAY_TASK_MIN",
        "SLURM_ARRAY_TASK_STEP",
    ),
    Scheduler("AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE"),
    Scheduler("Cloud Run", "CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT"),
    Scheduler("Kubernetes", "JOB_COMPLETION_INDEX", None),
    Scheduler("PBS", "PBS_ARRAY_INDEX", None),
    Scheduler("SLURM", "SLURM_PROCID", "SLURM_NTASKS"),
    Scheduler("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    Scheduler("torchrun", "RANK", "WORLD_SIZE"),
)


def found(environment: Mapping[str, str], index: int | None, count: int | None) -> tuple[int, int]:
    """Return the index of this job and the count of jobs (steps 1 to 3).

    Raises
    ------
    ValueError
        Neither the arguments nor the environment have both; or a variable is no integer.
    """
    if index is not None and count is not None:
        return index, count
    for scheduler in SCHEDULERS:
        if scheduler.index not in environment:
            continue
        known = count
        if known is None and scheduler.count is not None and scheduler.count in environment:
            known = _integer(environment, scheduler.count)
        if known is None:
            raise ValueError(f"{scheduler.name} gives the index of a job, not their count: pass --count")
        first = 0 if scheduler.first is None else _integer(environment, scheduler.first, 0)
        step = 1 if scheduler.step is None else _integer(environment, scheduler.step, 1)
        place = _integer(environment, scheduler.index) if index is None else index
        return ((place - first) // max(1, step) if index is None else place), known
    if index is None and count is None:
        return 0, 1
    raise ValueError("pass both --index and --count: no environment variable of a scheduler has the other")


def _integer(environment: Mapping[str, str], name: str, missing: int | None = None) -> int:
    if missing is not None and name not in environment:
        return missing
    text = environment[name]
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment variable {name} is {text!r}, expected an integer") from None
