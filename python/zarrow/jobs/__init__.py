"""Work on arrays that outgrows one process: plans that many processes carry out, and resume after a kill.

A plan is small, and can be pickled. It divides arrays into units, which processes write or read
independently. A ledger beside the store has the finished units: a job that runs again does only the others.

>>> import numpy, zarrow
>>> from zarrow import jobs
>>> zarrow.save("rain.zarr", numpy.ones((365, 100), "f4"))
>>> plan = jobs.copy(zarrow.open("rain.zarr"), "by-place.zarr", chunks=(365, 10))
>>> plan.setup()
>>> for index in range(4):  # in four processes, on four machines, ...
...     _ = plan.run(plan.job(index, 4))
>>> plan.finish()
>>> zarrow.open("by-place.zarr").chunks
(365, 10)
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.jobs.assignment import Job
from zarrow.jobs.errors import ConflictError, UnfinishedError
from zarrow.jobs.plan import Plan
from zarrow.jobs.plan_kinds import append, collect, copy, map, write
from zarrow.jobs.report import Report
from zarrow.jobs.units import Unit

__all__ = [
    "ConflictError",
    "Job",
    "Plan",
    "Report",
    "UnfinishedError",
    "Unit",
    "append",
    "collect",
    "copy",
    "map",
    "write",
]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
