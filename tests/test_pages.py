"""Checks the links and names in the pages against the source."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md"),
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text())
    assert [link for link in links if not (folder / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_to_headings_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text())
    targets = [(path.parent / target if target else path, anchor) for target, anchor in links]
    assert [anchor for target, anchor in targets if anchor not in anchors(target)] == []


def test_contributing_names_existing_files() -> None:
    """Check full paths, and file names without a path, which must exist in a crate."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    names = re.findall(r"`((?:crates|docs|tests)/[\w/.-]+)`", text)
    assert len(names) > 15
    assert [name for name in names if not (ROOT / name).exists()] == []
    for name in re.findall(r"`([\w/]+\.rs)`", text):
        assert name in names or list(ROOT.glob(f"crates/*/src/**/{name}")), name


def test_contributing_names_existing_items() -> None:
    sources = {
        "crates/zarrow/src/codec": [
            "struct Definition",
            "Output::Exact",
            "trait ArrayToBytes",
            "enum Filter",
        ],
        "crates/zarrow/src/store": ["fn submit", "fn version_of", "fn draft", "fn check_key", "fn lock"],
        "crates/zarrow-array/src": ["elements! {", "numbers! {"],
    }
    for folder, names in sources.items():
        text = "\n".join(path.read_text() for path in (ROOT / folder).rglob("*.rs"))
        assert [name for name in names if name not in text] == []


def cargo_metadata() -> dict[str, Any]:
    # On a new machine this downloads the crates of features and platforms that no build there needs.
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    metadata: dict[str, Any] = json.loads(run.stdout)
    return metadata


def test_all_crates_have_one_oldest_compiler() -> None:
    packages = cargo_metadata()["packages"]
    oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    own = [package for package in packages if package["source"] is None]
    assert {package["rust_version"] for package in own} == {oldest}
    assert f"Rust {oldest}" in (ROOT / "README.md").read_text()
    assert f"Rust {oldest}" in (ROOT / "CONTRIBUTING.md").read_text()
    version = tuple(map(int, oldest.split(".")))
    asked = [
        tuple(map(int, package["rust_version"].split(".")[:2]))
        for package in packages
        if package["rust_version"]
    ]
    assert max(asked) <= version
