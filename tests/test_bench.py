"""Benchmarks of a store: their measurements and ends, and that they change nothing."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import zarrow
from zarrow.checks import bench
from zarrow.checks.benchmarking import Run
from zarrow.checks.process_io import bytes_read
from zarrow.checks.timings import Benchmark, Timing, duration

COMMAND = Path(sys.executable).with_name("zarrow")
NAMES = ["open", "first scan", "scan", "chunks", "elements"]


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=100, **options
    )


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the names, times and bytes of all files and folders."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write a group with arrays of several kinds."""
    path = tmp_path / "a.zarr"
    root = zarrow.create_group(path)
    root.create_array("m/sharded", data=np.arange(96.0).reshape(8, 12), chunks=(2, 3), shards=(4, 6))
    root.create_array("old", data=np.arange(7), chunks=3)
    root.create_array("text", data=["a", "bc", "def"])
    root.create_array("scalar", data=np.float32(1))
    root.create_array("none", shape=(0, 3), dtype="i4")
    root.create_array("unwritten", shape=(5,), dtype="i2")
    return path


def test_all_kinds_of_reads_are_measured_and_nothing_is_changed(store: Path) -> None:
    before = state(store)
    found = bench(store, seconds=0.2)
    assert state(store) == before
    assert list(dict.fromkeys(timing.name for timing in found.timings)) == NAMES
    threads = {timing.threads for timing in found.timings}
    assert threads == {1, zarrow.num_threads()}
    assert (found.arrays, found.nbytes) == (6, found.nbytes_sampled)
    first = next(timing for timing in found.timings if timing.name == "first scan")
    assert first.calls == 5
    assert first.nbytes >= 96 * 8 + 7 * 8 + 6 + 4 + 10
    for timing in found.timings:
        assert 0 <= timing.percentile(50) <= timing.percentile(99) <= timing.percentile(100) <= timing.seconds
    if sys.platform == "linux":
        stored = sum(path.stat().st_size for path in store.rglob("c*/*") if path.is_file())
        assert first.nbytes_stored is not None and first.nbytes_stored >= stored / 2
        assert first.nbytes_from_disk is not None


@pytest.mark.parametrize("path", ["scalar", "none", "unwritten", "text", "m/sharded"])
def test_each_array_is_measured_alone(store: Path, path: str) -> None:
    found = bench(zarrow.open(store, path), seconds=0.05)
    assert (found.arrays, found.path) == (1, path)
    names = {timing.name for timing in found.timings}
    assert names == ({"open"} if path == "none" else set(NAMES))
    assert str(found).startswith("1 array, ")


def test_other_stores_are_measured(tmp_path: Path, store: Path) -> None:
    memory = zarrow.MemoryStore()
    zarrow.save(memory, [1, 2])
    found = bench(memory, seconds=0.05)
    assert all(timing.nbytes_stored is None for timing in found.timings)
    assert "unknown how much a cache" in str(found)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for file in store.rglob("*"):
            archive.write(file, file.relative_to(store))
    assert bench(tmp_path / "a.zip", seconds=0.05).arrays == 6
    assert bench(zarrow.create_group(tmp_path / "empty.zarr"), seconds=0.05).arrays == 0


def test_rectilinear_grids_are_measured(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        zarr.create_array(tmp_path / "a.zarr", shape=(10,), chunks=[[3, 7]], dtype="i4")[:] = 1
    array = zarrow.open_array(tmp_path / "a.zarr", mode="r")
    assert array.chunks is None
    assert {timing.name for timing in bench(array, seconds=0.05).timings} == set(NAMES)


def test_the_sample_is_bounded_and_read_again(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(10**9,), chunks=(10**6,), dtype="i1")
    found = bench(array, max_nbytes=1, seconds=1)
    assert found.nbytes == 10**9
    assert 10**6 <= found.nbytes_sampled < 10**8
    scans = [timing for timing in found.timings if "scan" in timing.name]
    assert {timing.nbytes for timing in scans} == {found.nbytes_sampled}
    assert all(timing.nbytes <= 2 * 10**6 for timing in found.timings if timing.name == "chunks")


def test_the_number_of_threads_is_kept(store: Path) -> None:
    before = zarrow.num_threads()
    try:
        for threads in (1, 3):
            zarrow.set_num_threads(threads)
            found = bench(store, seconds=0.05)
            assert {timing.threads for timing in found.timings} == {1, threads}
            assert zarrow.num_threads() == threads
    finally:
        zarrow.set_num_threads(before)


def test_progress_is_reported(store: Path) -> None:
    told: list[tuple[int, int]] = []
    bench(store, seconds=0.1, progress=lambda *both: told.append(both))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_wrong_limits_are_refused(store: Path) -> None:
    for limits in ({"seconds": 0}, {"seconds": float("nan")}, {"max_nbytes": 0}):
        with pytest.raises(ValueError, match=next(iter(limits))):
            bench(store, **limits)  # type: ignore[arg-type]
    for arguments in (("--seconds", "0"), ("--seconds", "x"), ("--seconds", "inf"), ("--bytes", "0")):
        assert command("bench", store, *arguments).returncode == 2


def test_a_damaged_chunk_ends_it_with_what_was_measured(store: Path) -> None:
    damaged = store / "old" / "c" / "1"
    damaged.write_bytes(b"garbage")
    before = zarrow.num_threads()
    run = Run(store, max_nbytes=1 << 20, seconds=0.2)
    with pytest.raises(zarrow.CodecError):
        run.complete()
    assert zarrow.num_threads() == before
    assert "open" in {timing.name for timing in run.found.timings}
    ended = command("bench", store, "--seconds", "0.2")
    assert ended.returncode == 1
    assert "\nopen " in ended.stdout
    assert ended.stderr.startswith("zarrow bench: corrupt data")
    assert command("bench", store, "--seconds", "0.2", "--json").stdout == ""


def test_a_store_that_is_erased_meanwhile_is_an_error(store: Path) -> None:
    run = Run(store, max_nbytes=1 << 20, seconds=0.2)
    zarrow.create_group(store, overwrite=True)
    with pytest.raises(zarrow.ZarrowError):
        run.complete()


def test_the_command_prints_a_table_or_json(store: Path) -> None:
    ended = command("bench", store, "--seconds", "0.2")
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("6 arrays, ")
    assert lines[1].split() == "threads calls p50 p99 elements/s stored/s from disk".split()
    assert all(len(line) <= 80 for line in lines)
    ended = command("bench", store, "m/sharded", "--seconds", "0.2", "--bytes", "1M", "--json")
    found = json.loads(ended.stdout)
    assert (found["path"], found["nbytes"], found["is_interrupted"]) == ("/m/sharded", 768, False)
    assert found["timings"][0]["name"] == "open"
    assert command("bench", store, "nothing").returncode == 1
    for closed in (">&-", "2>&-", "| true"):
        ended = subprocess.run(
            ["sh", "-c", f'"$0" bench "$1" --seconds 0.2 {closed}', COMMAND, store],
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert ended.stderr == ""


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_ctrl_c_ends_it_with_what_was_measured(tmp_path: Path, options: tuple[str, ...]) -> None:
    store = tmp_path / "a.zarr"
    zarrow.create_array(store, shape=(10**13,), chunks=(10**7,), dtype="i1")
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "bench", store, "--seconds", "500", "--bytes", "1T", *options],
        stdout=subprocess.PIPE,
        stderr=follower,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        os.close(follower)
        shown = b""
        until = time.monotonic() + 60
        # The bar shows that opening was measured.
        while b"20 steps of" not in shown and time.monotonic() < until:
            if select.select([leader], [], [], 1)[0]:
                shown += os.read(leader, 1000)
        process.send_signal(signal.SIGINT)
        out = process.communicate(timeout=60)[0].decode()
    assert process.returncode == 130
    while select.select([leader], [], [], 0.1)[0]:
        try:
            shown += os.read(leader, 1000)
        except OSError:
            break
    os.close(leader)
    assert b"Traceback" not in shown
    if options:
        found = json.loads(out)
        assert found["is_interrupted"]
        assert found["timings"][0]["name"] == "open"
    else:
        assert "\nopen " in out


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([1, 25, 50, 99, 100]))
def test_percentiles_are_those_of_numpy(latencies: list[float], percent: int) -> None:
    timing = Timing("scan", 1, 1.0, tuple(sorted(latencies)), 0, None, None)
    assert timing.percentile(percent) == np.percentile(latencies, percent, method="inverted_cdf")


@given(
    st.floats(1e-3, 1e6),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.integers(1, 1000),
)
def test_tables_fit_a_terminal(seconds: float, nbytes: int, stored: int, disk: int, threads: int) -> None:
    assert len(duration(seconds)) <= 9
    timing = Timing("first scan", threads, seconds, (seconds,) * 9, nbytes, stored, disk)
    found = Benchmark("s", "", 1, nbytes, nbytes, [timing])
    assert all(len(line) <= 80 for line in str(found).splitlines())


def test_durations_have_three_digits() -> None:
    shown = [duration(seconds) for seconds in (0, 1.5e-6, 999.6e-6, 0.02, 0.9996, 12.34, 1234)]
    assert shown == ["0 µs", "1.5 µs", "1 ms", "20 ms", "1 s", "12.3 s", "1234 s"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes that a process reads")
def test_read_bytes_are_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    before = bytes_read()
    (tmp_path / "file").read_bytes()
    after = bytes_read()
    assert before is not None and after is not None
    assert 1 << 20 <= after.files - before.files < (1 << 20) + (1 << 16)
    assert after.devices >= before.devices
