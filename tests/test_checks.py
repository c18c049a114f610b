"""Verifying and comparing stores, and the commands `verify`, `diff` and `copy`."""

from __future__ import annotations

import io
import json
import os
import pty
import random
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import zarrow
from zarrow.api import progress
from zarrow.checks import diff, repairing, verify
from zarrow.checks.summarizing import summarize

pytestmark = pytest.mark.small_files

COMMAND = Path(sys.executable).with_name("zarrow")


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100)


LAYOUTS: dict[str, dict[str, Any]] = {
    "default": {},
    "shards": {"shards": (4, 6)},
    "dots": {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}},
    "v2 keys": {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}},
    "version 2": {"zarr_format": 2},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_planted_faults_are_found(tmp_path: Path, layout: str) -> None:
    """Each fault that is planted in a chunk is found, and nothing else."""
    rng = random.Random(layout)
    values = np.arange(1, 97.0).reshape(8, 12)
    zarrow.create_array(tmp_path / "a.zarr", "x", data=values, chunks=(2, 3), **LAYOUTS[layout])
    files = sorted(
        path for path in (tmp_path / "a.zarr" / "x").rglob("*") if path.is_file() and path.name[0] not in ".z"
    )
    assert verify(tmp_path / "a.zarr", deep=True).is_sound
    for number in range(20):
        path = rng.choice(files)
        good = path.read_bytes()
        bad = bytearray(good)
        if number % 3 == 0:
            bad = bad[: rng.randrange(len(bad))]
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bad)
        found = verify(tmp_path / "a.zarr", deep=True)
        if found.is_sound:
            # A bit that zstd ignores.
            np.testing.assert_array_equal(zarrow.open(tmp_path / "a.zarr")["x"][...], values)
        path.write_bytes(good)
        assert {each.path for each in found.corrupt} <= {"x"}
        assert all(each.chunk is not None for each in found.corrupt)
        assert found.stored == len(files)
    path.unlink()
    found = verify(tmp_path / "a.zarr", deep=True)
    assert (found.stored, found.missing, found.is_sound) == (len(files) - 1, 1, True)


def test_foreign_keys_and_broken_documents_are_found(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("model/x", data=np.ones((4, 4)), chunks=2)
    root.create_array("scalar", data=np.float64(1))
    root.create_array("old", data=np.ones(4), chunk_key_encoding={"name": "v2"})
    for name in ("model/x/c/0/2", "model/x/c/notes.txt", "model/x/0.0", "scalar/c", "old/3", "readme"):
        path = tmp_path / "a.zarr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("?", encoding="utf-8")
    (tmp_path / "a.zarr" / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "a.zarr" / "folder" / "deep" / "file").touch()
    found = verify(tmp_path / "a.zarr")
    assert sorted(found.foreign) == [
        "folder", "model/x/0.0", "model/x/c/0/2", "model/x/c/notes.txt", "old/3", "readme",
    ]  # fmt: skip
    assert (found.arrays, found.groups, found.stored, found.missing) == (3, 2, 6, 0)
    root.consolidate_metadata()
    (tmp_path / "a.zarr" / "old" / "zarr.json").write_text("{", encoding="utf-8")
    found = verify(tmp_path / "a.zarr")
    assert [(each.path, each.chunk) for each in found.corrupt] == [("old", None)]


CHECKED: dict[str, dict[str, Any]] = {
    "checksums": {"compressors": ["zstd", "crc32c"]},
    "shards": {"compressors": ["zstd", "crc32c"], "shards": (4, 6)},
    "gzip": {"compressors": ["gzip", "crc32c"]},
    "plain": {"compressors": ["crc32c"]},
}

# Changes of a sound document of version 3.
WRONG_METADATA: list[Callable[[dict[str, Any]], object]] = [
    lambda document: document.update(node_type="arr"),
    lambda document: document.pop("codecs"),
    lambda document: document.update(data_type="float99"),
    lambda document: document.update(data_type="float32"),
    lambda document: document.update(shape=[8, -12]),
    lambda document: document["chunk_grid"]["configuration"].update(chunk_shape=[2]),
    lambda document: document["codecs"].append({"name": "unheard-of"}),
    lambda document: document.update(zarr_format=4),
]


@pytest.mark.parametrize("layout", CHECKED)
def test_each_planted_fault_is_found(tmp_path: Path, layout: str) -> None:
    rng, store = random.Random(layout), tmp_path / "a.zarr"
    values = np.arange(1, 97.0).reshape(8, 12)
    zarrow.create_array(store, "x", data=values, chunks=(2, 3), **CHECKED[layout])
    document = store / "x" / "zarr.json"
    files = sorted(path for path in (store / "x" / "c").rglob("*") if path.is_file())
    sound = verify(store, deep=True)
    assert sound.is_sound and not sound.missing and not sound.foreign
    for number in range(50):
        kind, path = ("flip", "cut", "missing", "foreign", "metadata")[number % 5], rng.choice(files)
        if kind == "foreign":
            path = (
                rng.choice([store, store / "x", store / "x" / "c", files[0].parent]) / f"notes {number}.txt"
            )
        elif kind == "metadata":
            path = document
        good = path.read_bytes() if path.exists() else None
        match kind:
            case "flip":
                bad = bytearray(good or b"")
                bad[rng.randrange(len(bad))] ^= rng.randrange(1, 256)
                path.write_bytes(bad)
            case "cut":
                path.write_bytes((good or b"")[: rng.randrange(len(good or b""))])
            case "missing":
                path.unlink()
            case "foreign":
                path.write_text("?", encoding="utf-8")
            case "metadata":
                changed = json.loads(good or b"")
                WRONG_METADATA[number // 5 % len(WRONG_METADATA)](changed)
                path.write_text(json.dumps(changed), encoding="utf-8")
        found = verify(store, deep=True)
        match kind:
            case "missing":
                assert found.missing > 0, number
            case "foreign":
                assert found.foreign == [str(path.relative_to(store))], number
            case _:
                assert {each.path for each in found.corrupt} == {"x"}, (number, kind)
        if good is None:
            path.unlink()
        else:
            path.write_bytes(good)
    assert verify(store, deep=True) == sound


def test_sound_arrays_are_sound(tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(1000):
        shape = tuple(rng.randint(0, 9) for _ in range(rng.randint(0, 3)))
        values = np.random.default_rng(number).integers(0, 3, shape).astype(rng.choice(("i2", "f8", "U3")))
        chunks = tuple(rng.randint(1, 4) for _ in shape)
        options: dict[str, Any] = {"zarr_format": rng.choice((2, 3))}
        if options["zarr_format"] == 3 and shape and rng.random() < 0.5:
            options["shards"] = tuple(extent * rng.randint(1, 3) for extent in chunks)
        if rng.random() < 0.5:
            options["compressors"] = rng.choice([None, "gzip", "zstd"])
        store = tmp_path / f"{number}.zarr" if number % 4 == 0 else zarrow.MemoryStore()
        array = zarrow.create_array(store, data=values, chunks=chunks, **options)
        found = verify(array, deep=True)
        assert (found.corrupt, found.foreign) == ([], []), number
        if "shards" not in options:
            assert found.stored == array.nchunks_initialized
            assert found.stored + found.missing == array.nchunks


def test_memory_stores_are_verified() -> None:
    store = zarrow.MemoryStore()
    zarrow.save(store, x=np.ones(5), names=["a", "b"])
    found = verify(store, deep=True)
    assert (found.arrays, found.stored, found.is_sound) == (2, 2, True)


def test_chunks_that_are_not_read_are_not_called_corrupt(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(8), chunks=2)
    chunks = tmp_path / "a.zarr" / "c"
    (chunks / "0").write_bytes(b"garbage")
    (chunks / "2").unlink()
    (chunks / "2").symlink_to("2")
    found = verify(array, deep=True)
    assert [each.chunk for each in found.corrupt] == [(0,)]
    assert [(each.chunk, each.kind) for each in found.unread] == [((2,), "io")]
    assert not found.is_sound
    assert "1 corrupt, 0 foreign keys, 1 not read" in str(found)
    done = zarrow.checks.repair(tmp_path / "a.zarr")
    assert [each.chunk for each in done.mended] == [(0,)]
    assert [each.chunk for each in done.left] == [(2,)]


def test_differences_are_found(tmp_path: Path) -> None:
    values = np.arange(12.0).reshape(3, 4)
    values[0, 0] = np.nan
    one, other = (zarrow.create_group(tmp_path / name) for name in ("one.zarr", "other.zarr"))
    for group, chunks in ((one, 2), (other, 3)):
        group.create_array("same", data=values, chunks=chunks, attributes={"units": "K"})
        group.create_array("words", data=np.array(["a", "b"]))
        group.create_array("times", data=np.array(["2020", "NaT"], "M8[s]"))
    assert list(diff(one, other)) == []
    other["same"][1, 1:3] = [-1, -2]
    other["same"].attrs["units"] = "C"
    other["words"][1] = "c"
    other.create_array("more", data=[1])
    del other["times"]
    other.create_array("times", data=np.ones(3, "i4"), dimension_names=["t"])
    found = {(each.path, each.what): each for each in diff(one, other)}
    assert set(found) == {
        ("same", "attributes"), ("same", "elements"), ("words", "elements"), ("more", "node"),
        ("times", "shape"), ("times", "data type"), ("times", "dimension names"),
    }  # fmt: skip
    elements = found["same", "elements"]
    assert (elements.index, elements.count, elements.left, elements.right) == ((1, 1), 2, 5.0, -1.0)
    assert found["words", "elements"].right == "c"
    near = zarrow.create_array(zarrow.MemoryStore(), data=values + 1e-9)
    assert [each.what for each in diff(one["same"], near)] == ["attributes", "elements"]
    assert [each.what for each in diff(one["same"], near, atol=1e-6)] == ["attributes"]


def test_missing_elements_differ_from_values() -> None:
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    one = zarrow.create_array(zarrow.MemoryStore(), data=masked)
    other = zarrow.create_array(
        zarrow.MemoryStore(), data=np.ma.masked_array([1, 2, 3], False), dtype=one.data_type
    )
    (found,) = diff(one, other)
    assert (found.what, found.index) == ("elements", (1,))


def test_commands_report_by_status_and_json(tmp_path: Path) -> None:
    values = np.arange(24).reshape(4, 6)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(1, 6), dimension_names=("day", "x"))
    copied = command("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--chunks", "day=4,x=2", "--json")
    assert copied.returncode == 0, copied.stderr
    assert json.loads(copied.stdout) == {"done": 1, "before": 0, "left": 0, "units": 1}
    assert zarrow.open_array(tmp_path / "b.zarr").chunks == (4, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]
    assert command("diff", tmp_path / "a.zarr", tmp_path / "b.zarr").stdout == ""
    assert command("verify", tmp_path / "b.zarr", "--deep").returncode == 0
    (tmp_path / "b.zarr" / "c" / "0" / "1").write_bytes(b"?")
    found = command("verify", tmp_path / "b.zarr", "--deep", "--json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["corrupt"][0]["chunk"] == [0, 1]
    assert command("diff", tmp_path / "a.zarr", tmp_path / "b.zarr").returncode == 1
    again = command("copy", tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert again.returncode == 1
    assert "overwrite" in again.stderr
    shown = command("copy", tmp_path / "a.zarr", tmp_path / "c.zarr", "--codec", "none", "--dry-run")
    assert shown.stdout.startswith("copy: 1 units")
    assert not (tmp_path / "c.zarr").exists()
    for wrong in (["--chunks", "a"], ["--memory", "1X"], ["--job", "4/4"]):
        assert command("copy", tmp_path / "a.zarr", tmp_path / "c.zarr", *wrong).returncode == 2


def test_jobs_of_a_copy_share_the_work(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=np.arange(64), chunks=1)
    arguments = ("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--memory", "1", "--job")
    for job in ("0/3", "2/3"):
        assert command(*arguments, job).returncode == 0
    assert "0 left" in command(*arguments, "1/3").stdout
    assert zarrow.load(tmp_path / "b.zarr").tolist() == list(range(64))


@pytest.mark.parametrize("width", [3, 20, 40, 80])
def test_a_bar_fits_its_line(width: int) -> None:
    for done, total, rate in ((0, 100, 0.0), (1 << 30, 10 << 40, 1e6), (5, 5, 3.0), (0, 0, 0.0)):
        text = progress.line("copy", done, total, rate, width)
        assert len(text) == width - 1
    assert progress.line("copy", 50, 100, 10.0, 80).startswith("copy [")
    assert progress.line("copy", 50, 100, 10.0, 80).rstrip().endswith("50%  50 B of 100 B  10 B/s  0:05 left")


def test_a_bar_is_drawn_in_terminals_only() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as stream, progress.Bar("verify", stream=stream) as bar:
        bar(1, 2)
        bar(2, 2)
    drawn = os.read(leader, 10_000).decode()
    os.close(leader)
    assert drawn.startswith("\rverify")
    assert "100%" in drawn
    read, written = os.pipe()
    with os.fdopen(written, "w") as stream, progress.Bar("verify", stream=stream) as bar:
        bar(2, 2)
    with os.fdopen(read) as result:
        assert result.read() == ""


def test_the_rate_of_a_bar_counts_the_first_report() -> None:
    for resumes in (False, True):
        leader, follower = pty.openpty()
        with (
            os.fdopen(follower, "w") as stream,
            progress.Bar("digest", stream=stream, resumes=resumes) as bar,
        ):
            bar(1 << 40, 1 << 40)
        drawn = os.read(leader, 10_000).decode()
        os.close(leader)
        # Work that was done before the bar began has no rate.
        assert ("iB/s" in drawn) is not resumes


STRUCTURED = np.dtype([("a", "i4"), ("b", ">f8"), ("c", "f4", (2,))])

ELEMENTS: dict[str, tuple[Any, Any]] = {
    "text": (np.array(["a", "b"], "T"), np.array(["a", "c"], "T")),
    "structured": (
        np.array([(1, np.nan, (0, 1)), (2, 2.0, (3, 4))], STRUCTURED),
        np.array([(1, np.nan, (0, 1)), (2, 2.0, (3, 5))], STRUCTURED),
    ),
    "bytes": (np.array([b"a", b"\xff"]), np.array([b"a", b"\xfe"])),
    "complex": (np.array([1, 1j]), np.array([1, complex(np.inf, np.nan)])),
    "times": (np.array(["NaT", "2020-01-01T00:00:00.000000001"], "M8[ns]"), np.array(["NaT"] * 2, "M8[ns]")),
    "durations": (np.array([1, 2], "m8[s]"), np.array([1, 3], "m8[s]")),
    "large": (np.array([0, 2**64 - 1], "u8"), np.array([0, 2**64 - 2], "u8")),
    "zeros": (np.array([0.0, 1]), np.array([-0.0, 2])),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_of_each_type_are_compared(tmp_path: Path, name: str) -> None:
    left, right = ELEMENTS[name]
    version: Any = 2 if name == "structured" else 3
    zarrow.create_array(tmp_path / "a.zarr", data=left, zarr_format=version)
    zarrow.create_array(tmp_path / "b.zarr", data=right, zarr_format=version)
    assert list(diff(tmp_path / "a.zarr", tmp_path / "a.zarr")) == []
    (found,) = diff(tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert (found.what, found.index, found.count) == ("elements", (1,), 1)
    ended = command("diff", tmp_path / "a.zarr", tmp_path / "b.zarr", "--json")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert json.loads(ended.stdout)["differences"][0]["index"] == [1]
    if name == "times":
        assert found.left == "2020-01-01T00:00:00.000000001"


def test_wrong_arguments_and_closed_outputs_give_one_line(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", np.arange(10))
    for wrong, status in (
        (["copy", "--chunks", "5,5"], 2),
        (["copy", "--chunks", "day=5"], 2),
        (["diff", "--rtol", "nan"], 2),
        (["diff", "--atol", "-1"], 2),
    ):
        ended = command(wrong[0], tmp_path / "a.zarr", tmp_path / "b.zarr", *wrong[1:])
        assert ended.returncode == status
        assert "Traceback" not in ended.stderr
    assert command("copy", tmp_path / "a.zarr", "").returncode == 2
    ended = command("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--dry-run", "--json")
    assert json.loads(ended.stdout)["units"] == 1
    ended = command("copy", tmp_path / "a.zarr", tmp_path / "b.zip")
    assert ended.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]
    for output in (">&-", "> /dev/full"):
        closed = subprocess.run(
            f'"{COMMAND}" verify a.zarr {output}', shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        assert "Traceback" not in closed.stderr


@pytest.mark.parametrize("columns", [1, 40, 200])
def test_a_bar_fits_its_own_terminal_and_is_erased_before_other_text(columns: int) -> None:
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, columns))
    with os.fdopen(follower, "w") as stream, progress.Bar("verify", stream=stream) as bar:
        bar(2, 2)
        bar.clear()
        stream.write("text")
        stream.flush()
        drawn = ""
        while not drawn.endswith("text"):
            drawn += os.read(leader, 10_000).decode()
    os.close(leader)
    empty, line, erased, text = drawn.split("\r")
    assert (empty, len(line), erased, text) == ("", columns - 1, " " * (columns - 1), "text")


WITH_CHECKSUM: dict[str, Any] = {"chunk_shape": [1, 3], "codecs": [{"name": "bytes"}, {"name": "crc32c"}]}
INNER: dict[str, Any] = {"name": "sharding_indexed", "configuration": WITH_CHECKSUM}
NESTED_SHARDS = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": [INNER]}}


@pytest.mark.parametrize(
    "options",
    [
        {"compressors": [{"name": "crc32c"}]},
        {"compressors": [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}]},
        {"compressors": [{"id": "zlib", "level": 1}, {"id": "adler32"}], "zarr_format": 2},
        {"filters": [{"id": "fletcher32"}], "compressors": None, "zarr_format": 2},
        {"compressors": [{"name": "crc32c"}], "shards": (4, 6)},
        {"serializer": NESTED_SHARDS, "compressors": None},
    ],
    ids=["crc32c", "zstd", "adler32", "fletcher32", "shards", "nested shards"],
)
def test_checksums_are_checked_without_deep(tmp_path: Path, options: dict[str, Any]) -> None:
    values = np.arange(96.0).reshape(8, 12)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 3), **options)
    assert zarrow.verify(tmp_path / "a.zarr").is_sound
    files = [path for path in (tmp_path / "a.zarr").rglob("*") if path.is_file() and path.name[0] not in ".z"]
    bad = bytearray(files[0].read_bytes())
    bad[8] ^= 1
    files[0].write_bytes(bad)
    (found,) = zarrow.verify(tmp_path / "a.zarr").corrupt
    assert found.kind in ("checksum", "corrupt")


def test_the_command_names_a_broken_root(tmp_path: Path) -> None:
    for name in ("a.zarr", "copy.zarr"):
        zarrow.create_group(tmp_path / name, attributes={"title": "rain"})
    (tmp_path / "a.zarr" / "zarr.json").write_text("[")
    found = command("verify", tmp_path / "a.zarr")
    assert found.returncode == 1 and "1 corrupt" in found.stdout and "corrupt  /:" in found.stdout
    assert command("repair", tmp_path / "a.zarr").returncode == 1
    assert command("repair", tmp_path / "a.zarr", "--from", tmp_path / "copy.zarr").returncode == 0
    assert command("verify", tmp_path / "a.zarr").returncode == 0


def test_links_to_groups_above_and_deep_groups_end(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("x", data=[1])
    root.create_group("sub")
    for name in ("one", "two", "sub/three"):
        (tmp_path / "a.zarr" / name).symlink_to(tmp_path / "a.zarr")
    found = json.loads(command("verify", tmp_path / "a.zarr", "--json").stdout)
    assert sorted(each["path"] for each in found["corrupt"]) == ["one", "sub/three", "two"]
    assert (found["arrays"], found["groups"], found["foreign"]) == (1, 2, [])
    document = (tmp_path / "a.zarr" / "sub" / "zarr.json").read_bytes()
    folder = tmp_path / "deep.zarr"
    for _ in range(1200):
        folder.mkdir()
        (folder / "zarr.json").write_bytes(document)
        folder /= "a"
    assert verify(tmp_path / "deep.zarr").groups == 1200


def test_names_in_a_store_cannot_forge_lines(tmp_path: Path) -> None:
    zarrow.create_group(tmp_path / "a.zarr")
    (tmp_path / "a.zarr" / "x\n  corrupt  y: \x1b[31m").touch()
    assert len(str(verify(tmp_path / "a.zarr")).splitlines()) == 2
    assert "\x1b" not in command("verify", tmp_path / "a.zarr").stdout


class Terminal(io.StringIO):
    """A stream of text that is taken for a terminal."""

    def isatty(self) -> bool:
        return True


def test_long_calls_show_a_bar_for_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(600.0).reshape(20, 30), chunks=10)
    zarrow.create_array(tmp_path / "old.zarr", data=[1, 2], zarr_format=2)
    pandas = pytest.importorskip("pandas")
    zarrow.save(tmp_path / "table.zarr", pandas.DataFrame({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]}))
    npy, arrow = tmp_path / "a.npy", tmp_path / "table.arrow"
    calls: dict[str, Callable[[Any], object]] = {
        "verify": lambda progress: verify(array, deep=True, progress=progress),
        "diff": lambda progress: list(diff(array, array, progress=progress)),
        "digest": lambda progress: zarrow.checks.digest(array, progress=progress),
        "statistics": lambda progress: summarize(array, bins=2, progress=progress),
        "convert": lambda progress: zarrow.checks.convert(tmp_path / "old.zarr", progress=progress),
        "export": lambda progress: zarrow.files.export_file(array, npy, overwrite=True, progress=progress),
        "import": lambda progress: zarrow.files.import_file(
            npy, zarrow.MemoryStore(), overwrite=True, progress=progress
        ),
        "export ": lambda progress: zarrow.files.export_file(
            tmp_path / "table.zarr", arrow, overwrite=True, progress=progress
        ),
        "pyramid": lambda progress: zarrow.ome.pyramid(
            array, tmp_path / "image.zarr", axes="yx", levels=2, overwrite=True, progress=progress
        ),
        "save": lambda progress: zarrow.ome.save(
            tmp_path / "levels.zarr", [array, array[::2, ::2]], axes="yx", overwrite=True, progress=progress
        ),
        "to_parquet": lambda progress: zarrow.open_group(tmp_path / "table.zarr").to_parquet(
            tmp_path / "table.parquet", progress=progress
        ),
    }
    for label, call in calls.items():
        with pytest.raises(TypeError, match="progress is a function, or True"):
            call(5)
        with monkeypatch.context() as terminal:
            stream = Terminal()
            terminal.setattr(sys, "stderr", stream)
            call(True)
        last = stream.getvalue().rpartition("\r")[2]
        assert last.startswith(label.strip()) and "100%" in last and last.endswith("\n"), (label, last)
        with monkeypatch.context() as terminal:
            stream = Terminal()
            terminal.setattr(sys, "stderr", stream)
            call(False)
        assert not stream.getvalue()


def test_a_bar_of_a_repair_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(8), chunks=2)
    (tmp_path / "a.zarr/c/1").write_bytes(b"damaged")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    zarrow.checks.repair(array, progress=True)
    assert "100%" in stream.getvalue() and stream.getvalue().endswith("\n")
    assert array[...].tolist() == [0, 1, 0, 0, 4, 5, 6, 7]


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4", "uint4"])
def test_statistics_of_numbers_of_ml_dtypes(name: str) -> None:
    values = np.array([1, 2, 3, 5, 1], "f4").astype(getattr(ml_dtypes, name))
    found = summarize(zarrow.create_array(zarrow.MemoryStore(), data=values, chunks=2), bins=4)
    assert (found.count, found.smallest, found.largest) == (5, 1, 5)
    assert found.mean == pytest.approx(2.4) and found.std == pytest.approx(np.std([1, 2, 3, 5, 1]))
    assert found.bins == [2, 1, 1, 1]


@pytest.mark.parametrize("bins", [1, 10])
@pytest.mark.parametrize(
    "values",
    [
        np.full(3, 2**64 - 1, "u8"),
        np.full(3, -(2**63)),
        np.array([2**63 - 1, -(2**63)]),
        np.full(3, 1e300),
        np.full(3, 5e-324),
        np.array([1.0, np.nextafter(1.0, 2.0)]),
        np.array([-1.7e308, 1.7e308]),
        np.full(3, np.finfo("f8").max),
        np.full(3, -np.finfo("f4").max, "f4"),
        np.full(3, np.inf),
    ],
)
def test_any_range_has_a_histogram(values: Any, bins: int) -> None:
    found = summarize(zarrow.create_array(zarrow.MemoryStore(), data=values, chunks=2), bins=bins)
    assert found.count == len(values)
    if np.isfinite(values).all():
        assert found.bins is not None and found.edges is not None
        assert (len(found.bins), sum(found.bins)) == (bins, len(values))
        assert np.isfinite(found.edges).all() and sorted(set(found.edges)) == found.edges
        assert found.edges[0] <= float(values.min()) and float(values.max()) <= found.edges[-1]


@pytest.mark.parametrize("dtype", ["c8", "M8[s]", "m8[s]", "U3", "V4", [("x", "f4")]])
def test_statistics_refuse_other_types(dtype: Any) -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.zeros(2, dtype))
    with pytest.raises(zarrow.DataTypeError, match="statistics need numbers"):
        summarize(array)


def test_missing_chunks_are_found_in_all_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.arange(1, 41).reshape(8, 5)
    array, _ = (
        zarrow.create_array(tmp_path / name, data=data, chunks=(1, 5)) for name in ("a.zarr", "copy.zarr")
    )
    for row in (0, 2, 3, 6, 7):
        (tmp_path / f"a.zarr/c/{row}/0").unlink()
    monkeypatch.setattr(repairing, "_SLAB", 3)
    done = zarrow.checks.repair(array, tmp_path / "copy.zarr", missing=True)
    assert [each.chunk for each in done.mended] == [(row, 0) for row in (0, 2, 3, 6, 7)]
    assert array[...].tolist() == data.tolist()
