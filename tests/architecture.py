"""The lists of `docs/architecture.md` that follow from the tree: `make architecture` writes them anew."""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
WIDTH = 110


def files(folder: Path, *suffixes: str) -> list[str]:
    """Paths of the files below the folder, from the root of the project on, sorted."""
    found = (path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file())
    return sorted(path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts)


def is_unsafe(path: str) -> bool:
    """Whether the code, without its comments, says `unsafe`."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return any(re.search(r"\bunsafe\b(?!_)", line.partition("//")[0]) for line in lines)


def sources() -> list[str]:
    """Every file of the crates and of the Python package."""
    rust = [path for path in files(ROOT / "crates", ".rs") if "/src/" in path]
    return rust + files(ROOT / "python", ".py", ".pyi")


# A `static` with a lock, or with what is made once; `Names` are such a cell.
LOCK = re.compile(
    r"^\s*static (\w+): [^=]*?"
    r"\b((?:\w*Mutex|RwLock|Condvar|Barrier|Names|Once|\w*OnceCell|\w*OnceLock|LazyLock))\b",
    re.MULTILINE,
)


def locks() -> list[str]:
    """Every lock and cell that lives as long as the process: its file, name and type."""
    rust = [path for path in sources() if path.endswith(".rs") and not path.endswith("tests.rs")]
    whole = {path: (ROOT / path).read_text(encoding="utf-8") for path in rust}
    texts = {path: text.partition("#[cfg(test)]\nmod tests {")[0] for path, text in whole.items()}
    return [f"{path} {name} {kind}" for path, text in texts.items() for name, kind in LOCK.findall(text)]


# What starts a thread, or makes what starts threads.
THREAD = re.compile(
    r"\bthread::start\(|\bthread::Builder|\bthread::spawn\(|\bBuilder::new|\bthreading\.Thread\("
)


def threads() -> list[str]:
    """Every file that starts a thread, tests aside."""
    found = []
    for path in sources():
        text = (ROOT / path).read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests {")[0]
        code = "\n".join(line.partition("//")[0] for line in text.splitlines())
        if not path.endswith("tests.rs") and THREAD.search(code):
            found.append(path)
    return found


def by_folder(paths: list[str]) -> str:
    """A paragraph for each folder: its path, and the names of its files."""
    folders: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders[f"{folder}/"].append(name)
    wrap = textwrap.TextWrapper(
        WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrap.fill(" ".join([folder, *names])) for folder, names in folders.items())


def lists() -> dict[str, str]:
    """Each list by the language of its block on the page."""
    paths = sources()
    return {
        "unsafe": by_folder([path for path in paths if path.endswith(".rs") and is_unsafe(path)]),
        "files": by_folder(paths),
        "locks": "\n".join(locks()),
        "threads": by_folder(threads()),
    }


def block(page: str, language: str) -> re.Match[str]:
    """Where the page has the list."""
    match = re.search(rf"^```{language}\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert match, f"docs/architecture.md has no block {language!r}"
    return match


def main() -> None:
    """Write the lists."""
    page = PAGE.read_text(encoding="utf-8")
    for language, text in lists().items():
        match = block(page, language)
        page = page[: match.start(1)] + text + page[match.end(1) :]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
