"""Plans that write into sessions of icechunk: forks, one commit, kills, and commits of others."""

from __future__ import annotations

import functools
import multiprocessing
import pickle
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest

import zarrow
from zarrow import jobs

VALUES = np.arange(240).reshape(40, 6)


def repository(folder: Path) -> Any:
    """Create a repository with a group and an array `old`."""
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder)))
    session = made.writable_session("main")
    zarrow.create_group(session)
    zarrow.create_array(session, "old", data=VALUES, chunks=(4, 6))
    session.commit("begin")
    return made


def messages(made: Any) -> list[str]:
    return [each.message for each in made.ancestry(branch="main")][:-2]


def now(made: Any, path: str) -> Any:
    return zarrow.open(made.readonly_session("main"), path)[...]


def negated(unit: jobs.Unit) -> Any:
    rows, columns = unit.region
    return -np.arange(6_000).reshape(1000, 6)[rows, columns]


def copied(made: Any, tmp_path: Path, path: str = "new", **options: Any) -> jobs.Plan:
    """Return a plan of 20 units, with a new session."""
    if not (tmp_path / "a.zarr").exists():
        zarrow.save(tmp_path / "a.zarr", VALUES)
    source, session = zarrow.open(tmp_path / "a.zarr"), made.writable_session("main")
    ledger = tmp_path / "ledger"
    return jobs.copy(source, session, path, chunks=(2, 6), memory_nbytes=1, ledger=ledger, **options)


def run(pickled: bytes, index: int, count: int) -> None:
    plan: jobs.Plan = pickle.loads(pickled)
    plan.run(plan.job(index, count))


def run_all(plan: jobs.Plan, count: int = 3) -> None:
    for index in range(count):
        run(pickle.dumps(plan), index, count)


def test_elements_are_visible_after_one_commit(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    plan = copied(made, tmp_path, "below/new", attributes={"unit": "m"})
    assert len(pickle.dumps(plan)) < 2048
    plan.setup()
    plan.setup()
    run_all(plan)
    assert "below" not in zarrow.open(made.readonly_session("main"))
    plan.finish()
    np.testing.assert_array_equal(now(made, "below/new"), VALUES)
    assert dict(zarrow.open(made.readonly_session("main"), "below/new").attrs) == {"unit": "m"}
    assert messages(made) == ["copy by a plan of zarrow"]
    # Neither the plan nor one with a new session commits again.
    plan.finish()
    copied(made, tmp_path, "below/new", attributes={"unit": "m"}).finish()
    assert len(messages(made)) == 1
    plan.forget()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "ice"]


@pytest.mark.parametrize("seed", range(6))
def test_all_kinds_of_plans_write_a_session(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    made = repository(tmp_path / "ice")
    session = made.writable_session("main")
    old = zarrow.open(session, "old", mode="r+")
    ledger = tmp_path / "ledger"
    options: Any = {"ledger": ledger, "memory_nbytes": rng.choice((1, 10**6))}
    kinds = [
        (jobs.copy(old, session, "new", shards=(8, 6), chunks=(2, 3), **options), "new", VALUES),
        (jobs.map(np.sqrt, old, session, "new", dtype="f8", **options), "new", np.sqrt(VALUES)),
        (jobs.write(negated, old, **options), "old", -VALUES),
        (jobs.append(negated, old, 7, **options), "old", [*VALUES, *-np.arange(240, 282).reshape(7, 6)]),
        (jobs.append(negated, old, 0, **options), "old", VALUES),
        (jobs.copy(zarrow.open(session), session, "all", **options), "all/old", VALUES),
    ]
    plan, path, expected = kinds[seed]
    plan.setup()
    run_all(plan, rng.randint(1, 12))
    assert not session.has_uncommitted_changes
    plan.finish(commit="done")
    np.testing.assert_array_equal(now(made, path), expected)
    assert messages(made) == (["done"] if seed != 4 else messages(made))


def test_plans_of_one_session_are_committed_together(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    session = made.writable_session("main")
    group = zarrow.open(session, mode="r+")
    group.create_array("time", data=np.arange(5), chunks=2)
    plans = [
        jobs.append(negated, group["old"], 4, ledger=tmp_path / "ledger"),
        jobs.map(np.negative, group["time"], session, "later", ledger=tmp_path / "ledger"),
    ]
    for plan in plans:
        plan.setup()
        run_all(plan)
        plan.finish(commit=False)
    assert now(made, "old").shape == (40, 6)
    session.commit("both")
    assert now(made, "old").shape == (44, 6)
    assert now(made, "later").tolist() == [0, -1, -2, -3, -4]
    assert messages(made) == ["both"]


def test_a_fork_cannot_finish_and_a_committed_session_is_refused(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    plan = copied(made, tmp_path)
    plan.setup()
    run_all(plan)
    other = pickle.loads(pickle.dumps(plan))
    with pytest.raises(zarrow.UnsupportedError, match="where the plan was made"):
        other.finish()
    session = made.writable_session("main")
    zarrow.open(session, "old", mode="r+")[0] = 1
    plan = jobs.write(negated, zarrow.open(session, "old", mode="r+"), ledger=tmp_path / "ledger")
    plan.setup()
    plan.run(plan.job(0, 1))
    session.commit("by hand")
    with pytest.raises(zarrow.ReadOnlyError, match="writable_session"):
        plan.finish()
    target = zarrow.open(made.readonly_session("main"), "old")
    with pytest.raises(zarrow.ReadOnlyError, match="writable_session"):
        jobs.write(negated, target, ledger=tmp_path / "ledger")
    with pytest.raises(zarrow.UnsupportedError, match="consolidated"):
        copied(made, tmp_path, consolidate=True)
    with pytest.raises(TypeError, match="ledger="):
        jobs.copy(target, made.writable_session("main"), "x")
    zarrow.save(tmp_path / "b.zarr", VALUES)
    with pytest.raises(ValueError, match="sessions of icechunk"):
        jobs.write(negated, zarrow.open(tmp_path / "b.zarr", mode="r+")).finish(commit="no")


def test_a_plan_does_not_replace_what_it_reads_in_the_session(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    session = made.writable_session("main")
    source = zarrow.open(session, "old")
    with pytest.raises(ValueError, match="which it reads"):
        jobs.copy(source, session, "old", ledger=tmp_path / "ledger", chunks=(40, 1))
    with pytest.raises(ValueError, match="in an array"):
        jobs.copy(source, session.store, "old/x", ledger=tmp_path / "ledger")
    # A snapshot does not change: its array can be replaced.
    source = zarrow.open(made.readonly_session("main"), "old")
    plan = jobs.copy(source, session, "old", ledger=tmp_path / "ledger", chunks=(40, 1), memory_nbytes=1)
    with pytest.raises(zarrow.NodeExistsError, match="overwrite=True"):
        plan.setup()
    plan.setup(overwrite=True)
    run_all(plan)
    plan.finish()
    replaced = zarrow.open(made.readonly_session("main"), "old")
    assert replaced.chunks == (40, 1)
    np.testing.assert_array_equal(replaced[...], VALUES)


def test_commits_of_other_nodes_are_no_conflict(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    for is_new_session in (False, True):
        plan = copied(made, tmp_path, f"new {is_new_session}")
        plan.setup()
        run_all(plan)
        other = made.writable_session("main")
        zarrow.open(other, "old", mode="r+")[0] = 7
        other.commit("other")
        (copied(made, tmp_path, f"new {is_new_session}") if is_new_session else plan).finish()
        np.testing.assert_array_equal(now(made, f"new {is_new_session}"), VALUES)
        assert now(made, "old")[0].tolist() == [7] * 6


def test_a_commit_to_the_same_node_is_a_conflict(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    session = made.writable_session("main")

    def written(session: Any) -> jobs.Plan:
        old = zarrow.open(session, "old", mode="r+")
        return jobs.write(negated, old, ledger=tmp_path / "ledger", memory_nbytes=1)

    plan = written(session)
    plan.setup()
    run_all(plan)
    other = made.writable_session("main")
    zarrow.open(other, "old", mode="r+")[0] = 7
    other.commit("other")
    with pytest.raises(jobs.ConflictError, match=r"'main' changed .* new session") as caught:
        plan.finish()
    assert caught.value.kind == "conflict"
    assert messages(made) == ["other"]
    plan = written(made.writable_session("main"))
    assert plan.remaining() == 0
    plan.finish()
    np.testing.assert_array_equal(now(made, "old"), -VALUES)
    # A plan never replaces a node of another commit.
    plan = copied(made, tmp_path)
    plan.setup()
    run_all(plan)
    other = made.writable_session("main")
    zarrow.create_array(other, "new", data=[1, 2])
    other.commit("other")
    with pytest.raises(jobs.ConflictError, match="changed"):
        plan.finish()
    with pytest.raises(jobs.ConflictError, match="'new'"):
        copied(made, tmp_path).finish()
    assert now(made, "new").tolist() == [1, 2]


def test_an_array_that_was_deleted_or_replaced_takes_no_units(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    plan = jobs.write(
        negated, zarrow.open(made.writable_session("main"), "old", mode="r+"), ledger=tmp_path / "ledger"
    )
    plan.setup()
    run_all(plan)
    other = made.writable_session("main")
    zarrow.create_array(other, "old", data=VALUES, chunks=(4, 6), overwrite=True)
    other.commit("the same metadata")
    again = jobs.write(
        negated, zarrow.open(made.writable_session("main"), "old", mode="r+"), ledger=tmp_path / "ledger"
    )
    assert again.fingerprint != plan.fingerprint
    with pytest.raises(jobs.ConflictError):
        plan.finish()
    np.testing.assert_array_equal(now(made, "old"), VALUES)


def test_an_append_keeps_attributes_of_other_commits(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")

    def appended() -> jobs.Plan:
        old = zarrow.open(made.writable_session("main"), "old", mode="r+")
        return jobs.append(negated, old, 3, ledger=tmp_path / "ledger")

    plan = appended()
    plan.setup()
    run_all(plan)
    other = made.writable_session("main")
    zarrow.open(other, "old", mode="r+").attrs["unit"] = "m"
    other.commit("unit")
    appended().finish()
    found = zarrow.open(made.readonly_session("main"), "old")
    assert found.shape == (43, 6) and dict(found.attrs) == {"unit": "m"}


def test_a_ledger_of_a_deleted_repository_is_refused(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    plan = copied(made, tmp_path)
    plan.setup()
    run_all(plan)
    shutil.rmtree(tmp_path / "ice")
    made = repository(tmp_path / "ice")
    plan = copied(made, tmp_path)
    assert plan.remaining() == 0
    for call in (plan.setup, plan.finish):
        with pytest.raises(zarrow.StoreError, match="forget"):
            call()
    plan.forget()
    plan.setup()
    assert plan.remaining() == 20
    run_all(plan)
    plan.finish()
    np.testing.assert_array_equal(now(made, "new"), VALUES)


def test_a_ledger_that_people_edited_is_refused(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    plan = copied(made, tmp_path)
    plan.setup()
    ledger = zarrow.open(tmp_path / "ledger" / plan.fingerprint, mode="r+")
    for name, value in [("base", "x"), ("base", pickle.dumps(print).hex()), ("base", 7), ("nodes", None)]:
        before = ledger.attrs[name]
        ledger.attrs[name] = value
        with pytest.raises(zarrow.MetadataError, match=name):
            plan.run(plan.job(0, 1))
            plan.finish()
        ledger.attrs[name] = before
    plan.run(plan.job(0, 1))
    lost = next((tmp_path / "ledger").rglob("*.changes"))
    lost.unlink()
    session = made.writable_session("main")
    with pytest.raises(zarrow.MetadataError, match="lost"):
        plan.finish()
    assert not session.has_uncommitted_changes and messages(made) == []


def test_processes_that_set_up_at_once_have_one_base(tmp_path: Path) -> None:
    made = repository(tmp_path / "ice")
    plan = copied(made, tmp_path)
    processes = multiprocessing.get_context("spawn")
    started = [processes.Process(target=set_up_and_run, args=(pickle.dumps(plan), at)) for at in range(3)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0, 0, 0]
    plan.finish()
    np.testing.assert_array_equal(now(made, "new"), VALUES)


def set_up_and_run(pickled: bytes, index: int) -> None:
    plan: jobs.Plan = pickle.loads(pickled)
    plan.setup()
    plan.run(plan.job(index, 3))


KILLED = """
import os, sys, time
import icechunk, zarrow
from zarrow import jobs

def logged(values, unit):
    os.write(log, f"{unit.number}\\n".encode())
    time.sleep(0.01)
    return values + 1

log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
repository = icechunk.Repository.open(icechunk.local_filesystem_storage(os.path.abspath("ice")))
plan = jobs.map(
    logged, zarrow.open("a.zarr"), repository.writable_session("main"), "new", with_unit=True,
    chunks=(1, 6), memory_nbytes=1, ledger="ledger",
)
if __name__ == "__main__":
    plan.setup()
    plan.run(plan.job(int(sys.argv[1]), 8, "spread"))
"""


def test_killed_processes_lose_no_finished_unit(tmp_path: Path) -> None:
    """Kill 8 processes at random, including the first one; a new session commits all units once."""
    rng = random.Random(3)
    made = repository(tmp_path / "ice")
    values = np.arange(96 * 6).reshape(96, 6)
    zarrow.save(tmp_path / "a.zarr", values)
    (tmp_path / "to_kill.py").write_text(KILLED, encoding="utf-8")
    log = tmp_path / "log"
    log.touch()

    def plan_now() -> jobs.Plan:
        import runpy

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            plan: jobs.Plan = runpy.run_path("to_kill.py")["plan"]
            plan.setup()
        return plan

    plan, kills = plan_now(), 0
    mask = functools.partial(plan._ledger.finished, 96)
    while left := set(mask().remaining(range(96))):
        size = log.stat().st_size
        processes = [
            subprocess.Popen(
                [sys.executable, "to_kill.py", str(index)], cwd=tmp_path, stderr=subprocess.DEVNULL
            )
            for index in range(8)
        ]
        enough = size + rng.randint(50, 120)
        until = time.monotonic() + 120
        while log.stat().st_size < enough and any(each.poll() is None for each in processes):
            assert time.monotonic() < until
            time.sleep(0.001)
        for process in processes:
            kills += process.poll() is None
            process.kill()
            process.wait(60)
        done = {int(line) for line in log.read_bytes()[size:].split()}
        assert done <= left
    assert kills >= 8
    assert messages(made) == []
    plan_now().finish(commit="all")
    np.testing.assert_array_equal(now(made, "new"), values + 1)
    assert messages(made) == ["all"]
