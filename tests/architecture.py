"""Generates the lists of `docs/architecture.md` from the tree, for `make architecture`."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
WIDTH = 128


def files(folder: Path, *suffixes: str) -> list[str]:
    """Return the files below the folder, relative to the root of the project, sorted."""
    found = (path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file())
    return sorted(path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts)


def is_unsafe(path: str) -> bool:
    """Return whether the code, without its comments, contains `unsafe`."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return any(re.search(r"\bunsafe\b(?!_)", line.partition("//")[0]) for line in lines)


def sources() -> list[str]:
    """Return every source file of the crates and of the Python package."""
    rust = [path for path in files(ROOT / "crates", ".rs") if "/src/" in path]
    return rust + files(ROOT / "python", ".py", ".pyi")


# A `static` with a lock or a once-cell; `Names` is such a cell.
LOCK = re.compile(
    r"^\s*static (\w+): [^=]*?"
    r"\b((?:\w*Mutex|RwLock|Condvar|Barrier|Names|Once|\w*OnceCell|\w*OnceLock|LazyLock))\b",
    re.MULTILINE,
)


def locks() -> list[str]:
    """Return every lock and cell with the lifetime of the process: file, name and type."""
    rust = [path for path in sources() if path.endswith(".rs") and not path.endswith("tests.rs")]
    whole = {path: (ROOT / path).read_text(encoding="utf-8") for path in rust}
    texts = {path: text.partition("#[cfg(test)]\nmod tests {")[0] for path, text in whole.items()}
    return [f"{path} {name} {kind}" for path, text in texts.items() for name, kind in LOCK.findall(text)]


# Calls that start a thread, or build a thread starter.
THREAD = re.compile(
    r"\bthread::start\(|\bthread::Builder|\bthread::spawn\(|\bBuilder::new|\bthreading\.Thread\("
)


def threads() -> list[str]:
    """Return every file that starts a thread, except tests."""
    found = []
    for path in sources():
        text = (ROOT / path).read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests {")[0]
        code = "\n".join(line.partition("//")[0] for line in text.splitlines())
        if not path.endswith("tests.rs") and THREAD.search(code):
            found.append(path)
    return found


def by_folder(paths: list[str]) -> str:
    """Format one paragraph per folder: its path and the names of its files."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders[f"{folder}/"].append(name)
    wrap = textwrap.TextWrapper(
        WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrap.fill(" ".join([folder, *names])) for folder, names in folders.items())


def lists() -> dict[str, str]:
    """Return each list by the language of its block on the page."""
    paths = sources()
    return {
        "unsafe": by_folder([path for path in paths if path.endswith(".rs") and is_unsafe(path)]),
        "files": by_folder(paths),
        "locks": "\n".join(locks()),
        "threads": by_folder(threads()),
    }


def block(page: str, language: str) -> re.Match[str]:
    """Find the list on the page."""
    match = re.search(rf"^```{language}\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert match, f"docs/architecture.md has no block {language!r}"
    return match


def main() -> None:
    """Write the lists into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for language, text in lists().items():
        match = block(page, language)
        page = page[: match.start(1)] + text + page[match.end(1) :]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
