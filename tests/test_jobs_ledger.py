"""Ledgers that are deleted or cannot be written while jobs run."""

from __future__ import annotations

import errno
import functools
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr.storage
from benches import jobs_simulation

import zarrow
from zarrow import cli, jobs
from zarrow.api.processes import Process
from zarrow.jobs import owners
from zarrow.jobs.ledger import Ledger, Record


class Full(dict[str, bytes]):
    """A store that takes a number of values, and then is full."""

    left = 10**9

    def __setitem__(self, key: str, value: bytes) -> None:
        if self.left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), key)
        self.left -= 1
        super().__setitem__(key, value)


def numbers(unit: jobs.Unit) -> np.ndarray[Any, Any]:
    """Return the numbers of a region."""
    return np.r_[unit.region[0]]


@pytest.mark.parametrize("left", range(5))
def test_a_full_ledger_is_an_error_and_finished_units_stay(left: int, tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(40,), chunks=4, dtype="i8")
    ledger = Full()
    plan = jobs.write(numbers, array, memory_nbytes=1, ledger=zarrow.PythonStore(ledger, sole_writer=True))
    ledger.left = left
    with pytest.raises(zarrow.StoreError, match="No space"):
        plan.setup()
        plan.run(plan.job(0, 1))
    ledger.left = 10**9
    plan.setup()
    before = 10 - plan.remaining()
    report = plan.run(plan.job(0, 1))
    assert (report.done, report.skipped) == (10 - before, before)
    plan.finish()
    assert array[...].tolist() == list(range(40))


def test_an_error_of_a_function_is_raised_although_the_ledger_is_full(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(40,), chunks=4, dtype="i8")
    ledger = Full()

    def failing(unit: jobs.Unit) -> Any:
        if unit.number == 3:
            ledger.left = 0
            raise KeyboardInterrupt
        return numbers(unit)

    plan = jobs.write(failing, array, memory_nbytes=1, ledger=zarrow.PythonStore(ledger, sole_writer=True))
    plan.setup()
    with pytest.raises(KeyboardInterrupt):
        plan.run(plan.job(0, 1))


@pytest.mark.parametrize("above", [False, True])
def test_a_ledger_that_is_deleted_meanwhile_ends_the_job(above: bool, tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(40,), chunks=4, dtype="i8")
    is_deleted = [False]

    def deleting(unit: jobs.Unit) -> Any:
        if unit.number == 5 and not is_deleted[0]:
            is_deleted[0] = True
            shutil.rmtree(tmp_path / "a.zarr.jobs" / ("" if above else fingerprint))
        return numbers(unit)

    plan = jobs.write(deleting, array, memory_nbytes=1)
    fingerprint = plan.fingerprint
    plan.setup()
    with pytest.raises(jobs.UnfinishedError, match="was deleted"):
        plan.run(plan.job(0, 1))
    assert not (tmp_path / "a.zarr.jobs" / fingerprint).exists(), "nothing is left of it"
    with pytest.raises(jobs.UnfinishedError, match="not set up"):
        plan.finish()
    plan.setup()
    assert plan.run(plan.job(0, 1)).done == 10, "each unit again: none is known to be finished"
    plan.finish()
    assert array[...].tolist() == list(range(40))


def test_results_of_numpy_are_plain_in_the_ledger(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(40), chunks=20)
    plan = jobs.collect(lambda values: {"all": [values.max(), (values[:2],)]}, array, memory_nbytes=1)
    plan.setup()
    plan.run(plan.job(0, 1))
    assert plan.results() == {0: {"all": [19, [[0, 1]]]}, 1: {"all": [39, [[20, 21]]]}}
    for result, message in (({1: 2}, "str as keys"), ({2}, "set")):
        plan = jobs.collect(functools.partial(returned, result), array)
        plan.setup()
        with pytest.raises(TypeError, match=message):
            plan.run(plan.job(0, 1))


def returned(result: Any, values: np.ndarray[Any, Any]) -> Any:
    """Return the result."""
    return result


class Counting(dict[str, bytes]):
    """A store that counts the values it gives."""

    read = 0

    def __getitem__(self, key: str) -> bytes:
        self.read += 1
        return super().__getitem__(key)


def test_a_job_reads_no_records_of_other_jobs(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(400,), chunks=1, dtype="i8")
    ledger = Counting()
    store = zarrow.PythonStore(ledger, sole_writer=True)
    plan = jobs.write(numbers, array, memory_nbytes=1, ledger=store)
    plan.setup()
    counts = []
    for index in range(50):
        before = ledger.read
        assert plan.run(plan.job(index, 50)).done == 8
        counts.append(ledger.read - before)
    assert max(counts) <= counts[0] + 2 < 15, "no more for the last than for the first"
    before = ledger.read
    assert plan.remaining() == 0 and ledger.read - before <= 51


def test_simulated_workers_conflict_in_the_setup_alone() -> None:
    workers = 60
    found = jobs_simulation.simulate(workers, 4_000_000, killed_workers=2, within=0)
    assert found["restarts"] >= found["units repeated"] == 2, "the killed workers' last units"
    assert 0 < found["conflicts"] < 3 * workers
    assert found["setup s"] < 3
    assert found["ledger gets"] < 40 * workers and found["ledger lists"] < 9 * workers


@pytest.mark.parametrize("is_killed", [False, True])
def test_of_two_processes_that_begin_anew_one_does(
    is_killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zarrow.save(tmp_path / "a.zarr", np.arange(40))
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", chunks=4, memory_nbytes=1)
    plan.setup()
    plan.run(plan.job(0, 2))
    shutil.rmtree(tmp_path / "b.zarr")
    if is_killed:
        zarrow.open_group(tmp_path / "b.zarr.jobs" / plan.fingerprint).attrs.update(state="erasing", owner=[])
    other = pickle.loads(pickle.dumps(plan))
    take_over = jobs.ledger.Ledger.take_over

    def after_the_other(*arguments: Any) -> None:
        monkeypatch.undo()
        other.setup()
        assert other.run(other.job(0, 1)).done == 10
        take_over(*arguments)

    monkeypatch.setattr(jobs.ledger.Ledger, "take_over", after_the_other)
    plan.setup()
    assert plan.remaining() == 0, "the other process's ledger stays"
    plan.finish()
    assert zarrow.load(tmp_path / "b.zarr").tolist() == list(range(40))
    shutil.rmtree(tmp_path / "b.zarr")
    plan.setup()
    assert plan.remaining() == 10, "its target is gone again"


def test_a_process_that_was_killed_when_it_took_over_is_replaced(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", np.arange(40))
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", chunks=4, memory_nbytes=1)
    plan.setup()
    plan.run(plan.job(0, 1))
    shutil.rmtree(tmp_path / "b.zarr")
    ledger = zarrow.open_group(tmp_path / "b.zarr.jobs" / plan.fingerprint)
    name = jobs.ledger._successor_of(ledger.attrs["owner"])
    ledger.create_group(name, attributes={"owner": ["killed", "before", "it changed the state"]})
    plan.setup()
    assert plan.run(plan.job(0, 1)).done == 10
    plan.finish()
    assert zarrow.load(tmp_path / "b.zarr").tolist() == list(range(40))


def test_a_write_to_one_array_of_an_unfinished_copy_is_refused(tmp_path: Path) -> None:
    source = zarrow.create_group(tmp_path / "source.zarr")
    for name in ("in/a", "in/ab", "c"):
        source.create_array(name, data=np.arange(40), chunks=4)
    copy = jobs.copy(source, tmp_path / "target.zarr", memory_nbytes=1)
    copy.setup()
    for make in (jobs.write, jobs.append):
        array = zarrow.open(tmp_path / "target.zarr", path="in/a")
        other = make(numbers, array, memory_nbytes=1, **({"count": 8} if make is jobs.append else {}))
        with pytest.raises(jobs.ConflictError, match=rf"{copy.fingerprint} \(copy\) writes array 'in/a'"):
            other.setup()
    copy.run(copy.job(0, 1))
    copy.finish()
    other.setup()


def test_a_copy_of_a_group_begins_plans_of_its_arrays_anew(tmp_path: Path) -> None:
    source = zarrow.create_group(tmp_path / "source.zarr")
    target = zarrow.create_group(tmp_path / "target.zarr")
    for name in ("in/a", "c"):
        source.create_array(name, data=np.arange(40), chunks=4)
        target.create_array(name, shape=(40,), chunks=4, dtype="i8")
    beside = target.create_array("in/ab", shape=(40,), chunks=4, dtype="i8")
    plans = [jobs.write(numbers, array, memory_nbytes=1) for array in (target["in/a"], beside)]
    for plan in plans:
        plan.setup()
        plan.run(plan.job(0, 2))
    copy = jobs.copy(source, tmp_path / "target.zarr", memory_nbytes=1)
    with pytest.raises(zarrow.NodeExistsError):
        copy.setup()
    assert [plan.remaining() for plan in plans] == [5, 5]
    copy.setup(overwrite=True)
    assert [plan.remaining() for plan in plans] == [10, 5], "the copy does not replace the second array"


def test_a_kill_while_a_ledger_is_deleted_leaves_a_finished_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = zarrow.create_array(tmp_path / "source.zarr", data=np.arange(40), chunks=4)

    def killed(ledger: Ledger) -> None:
        records = [path for path in Path(ledger._store).iterdir() if path.is_dir()]
        shutil.rmtree(records[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "erase", killed)
        with pytest.raises(KeyboardInterrupt):
            zarrow.copy(source, tmp_path / "target.zarr")
    written = (tmp_path / "target.zarr/c/0").stat().st_mtime_ns
    zarrow.copy(source, tmp_path / "target.zarr")
    assert zarrow.open_array(tmp_path / "target.zarr", mode="r")[...].tolist() == list(range(40))
    # Nothing was copied again, and nothing but the copy is left.
    assert (tmp_path / "target.zarr/c/0").stat().st_mtime_ns == written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.zarr", "target.zarr"]


def test_a_killed_process_that_was_erasing_is_replaced(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2, 3])
    zarrow.save(tmp_path / "b.zarr", [7])
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr")
    name = "from zarrow.jobs.owners import new_owner; import json; print(json.dumps(new_owner()), flush=True)"
    killed = subprocess.Popen([sys.executable, "-c", f"{name}; input()"], stdin=-1, stdout=-1, text=True)
    owner = json.loads(killed.stdout.readline())  # type: ignore[union-attr]
    assert owners.is_here(owner)
    assert owners.is_alive([*owner[:2], "1-1-other"]), "of another machine"
    reused = Process.current()
    assert not owners.is_alive([owner[0], reused.number, f"{reused.machine:x}-{reused.start - 1:x}-other"])
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
    assert not owners.is_alive(owner), "before its parent waits for it"
    killed.communicate()
    assert not owners.is_alive(owner)
    ledger = zarrow.create_group(
        f"{tmp_path}/b.zarr.jobs/{plan.fingerprint}", attributes={"state": "erasing", "owner": owner}
    )
    with pytest.raises(zarrow.NodeExistsError):
        plan.setup()
    ledger = zarrow.create_group(ledger.store, attributes={"state": "erasing", "owner": owner})
    carry_out_overwriting(plan)
    assert zarrow.load(tmp_path / "b.zarr").tolist() == [1, 2, 3]
    for wrong in ("half", 3, None):
        ledger.attrs["state"] = wrong
        with pytest.raises(zarrow.MetadataError, match="state"):
            plan.run(plan.job(0, 1))


def carry_out_overwriting(plan: jobs.Plan) -> None:
    """Do a whole plan that replaces its target."""
    plan.setup(overwrite=True)
    plan.run(plan.job(0, 1))
    plan.finish()


def test_a_ledger_that_cannot_be_written_names_the_option(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2, 3])
    ledger = zarr.storage.MemoryStore(read_only=True)
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", ledger=ledger)
    with pytest.raises(zarrow.ReadOnlyError, match="pass ledger=, another store for the list of finished"):
        plan.setup()
    assert not (tmp_path / "b.zarr").exists()


def test_a_command_that_another_process_ends_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no function of Python."""
    zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=1)
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    arguments = ["copy", str(source), str(target), "--memory", "1", "--job", "0/2"]
    add = Record.add

    def forget(self: Record, *given: Any) -> None:
        jobs.copy(zarrow.open(source, mode="r"), target, memory_nbytes=1).forget()
        add(self, *given)

    monkeypatch.setattr(Record, "add", forget)
    assert cli.main(arguments) == 1
    shown = capsys.readouterr().err
    assert "zarrow copy: the ledger was deleted while a job ran, with record 'contiguous-0-of-2-" in shown
    assert f": run the command again; or, if no other process runs it, delete '{target}.jobs'\n" in shown
    assert "setup()" not in shown
