"""Copies in two passes, through an intermediate array beside the target."""

from __future__ import annotations

import json
import pickle
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from test_copy import Counted, command, contents
from zarrow import jobs
from zarrow.checks import digest
from zarrow.jobs.rechunking_cost import Rechunking
from zarrow.jobs.two_passes import TwoPassPlan

pytestmark = pytest.mark.small_files

# Layers to pencils, in memory for a twentieth of the array.
PENCILS: dict[str, Any] = {"chunks": (40, 5, 5), "memory_nbytes": 16_000, "passes": 2}


def layers(store: Path, **options: Any) -> zarrow.Array:
    values = np.random.default_rng(0).integers(0, 1000, (40, 30, 35)).astype("i8")
    return zarrow.create_array(store, data=values, **{"chunks": (1, 30, 35), **options})


def intermediate(target: Path) -> Path | None:
    """Return the folder of a target's intermediate arrays."""
    return next(target.parent.glob(f"{target.name}.intermediate-*"), None)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_byte_is_read_twice_and_written_twice(tmp_path: Path) -> None:
    source = Counted()
    values = np.random.default_rng(0).integers(0, 1000, (40, 30, 35))
    zarrow.create_array(source, data=values, chunks=(1, 30, 35))
    stored = sum(len(value) for key, value in source.stored.items() if "c/" in key)
    zarrow.copy(source, tmp_path / "b.zarr", **PENCILS)
    assert stored <= source.read <= 1.2 * stored
    source.read = 0
    zarrow.copy(source, tmp_path / "c.zarr", **{**PENCILS, "passes": 1})
    assert source.read > 10 * stored
    assert contents(tmp_path / "b.zarr") == contents(tmp_path / "c.zarr")
    assert names(tmp_path) == ["b.zarr", "c.zarr"]


KINDS: dict[str, Any] = {
    "integers": lambda values: values,
    "big-endian": lambda values: values.astype(">f4"),
    "booleans": lambda values: values > 500,
    "complex": lambda values: values + 1j,
    "text": lambda values: values.astype("T"),
    "fixed text": lambda values: values.astype("U4"),
    "bytes": lambda values: values.astype("S4"),
    "times": lambda values: values.astype("M8[s]"),
    "masked": lambda values: np.ma.masked_greater(values, 700),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_copies_of_each_type_are_equal(tmp_path: Path, kind: str, zarr_format: int) -> None:
    values = KINDS[kind](np.random.default_rng(0).integers(0, 1000, (12, 10, 11)))
    options: dict[str, Any] = {} if kind != "masked" else {"missing": "optional"}
    if kind == "masked" and zarr_format == 2:
        options = {"missing": "fill", "fill_value": -1}
    zarrow.create_array(
        tmp_path / "a.zarr",
        data=values,
        chunks=(1, 10, 11),
        zarr_format=zarr_format,
        attributes={"units": "K"},
        dimension_names=None if zarr_format == 2 else ("t", "y", "x"),
        **options,
    )
    plan = jobs.copy(
        zarrow.open(tmp_path / "a.zarr"),
        tmp_path / "b.zarr",
        chunks=(12, 2, 3),
        memory_nbytes=3000,
        passes=2,
    )
    assert isinstance(plan, TwoPassPlan)
    plan.complete()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert zarrow.open_array(tmp_path / "b.zarr").zarr_format == zarr_format
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("seed", range(30))
def test_random_copies_are_equal(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 4))
    shape = tuple(int(extent) for extent in rng.integers(1, 25, ndim))
    values = rng.integers(0, 5, shape)
    chunks = tuple(int(rng.integers(1, extent + 1)) for extent in shape)
    zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=chunks)
    select = tuple(
        slice(int(rng.integers(0, extent)), extent, int(rng.integers(1, 4)))
        if rng.random() < 0.5
        else slice(None)
        for extent in shape
    )
    new = tuple(int(rng.integers(1, extent + 1)) for extent in shape)
    options: dict[str, Any] = {"chunks": new}
    if rng.random() < 0.4:
        options["shards"] = tuple(2 * extent for extent in new)
    if rng.random() < 0.3:
        options["dtype"] = "i2"
    memory = int(rng.integers(8, 8 * values.size + 9))
    threads = int(rng.integers(1, 4))
    zarrow.copy(
        tmp_path / "a.zarr",
        tmp_path / "b.zarr",
        select=select,
        memory_nbytes=memory,
        passes=2,
        threads=threads,
        **options,
    )
    copied = zarrow.open_array(tmp_path / "b.zarr")
    np.testing.assert_array_equal(copied.read().numpy(), values[select])
    assert copied.chunks == new
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_arrays_without_elements_or_axes_are_copied_in_one_pass(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "a.zarr")
    zarrow.create_array(tmp_path / "a.zarr", path="scalar", data=np.float64(3))
    zarrow.create_array(tmp_path / "a.zarr", path="empty", shape=(0, 4), chunks=(1, 2), dtype="i4")
    layers(tmp_path / "a.zarr", path="below/layers")
    zarrow.copy(group, tmp_path / "b.zarr", **PENCILS)
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_two_passes_are_chosen_when_they_move_less(tmp_path: Path) -> None:
    source = zarrow.create_array(tmp_path / "a.zarr", shape=(64, 256, 256), chunks=(1, 256, 256), dtype="f4")
    for memory, expected in ((2 << 20, TwoPassPlan), (8 << 20, jobs.Plan), (64 << 20, jobs.Plan)):
        plan = jobs.copy(source, tmp_path / "b.zarr", chunks=(64, 8, 8), memory_nbytes=memory)
        assert type(plan) is expected, plan.describe()
    for chunks in ((2, 256, 256), (1, 64, 64)):
        plan = jobs.copy(source, tmp_path / "b.zarr", chunks=chunks, memory_nbytes=2 << 20)
        assert type(plan) is jobs.Plan


def test_a_plan_that_is_set_up_again_is_done_again(tmp_path: Path) -> None:
    plan = jobs.copy(layers(tmp_path / "a.zarr"), tmp_path / "b.zarr", **PENCILS)
    for _ in range(2):
        plan.setup()
        assert plan.run(plan.job(0, 1)).done == plan.unit_count
        shutil.rmtree(tmp_path / "b.zarr")
    plan.complete()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")


def test_the_plan_says_why_it_has_two_passes(tmp_path: Path) -> None:
    source = layers(tmp_path / "a.zarr")
    plan = jobs.copy(source, tmp_path / "b.zarr", **PENCILS)
    text = plan.describe()
    assert "two passes have 2.96 reads and 2.04 writes" in text
    assert "one pass 21.00 reads and 1.00 writes" in text
    found = command(
        "copy", tmp_path / "a.zarr", tmp_path / "b.zarr", "--chunks", "40,5,5", "--memory", "16000",
        "--passes", "2", "--dry-run", "--json",
    )  # fmt: skip
    described = json.loads(found.stdout)
    assert described["arrays"][""]["one_pass"] == {"reads": 21.0, "writes": 1.0}
    assert described["first_pass"][""]["reads_of_each_byte"] == [1.0]
    assert described["units"] == plan.unit_count
    assert names(tmp_path) == ["a.zarr"]
    assert "one pass has 1" not in jobs.copy(source, tmp_path / "b.zarr", chunks=(40, 5, 5)).describe()
    assert type(jobs.copy(source, tmp_path / "b.zarr", **{**PENCILS, "passes": 1})) is jobs.Plan


def test_wrong_passes_are_refused(tmp_path: Path) -> None:
    source = layers(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="passes is 3, expected 1 or 2"):
        jobs.copy(source, tmp_path / "b.zarr", passes=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes no passes"):
        jobs.copy(source, tmp_path / "b.zarr", raw=True, passes=2)
    with pytest.raises(ValueError, match="no place beside it"):
        zarrow.copy(source, zarrow.MemoryStore(), passes=2)
    copied = zarrow.copy(source, zarrow.MemoryStore(), **{**PENCILS, "passes": None})
    np.testing.assert_array_equal(copied[...], source[...])


def run_each(plan: jobs.Plan, count: int) -> list[jobs.Report]:
    """Run all jobs, each by an unpickled plan."""
    pickled = pickle.dumps(plan)
    assert len(pickled) < 1024
    plans = [pickle.loads(pickled) for _ in range(count)]
    return [each.run(each.job(index, count)) for index, each in enumerate(plans)]


def test_jobs_that_do_not_wait_are_run_twice(tmp_path: Path) -> None:
    source = layers(tmp_path / "a.zarr")
    plan = jobs.copy(source, tmp_path / "b.zarr", **PENCILS)
    plan.setup()
    first = run_each(plan, 3)
    assert plan.remaining() > 0
    with pytest.raises(jobs.UnfinishedError, match="run their jobs again"):
        plan.finish()
    second = run_each(plan, 3)
    assert sum(report.done for report in first + second) == plan.unit_count
    assert plan.remaining() == 0
    plan.finish()
    plan.finish()
    assert [report.done for report in run_each(plan, 3)] == [0, 0, 0]
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr", "b.zarr.jobs"]
    plan.forget()
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


def test_jobs_wait_for_the_first_pass_of_others(tmp_path: Path) -> None:
    plan = jobs.copy(layers(tmp_path / "a.zarr"), tmp_path / "b.zarr", **PENCILS)
    plan.setup()
    reports: list[jobs.Report] = []

    def run(index: int) -> None:
        other = pickle.loads(pickle.dumps(plan))
        reports.append(other.run(other.job(index, 3, "spread"), wait=60))

    running = [threading.Thread(target=run, args=(index,)) for index in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert sum(report.done for report in reports) == plan.unit_count
    plan.finish()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")


def test_the_module_says_that_a_job_is_run_again(tmp_path: Path) -> None:
    plan = jobs.copy(layers(tmp_path / "a.zarr"), tmp_path / "b.zarr", **PENCILS)
    (tmp_path / "plan").write_bytes(pickle.dumps(plan))
    run = [
        sys.executable,
        "-m",
        "zarrow.jobs",
        str(tmp_path / "plan"),
        "--count",
        "2",
        "--wait",
        "0",
        "--index",
    ]
    first = subprocess.run([*run, "0"], capture_output=True, text=True)
    assert (first.returncode, first.stderr) == (
        1,
        "other jobs have not finished the first pass: run this job again\n",
    )
    assert subprocess.run([*run, "1"]).returncode == 0
    assert subprocess.run([*run, "0"]).returncode == 0
    plan.finish()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")


def test_progress_counts_both_passes(tmp_path: Path) -> None:
    layers(tmp_path / "a.zarr")
    for threads in (1, 3):
        seen: list[tuple[int, int]] = []
        plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / f"{threads}.zarr", **PENCILS)
        plan.complete(threads=threads, progress=lambda *both, seen=seen: seen.append(both))
        assert seen[-1] == (plan.unit_count, plan.unit_count)
        assert {total for _, total in seen} == {plan.unit_count}


def test_a_copy_that_begins_anew_reads_the_source_again(tmp_path: Path) -> None:
    """The first pass of an erased target is not taken for that of a new one."""
    source = layers(tmp_path / "a.zarr")
    plan = jobs.copy(source, tmp_path / "b.zarr", **PENCILS)
    plan.setup()
    run_each(plan, 2)
    source[...] = source.read().numpy() + 1
    shutil.rmtree(tmp_path / "b.zarr")
    plan.complete()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize("passes", [1, 2])
def test_another_copy_erases_what_an_abandoned_one_left(tmp_path: Path, passes: Any) -> None:
    source = layers(tmp_path / "a.zarr")
    plan = jobs.copy(source, tmp_path / "b.zarr", **PENCILS)
    plan.setup()
    plan.run(plan.job(0, 2))
    assert intermediate(tmp_path / "b.zarr")
    other = jobs.copy(source, tmp_path / "b.zarr", chunks=(40, 10, 10), memory_nbytes=40_000, passes=passes)
    with pytest.raises(zarrow.NodeExistsError):
        other.complete()
    other.complete(overwrite=True)
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]
    with pytest.raises(zarrow.ZarrowError):
        plan.run(plan.job(1, 2))
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")


def test_a_job_that_is_late_writes_nothing(tmp_path: Path) -> None:
    """While a job runs its last units, another process does them too, and finishes the copy."""
    source = layers(tmp_path / "a.zarr")
    plan = jobs.copy(source, tmp_path / "b.zarr", **PENCILS)
    plan.setup()
    plan._first.run(plan.job(0, 1))  # type: ignore[attr-defined]
    late = pickle.loads(pickle.dumps(plan))

    def overtake(done: int, total: int) -> None:
        if plan.is_begun and not plan.is_finished:
            plan.run(plan.job(0, 1))
            plan.finish()

    with pytest.raises(zarrow.StaleHandleError, match="was erased while a job ran"):
        late.run(late.job(0, 1), progress=overtake)
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")


def test_existing_arrays_are_skipped_in_both_passes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        layers(tmp_path / "a.zarr", path=name)
    zarrow.create_array(tmp_path / "b.zarr", path="one", data=[1, 2])
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", **PENCILS)
    plan.setup(skip_existing=True)
    between = intermediate(tmp_path / "b.zarr")
    assert between is not None and names(between) == ["two", "zarr.json"]
    run_each(plan, 2)
    run_each(plan, 2)
    plan.finish()
    plan.forget()
    assert zarrow.open(tmp_path / "b.zarr")["one"][...].tolist() == [1, 2]
    assert digest(tmp_path / "b.zarr/two") == digest(tmp_path / "a.zarr/two")
    assert names(tmp_path) == ["a.zarr", "b.zarr"]


KILLED = """
import os, random, signal, sys, threading
import zarrow

seed, threads = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
counts = open("counts", "a")

def killed(at, delay):
    '''Copy in a child that is killed after the given unit; return whether it was.'''
    units, lock = 0, threading.Lock()

    def progress(done, total):
        nonlocal units
        with lock:
            units += 1
            os.write(counts.fileno(), b".")
            if units == at and delay:
                signal.setitimer(signal.ITIMER_REAL, delay)
            elif units == at:
                os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        options = {"chunks": (40, 5, 5), "memory_nbytes": 16_000, "passes": 2}
        zarrow.copy("a.zarr", "b.zarr", threads=threads, progress=progress, **options)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status == 0 or os.WIFSIGNALED(status), status
    return status != 0

kills = 0
while kills < 20 and killed(rng.randint(1, 4), (kills % 2) * rng.random() * 0.003):
    kills += 1
print(kills)
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(2))
def test_killed_copies_in_two_passes_resume(tmp_path: Path, seed: int, threads: int) -> None:
    source = layers(tmp_path / "a.zarr")
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(seed), str(threads)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr
    kills = int(ended.stdout)
    assert kills >= 8
    plan = jobs.copy(source, tmp_path / "b.zarr", **PENCILS)
    if plan.is_begun:
        plan.complete()
    assert digest(tmp_path / "b.zarr") == digest(tmp_path / "a.zarr")
    zarrow.copy(tmp_path / "a.zarr", tmp_path / "c.zarr", **PENCILS)
    found = {key: value for key, value in contents(tmp_path / "b.zarr").items() if ".zarrow-" not in key}
    assert found == contents(tmp_path / "c.zarr")
    # A kill after the ledger was deleted may leave its empty folder.
    assert {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()} == {
        "a.zarr",
        "b.zarr",
        "c.zarr",
        "counts",
    }
    # Each finished unit is entered before it is counted, so that it is not done again.
    assert (tmp_path / "counts").stat().st_size <= plan.unit_count


@pytest.mark.parametrize("seed", range(200))
def test_random_plans_have_whole_chunks_and_keep_to_their_memory(seed: int) -> None:
    rng = random.Random(seed)
    ndim = rng.randint(1, 4)
    shape = tuple(rng.randint(1, 300) for _ in range(ndim))
    unit, chunk = (tuple(rng.randint(1, extent) for extent in shape) for _ in range(2))
    memory = rng.randint(1, 1 << 20)
    found = Rechunking(shape, unit, chunk, 4, memory)
    between = found.two_passes()
    assert between is not None
    assert all(long % short == 0 for long, short in zip(between.shards, between.chunks, strict=True))
    assert between.cost.reads >= 2
    block = [min(*both) for both in zip(between.shards, shape, strict=True)]
    # One source chunk, rounded to whole inner chunks, is the smallest shard.
    smallest = 4 * np.prod([2 * length for length in chunk])
    assert 4 * np.prod(block) <= max(memory, smallest)
