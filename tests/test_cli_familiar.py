"""Subcommands and options of other tools: the message is a line that works."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import zarrow
from zarrow.cli import main

CASES = [
    ("cat data.zarr/a", "zarrow head data.zarr/a"),
    ("cat data.zarr/a", "zarrow export data.zarr/a values.npy"),
    ("rechunk data.zarr/a out.zarr --chunks 1,3", "zarrow copy data.zarr/a out.zarr --chunks 1,3"),
    ("migrate v3 old.zarr --dry-run", "zarrow convert old.zarr"),
    ("migrate v3 old.zarr", "zarrow copy old.zarr TARGET --format 3"),
    ("convert old.zarr out.zarr --zarr-format 3", "zarrow copy old.zarr out.zarr --format 3"),
    ("cp data.zarr out.zarr", "zarrow copy data.zarr out.zarr"),
    ("validate data.zarr", "zarrow verify data.zarr"),
    ("ncdump data.zarr", "zarrow info data.zarr"),
    ("sha256 data.zarr", "zarrow digest data.zarr"),
    ("compare data.zarr old.zarr", "zarrow diff data.zarr old.zarr"),
    ("du data.zarr", "zarrow ls -l data.zarr"),
    ("list data.zarr", "zarrow ls data.zarr"),
    ("consolidate-metadata data.zarr", "zarrow consolidate data.zarr"),
]


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = np.arange(6, dtype="f4").reshape(2, 3)
    zarrow.save("data.zarr", a=values)
    zarrow.create_array("old.zarr", data=values, zarr_format=2)


def said_by(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as raised:
        main(line.split())
    assert raised.value.code == 2
    return capsys.readouterr().err


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize(("typed", "named"), CASES)
def test_the_line_that_an_unknown_verb_names_works(
    typed: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert named in said_by(typed, capsys)
    # Two stores may differ, which is the status 1.
    assert main(named.split()[1:]) in ((0, 1) if "diff" in named else (0,))


@pytest.mark.usefixtures("stores")
@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("inof data.zarr", "did you mean info?"),
        ("frobnicate", "zarrow --help lists them"),
        ("copy old.zarr out.zarr --zarr-format 3", "type --format"),
        ("copy old.zarr out.zarr --compressor zstd", "type --codec"),
        ("tree -L 2 data.zarr", "type --depth"),
        ("rm -rf data.zarr", "type --yes"),
        ("verify data.zarr --depe", "did you mean --deep?"),
        ("ls data.zarr --foo", "zarrow ls --help lists its options"),
        ("tree data.zarr a b", "unrecognized arguments: b: zarrow tree --help lists its arguments"),
    ],
)
def test_an_unknown_option_names_one_that_exists(
    typed: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_by(typed, capsys)
    assert named in said
    option = re.search(r"--[a-z-]+$", said.strip())
    if option is not None:
        with pytest.raises(SystemExit):
            main([typed.split()[0], "--help"])
        assert option[0] in capsys.readouterr().out
