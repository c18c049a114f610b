"""The tree matches `docs/architecture.md`: crates, edges, files, `unsafe`, and the size of files."""

import json
import re
import subprocess
from pathlib import Path

import pytest

import architecture
from architecture import block, files, lists

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FOLDERS = ("crates", "python", "tests", "docs", "benches", "examples", "requirements")
LONGEST_FILE = 600


def section(heading: str) -> str:
    """Return the text of the page from a heading to the next of the same level."""
    match = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, f"docs/architecture.md has no section {heading!r}"
    return match[1]


def table(heading: str) -> dict[str, str]:
    """Map the name in the first column of the section's table to the text of the last."""
    rows = [line.strip("|").split("|") for line in section(heading).splitlines() if line.startswith("| `")]
    return {names(row[0])[0]: row[-1] for row in rows}


def names(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def differences(page: set[str], tree: set[str]) -> str:
    gone, new = sorted(page - tree), sorted(tree - page)
    return "\n".join(
        ["docs/architecture.md and the tree differ; in the page only:", *gone, "in the tree only:", *new]
    )


@pytest.fixture(scope="module")
def packages() -> dict[str, list[tuple[str, str]]]:
    """Return the dependencies of each crate of the workspace, as (name, kind)."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked", "--offline"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {
        package["name"]: [(edge["name"], edge["kind"] or "normal") for edge in package["dependencies"]]
        for package in json.loads(output)["packages"]
    }


def test_crates_are_those_of_the_page(packages: dict[str, list[tuple[str, str]]]) -> None:
    assert set(packages) == set(table("Crates and allowed edges"))


def test_no_crate_depends_on_one_it_must_not(packages: dict[str, list[tuple[str, str]]]) -> None:
    heading = "Crates and allowed edges"
    allowed = {crate: set(names(uses)) for crate, uses in table(heading).items()}
    for_tests = set(names(section(heading).split("in the tests of a crate too")[1].split(")")[0]))
    assert for_tests.isdisjoint(packages), "crates of the workspace may not be test-only dependencies"
    forbidden = [
        f"{crate} -> {used} ({kind})"
        for crate, edges in packages.items()
        for used, kind in edges
        if used not in allowed[crate] | (for_tests if kind == "dev" else set())
    ]
    unused = [
        f"{crate} -> {used}"
        for crate, uses in allowed.items()
        for used in uses - {name for name, _ in packages[crate]}
    ]
    assert not forbidden, f"edges that docs/architecture.md does not allow: {forbidden}"
    assert not unused, f"unused edges in docs/architecture.md: {unused}"


def test_allowed_edges_point_down() -> None:
    below: list[str] = []
    for crate, uses in table("Crates and allowed edges").items():
        upward = {use for use in names(uses) if use.startswith("zarrow")} - set(below)
        assert not upward, f"{crate} may only use the crates above it in the table, not {upward}"
        below.append(crate)


def test_every_dependency_is_explained(packages: dict[str, list[tuple[str, str]]]) -> None:
    used = {name for edges in packages.values() for name, _ in edges} - set(packages)
    explained = set(table("Why each dependency"))
    assert explained == used, differences(explained, used)


@pytest.mark.parametrize("language", ["files", "unsafe", "locks", "threads"])
def test_lists_of_files_are_those_of_the_tree(language: str) -> None:
    listed, there = block(PAGE, language)[1], lists()[language]
    assert listed == there, "the lists in docs/architecture.md are out of date: run `make architecture`"


def test_no_file_is_too_long() -> None:
    lengths = {
        path: (ROOT / path).read_text(encoding="utf-8").count("\n")
        for folder in FOLDERS
        for path in files(ROOT / folder, ".rs", ".py", ".pyi", ".md", ".toml")
    }
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


# Number of loops that are not retries: they walk up a path, run twice, or wait for an answer.
OTHER_LOOPS = {"store/filesystem_writer.rs": 1, "node/hierarchy/create.rs": 1, "store/remote/waiter.rs": 1}


def test_every_retry_is_bounded_by_one_type() -> None:
    unbounded = {}
    source = ROOT / "crates" / "zarrow" / "src"
    for folder in ("store", "node/hierarchy"):
        for path in files(source / folder, ".rs"):
            text = (ROOT / path).read_text(encoding="utf-8")
            name = path.split("/src/")[1]
            bodies = re.findall(r"^( *)loop \{$(.*?)^\1\}", text, re.MULTILINE | re.DOTALL)
            count = sum("retry.again(" not in body for _, body in bodies)
            if count and "tests" not in name and name != "store/interleaving.rs":
                unbounded[name] = count
    assert unbounded == OTHER_LOOPS, "ask store::retry::Retry before each further attempt"


def test_every_rust_file_has_a_header() -> None:
    silent = [
        path
        for path in files(ROOT / "crates", ".rs")
        if not (ROOT / path).read_text(encoding="utf-8").startswith("//!")
    ]
    assert silent == []


def test_every_lock_that_lives_as_long_as_the_process_is_one_that_forks_cannot_hold() -> None:
    """Clippy forbids the other locks; this finds the locks that its lints miss."""
    kinds = {line.rpartition(" ")[2] for line in architecture.locks()}
    assert {"Mutex", "CacheMutex", "OnceCell"} <= kinds <= {"Mutex", "CacheMutex", "OnceCell", "Names"}
    kinds_of_std = r"sync::(?:Mutex|RwLock|Once\w*|LazyLock|Condvar)"
    foreign = re.compile(rf"\b(?:PyOnceLock|GILOnceCell|parking_lot|spin|{kinds_of_std})\b")
    rust = [path for path in architecture.sources() if path.endswith(".rs") and "/tests/" not in path]
    users = [path for path in rust if foreign.search((ROOT / path).read_text("utf-8"))]
    assert [path for path in users if "/src/fork/" not in path] == []
