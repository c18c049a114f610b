"""Outcomes of tests, and the comparison of two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """How a test ended."""

    name: str
    """`passed`, `failed`, `skipped` (also for an expected failure), or `ended` with the process."""
    reason: str = ""
    """The message of the failure."""


Outcomes = dict[str, Outcome]


def read(path: Path) -> Outcomes:
    """Return the outcomes in a file; the last line of a test counts."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {
        test: Outcome(name or "ended", reason if name else "the process ended")
        for test, name, reason in lines
    }


@dataclass
class Comparison:
    """The differences between a run of a suite on stock code and a run on a subject."""

    known: Outcomes
    """Listed differences."""
    new: Outcomes
    """Differences that are not listed."""
    gone: list[str]
    """Listed tests, or groups of tests, that show no difference."""

    @property
    def holds(self) -> bool:
        """Return whether the list and the differences agree."""
        return not self.new and not self.gone


def compare(stock: Outcomes, subject: Outcomes, listed: Mapping[str, str]) -> Comparison:
    """Compare two runs.

    A name in `listed` without brackets stands for the test with all its parameters.
    """
    known, new = {}, {}
    seen = set()
    for test, before in stock.items():
        after = subject.get(test, Outcome("missing", "the test did not run"))
        if before.name in ("failed", "ended") or after.name in ("passed", before.name):
            continue
        names = {test, test.partition("[")[0]} & listed.keys()
        (known if names else new)[test] = after
        seen |= names
    return Comparison(known, new, sorted(listed.keys() - seen))
