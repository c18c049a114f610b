"""Plans that append, and the size of pickled plans."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import jobs


def elements(unit: jobs.Unit) -> np.ndarray[Any, Any]:
    """Return elements that say their place."""
    indices = np.meshgrid(*(np.r_[part] for part in unit.region), indexing="ij")
    return np.asarray(sum(index * 1000**place for place, index in enumerate(reversed(indices))))


def whole(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the elements of an array of this shape."""
    return elements(jobs.Unit(0, "", tuple(slice(0, extent) for extent in shape)))


@pytest.mark.parametrize("seed", range(40))
def test_appended_elements_are_seen_at_the_end(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    ndim = chance.randint(1, 3)
    shape = tuple(chance.randint(0, 9) for _ in range(ndim))
    chunks = tuple(chance.randint(1, 4) for _ in shape)
    shards = tuple(extent * chance.randint(1, 3) for extent in chunks) if chance.random() < 0.3 else None
    axis, count = chance.randrange(ndim), chance.randint(0, 12)
    zarr_format = 3 if shards else chance.choice([2, 3])
    zarrow.create_array(
        tmp_path / "a.zarr", data=whole(shape), chunks=chunks, shards=shards, zarr_format=zarr_format
    )
    array = zarrow.open(tmp_path / "a.zarr")
    plan = jobs.append(
        elements, array, count, axis=axis - ndim, memory_nbytes=chance.choice([1, 300]), attributes={"n": 1}
    )
    longer = tuple(extent + count * (place == axis) for place, extent in enumerate(shape))
    regions = np.zeros(longer, int)
    for unit in plan.units:
        regions[unit.region] += 1
    old = tuple(slice(0, extent) for extent in shape)
    assert not regions[old].any() and (np.delete(regions, np.s_[: shape[axis]], axis) == 1).all()
    plan.setup()
    for index in range(3):
        other = pickle.loads(pickle.dumps(plan))
        other.run(other.job(index, 3, "spread"))
        before = zarrow.open(tmp_path / "a.zarr")
        assert before.shape == shape and not before.attrs
        np.testing.assert_array_equal(before[...], whole(shape))
    pickled = pickle.dumps(plan)
    for again in (plan, pickle.loads(pickled), pickle.loads(pickled)):
        again.finish()
        assert again.run(again.job(0, 1)).done == 0
        after = zarrow.open(tmp_path / "a.zarr")
        assert after.shape == longer and after.attrs["n"] == 1
        np.testing.assert_array_equal(after[...], whole(longer))


def test_an_append_neither_shrinks_nor_drifts(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=4)
    plan = jobs.append(elements, array, 5)
    plan.setup()
    plan.run(plan.job(0, 2))
    other = zarrow.open(tmp_path / "a.zarr", mode="r+")
    with pytest.raises(jobs.UnfinishedError):
        plan.finish()
    other.append([77, 78, 79, 80, 81, 82])
    with pytest.raises(zarrow.StaleHandleError, match=r"shape is \(16,\), and was \(10,\)"):
        plan.run(plan.job(1, 2))
    other.resize((8,))
    for _ in range(2):
        with pytest.raises(zarrow.StaleHandleError, match=r"shape is \(8,\), and was \(10,\)"):
            plan.run(plan.job(1, 2))
    assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == list(range(8))
    other.resize((10,))
    other[8:] = [8, 9]
    plan.run(plan.job(1, 2))
    other.append([1])
    with pytest.raises(zarrow.StaleHandleError):
        plan.finish()
    assert zarrow.open(tmp_path / "a.zarr").shape == (11,)


def test_refused_appends(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=4)
    with pytest.raises(ValueError, match="got -1"):
        jobs.append(elements, array, -1)
    with pytest.raises(IndexError, match="axis 1 is out of bounds"):
        jobs.append(elements, array, 3, axis=1)
    plan = jobs.append(np.zeros_like, array, 3)
    plan.setup()
    with pytest.raises(Exception, match="shape"):
        plan.run(plan.job(0, 1))


def test_an_append_of_nothing_has_no_units(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(5), chunks=2)
    plan = jobs.append(elements, array, 0, memory_nbytes=1)
    assert len(plan.units) == 0
    assert plan.complete().done == 0
    assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == list(range(5))


def test_an_append_below_a_consolidated_group_is_found(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "a.zarr")
    group.create_array("deep/a", data=np.arange(6), chunks=2)
    group.consolidate_metadata()
    plan = jobs.append(elements, zarrow.open(tmp_path / "a.zarr")["deep/a"], 6)
    plan.setup()
    assert plan.run(plan.job(0, 1)).done
    assert zarrow.open(tmp_path / "a.zarr")["deep/a"].shape == (6,)
    plan.finish()
    assert zarrow.open(tmp_path / "a.zarr")["deep/a"][...].tolist() == list(range(12))


def run(pickled: bytes, index: int, count: int) -> None:
    """Run a job in another process."""
    plan: jobs.Plan = pickle.loads(pickled)
    plan.run(plan.job(index, count))


def test_processes_append_while_others_read(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(101), chunks=8, shards=16)
    plan = jobs.append(elements, array, 400, memory_nbytes=1)
    plan.setup()
    processes = multiprocessing.get_context("spawn")
    started = [processes.Process(target=run, args=(pickle.dumps(plan), index, 3)) for index in range(3)]
    for process in started:
        process.start()
    while any(process.is_alive() for process in started):
        assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == list(range(101))
    assert [process.exitcode for process in started] == [0, 0, 0]
    plan.finish()
    assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == list(range(501))


def test_plans_are_pickled_in_a_kilobyte(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "a.zarr")
    for place in range(50):
        group.create_array(f"array {place}", data=np.ones((4, 4)), chunks=2, attributes={"units": "m" * 100})
    group = zarrow.open(tmp_path / "a.zarr")
    array = group["array 0"]
    plans = [
        jobs.copy(group, tmp_path / "b.zarr"),
        jobs.copy(group, tmp_path / "c.zarr", chunks=(4, 1), compressors="zstd"),
        jobs.map(np.sqrt, array, tmp_path / "d.zarr", chunks=(1, 1)),
        jobs.write(elements, array),
        jobs.append(elements, array, 1000),
        jobs.collect(functools.partial(np.sum, axis=0), [array, array]),
    ]
    for plan in plans:
        assert len(pickle.dumps(plan)) < 1024, plan
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(plan))))
        assert again.fingerprint == plan.fingerprint and again.describe() == plan.describe()
    plan = plans[1]
    plan.setup()
    for index, pickled in zip(range(3), itertools.repeat(pickle.dumps(plan))):
        other = pickle.loads(pickled)
        other.run(other.job(index, 3))
    plan.finish()
    np.testing.assert_array_equal(zarrow.open(tmp_path / "c.zarr")["array 49"][...], np.ones((4, 4)))
    pickled = pickle.dumps(plan)
    group.create_array("array 50", data=np.ones(3))
    with pytest.raises(zarrow.StaleHandleError, match="have changed"):
        pickle.loads(pickled)


def hundreds(unit: jobs.Unit) -> np.ndarray[Any, Any]:
    """Return other elements."""
    return elements(unit) * 100


@pytest.mark.parametrize("ends_first", [False, True])
def test_two_appends_to_an_array_do_not_write_the_same_chunks(ends_first: bool, tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=4)
    other = zarrow.open(tmp_path / "a.zarr", mode="r+")
    first, second = jobs.append(elements, array, 5), jobs.append(hundreds, other, 5)
    first.setup()
    if not ends_first:
        with pytest.raises(
            jobs.ConflictError, match=rf"plan {first.fingerprint} .* is not finished: finish it"
        ):
            second.setup()
        assert not second.is_begun
    first.run(first.job(0, 1))
    first.finish()
    with pytest.raises(zarrow.StaleHandleError, match=r"shape is \(15,\), and was \(10,\)"):
        second.setup()
    with pytest.raises(jobs.UnfinishedError):
        second.run(second.job(0, 1))
    assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == list(range(15))
    again = jobs.append(hundreds, zarrow.open(tmp_path / "a.zarr", mode="r+"), 1)
    assert again.complete().done and zarrow.open(tmp_path / "a.zarr")[15] == 1500


def test_an_append_replaces_an_unfinished_one_only_if_asked(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=4)
    first, second = jobs.append(elements, array, 5), jobs.append(hundreds, array, 3)
    first.setup()
    second.setup(overwrite=True)
    with pytest.raises(jobs.UnfinishedError):
        first.run(first.job(0, 1))
    with pytest.raises(jobs.ConflictError):
        first.setup()
    second.run(second.job(0, 1))
    second.finish()
    assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == [*range(10), 1000, 1100, 1200]


def test_units_of_an_append_are_not_written_behind_another_end(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(8), chunks=4)
    other = zarrow.open(tmp_path / "a.zarr", mode="r+")

    def appending(unit: jobs.Unit) -> np.ndarray[Any, Any]:
        if other.shape == (8,):
            other.append(np.full(12, 7))
        return elements(unit)

    plan = jobs.append(appending, array, 12, memory_nbytes=1, ledger=tmp_path / "ledger")
    plan.setup()
    for _ in range(2):
        with pytest.raises(zarrow.StaleHandleError, match=r"shape is \(20,\), and was \(8,\)"):
            plan.run(plan.job(0, 1))
    # The unit that ran is written.
    assert zarrow.open(tmp_path / "a.zarr")[12:].tolist() == [7] * 8


def test_an_append_with_an_interrupted_end_is_not_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10), chunks=4)
    plan = jobs.append(elements, array, 5, attributes={"n": 1})
    pickled = pickle.dumps(plan)
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(jobs.plan, "open", interrupt)
        plan.complete()
    again = jobs.append(elements, zarrow.open(tmp_path / "a.zarr", mode="r+"), 5)
    with pytest.raises(jobs.ConflictError, match="elements are in the array already"):
        again.complete()
    pickle.loads(pickled).finish()
    after = zarrow.open(tmp_path / "a.zarr")
    assert after[...].tolist() == list(range(15)) and after.attrs["n"] == 1


def interrupt(*arguments: Any, **options: Any) -> None:
    """Stand for a kill."""
    raise KeyboardInterrupt


def test_a_refused_change_stays_refused(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(4, 4), chunks=2, dtype="i8")
    other = zarrow.open(tmp_path / "a.zarr", mode="r+")
    ledgers = [tmp_path / "append", tmp_path / "write"]
    plans = [
        jobs.append(elements, array, 2, ledger=ledgers[0]),
        jobs.write(elements, array, ledger=ledgers[1]),
    ]
    for plan in plans:
        plan.setup()
    other.resize((4, 6))
    for plan in [*plans, *plans]:
        with pytest.raises(zarrow.StaleHandleError):
            plan.run(plan.job(0, 1))
