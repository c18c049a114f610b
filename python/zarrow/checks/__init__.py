"""Verifies, mends, compares, converts and measures stores."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.checks.benchmarking import bench
from zarrow.checks.comparing import Difference, diff
from zarrow.checks.converting import Converted, convert
from zarrow.checks.digesting import digest
from zarrow.checks.repairing import Repair, Repaired, repair
from zarrow.checks.timings import Benchmark, Timing
from zarrow.checks.verified import Corrupt, Verified
from zarrow.checks.verifying import verify
from zarrow.hints.module_names import getattr_of as _getattr_of

__all__ = [
    "Benchmark",
    "Converted",
    "Corrupt",
    "Difference",
    "Repair",
    "Repaired",
    "Timing",
    "Verified",
    "bench",
    "convert",
    "diff",
    "digest",
    "repair",
    "verify",
]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
