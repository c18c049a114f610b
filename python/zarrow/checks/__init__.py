"""Verifies, mends, compares, converts and measures stores."""

from __future__ import annotations

from zarrow.checks.benchmarking import bench
from zarrow.checks.comparing import Difference, diff
from zarrow.checks.converting import Converted, convert
from zarrow.checks.digesting import digest
from zarrow.checks.repairing import Repair, Repaired, repair
from zarrow.checks.timings import Benchmark, Timing
from zarrow.checks.verifying import Corrupt, Verified, verify

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
