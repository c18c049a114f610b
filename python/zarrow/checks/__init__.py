"""Checks of stores: which chunks are there and sound, and what differs between two stores."""

from __future__ import annotations

from zarrow.checks.comparing import Difference, diff
from zarrow.checks.verifying import Corrupt, Verified, verify

__all__ = ["Corrupt", "Difference", "Verified", "diff", "verify"]
