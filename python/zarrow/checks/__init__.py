"""Checks of stores: which chunks are stored and sound, mending them, and what differs between two stores."""

from __future__ import annotations

from zarrow.checks.comparing import Difference, diff
from zarrow.checks.repairing import Repair, Repaired, repair
from zarrow.checks.verifying import Corrupt, Verified, verify

__all__ = ["Corrupt", "Difference", "Repair", "Repaired", "Verified", "diff", "repair", "verify"]
