"""A plugin for pytest that sets up the subject, and records each outcome in a file.

1. The environment names the subject (`UPSTREAM_SUBJECT`) and the file (`UPSTREAM_OUTCOMES`).
2. Each line is a test with its outcome. A test without an outcome had begun when the process ended.
3. Tests in the file are skipped, so that a new process continues after a test that ended the last one.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from upstream.outcomes import read
from upstream.suites import SUBJECTS

EXAMPLES = 30
OUTCOMES = Path(os.environ["UPSTREAM_OUTCOMES"])
_subject = SUBJECTS[os.environ["UPSTREAM_SUBJECT"]]
_states: dict[str, tuple[str, str]] = {}


def record(test: str, outcome: str | None, reason: str = "") -> None:
    with OUTCOMES.open("a") as file:
        file.write(json.dumps([test, outcome, reason]) + "\n")


def pytest_configure() -> None:
    if _subject.imports:
        module = importlib.import_module(_subject.imports)
        if _subject.call:
            getattr(module, _subject.call)()


def pytest_collection() -> None:
    """Make Hypothesis try the same few examples in each run; the profile of the suite is set by now."""
    hypothesis.settings.register_profile(
        "upstream", hypothesis.settings.default, max_examples=EXAMPLES, derandomize=True, database=None
    )
    hypothesis.settings.load_profile("upstream")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    done = read(OUTCOMES)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        record(report.nodeid, "failed", str(report.longrepr).strip().splitlines()[-1])


def pytest_runtest_logstart(nodeid: str) -> None:
    record(nodeid, None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a test at its end: it has failed if its set-up, its call or its end has."""
    if report.failed:
        _states.setdefault(report.nodeid, ("failed", cause(report.longrepr)))
    elif report.skipped:
        _states.setdefault(report.nodeid, ("skipped", ""))
    if report.when == "teardown":
        record(report.nodeid, *_states.pop(report.nodeid, ("passed", "")))


def cause(failure: Any) -> str:
    crash = getattr(failure, "reprcrash", None)
    return str(crash.message if crash else failure)[:300]
