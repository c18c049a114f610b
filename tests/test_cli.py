"""The command, on stores that zarr-python wrote, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import zarr

import zarrow

COMMAND = Path(sys.executable).with_name("zarrow")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    root = zarr.open_group(folder, mode="w", attributes={"title": "<rain>"})
    grid = root.create_array(
        "model/grid",
        shape=(5, 6),
        chunks=(2, 3),
        dtype="f4",
        dimension_names=["row", None],
        attributes={"units": "°C"},
    )
    grid[:] = 1
    root.create_array("names", shape=(2,), dtype=str)
    return folder


def test_info_of_an_array(store):
    finished = run("info", store / "model" / "grid")
    assert (finished.returncode, finished.stderr) == (0, "")
    for part in (
        "(5, 6)",
        "float32",
        "(2, 3)",
        "zstd",
        "120 B",
        "version 3",
        "fill     0.0",
        "row, unnamed",
        '"°C"',
    ):
        assert part in finished.stdout, part


def test_info_of_a_group(store):
    finished = run("info", f"file://{store}")
    assert (
        finished.returncode == 0 and '"<rain>"' in finished.stdout and "names (2,) string" in finished.stdout
    )


def test_tree(store):
    assert (
        run("tree", store).stdout
        == """/
├── model
│   └── grid (5, 6) float32
└── names (2,) string
"""
    )
    assert "grid" not in run("tree", store, "--depth", 1).stdout


@pytest.mark.parametrize("subcommand", ["info", "tree"])
def test_errors_are_one_line_and_a_status(store, subcommand):
    finished = run(subcommand, store / "nothing")
    assert (finished.returncode, finished.stdout) == (1, "")
    assert (
        finished.stderr.startswith(f"zarrow {subcommand}: there is neither")
        and finished.stderr.count("\n") == 1
    )


def test_tree_of_an_array_is_an_error(store):
    finished = run("tree", store / "names")
    assert finished.returncode == 1 and "is an array" in finished.stderr


def test_wrong_use_shows_the_usage():
    for arguments in (
        [],
        ["nonesuch"],
        ["info"],
        ["tree", ".", "--depth", "-1"],
        ["tree", ".", "--depth", "x"],
    ):
        finished = run(*arguments)
        assert finished.returncode == 2 and finished.stderr.startswith("usage: zarrow")


def test_help_and_version():
    assert run("--version").stdout == f"zarrow {zarrow.__version__}\n"
    finished = run("--help")
    assert finished.returncode == 0 and all(name in finished.stdout for name in ("info", "tree", "demo"))
    assert "--masked-writer" in run("demo", "--help").stdout
