"""Digests, statistics, and the commands for them; `ls`, `head`, `consolidate`, `rm` and `completion`."""

from __future__ import annotations

import json
import os
import pty
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow.checks import convert, diff, digest
from zarrow.checks.digesting import tile_shape
from zarrow.checks.summarizing import summarize

COMMAND = Path(sys.executable).with_name("zarrow")


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100, **options
    )


def answered(answer: str, *arguments: object) -> int:
    """Run the command in a terminal, answer its question, and return the exit status."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdin=follower, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(follower)
        os.write(leader, answer.encode())
        process.communicate(timeout=100)
    os.close(leader)
    return process.returncode


VALUES: dict[str, Any] = {
    "floats": np.array([[0.5, np.nan, -0.0], [1, np.inf, 2]]),
    "complex": np.array([1 + 2j, complex(np.nan, -0.0)]),
    "integers": np.arange(12, dtype="i2").reshape(3, 4),
    "booleans": np.array([True, False, True]),
    "text": np.array(["a", "bc", ""], "T"),
    "fixed text": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "times": np.array(["2020-01-01", "NaT"], "M8[s]"),
    "empty": np.zeros((0, 3)),
    "scalar": np.float32(3),
}


@pytest.mark.parametrize("name", VALUES)
def test_digests_depend_on_elements_alone(tmp_path: Path, name: str) -> None:
    values = VALUES[name]
    rng = random.Random(name)
    one = zarrow.create_array(tmp_path / "a.zarr", data=values, attributes={"x": 1, "y": [1.5, None]})
    found = digest(one)
    for number in range(4):
        other = zarrow.create_array(
            tmp_path / f"{number}.zarr",
            data=values,
            chunks=tuple(rng.randint(1, max(1, extent)) for extent in values.shape),
            compressors=rng.choice(("zstd", "gzip", None)),
            zarr_format=(2, 3)[number % 2],
            attributes={"y": [1.5, None], "x": 1.0},
        )
        assert digest(other) == found
        assert list(diff(one, other)) == []
    if values.dtype.kind in "iufc" and values.size:
        swapped = values.astype(values.dtype.newbyteorder())
        other = zarrow.create_array(tmp_path / "b.zarr", data=swapped, attributes=dict(one.attrs))
        assert digest(other) == found
    other.attrs["x"] = 2
    assert digest(other) != found
    if values.size:
        changed = np.array(values)
        changed[(-1,) * changed.ndim] = {"U": "x", "T": "x", "S": b"x", "b": False}.get(values.dtype.kind, 1)
        other = zarrow.create_array(tmp_path / "c.zarr", data=changed, attributes=dict(one.attrs))
        assert digest(other) != found


def test_digests_of_masked_and_structured_arrays(tmp_path: Path) -> None:
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    same = np.ma.masked_array([1, 9, 3], [False, True, False])
    other = np.ma.masked_array([1, 2, 3], [False, False, True])
    found = [digest(zarrow.create_array(zarrow.MemoryStore(), data=each)) for each in (masked, same, other)]
    assert found[0] == found[1] != found[2]
    records = np.array([(1, -0.0), (2, np.nan)], "i4, f8")
    one = zarrow.create_array(zarrow.MemoryStore(), data=records, zarr_format=2, chunks=1)
    records["f1"][0] = 0
    two = zarrow.create_array(zarrow.MemoryStore(), data=records, zarr_format=2)
    assert digest(one) == digest(two)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_small_floats_have_one_nan_and_one_zero(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = getattr(ml_dtypes, name)
    zeros = (1.0, 1.0) if name == "float8_e8m0fnu" else (0.0, -0.0)
    one, other = (
        zarrow.create_array(zarrow.MemoryStore(), data=np.array([2, nan, zero], dtype))
        for nan, zero in zip((np.nan, -np.nan), zeros, strict=True)
    )
    assert list(diff(one, other)) == []
    assert digest(one) == digest(other)
    changed = zarrow.create_array(zarrow.MemoryStore(), data=np.array([4, np.nan, zeros[0]], dtype))
    (found,) = diff(one, changed)
    assert found.index == (0,)
    assert digest(one) != digest(changed)


@pytest.mark.parametrize("name", ["int2", "int4", "uint2", "uint4"])
def test_small_integers_have_digests(name: str) -> None:
    """They have no NaN."""
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    one, same, other = (
        zarrow.create_array(zarrow.MemoryStore(), data=np.array(values).astype(dtype), chunks=chunks)
        for values, chunks in (([0, 1, 1], 1), ([0, 1, 1], 3), ([0, 1, 0], 2))
    )
    assert digest(one) == digest(same) != digest(other)
    assert list(diff(one, same)) == []
    (found,) = diff(one, other)
    assert found.index == (2,)


def test_records_in_records_are_compared() -> None:
    dtype = np.dtype([("a", ">f4", (2,)), ("b", [("c", "<i2"), ("d", "S3")])])
    for count in (3, 0):
        values = np.zeros(count, dtype)
        one = zarrow.create_array(zarrow.MemoryStore(), data=values, zarr_format=2)
        assert list(diff(one, one)) == []
        if count:
            values["b"]["d"][2] = b"z"
            other = zarrow.create_array(zarrow.MemoryStore(), data=values, zarr_format=2)
            assert [each.index for each in diff(one, other)] == [(2,)]
            assert digest(one) != digest(other)


def test_differences_and_digests_agree_on_attributes_and_times() -> None:
    def stored(attributes: dict[str, Any]) -> zarrow.Array:
        times = np.array(["2020-01-01", "NaT"], "M8[s]")
        return zarrow.create_array(zarrow.MemoryStore(), data=times, attributes=attributes)

    for attributes in ({"x": float("nan")}, {"x": [1, 2.0]}):
        one, other = stored(attributes), stored(json.loads(json.dumps(attributes)))
        assert list(diff(one, other, rtol=0.1)) == []
        assert digest(one) == digest(other)
    one, other = stored({"x": 1}), stored({"x": True})
    assert [each.what for each in diff(one, other)] == ["attributes"]
    assert digest(one) != digest(other)


def test_digests_of_large_arrays_are_those_of_their_tiles(tmp_path: Path) -> None:
    """Arrays of several tiles and blocks, with chunks across them."""
    values = np.random.default_rng(0).integers(0, 100, (700, 90, 101)).astype("f4")
    assert tile_shape(values.shape, 4) != values.shape
    found = {
        digest(zarrow.create_array(tmp_path / f"{number}.zarr", data=values, chunks=chunks, compressors=None))
        for number, chunks in enumerate([(700, 10, 10), (1, 90, 101), (333, 33, 33)])
    }
    assert len(found) == 1


def test_digests_stay_the_same_between_versions() -> None:
    """People write digests down, so that a change of the algorithm needs another version in it."""
    root = zarrow.create_group(zarrow.MemoryStore(), attributes={"title": "rain"})
    root.create_array("m/x", data=np.arange(6.0).reshape(2, 3), dimension_names=["t", "x"])
    root.create_array("names", data=np.array(["a", "é"], "T"))
    assert digest(root) == "3f082d15e32e8b50d27ee31d6b7d3c6ea13913b7176593dd022a43c992690e65"


def test_digests_and_differences_do_not_see_the_format(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr", zarr_format=2, attributes={"title": "rain"})
    root.create_array("m/x", data=[1.0, 2.0, 9.0], dimension_names=["day"], fill_value=9, chunks=1)
    before = digest(root)
    shutil.copytree(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert convert(tmp_path / "b.zarr", remove_v2=True).is_complete
    assert digest(tmp_path / "b.zarr") == before
    assert list(diff(tmp_path / "a.zarr", tmp_path / "b.zarr")) == []
    (tmp_path / "b.zarr" / "m" / "x" / "zarr.json").write_text("{", encoding="utf-8")
    with pytest.raises(zarrow.MetadataError):
        digest(tmp_path / "b.zarr")


def test_statistics_are_those_of_numpy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for values in (
        rng.normal(1e6, 1, (50, 40)),
        rng.integers(-5, 5, (30, 7), dtype="i1"),
        rng.random((5, 5)) < 0.3,
        np.array([2**63, 2**64 - 1], "u8"),
        np.array([1.0, np.nan, np.inf, 3.0], "f4"),
        np.ma.masked_array([1, 2, 300], [False, False, True]),
    ):
        array = zarrow.create_array(zarrow.MemoryStore(), data=values, chunks=(3,) * values.ndim)
        found = summarize(array, bins=5)
        kept = np.ma.compressed(values)
        kept = kept[~np.isnan(kept)]
        finite = kept[np.isfinite(kept)].astype("f8")
        assert (found.smallest, found.largest) == (kept.min(), kept.max())
        assert (found.count, found.missing + found.nan) == (kept.size, values.size - kept.size)
        assert found.mean is not None
        assert found.std is not None
        assert np.isclose([found.mean, found.std], [finite.mean(), finite.std()]).all()
        expected, edges = np.histogram(finite, 5)
        assert (found.bins, found.edges) == (expected.tolist(), edges.tolist())
    assert summarize(zarrow.zeros((0,)), bins=3).mean is None
    with pytest.raises(zarrow.DataTypeError, match="statistics need numbers"):
        summarize(zarrow.create_array(zarrow.MemoryStore(), data=["a"]))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with an array, and a group with a table."""
    root = zarrow.create_group(tmp_path / "a.zarr", attributes={"title": "world"})
    root.create_array("rain", data=np.arange(60.0).reshape(5, 3, 4), chunks=2)
    root["table"] = {"x": [1, 2, 3], "name": ["a", "\x1b[31m", "c"]}
    return tmp_path / "a.zarr"


def test_ls(store: Path) -> None:
    assert command("ls", store).stdout == "rain\ntable/\n"
    assert command("ls", store, "rain").stdout == "rain\n"
    assert command("ls", "-l", store).stdout == (
        "float64  480 B  rain    (5, 3, 4)\ngroup           table/\n"
    )
    members = json.loads(command("ls", store, "--json").stdout)["members"]
    assert members["rain"]["shape"] == [5, 3, 4]
    (store / "rain" / "zarr.json").write_text("{", encoding="utf-8")
    ended = command("ls", "-l", store)
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[0].startswith("?")


def test_head(store: Path) -> None:
    assert command("head", store, "rain", "-n", 2).stdout == (
        "[0, 0:2, 0:4] of (5, 3, 4) float64\n  0  1  2  3\n  4  5  6  7\n"
    )
    assert command("head", store, "table", "--rows", 2).stdout == ("    name  x\n       a  1\n\\x1b[31m  2\n")
    assert json.loads(command("head", store, "table/x", "--json").stdout)["elements"] == [1, 2, 3]
    assert command("head", store).stdout.startswith("rain [0, 0:3, 0:4] of")
    zarrow.create_array(store, "none", shape=(0, 3), dtype="i4")
    zarrow.create_array(store, "one", data=np.float64(2))
    for name in ("none", "one"):
        ended = command("head", store, name)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_digest_and_statistics_of_the_command(store: Path) -> None:
    assert command("digest", store).stdout.strip() == digest(store)
    assert json.loads(command("digest", store, "rain", "--json").stdout)["path"] == "/rain"
    ended = command("info", store, "rain", "--stats", "--histogram", "--bins", 3)
    assert "  mean      29.5\n" in ended.stdout
    assert all(len(line) <= 80 for line in ended.stdout.splitlines()[-3:])
    assert ended.stdout.splitlines()[-1].endswith("█  20")
    ascii_only = command(
        "info", store, "rain", "--histogram", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert "####" in ascii_only.stdout
    described = json.loads(command("info", store, "rain", "--stats", "--json").stdout)
    assert described["statistics"]["count"] == 60
    assert command("info", store, "--stats").returncode == 2
    assert command("info", store, "table/name", "--stats").returncode == 1


def test_consolidate(store: Path) -> None:
    assert command("consolidate", store, "--dry-run").stdout == "metadata of 4 nodes would be consolidated\n"
    assert not zarrow.open_group(store)._is_consolidated()
    assert json.loads(command("consolidate", store, "--json").stdout) == {"nodes": 4, "is_consolidated": True}
    assert zarrow.open_group(store)._is_consolidated()
    assert command("consolidate", store, "rain").returncode == 1
    leader, follower = pty.openpty()
    subprocess.run(
        [COMMAND, "consolidate", str(store)],
        stdout=subprocess.DEVNULL,
        stderr=follower,
        check=True,
        timeout=100,
    )
    shown = os.read(leader, 10_000).decode()
    os.close(leader)
    os.close(follower)
    assert "consolidate" in shown and "100%  5 documents of 5 documents" in shown


def test_rm_asks_and_erases_nodes_only(store: Path) -> None:
    assert command("rm", store, "rain", input="").returncode == 2
    assert command("rm", store, "rain", "--dry-run").stdout == f"would erase the array {store}/rain\n"
    assert answered("n\n", "rm", store, "rain") == 1
    assert "rain" in zarrow.open_group(store)
    assert answered("y\n", "rm", store, "rain") == 0
    assert "rain" not in zarrow.open_group(store)
    zarrow.consolidate_metadata(store)
    assert json.loads(command("rm", store / "table" / "x", "--yes", "--json").stdout)["is_erased"]
    assert sorted(name for name, _ in zarrow.open_group(store).members(max_depth=None)) == [
        "table",
        "table/name",
    ]
    (store.parent / "folder").mkdir()
    (store.parent / "folder" / "file").touch()
    for wrong in ((store.parent / "folder",), (store, "nothing"), (store, "../folder")):
        assert command("rm", *wrong, "--yes").returncode == 1
    assert (store.parent / "folder" / "file").exists()
    assert command("rm", store.name, "--yes", cwd=store.parent).returncode == 0
    assert [path.name for path in store.parent.iterdir()] == ["folder"]


def test_rm_erases_links_and_not_their_targets(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "target.zarr", "g/y", data=[1.0])
    zarrow.create_array(tmp_path / "a.zarr", "x", data=[1.0])
    (tmp_path / "link").symlink_to("target.zarr")
    (tmp_path / "a.zarr" / "inner").symlink_to("../target.zarr")
    before = digest(tmp_path / "target.zarr")
    ended = command("rm", tmp_path / "link", "--yes")
    assert ended.stdout == f"erased the link {tmp_path / 'link'}, but not its target\n"
    assert json.loads(command("rm", tmp_path / "a.zarr", "inner", "--yes", "--json").stdout)["is_link"]
    assert [(tmp_path / "link").is_symlink(), (tmp_path / "a.zarr" / "inner").is_symlink()] == [False] * 2
    assert digest(tmp_path / "target.zarr") == before
    assert command("rm", tmp_path / "a.zarr" / "x" / "..", "--yes").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["target.zarr"]


@pytest.mark.parametrize("end", ["", "/"])
def test_rm_of_a_link_by_its_url_keeps_the_target(tmp_path: Path, end: str) -> None:
    zarrow.save(tmp_path / "target.zarr", x=np.arange(3))
    zarrow.save(tmp_path / "a b.zarr", y=np.arange(3))
    (tmp_path / "a link").symlink_to("target.zarr")
    (tmp_path / "a b.zarr" / "inner").symlink_to("../target.zarr")
    ended = command("rm", (tmp_path / "a link").as_uri() + end, "--yes", "--json")
    assert json.loads(ended.stdout)["is_link"]
    assert json.loads(command("rm", f"FILE://{tmp_path}/a%20b.zarr", "inner", "--yes", "--json").stdout)[
        "is_link"
    ]
    assert not (tmp_path / "a link").is_symlink()
    assert not (tmp_path / "a b.zarr" / "inner").is_symlink()
    assert zarrow.load(tmp_path / "target.zarr", "x").tolist() == [0, 1, 2]
    assert command("rm", (tmp_path / "a b.zarr").as_uri() + end, "--yes").returncode == 0
    assert not (tmp_path / "a b.zarr").exists()


def test_closed_streams_show_no_traceback(tmp_path: Path) -> None:
    for closed in (">&-", "2>&-"):
        ended = subprocess.run(
            ["sh", "-c", f'"$0" info "$1" {closed}', COMMAND, tmp_path / "none.zarr"],
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert ended.returncode == 1
        assert "Traceback" not in ended.stderr
        assert ended.stdout == ""


def test_the_bare_command_says_what_exists() -> None:
    ended = command()
    assert (ended.returncode, ended.stderr) == (0, "")
    for name in ("ls", "repair", "convert", "digest", "examples:"):
        assert name in ended.stdout
    assert all(len(line) <= 80 for line in ended.stdout.splitlines())


def test_completion_of_bash(tmp_path: Path) -> None:
    script = tmp_path / "zarrow.bash"
    script.write_text(command("completion", "bash").stdout, encoding="utf-8")

    def completed(*words: str) -> list[str]:
        program = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zarrow; echo "${COMPREPLY[@]}"'
        ended = subprocess.run(
            ["bash", "-c", program, script, *words], capture_output=True, text=True, check=True, timeout=60
        )
        assert ended.stderr == ""
        return ended.stdout.split()

    assert completed("zarrow", "co") == ["copy", "convert", "consolidate", "completion"]
    assert "--from" in completed("zarrow", "repair", "store", "--")
    assert completed("zarrow", "copy", "--format", "") == ["2", "3"]
    assert completed("zarrow", "completion", "f") == ["fish"]
    assert completed("zarrow", "verify", "s") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells_is_sound(tmp_path: Path, shell: str) -> None:
    ended = command("completion", shell)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "refill missing chunks" in ended.stdout
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(ended.stdout, encoding="utf-8")
        subprocess.run([shell, "-n", script], check=True, timeout=60)
