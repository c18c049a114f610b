"""Every test that `docs/promises.md` names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_promise_has_its_test() -> None:
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    named = {
        name
        for row in re.findall(r"^\|.*\|(.*)\|$", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "crates").rglob("*.rs")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    there = set(re.findall(r"\b(?:fn|def) (\w+)\(", text))
    assert len(named) > 40
    assert named <= there, sorted(named - there)
