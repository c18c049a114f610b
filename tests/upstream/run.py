"""Runs a suite on a subject in a new process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from upstream import outcomes
from upstream.outcomes import Outcomes
from upstream.suites import Subject, Suite

TESTS = Path(__file__).resolve().parent.parent
TEST_SECONDS = 120
RESTARTS = 20


def outcomes_file(folder: Path, suite: Suite, subject: Subject) -> Path:
    """Return the file with the outcomes of a suite on a subject."""
    return folder / f"{suite.name}-{subject.name}.jsonl"


def run(suite: Suite, subject: Subject, folder: Path) -> Outcomes:
    """Run a suite, and continue after each test that ends the process or hangs.

    The outcomes and pytest's output are left in `folder`.
    """
    file = outcomes_file(folder, suite, subject)
    log = file.with_suffix(".log")
    for old in (file, log):
        old.unlink(missing_ok=True)
    # Some tests write to the current folder.
    scratch, current = folder / "scratch", folder / "current"
    environment = os.environ | subject.environment
    environment |= {
        "UPSTREAM_SUBJECT": subject.name,
        "UPSTREAM_OUTCOMES": str(file),
        "HYPOTHESIS_PROFILE": "ci",
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    limits = [f"faulthandler_timeout={TEST_SECONDS}", "faulthandler_exit_on_timeout=true"]
    options = [f"--override-ini={limit}" for limit in limits]
    options += ["-q", "-p", "no:cacheprovider", "-p", "upstream.plugin", f"--basetemp={scratch}"]
    command = [sys.executable, "-m", "pytest", *suite.arguments, *options]
    ended = 0
    for _ in range(RESTARTS):
        current.mkdir(exist_ok=True)
        with log.open("a") as output:
            subprocess.run(command, cwd=current, env=environment, stdout=output, stderr=subprocess.STDOUT)
        for used in (scratch, current):
            shutil.rmtree(used, ignore_errors=True)
        found = outcomes.read(file)
        ended_now = sum(outcome.name == "ended" for outcome in found.values())
        if not found:
            raise SystemExit(f"{suite.name} on {subject.name}: no test ran; see {log}")
        if ended_now == ended:
            return found
        ended = ended_now
    raise SystemExit(f"{suite.name} on {subject.name}: {RESTARTS} tests ended the process; see {log}")
