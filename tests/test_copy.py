"""`zarrow.copy` and `zarrow copy`: selections, types, copies byte for byte, kills and faults."""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from test_verbs import command
from zarrow import jobs
from zarrow.checks import digest

VALUES = np.arange(200 * 16, dtype="f8").reshape(200, 16)


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def build(folder: Path, zarr_format: Any = 3) -> zarrow.Group:
    """Create a group with arrays of many kinds, with consolidated metadata."""
    root = zarrow.create_group(folder, attributes={"title": "é"}, zarr_format=zarr_format)
    root.create_group("empty", attributes={"x": [1, None]})
    root.create_array("m/rain", data=VALUES[:50], chunks=(7, 5), dimension_names=("day", "x"))
    root.create_array(
        "day", data=np.arange(50), chunks=8, dimension_names=("day",), attributes={"units": "d"}
    )
    root.create_array("sparse", shape=(50,), chunks=5, dtype="i2", fill_value=9)[13] = 4
    root.create_array("text", data=np.array(["a", "bé", ""], "T"))
    root.create_array("records", data=np.array([(1, 2.5), (3, 4.5)], "i4, f8"), chunks=1)
    root.create_array("scalar", data=np.float32(3))
    root.create_array("column-major", data=VALUES[:9].astype("f4"), chunks=(4, 4), order="F")
    if zarr_format == 3:
        masked = np.ma.masked_array(np.arange(10.0), np.arange(10) % 3 == 0)
        root.create_array("masked", data=masked, chunks=3, missing="optional")
        root.create_array("sharded", data=VALUES[:8], chunks=(2, 2), shards=(4, 4))
    root.consolidate_metadata()
    return zarrow.open_group(folder, mode="r")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("threads", [1, 3])
def test_raw_copies_are_equal_byte_for_byte(tmp_path: Path, zarr_format: int, threads: int) -> None:
    build(tmp_path / "a.zarr", zarr_format)
    zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", raw=True, threads=threads)
    assert contents(tmp_path / "b.zarr") == contents(tmp_path / "a.zarr")
    zarrow.copy(tmp_path / "a.zarr", tmp_path / "c.zarr", "below/it", raw=True)
    assert contents(tmp_path / "c.zarr" / "below" / "it") == contents(tmp_path / "a.zarr")
    memory = zarrow.MemoryStore()
    zarrow.copy(tmp_path / "a.zarr", memory, raw=True, threads=threads)
    shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path / "a.zarr")
    for number, source in enumerate((memory, tmp_path / "a.zip")):
        zarrow.copy(source, tmp_path / f"{number}.zarr", raw=True)
        assert contents(tmp_path / f"{number}.zarr") == contents(tmp_path / "a.zarr")
    assert not list(tmp_path.glob("*.jobs"))


def test_raw_copies_have_all_chunks_of_other_grids(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        for name, separator in (("a.zarr", "/"), ("b.zarr", ".")):
            array = zarr.create_array(
                tmp_path / name,
                shape=(10, 4),
                dtype="i4",
                chunks=[[3, 3, 4], [1, 3]],
                chunk_key_encoding={"name": "default", "separator": separator},
            )
            array[2:] = 7
            zarrow.copy(tmp_path / name, tmp_path / "copy" / name, raw=True)
            assert contents(tmp_path / "copy" / name) == contents(tmp_path / name)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_recoded_copies_have_equal_digests(tmp_path: Path, zarr_format: int) -> None:
    root = build(tmp_path / "a.zarr", zarr_format)
    expected = digest(root)
    cases: list[dict[str, Any]] = [
        {},
        {"chunks": {"day": 20}, "threads": 3},
        {"compressors": "gzip", "memory_nbytes": 1},
        {"order": "F"},
    ]
    for number, options in enumerate(cases):
        copied = zarrow.copy(root, tmp_path / f"{number}.zarr", **options)
        assert digest(copied) == expected
    if zarr_format == 2:
        assert digest(zarrow.copy(root, zarrow.MemoryStore(), zarr_format=3)) == expected
        return
    sharded = zarrow.copy(root["sharded"], zarrow.MemoryStore(), zarr_format=2)
    assert isinstance(sharded, zarrow.Array)
    assert (sharded.chunks, sharded.shards, sharded.zarr_format) == ((2, 2), None, 2)
    np.testing.assert_array_equal(sharded[...], VALUES[:8])


@pytest.mark.parametrize(
    ("zarr_format", "options"),
    [
        (2, {"compressors": {"id": "blosc", "cname": "lz4"}, "filters": {"id": "delta", "dtype": "<i4"}}),
        (2, {"dtype": ">i4", "order": "F", "compressors": None}),
        (3, {"compressors": {"name": "zstd", "configuration": {"level": 9, "checksum": False}}}),
        (3, {"dtype": ">i4", "compressors": ["gzip", "crc32c"], "order": "F"}),
        (3, {"compressors": {"name": "gzip", "configuration": {"level": 2}}, "shards": (4, 4)}),
    ],
)
def test_a_copy_with_other_chunks_keeps_the_codecs_in_both_versions(
    zarr_format: Any, options: dict[str, Any]
) -> None:
    values = np.arange(64).reshape(8, 8)
    source = zarrow.create_array(
        zarrow.MemoryStore(),
        data=values.astype(options.get("dtype", "i4")),
        chunks=(2, 2),
        zarr_format=zarr_format,
        **{name: option for name, option in options.items() if name != "dtype"},
    )
    for changed in ({"zarr_format": 2}, {"zarr_format": 3}, {}, {"fill_value": 1}):
        copied = zarrow.copy(source, zarrow.MemoryStore(), chunks=(4, 4), shards=None, **changed)
        assert isinstance(copied, zarrow.Array)
        assert copied.zarr_format == changed.get("zarr_format", zarr_format) and copied.chunks == (4, 4)
        assert (copied.compressors, copied.serializer, copied.order) == (
            source.compressors,
            source.serializer,
            source.order,
        )
        if source.order == "C":
            assert copied.filters == source.filters
        np.testing.assert_array_equal(copied[...], values)


def test_a_copy_to_version_2_refuses_codecs_that_it_lacks() -> None:
    source = zarrow.create_array(zarrow.MemoryStore(), data=np.ones(8, bool), chunks=4, serializer="packbits")
    with pytest.raises(zarrow.MetadataError, match="packbits"):
        zarrow.copy(source, zarrow.MemoryStore(), zarr_format=2, chunks=2)
    copied = zarrow.copy(source, zarrow.MemoryStore(), zarr_format=2, chunks=2, serializer="auto")
    np.testing.assert_array_equal(copied[...], source[...])


@pytest.mark.parametrize("seed", range(40))
def test_selections_are_those_of_numpy(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(0, 30) for _ in range(rng.randint(0, 3)))
    values = np.random.default_rng(seed).random(shape)
    source = zarrow.create_array(
        tmp_path / "a.zarr", data=values, chunks=tuple(rng.randint(1, 9) for _ in shape)
    )
    ends = (None, *range(-32, 33))
    select = tuple(
        slice(rng.choice(ends), rng.choice(ends), rng.choice((None, 1, 2, 5)))
        for _ in range(rng.randint(0, len(shape)))
    )
    chunks = tuple(rng.randint(1, 9) for _ in shape)
    found = zarrow.copy(
        source, tmp_path / "b.zarr", select=select, chunks=chunks, memory_nbytes=rng.choice((1, 10**6))
    )
    np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), values[select])
    assert isinstance(found, zarrow.Array)
    assert found.chunks == chunks


def test_selections_and_types_of_groups_are_for_members_that_have_them(tmp_path: Path) -> None:
    root = build(tmp_path / "a.zarr")
    copied = zarrow.copy(root, tmp_path / "b.zarr", select={"day": slice(3, 40, 2)}, dtype="f4")
    assert isinstance(copied, zarrow.Group)
    np.testing.assert_array_equal(copied["m/rain"][...], VALUES[3:40:2].astype("f4"))
    assert copied["day"][...].tolist() == list(range(3, 40, 2))
    types = {name: str(copied[name].dtype) for name in ("m/rain", "day", "sparse", "masked", "records")}
    assert types["m/rain"] == types["masked"] == "float32"
    assert (types["day"], types["sparse"]) == ("int64", "int16")
    assert copied["masked"][...].tolist() == root["masked"][...].tolist()
    assert digest(copied["text"]) == digest(root["text"])


def test_wrong_options_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    root = build(tmp_path / "a.zarr")
    wrong: list[dict[str, Any]] = [
        {"raw": True, "chunks": 3},
        {"raw": True, "select": {"day": slice(1)}},
        {"select": (slice(1),)},
        {"select": {"month": slice(1)}},
        {"select": {"day": slice(None, None, -1)}},
        {"select": {"day": 3}},
        {"dtype": "M8[s]"},
        {"chunkz": 3},
        {"if_exists": "replace"},
        {"threads": 0},
        {"progress": 3},
        {"memory_nbytes": 0},
    ]
    for options in wrong:
        with pytest.raises((ValueError, TypeError)):
            zarrow.copy(root, tmp_path / "b.zarr", **options)
    with pytest.raises(zarrow.DataTypeError, match="does not convert float64 to int32"):
        zarrow.copy(root["m/rain"], tmp_path / "b.zarr", dtype="i4")
    with pytest.raises(ValueError, match="3 axes"):
        zarrow.copy(root["m/rain"], tmp_path / "b.zarr", select=[slice(1)] * 3)
    assert not (tmp_path / "b.zarr").exists()
    assert not (tmp_path / "b.zarr.jobs").exists()


def test_what_exists_is_kept_replaced_or_an_error(tmp_path: Path) -> None:
    root = build(tmp_path / "a.zarr")
    target = tmp_path / "b.zarr"
    other = zarrow.create_group(target, attributes={"mine": 1})
    other.create_array("day", data=[5])
    with pytest.raises(zarrow.NodeExistsError, match="'day'"):
        zarrow.copy(root, target)
    assert sorted(zarrow.open_group(target)) == ["day"]
    # A kill after the setup: the same call does the rest.
    plan = jobs.copy(root, target)
    plan.setup(skip_existing=True)
    copied = zarrow.copy(root, target, if_exists="skip")
    assert isinstance(copied, zarrow.Group)
    assert copied["day"][...].tolist() == [5]
    assert copied.attrs == {"mine": 1, "title": "é"}
    assert digest(copied["m"]) == digest(root["m"])
    for raw in (False, True):
        copied = zarrow.copy(root, target, if_exists="overwrite", raw=raw)
        assert isinstance(copied, zarrow.Group)
        assert all(digest(copied[name]) == digest(root[name]) for name in root)
    assert contents(target) == contents(tmp_path / "a.zarr")
    with pytest.raises(zarrow.NodeExistsError):
        zarrow.copy(root, target, raw=True)
    zarrow.copy(root, target, raw=True, if_exists="skip")
    assert not (tmp_path / "b.zarr.jobs").exists()


def test_an_array_in_the_place_of_a_group_is_an_error(tmp_path: Path) -> None:
    root = build(tmp_path / "a.zarr")
    for options in ({}, {"if_exists": "overwrite"}, {"if_exists": "skip"}):
        zarrow.create_group(tmp_path / "b.zarr", overwrite=True).create_array("m", data=[5])
        with pytest.raises(zarrow.ZarrowError):
            zarrow.copy(root, tmp_path / "b.zarr", **options)  # type: ignore[arg-type]
        assert zarrow.open(tmp_path / "b.zarr")["m"][...].tolist() == [5]


@pytest.mark.parametrize("raw", [False, True])
def test_a_copy_onto_its_source_is_refused(tmp_path: Path, raw: bool) -> None:
    root = build(tmp_path / "a.zarr")
    before = contents(tmp_path / "a.zarr")
    (tmp_path / "link.zarr").symlink_to(tmp_path / "a.zarr")
    rain = root["m/rain"]
    for source, target, path in (
        (root, tmp_path / "a.zarr", ""),
        (root, tmp_path / "link.zarr", ""),
        (rain, tmp_path / "a.zarr", "m"),
        (rain, tmp_path / "link.zarr", "m/rain"),
        (rain, tmp_path / "a.zarr", "m/rain/copy"),
    ):
        with pytest.raises((ValueError, zarrow.ZarrowError)):
            zarrow.copy(source, target, path, raw=raw, if_exists="overwrite")
        assert contents(tmp_path / "a.zarr") == before
    below = zarrow.copy(root, tmp_path / "a.zarr", "below", raw=raw)
    assert isinstance(below, zarrow.Group)
    assert set(below) == set(root) - {"below"}
    assert digest(below["m"]) == digest(root["m"])


def test_an_overwriting_copy_ends_others_into_the_same_target(tmp_path: Path) -> None:
    """Finished units of the first copy do not count for a later one."""
    source = zarrow.create_array(tmp_path / "a.zarr", data=np.zeros(100), chunks=10)
    first = jobs.copy(source, tmp_path / "b.zarr", memory_nbytes=1)
    first.setup()

    def overwrite(done: int, _: int) -> None:
        if done == 5:
            zarrow.copy(source, tmp_path / "b.zarr", memory_nbytes=2000, if_exists="overwrite")

    with pytest.raises(jobs.UnfinishedError, match="was deleted"):
        first.run(first.job(0, 1), progress=overwrite)
    source[...] = 7.0
    zarrow.copy(source, tmp_path / "b.zarr", memory_nbytes=1, if_exists="overwrite")
    assert (np.asarray(zarrow.load(tmp_path / "b.zarr")) == 7).all()
    first.setup(overwrite=True)
    first.run(first.job(0, 1))
    first.finish()
    source[...] = 8.0
    zarrow.copy(source, tmp_path / "b.zarr", memory_nbytes=1, if_exists="overwrite")
    assert (np.asarray(zarrow.load(tmp_path / "b.zarr")) == 8).all()


def test_a_source_that_changes_ends_the_copy(tmp_path: Path) -> None:
    source = zarrow.create_array(tmp_path / "a.zarr", data=np.zeros(100), chunks=10)
    for raw in (False, True):
        plan = jobs.copy(source, tmp_path / "b.zarr", raw=raw, memory_nbytes=1)
        plan.setup()
        source.resize(source.size + 10)
        other = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", raw=raw, memory_nbytes=1)
        with pytest.raises(zarrow.NodeExistsError):
            other.complete()
        plan.forget()
        zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", raw=raw, if_exists="overwrite")
        assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
        shutil.rmtree(tmp_path / "b.zarr")


class Counted(MutableMapping[str, bytes]):
    """A store that counts reads and writes of chunks, and fails when it was written `left` times."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.read = 0
        self.written: list[str] = []
        self.left = 1 << 30

    def __getitem__(self, key: str) -> bytes:
        value = self.stored[key]
        self.read += len(value) * ("/c/" in f"/{key}")
        return value

    def __setitem__(self, key: str, value: bytes) -> None:
        if "/c/" in f"/{key}":
            self.left -= 1
            if self.left < 0:
                raise OSError("the disk was pulled out")
            self.written.append(key)
        self.stored[key] = bytes(value)

    def __delitem__(self, key: str) -> None:
        del self.stored[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.stored))

    def __len__(self) -> int:
        return len(self.stored)


OPTIONS: dict[str, dict[str, Any]] = {
    "raw": {"raw": True},
    "recompress": {"compressors": "gzip"},
    "rechunk": {"chunks": (200, 2)},
    "select": {"select": (slice(10, 190, 3),), "chunks": (30, 4)},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_sources_are_read_once_and_targets_written_once(name: str) -> None:
    source, target = Counted(), Counted()
    zarrow.create_array(source, data=np.random.default_rng(0).random((200, 16)), chunks=(10, 16))
    stored = sum(len(value) for key, value in source.stored.items() if "c/" in key)
    zarrow.copy(source, target, memory_nbytes=100_000, **OPTIONS[name])
    assert stored * 0.8 <= source.read <= stored * 1.2
    assert len(target.written) == len(set(target.written))


@pytest.mark.parametrize("name", ["raw", "recompress"])
def test_failed_copies_repeat_one_unit(name: str) -> None:
    """A failure at 20 random points repeats the units that it interrupted, and nothing else."""
    rng = random.Random(name)
    source, target, ledger = Counted(), Counted(), zarrow.MemoryStore()
    zarrow.create_array(source, data=np.random.default_rng(0).random((200, 16)), chunks=(2, 16))
    stored = sum(len(value) for key, value in source.stored.items() if "c/" in key)
    options = {"memory_nbytes": 1, "ledger": ledger, **OPTIONS[name]}
    failures = 0
    while True:
        target.left = rng.randint(1, 6) if failures < 20 else 1 << 30
        try:
            zarrow.copy(source, target, **options)
            break
        except (zarrow.ZarrowError, OSError):
            failures += 1
    assert failures >= 12
    assert source.read <= stored * 1.2
    assert len(target.written) == len(set(target.written)) == 100
    assert digest(target) == digest(source)


# Every other copy is killed between two units, and the others at any point: enough on any machine.
KILLED = """
    import os, random, signal, sys
    import zarrow

    raw, threads = sys.argv[1] == "raw", int(sys.argv[2])
    rng = random.Random(sys.argv[1])
    options = {"raw": True} if raw else {"chunks": (3, 8), "compressors": "gzip"}

    def killed(at, delay):
        '''Copy in a child that is killed after the given unit; return whether it was.'''
        units = 0

        def progress(done, total):
            nonlocal units
            units += 1
            if units == at and delay:
                signal.setitimer(signal.ITIMER_REAL, delay)
            elif units == at:
                os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if not child:
            zarrow.copy("a.zarr", "b.zarr", memory_nbytes=1, threads=threads, progress=progress, **options)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status == 0 or os.WIFSIGNALED(status), status
        return status != 0

    kills = 0
    while kills < 20 and killed(rng.randint(1, 5), (kills % 2) * rng.random() * 0.001):
        kills += 1
    print(kills)
"""


@pytest.mark.parametrize(("name", "threads"), [("raw", 1), ("recode", 1), ("recode", 3)])
def test_killed_copies_resume_to_an_equal_result(tmp_path: Path, name: str, threads: int) -> None:
    build(tmp_path / "a.zarr")
    program = "\n".join(line[4:] for line in KILLED.splitlines())
    ended = subprocess.run(
        [sys.executable, "-c", program, name, str(threads)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= 5, ended.stdout
    options: dict[str, Any] = {"raw": True} if name == "raw" else {"chunks": (3, 8), "compressors": "gzip"}
    zarrow.copy(tmp_path / "a.zarr", tmp_path / "c.zarr", memory_nbytes=1, **options)
    if (tmp_path / "b.zarr.jobs").exists() or not (tmp_path / "b.zarr").exists():
        zarrow.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", memory_nbytes=1, **options)
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    found = {key: value for key, value in contents(tmp_path / "b.zarr").items() if ".zarrow-" not in key}
    assert found == contents(tmp_path / "c.zarr")
    assert not (tmp_path / "b.zarr.jobs").exists()


@pytest.mark.parametrize("raw", [False, True])
def test_a_full_disk_leaves_a_copy_that_resumes(tmp_path: Path, raw: bool) -> None:
    values = np.random.default_rng(0).random((8, 10_000))
    values[:4] = 0
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(1, 10_000))
    options = ["--raw"] if raw else []
    arguments = ("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--memory", "1", *options)

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    ended = command(*arguments, preexec_fn=limited)
    assert ended.returncode == 1
    assert ended.stderr.startswith("zarrow copy: ")
    assert command(*arguments, "--resume").returncode == 0
    np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


def test_the_command_says_what_it_would_do(tmp_path: Path) -> None:
    zarrow.create_array(
        tmp_path / "a.zarr", data=VALUES, chunks=(10, 16), dimension_names=("day", "x"), compressors=None
    )
    arguments = ("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--chunks", "day=200,x=1")
    ended = command(*arguments, "--memory", "4K", "--dry-run")
    assert "is read 8.00 times (1.00 times with 32 KiB of memory); one pass has 8.00 reads" in ended.stdout
    found = json.loads(command(*arguments, "--memory", "4K", "--dry-run", "--json").stdout)["arrays"][""]
    assert (found["units"], found["block"], found["memory_nbytes"]) == (8, [200, 2], 3200)
    assert (found["reads_of_each_byte"], found["one_pass"]) == ([8.0], {"reads": 8.0, "writes": 1.0})
    assert command(*arguments, "--resume").returncode == 1
    assert not (tmp_path / "b.zarr").exists()
    ended = command(*arguments, "--select", "day=10:20", "--dtype", "f4", "--order", "F", "--jobs", 2)
    assert (ended.returncode, ended.stderr) == (0, "")
    np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), VALUES[10:20].astype("f4"))
    assert command(*arguments).returncode == 1
    assert json.loads(command(*arguments, "--if-exists", "skip", "--json").stdout)["before"] > 0
    assert zarrow.open(tmp_path / "b.zarr").shape == (10, 16)
    for wrong in (("--raw",), ("--select", "day"), ("--select", "month=1:2"), ("--jobs", "0")):
        assert command(*arguments, *wrong).returncode == 2
    ended = command(*arguments, "--if-exists", "overwrite", "--dtype", "i2")
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False)


def test_jobs_of_a_finished_copy_say_so(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(10, 16))
    ended = command("copy", tmp_path / "a.zarr", "s3://bucket")
    assert (ended.returncode, "pass --ledger, another store" in ended.stderr) == (2, True)
    arguments: tuple[Any, ...] = ("copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--memory", "1")
    arguments += ("--ledger", tmp_path / "ledger")
    for job in ("0/2", "1/2"):
        assert command(*arguments, "--job", job).returncode == 0
    assert [path.name for path in tmp_path.glob("*")].count("ledger") == 1
    assert not (tmp_path / "b.zarr.jobs").exists()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert "finished before: delete" in command(*arguments, "--job", "0/2").stderr
    zarrow.open(tmp_path / "a.zarr", mode="r+")[...] = 5
    assert command(*arguments, "--if-exists", "overwrite").returncode == 0
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")


def test_an_interrupted_command_resumes(tmp_path: Path) -> None:
    values = np.zeros((20_000, 4))
    values[::7] = 1
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(200, 4), shards=(20_000, 4))
    arguments = ["copy", "a.zarr", "b.zarr", "--codec", "gzip", "--chunks", "4,4", "--memory", "1"]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("zarrow"), *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and len(list(tmp_path.glob("b.zarr/c/*"))) < 20:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 130
    done = len([key for key in contents(tmp_path / "b.zarr") if key.startswith("c/")])
    assert done < 5000
    ended = command(*arguments, "--resume", "--json", cwd=tmp_path)
    assert json.loads(ended.stdout)["before"] >= 18
    np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), values)


def test_progress_of_a_copy(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=VALUES, chunks=(10, 16))
    told: list[tuple[int, int]] = []
    zarrow.copy(
        tmp_path / "a.zarr",
        tmp_path / "b.zarr",
        memory_nbytes=1,
        threads=3,
        progress=lambda done, total: told.append((done, total)),
    )
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (20, 20)

    def stop(done: int, _: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    for threads in (1, 3):
        target = tmp_path / f"{threads}.zarr"
        with pytest.raises(KeyboardInterrupt):
            zarrow.copy(tmp_path / "a.zarr", target, memory_nbytes=1, threads=threads, progress=stop)
        zarrow.copy(tmp_path / "a.zarr", target, memory_nbytes=1, threads=2)
        assert digest(target) == digest(tmp_path / "a.zarr")
    assert not list(tmp_path.glob("*.jobs"))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("name", "configuration", "changed"),
    [
        ("gzip", {"level": 7}, {}),
        ("blosc", {"cname": "lz4", "clevel": 3, "shuffle": "shuffle", "typesize": 8}, {"typesize": 4}),
        (None, {}, {}),
    ],
)
def test_a_copy_of_another_type_keeps_the_compressors(
    zarr_format: Any, name: str | None, configuration: dict[str, Any], changed: dict[str, int]
) -> None:
    compressors = [] if name is None else [{"name": name, "configuration": configuration}]
    kept = [{"name": each["name"], "configuration": configuration | changed} for each in compressors]
    source = zarrow.create_array(
        zarrow.MemoryStore(), data=VALUES, chunks=(50, 16), compressors=compressors, zarr_format=zarr_format
    )
    for options in ({}, {"chunks": (25, 8)}):
        copied = zarrow.copy(source, zarrow.MemoryStore(), dtype="f4", **options)
        found = [
            {**each, "configuration": {k: v for k, v in each["configuration"].items() if k != "blocksize"}}
            for each in copied.compressors
        ]
        assert found == kept and copied.dtype == "f4"
        assert np.array_equal(copied[...], VALUES)
    recoded = zarrow.copy(source, zarrow.MemoryStore(), dtype="f4", compressors="zstd")
    assert [each["name"] for each in recoded.compressors] == ["zstd"]


def test_a_copy_of_another_type_has_no_filters_of_the_old_one() -> None:
    source = zarrow.create_array(zarrow.MemoryStore(), data=VALUES, chunks=50, serializer="pcodec")
    copied = zarrow.copy(source, zarrow.MemoryStore(), dtype="f4")
    assert copied.serializer["name"] == "bytes" and [each["name"] for each in copied.compressors] == ["zstd"]
    shuffled = zarrow.create_array(
        zarrow.MemoryStore(),
        data=VALUES,
        chunks=50,
        compressors=[{"name": "numcodecs.shuffle", "configuration": {"elementsize": 8}}, "gzip"],
    )
    copied = zarrow.copy(shuffled, zarrow.MemoryStore(), dtype="f4")
    assert copied.compressors[0]["configuration"] == {"elementsize": 4} and np.array_equal(
        copied[...], VALUES
    )
