"""The command, on stores written by zarr-python, in a separate process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrow
from zarrow import cli
from zarrow.cli import terminal

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
        finished.stderr.startswith(f"zarrow {subcommand}: no Zarr array or group here")
        and finished.stderr.count("\n") == 1
    )


def test_tree_of_an_array_is_an_error(store):
    finished = run("tree", store / "names")
    assert finished.returncode == 1 and "is an array" in finished.stderr


@pytest.mark.parametrize("subcommand", ["info", "tree"])
def test_a_node_is_named_beside_its_store(store, subcommand):
    finished = run(subcommand, store, "model")
    assert finished.returncode == 0 and "grid (5, 6) float32" in finished.stdout


def test_json_is_for_programs(store):
    array = json.loads(run("info", store, "model/grid", "--json").stdout)
    assert array["kind"] == "array" and array["shape"] == [5, 6] and array["attributes"] == {"units": "°C"}
    assert [codec["name"] for codec in array["codecs"]] == ["bytes", "zstd"] and array["nbytes"] == 120
    tree = json.loads(run("tree", store, "--json").stdout)
    assert tree["attributes"] == {"title": "<rain>"} and list(tree["members"]) == ["model", "names"]
    assert tree["members"]["model"]["members"]["grid"] == array
    assert "members" not in json.loads(run("tree", store, "--json", "--depth", 1).stdout)["members"]["model"]


def test_members_that_cannot_be_opened_say_why_in_json(store, tmp_path):
    shutil.copytree(store, tmp_path / "copy")
    (tmp_path / "copy" / "names" / "zarr.json").write_text("{}")
    members = json.loads(run("tree", tmp_path / "copy", "--json").stdout)["members"]
    assert members["names"]["kind"] == "metadata" and members["model"]["kind"] == "group"


def test_python_runs_it_as_a_module(store):
    command = [sys.executable, "-m", "zarrow", "tree", store]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert finished.stdout == run("tree", store).stdout


def test_a_terminal_without_unicode_gets_ascii(store):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for arguments, expected in ((("tree",), "|-- model"), (("info", "model/grid"), "\\xb0C")):
        command = [COMMAND, arguments[0], store, *arguments[1:]]
        finished = subprocess.run(command, capture_output=True, env=environment, check=True)
        assert expected in finished.stdout.decode("ascii") and not finished.stderr


@pytest.mark.parametrize("arguments", [("tree",), ("info",), ("tree", "--json")])
def test_closed_output_prints_no_traceback(store, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        command = [COMMAND, arguments[0], store, *arguments[1:]]
        finished = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (finished.returncode, finished.stderr) == (1, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [(), ("--help",), ("--version",), ("copy", "--help"), ("-m",)])
def test_help_that_cannot_be_printed_is_a_failure(arguments, unbuffered):
    """Also of `python -m zarrow.jobs`."""
    command = [COMMAND, *arguments] if arguments != ("-m",) else [sys.executable, "-m", "zarrow.jobs", "-h"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert finished.returncode != 0 and "Traceback" not in finished.stderr
    assert finished.stderr == "zarrow: No space left on device\n" or arguments == ("-m",)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        finished = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, env=environment)
    assert finished.returncode != 0 and "Traceback" not in finished.stderr


def test_an_error_that_cannot_be_printed_keeps_its_status(store):
    for arguments, status in (
        (["info", store / "none"], 1),
        (["nonesuch"], 2),
        (["copy", store, ""], 2),
    ):
        with Path("/dev/full").open("w") as full:
            finished = subprocess.run([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=full)
        assert finished.returncode == status


def test_wrong_use_shows_the_usage():
    for arguments in (
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


def test_json_has_no_numbers_that_json_does_not_have(tmp_path):
    root = zarrow.create_group(tmp_path, attributes={"missing": float("nan"), "most": [float("-inf")]})
    root.create_array("x", shape=2, dtype="f4", attributes={"limit": float("inf")})

    def refuse(name):
        raise ValueError(name)

    for subcommand in ("info", "tree"):
        described = json.loads(run(subcommand, tmp_path, "--json").stdout, parse_constant=refuse)
        assert described["attributes"] == {"missing": "NaN", "most": ["-Infinity"]}
    array = json.loads(run("info", tmp_path, "x", "--json").stdout, parse_constant=refuse)
    assert array["attributes"] == {"limit": "Infinity"}


def test_tree_of_an_array_names_the_array(store):
    finished = run("tree", store, "model/grid")
    assert finished.returncode == 1 and f"{store}/model/grid is an array" in finished.stderr


@pytest.mark.parametrize("arguments", [("info", "model/grid"), ("tree",)])
def test_lines_fit_a_terminal_of_80_columns(tmp_path, arguments, monkeypatch):
    root = zarrow.create_group(tmp_path / "store")
    root.create_array("model/grid", shape=(5, 6), dtype="f4", attributes={"units": "K", "name": "rain"})
    monkeypatch.chdir(tmp_path)
    finished = run(arguments[0], "store", *arguments[1:])
    assert finished.returncode == 0 and max(map(len, finished.stdout.splitlines())) <= 80


WITHOUT_OTHERS = """
import sys, importlib.util
known = importlib.util.find_spec
hidden = ("zarr", "PIL", "torch", "jax", "pyarrow", "polars", "h5py")
importlib.util.find_spec = lambda name, *rest: None if name in hidden else known(name, *rest)
from zarrow.cli import main
status = main(["demo", "--folder", sys.argv[1]])
assert not set(hidden) & set(sys.modules), set(hidden) & set(sys.modules)
sys.exit(status)
"""


def test_the_demo_generates_its_data(tmp_path):
    """The demo runs as from a wheel in an environment with only NumPy."""
    command = [sys.executable, "-c", WITHOUT_OTHERS, tmp_path / "world"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (finished.returncode, finished.stderr) == (0, "")
    printed = finished.stdout.replace(str(tmp_path), "")
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert "999.0 999.0" in finished.stdout and "DIFFERENT" not in finished.stdout
    assert finished.stdout.count("np.asarray(a)") == 8 and "MaskedVariable" in finished.stdout
    assert zarrow.open(tmp_path / "world/world.zarr")["turbidity/zstd"].shape == (12, 2160, 4320)


def test_messages_name_options_of_the_command(tmp_path: Path) -> None:
    """And no parameters of Python."""
    zarrow.save(tmp_path / "a.zarr", {"x": [1, 2, 3]})
    np.save(tmp_path / "x.npy", np.arange(3))
    for arguments in (
        ("export", tmp_path / "a.zarr/x", tmp_path / "x.npy"),
        ("import", tmp_path / "x.npy", tmp_path / "a.zarr", "--path", "x"),
        ("import", tmp_path / "x.npy", tmp_path / "a.zarr"),
    ):
        refused = run(*arguments)
        assert refused.returncode == 1 and "pass --overwrite to replace it" in refused.stderr
        assert "overwrite=True" not in refused.stderr and "create_array" not in refused.stderr
        assert run(*arguments, "--overwrite").returncode == 0


def test_messages_name_what_a_user_of_the_command_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    zarrow.create_group("world.zarr").create_array("rain", data=np.ones((2, 3)), dimension_names=("a", "b"))
    zarrow.save("rain.zarr", np.ones((2, 3)))
    for typed, status, shown in (
        ("ls world.zarr/rain", 0, "world.zarr/rain\n"),
        ("pyramid world.zarr", 1, "pass the array of the first level, such as 'world.zarr/rain'"),
        ("pyramid world.zarr/rain x", 2, 'pass --axes with names such as "tczyx"'),
        ("export world.zarr/rain rain.xyz", 2, "pass --format, one of npy"),
        ("copy world.zarr x --overwrite --if-exists skip", 2, "pass only one of the two"),
        ("export world.zarr rain.npy --dry-run", 1, "'/' is a group, expected an array"),
        ("export world.zarr/rain b.npy --dry-run", 0, "would write b.npy from the array world.zarr/rain"),
        ("export world.zarr/rain a/b.npy --dry-run", 1, "zarrow export: No such folder: 'a'\n"),
        ("export world.zarr/rain a/b.npy", 1, "zarrow export: No such folder: 'a'\n"),
        ("export world.zarr a/b.parquet", 1, "zarrow export: No such folder: 'a'\n"),
        (
            "copy rain.zarr s3://a --passes 2 --ledger s3://b",
            2,
            "the whole bucket s3://a has no place beside it for the intermediate arrays of two passes: "
            "pass --passes 1\n",
        ),
        ("pyramid rain.zarr", 2, "in no group: pass TARGET, the store of a new image"),
        (
            "import world.zarr/zarr.json x --format raw",
            2,
            "pass --shape and --dtype, such as --shape 100,200",
        ),
        ("export world.zarr/rain a.npy --dry-run --json", 0, '"format": "npy"'),
        ("export world.zarr a.parquet --dry-run", 0, "from the group world.zarr\n"),
    ):
        assert cli.main(typed.split()) == status, typed
        found = capsys.readouterr()
        assert shown in found.out + found.err, typed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rain.zarr", "world.zarr"]


def test_long_lines_continue_below_in_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = "  corrupt  rain chunk (0, 1): corrupt data in a/path-with-hyphens-" + "x" * 50
    terminal.show(line)
    assert capsys.readouterr().out == line + "\n"
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    terminal.show(line)
    first, second, last = capsys.readouterr().out.splitlines()
    assert (first, second) == ("  corrupt  rain chunk (0, 1): corrupt", "      data in")
    assert last == "      a/path-with-hyphens-" + "x" * 50
    with pytest.raises(SystemExit):
        cli.main(["copy", "a", "b", "--chunks", "wrong"])
    message = capsys.readouterr().err.partition("SOURCE TARGET\n")[2].splitlines()
    assert max(map(len, message)) <= 40 and message[-1].startswith("    ")
