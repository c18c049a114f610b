"""Errors of plans."""

from __future__ import annotations

from zarrow.errors import ZarrowError


class UnfinishedError(ZarrowError, RuntimeError):
    """Some units of a plan are not finished, or the plan is not set up; its kind is `"unfinished"`."""


class ConflictError(ZarrowError, RuntimeError):
    """Another plan, or a commit to the branch of icechunk, writes the same; its kind is `"conflict"`."""
