"""Runs the examples in docstrings (of the stubs too) and in the pages: Python, and commands in a terminal.

1. A block ```console of a page has commands, each after `$ `, and what a terminal of 80 columns shows then.
   They run in the order of the page, in the folder of its Python examples.
2. Times, rates and rows of benchmarks are measured, so that their figures are not compared. Of a line that is
   drawn several times, such as a progress bar, the terminal shows the last state.
3. Examples of `zarrow.torch`, and blocks of a page that name PyTorch, need it. Such a page runs without these
   blocks, and whole in `make test-torch`.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import terminal_pictures

pytestmark = pytest.mark.small_files

ROOT = Path(__file__).parent.parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

BLOCK = re.compile(r"(?ms)^```console\n(.*?)^```$")
PYTHON = re.compile(r"(?ms)^```python\n(.*?)^```$")
MEASURED = re.compile(r"[\d.]+ (?:[nµm]?s\b|\w+/s)")
# A row of a benchmark has a time.
ROW = re.compile(r"(?m)^.*\d [nµm]?s\b.*$|^ +threads +calls.*$")
FIGURES = re.compile(r"(?:\s+(?:[\d.]+(?: [nµm]?s| \w*B)?|-))+|\s+")


def terminal(command: str) -> None:
    """Print what a terminal of 80 columns shows of a command (step 1)."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": folders, "PYTHONIOENCODING": "utf-8"}
    environment.pop("COLUMNS", None)
    shown = b""
    with subprocess.Popen(
        ["bash", "-c", command], stdin=follower, stdout=follower, stderr=follower, env=environment
    ):
        os.close(follower)
        # Linux reports the end of the output as an error.
        with contextlib.suppress(OSError):
            while part := os.read(leader, 1 << 16):
                shown += part
        os.close(leader)
    lines = shown.decode().replace("\r\n", "\n").split("\n")
    print("\n".join(line.rpartition("\r")[2].rstrip() for line in lines), end="")


class Parser(doctest.DocTestParser):
    """Finds Python examples, and commands as calls of `terminal`."""

    def get_examples(self, string: str, name: str = "<string>") -> list[doctest.Example]:
        found = super().get_examples(string, name)
        exact = {doctest.NORMALIZE_WHITESPACE: False}
        for block in BLOCK.finditer(string):
            line = string.count("\n", 0, block.start(1))
            for typed in re.split(r"(?m)^\$ ", block[1])[1:]:
                command, _, shown = typed.partition("\n")
                call = f"terminal({command!r})"
                found.append(doctest.Example(call, shown, lineno=line, options=exact))
                line += typed.count("\n")
        return sorted(found, key=lambda example: example.lineno)


class Checker(doctest.OutputChecker):
    """Compares outputs except for measured figures (step 2)."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if not optionflags & doctest.NORMALIZE_WHITESPACE:
            want, got = masked(want), masked(got)
        return super().check_output(want, got, optionflags)


def masked(shown: str) -> str:
    """Return an output without measured figures, and without the length of a bar that makes room for them."""
    rows = ROW.sub(lambda row: FIGURES.sub(" ", row[0]), shown)
    return re.sub(r"(?m)\[#+\](?=.* #/s$)", "[#]", MEASURED.sub("#/s", rows))


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each documented name of a source file with its docstring."""

    def visit(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield name, text
        for child in ast.iter_child_nodes(node):
            yield from visit(child, f"{name}.{getattr(child, 'name', '')}".rstrip("."))

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), path.name)


def without_pytorch(page: str) -> str:
    """Return a page with empty lines in place of blocks that need PyTorch."""
    return PYTHON.sub(lambda block: "\n" * block[0].count("\n") if names_pytorch(block) else block[0], page)


def names_pytorch(block: re.Match[str]) -> bool:
    return ">>>" in block[1] and re.search(r"\btorch\b", block[1]) is not None


def texts(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield names and texts with examples, and whether they need PyTorch (step 3)."""
    if path.suffix != ".md":
        yield from ((*named, path.parent.name == "torch") for named in docstrings(path))
        return
    page = path.read_text(encoding="utf-8")
    yield path.name, without_pytorch(page), False
    if any(map(names_pytorch, PYTHON.finditer(page))):
        yield f"{path.name} with PyTorch", page, True


def examples() -> Iterator[Any]:
    parser = Parser()
    sources = [
        *sorted(path for path in (ROOT / "python").rglob("*.py*") if path.suffix in {".py", ".pyi"}),
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "README.md",
    ]
    for path in sources:
        for name, text, needs_pytorch in texts(path):
            example = parser.get_doctest(text, {"terminal": terminal}, name, str(path), 0)
            if example.examples:
                yield pytest.param(example, id=name, marks=[pytest.mark.torch] * needs_pytorch)


@pytest.mark.parametrize("example", list(examples()))
def test_example(
    example: doctest.DocTest, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.get_closest_marker("torch"):
        pytest.importorskip("torch")
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
    if "zarrow.ray" in "".join(part.source for part in example.examples):
        pytest.importorskip("ray")
        monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
        warnings.simplefilter("ignore")  # Ray warns of its own settings
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    runner = doctest.DocTestRunner(Checker(), optionflags=OPTIONS)
    result = runner.run(example, out=report.append)
    assert result.failed == 0, "".join(report)


def test_the_page_of_remote_benchmarks_has_the_table_that_they_write() -> None:
    from benches.remote.changes_page import PROMISES

    assert PROMISES.strip() in (ROOT / "docs" / "remote.md").read_text()


def test_pictures_of_terminals_show_the_outputs_of_the_pages() -> None:
    blocks = terminal_pictures.blocks()
    drawn = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("terminal-*.svg")}
    assert len(blocks) >= 5
    assert drawn == {name: terminal_pictures.drawn(block) for name, block in blocks.items()}, (
        "the pictures are out of date: run `make pictures`"
    )
    for name, block in blocks.items():
        assert [line for line in block.splitlines() if len(line) > terminal_pictures.COLUMNS] == [], name
        assert len(drawn[name]) < 40_000, name
