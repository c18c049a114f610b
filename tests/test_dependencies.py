"""The crates that zarrow is built from come from the registry, under licences that `deny.toml` allows.

`make deny` runs cargo-deny by the same file. It checks more, and takes minutes to build.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RULES = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def packages() -> list[dict[str, Any]]:
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return list(json.loads(answer.stdout)["packages"])


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Evaluate an SPDX licence expression, in which `/` is an older form of `OR`."""
    tokens = re.findall(r"[()]|(?:(?!\b(?:AND|OR)\b)[^()/])+|\bAND\b|\bOR\b|/", expression)
    words = {"AND": "and", "OR": "or", "/": "or", "(": "(", ")": ")"}
    terms = (token.strip() for token in tokens)
    return bool(eval(" ".join(words.get(term, str(term in allowed)) for term in terms if term)))


def test_an_expression_is_evaluated_as_spdx_means_it() -> None:
    allowed = {"MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"}
    assert is_allowed("MIT", allowed)
    assert is_allowed("GPL-3.0 OR MIT", allowed)
    assert is_allowed("GPL-3.0/MIT", allowed)
    assert is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", allowed)
    assert is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0", allowed)
    assert not is_allowed("Apache-2.0", allowed)
    assert not is_allowed("MIT AND GPL-3.0", allowed)


def test_every_licence_is_allowed() -> None:
    allowed = set(RULES["licenses"]["allow"])
    found = packages()
    refused = {p["name"]: p["license"] for p in found if not is_allowed(p["license"] or "none", allowed)}
    assert len(found) > 100
    assert not refused


def test_every_crate_is_from_the_registry_or_from_here() -> None:
    assert RULES["sources"] == {
        "unknown-registry": "deny",
        "unknown-git": "deny",
        "allow-registry": [REGISTRY.removeprefix("registry+")],
    }
    elsewhere = {p["name"]: p["source"] for p in packages() if p["source"] not in (None, REGISTRY)}
    assert not elsewhere
