"""Verifies, mends, compares and converts stores."""

from __future__ import annotations

from zarrow.checks.comparing import Difference, diff
from zarrow.checks.converting import Converted, convert
from zarrow.checks.digesting import digest
from zarrow.checks.repairing import Repair, Repaired, repair
from zarrow.checks.verifying import Corrupt, Verified, verify

__all__ = [
    "Converted",
    "Corrupt",
    "Difference",
    "Repair",
    "Repaired",
    "Verified",
    "convert",
    "diff",
    "digest",
    "repair",
    "verify",
]
