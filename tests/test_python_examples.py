"""The programs of `examples/python` print the same as their zarr-python originals."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent.parent / "examples" / "python").glob("*.py"))


def run(source: str, folder: Path) -> list[str]:
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_it_prints_the_same_as_the_original(program: Path, tmp_path: Path) -> None:
    source = program.read_text(encoding="utf-8")
    before, changes = re.subn(r"(?m)^( *)\S.*?  # was: (.*)$", r"\1\2", source)
    assert 1 <= changes <= 4 and "zarrow" not in before
    printed = run(source, tmp_path / "after")
    assert len(printed) >= 8 and printed == run(before, tmp_path / "before")


def test_there_are_three() -> None:
    assert len(PROGRAMS) == 3
