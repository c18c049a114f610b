"""Plans of work: units, jobs, ledgers, and copies by several jobs."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zarrow
from kill_counts import kills
from zarrow import jobs
from zarrow.jobs import blocks, environment
from zarrow.jobs.ledger import Finished
from zarrow.jobs.units import Grid, Units

CASES = range(60)


def carry_out(plan: jobs.Plan, count: int = 2, assign: Any = "contiguous") -> None:
    """Do a whole plan, each job by an unpickled copy."""
    plan.setup()
    for index in range(count):
        other = pickle.loads(pickle.dumps(plan))
        other.run(other.job(index, count, assign))
    plan.finish()


@pytest.mark.parametrize("assign", ["contiguous", "spread"])
def test_jobs_have_each_unit_once(assign: Any) -> None:
    for total, count in itertools.product((0, 1, 5, 12, 97), (1, 2, 7, 100)):
        numbers = [jobs.Job(index, count, assign).numbers(total) for index in range(count)]
        assert sorted(itertools.chain(*numbers)) == list(range(total))
        sizes = [len(each) for each in numbers]
        assert max(sizes) - min(sizes) <= 1


def test_units_cover_each_array_once() -> None:
    units = Units({"b": Grid((5, 3), (2, 2)), "a": Grid((), ()), "empty": Grid((0, 4), (1, 4))})
    assert len(units) == 7
    assert [unit.path for unit in units] == ["a"] + ["b"] * 6
    covered = np.zeros((5, 3), int)
    for unit in units[1:]:
        covered[unit.region] += 1
    assert (covered == 1).all()
    assert units[-1].number == 6
    with pytest.raises(IndexError, match="7 units"):
        units[7]


@pytest.mark.parametrize("seed", CASES)
def test_blocks_are_write_units_within_memory(seed: int) -> None:
    rng = random.Random(seed)
    ndim = rng.randint(0, 3)
    shape = [rng.randint(1, 60) for _ in range(ndim)]
    unit, chunk = ([rng.randint(1, 20) for _ in range(ndim)] for _ in range(2))
    memory = rng.choice((1, 1000, 100_000))
    block = blocks.choose(shape, unit, chunk, 8, memory)
    for extent, own, step in zip(shape, block, unit, strict=True):
        assert own == extent or own % step == 0
    smallest = math.prod(min(step, extent) for step, extent in zip(unit, shape, strict=True))
    assert math.prod(block) * 8 <= max(memory, smallest * 8)
    # The oracle: the chunks that each block meets, counted one by one.
    met = 0
    starts = [range(0, extent, step) for extent, step in zip(shape, block, strict=True)]
    for corner in itertools.product(*starts):
        met += math.prod(
            (min(start + step, extent) - 1) // size - start // size + 1
            for start, step, extent, size in zip(corner, block, shape, chunk, strict=True)
        )
    chunks = math.prod(-(-extent // size) for extent, size in zip(shape, chunk, strict=True))
    assert blocks.reads_of_each_byte(shape, block, chunk) == pytest.approx(met / chunks)


@pytest.mark.parametrize("seed", CASES)
def test_finished_units_are_those_of_all_records(seed: int) -> None:
    rng = random.Random(seed)
    total = rng.randint(0, 300)
    records, oracle = [], set()
    for _ in range(rng.randint(0, 6)):
        count = rng.randint(1, 9)
        numbers = jobs.Job(rng.randrange(count), count, rng.choice(("contiguous", "spread"))).numbers(total)
        first, end = sorted(rng.randint(0, len(numbers)) for _ in range(2))
        records.append((numbers, [[first, end]]))
        oracle |= set(numbers[first:end])
    finished = Finished(records)
    job = jobs.Job(rng.randrange(3), 3, rng.choice(("contiguous", "spread"))).numbers(total)
    left = [number for number in job if number not in oracle]
    assert list(finished.remaining(job)) == left
    assert finished.count_remaining(job) == len(left)


def test_many_units_take_no_memory() -> None:
    units = Units({"": Grid((10**12,), (1000,))})
    tracemalloc.start()
    numbers = jobs.Job(5, 1000, "spread").numbers(len(units))
    left = Finished([(numbers, [[0, len(numbers) - 2]])]).count_remaining(numbers[-10_000:])
    assert (len(units), len(numbers), left) == (10**9, 10**6, 2)
    assert units[10**9 - 1].region == (slice(10**12 - 1000, 10**12),)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("seed", CASES)
@pytest.mark.filterwarnings("ignore:the copy of '/' has no fill value")  # of arrays without axes
def test_a_copy_equals_its_source(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(0, 12) for _ in range(rng.randint(0, 3)))
    dtype = rng.choice(("i2", ">f8", "bool", "U4", "c8"))
    values = np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)
    unit = tuple(rng.randint(1, 9) for _ in shape)
    source = zarrow.create_array(
        tmp_path / "source.zarr",
        data=values,
        chunks=unit,
        fill_value=values.dtype.type(3),
        attributes={"units": "K"},
        zarr_format=rng.choice((2, 3)),
    )
    options: dict[str, Any] = {}
    if rng.random() < 0.7:
        options["chunks"] = tuple(rng.randint(1, 9) for _ in shape)
    if rng.random() < 0.3:
        options["compressors"] = rng.choice((None, "zstd"))
    if rng.random() < 0.5:
        options["zarr_format"] = rng.choice((2, 3))
    memory = rng.choice((1, 500, 10**6))
    plan = jobs.copy(source, tmp_path / "copy.zarr", memory_nbytes=memory, **options)
    assert len(pickle.dumps(plan)) < 1024
    carry_out(plan, rng.randint(1, 4), rng.choice(("contiguous", "spread")))
    copy = zarr.open_array(tmp_path / "copy.zarr", mode="r")
    np.testing.assert_array_equal(copy[...], values)
    assert copy.attrs["units"] == "K"
    assert copy.chunks == tuple(options.get("chunks", unit))
    assert copy.metadata.zarr_format == options.get("zarr_format", source.zarr_format)
    if shape or copy.metadata.zarr_format == 3:
        # xarray takes a scalar for named, and would mask the fill value in version 2.
        assert np.asarray(copy.fill_value) == values.dtype.type(3)


def test_a_group_is_copied_with_names_attributes_and_shards(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "source.zarr", attributes={"title": "all"})
    numbers = np.arange(60.0).reshape(6, 10)
    root.create_array(
        "model/rain", data=numbers, chunks=(1, 5), shards=(2, 10), dimension_names=("day", "place")
    )
    root.create_array("names", data=np.array(["a", "bc"], "U"))
    root.create_group("empty", attributes={"why": "not"})
    plan = jobs.copy(
        root, tmp_path / "copy.zarr", "below", chunks={"day": 3}, attributes={"by": "plan"}, consolidate=True
    )
    carry_out(plan, 3)
    copy = zarr.open_consolidated(tmp_path / "copy.zarr", path="below")
    assert copy.attrs.asdict() == {"title": "all", "by": "plan"}
    assert copy["empty"].attrs.asdict() == {"why": "not"}
    np.testing.assert_array_equal(copy["model/rain"][...], numbers)
    assert copy["model/rain"].chunks == (3, 5)
    assert copy["model/rain"].metadata.dimension_names == ("day", "place")
    assert copy["names"][...].tolist() == ["a", "bc"]


def test_chunks_and_shards_are_for_arrays_with_these_axes(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a")
    root.create_array("grid", data=np.ones((8, 8)), chunks=(2, 2), dimension_names=["y", "x"])
    root.create_array("line", data=np.ones(8), chunks=2, dimension_names=["x"])
    root["number"] = 1.5
    for options, grid, line in (
        ({"shards": (4, 8)}, ((2, 2), (4, 8)), ((2,), None)),
        ({"chunks": (4, 8)}, ((4, 8), None), ((2,), None)),
        ({"chunks": [4]}, ((2, 2), None), ((4,), None)),
        ({"shards": {"x": 4}}, ((2, 2), (2, 4)), ((2,), (4,))),
        ({"chunks": {"y": 4}, "shards": {"x": 8}}, ((4, 2), (4, 8)), ((2,), (8,))),
        ({"chunks": 4, "shards": 8}, ((4, 4), (8, 8)), ((4,), (8,))),
    ):
        jobs.copy(zarrow.open(tmp_path / "a"), tmp_path / "b", **options).complete(overwrite=True)
        copy = zarrow.open(tmp_path / "b")
        assert [(copy[name].chunks, copy[name].shards) for name in ("grid", "line")] == [grid, line], options
        assert copy["number"][...].item() == 1.5
        assert (copy["grid"][...].numpy() == 1).all() and (copy["line"][...].numpy() == 1).all()
    for options, message in (
        ({"shards": (4, 4, 4)}, "no array has 3 axes"),
        ({"shards": {"z": 4}}, "no array has a dimension 'z' of shards"),
    ):
        with pytest.raises(ValueError, match=message):
            jobs.copy(zarrow.open(tmp_path / "a"), tmp_path / "c", **options)


def test_an_empty_group_is_copied(tmp_path: Path) -> None:
    source = zarrow.create_group(tmp_path / "source.zarr", attributes={"title": "none"})
    carry_out(jobs.copy(source, tmp_path / "copy.zarr"))
    assert zarrow.open(tmp_path / "copy.zarr").attrs["title"] == "none"


def test_new_elements_are_computed_and_written(tmp_path: Path) -> None:
    values = np.arange(24.0).reshape(4, 6)
    zarrow.save(tmp_path / "a.zarr", values)
    a = zarrow.open_array(tmp_path / "a.zarr")
    plan = jobs.map(np.add, [a, a], tmp_path / "sum.zarr", dtype="f4", chunks=(1, 6), memory_nbytes=100)
    carry_out(plan)
    total = zarrow.open_array(tmp_path / "sum.zarr")
    assert total.dtype == "f4"
    np.testing.assert_array_equal(total[...], values * 2)
    carry_out(jobs.write(row_numbers, total, memory_nbytes=100))
    assert total[:, 0].tolist() == [0, 1, 2, 3]
    plan = jobs.collect(sum_of_unit, a, with_unit=True, memory_nbytes=100)
    carry_out(plan)
    assert sum(plan.results().values()) == values.sum()


def row_numbers(unit: jobs.Unit) -> np.ndarray[Any, Any]:
    """Return the number of its row for each element."""
    rows, columns = unit.region
    return np.arange(rows.start, rows.stop)[:, None].repeat(columns.stop - columns.start, axis=1)


def sum_of_unit(values: np.ndarray[Any, Any], unit: jobs.Unit) -> float:
    """Return the sum of the elements of a unit."""
    assert values.shape == tuple(part.stop - part.start for part in unit.region)
    return float(values.sum())


def test_a_plan_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2, 3])
    a = zarrow.open_array(tmp_path / "a.zarr")
    target = tmp_path / "b.zarr"
    for options, error in (
        ({"compressors": "no such codec"}, ValueError),
        ({"chunk": 3}, TypeError),
        ({"shape": (3,)}, TypeError),
        ({"memory_nbytes": 0}, ValueError),
    ):
        with pytest.raises(error):
            jobs.copy(a, target, **options)
    with pytest.raises(TypeError, match="list"):
        jobs.copy([1, 2], target)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ledger="):
        jobs.copy(a, zarrow.MemoryStore())
    zarrow.save(tmp_path / "c.zarr", [1, 2])
    with pytest.raises(zarrow.ShapeError):
        jobs.map(np.add, [a, zarrow.open_array(tmp_path / "c.zarr")], target)
    assert not target.exists()
    assert not (tmp_path / "b.zarr.jobs").exists()


def test_a_plan_does_not_write_where_another_array_is(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2, 3])
    zarrow.save(tmp_path / "b.zarr", [7, 7, 7])
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr")
    with pytest.raises(jobs.UnfinishedError, match="not set up"):
        plan.run(plan.job(0, 1))
    with pytest.raises(zarrow.NodeExistsError, match="overwrite"):
        plan.setup()
    assert zarrow.load(tmp_path / "b.zarr").tolist() == [7, 7, 7]
    plan.setup(overwrite=True)
    plan.run(plan.job(0, 1))
    plan.finish()
    # Once it is set up, overwrite erases nothing.
    plan.setup(overwrite=True)
    assert zarrow.load(tmp_path / "b.zarr").tolist() == [1, 2, 3]


def test_a_plan_that_would_replace_its_source_is_refused(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("x", data=[1, 2, 3])
    root.create_array("below/y", data=[4, 5])
    (tmp_path / "link.zarr").symlink_to(tmp_path / "a.zarr")
    x = root["x"]
    for make in (
        lambda: jobs.copy(x, tmp_path / "a.zarr", "x"),
        lambda: jobs.copy(x, tmp_path / "link.zarr", "x"),
        lambda: jobs.copy(x, (tmp_path / "a.zarr" / "x").as_uri()),
        lambda: jobs.copy(x, tmp_path / "c" / ".." / "a.zarr" / "x"),
        lambda: jobs.copy(root, tmp_path / "a.zarr"),
        lambda: jobs.copy(root["below"]["y"], tmp_path / "a.zarr", "below"),
        lambda: jobs.copy(root["below"]["y"], tmp_path / "a.zarr"),
        lambda: jobs.map(np.negative, x, tmp_path / "a.zarr" / "x" / "z"),
        lambda: jobs.map(np.add, [x, zarrow.open(tmp_path / "link.zarr")["x"]], tmp_path / "link.zarr", "x"),
    ):
        with pytest.raises(ValueError, match="choose another target"):
            make().setup(overwrite=True)
    assert x[...].tolist() == [1, 2, 3]
    assert set(tmp_path.iterdir()) == {tmp_path / "a.zarr", tmp_path / "link.zarr"}


def test_a_group_is_copied_into_itself_once(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("x", data=[1, 2, 3])
    for _ in range(2):
        carry_out(jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "a.zarr", "copy"))
    found = dict(zarrow.open_group(tmp_path / "a.zarr").members(max_depth=None))
    assert sorted(found) == ["copy", "copy/x", "x"]


def test_a_function_that_returns_another_shape_is_refused(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", np.arange(12.0))
    a = zarrow.open_array(tmp_path / "a.zarr")
    for number, function in enumerate((np.mean, lambda x: x[:1], lambda x: x[None], lambda _: None)):
        plan = jobs.map(function, a, tmp_path / f"{number}.zarr")
        plan.setup()
        with pytest.raises(zarrow.ShapeError, match="the function returned shape"):
            plan.run(plan.job(0, 1))
        assert plan.remaining() == 1


def test_a_result_of_another_type_gets_a_fill_value_of_it(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=np.array(["a", "bcd"], "T"))
    a = zarrow.open_array(tmp_path / "a.zarr")
    carry_out(jobs.map(np.strings.str_len, a, tmp_path / "b.zarr", dtype="i8"))
    carry_out(jobs.map(np.strings.str_len, a, tmp_path / "c.zarr", dtype="i8", fill_value=-1))
    assert zarrow.load(tmp_path / "b.zarr").tolist() == [1, 3]
    assert zarrow.open(tmp_path / "b.zarr").fill_value == 0
    assert zarrow.open(tmp_path / "c.zarr").fill_value == -1


def test_an_unknown_dimension_or_an_empty_name_is_refused(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=[1, 2], dimension_names=("day",))
    a = zarrow.open(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="no array has a dimension 'dya'"):
        jobs.copy(a, tmp_path / "b.zarr", chunks={"dya": 1})
    with pytest.raises(ValueError, match="empty"):
        jobs.copy(a, "")


SET_UP = """
    import sys
    import zarrow
    from zarrow import jobs

    plan = jobs.copy(zarrow.open("a.zarr"), "b.zarr", chunks=(2, 8), memory_nbytes=1)
    sys.stdin.readline()
    plan.setup(overwrite="overwrite" in sys.argv)
    plan.run(plan.job(int(sys.argv[1]), 3))
"""


@pytest.mark.parametrize("overwrite", [False, True])
def test_processes_that_set_up_at_once_erase_no_units(tmp_path: Path, overwrite: bool) -> None:
    values = np.arange(1, 401).reshape(50, 8)
    zarrow.save(tmp_path / "a.zarr", values)
    program = "\n".join(line[4:] for line in SET_UP.splitlines())
    for _ in range(4):
        if overwrite:
            zarrow.save(tmp_path / "b.zarr", np.arange(1000))
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(index), *(["overwrite"] if overwrite else [])],
                cwd=tmp_path,
                stdin=subprocess.PIPE,
                text=True,
            )
            for index in range(3)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            process.communicate(timeout=60)
        assert [process.returncode for process in processes] == [0, 0, 0]
        np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), values)
        shutil.rmtree(tmp_path / "b.zarr")
        shutil.rmtree(tmp_path / "b.zarr.jobs")


def test_a_plan_begins_anew_if_its_target_is_gone(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2, 3])
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", "x")
    carry_out(plan)
    del zarrow.open_group(tmp_path / "b.zarr")["x"]
    carry_out(plan)
    assert zarrow.open(tmp_path / "b.zarr")["x"][...].tolist() == [1, 2, 3]
    plan.forget()
    assert not (tmp_path / "b.zarr.jobs").exists()
    assert plan.remaining() == 1


def test_a_plan_ends_if_an_array_changes(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2, 3])
    a = zarrow.open_array(tmp_path / "a.zarr")
    plan = jobs.copy(a, tmp_path / "b.zarr")
    plan.setup()
    with pytest.raises(jobs.UnfinishedError, match="1 of 1"):
        plan.finish()
    pickled = pickle.dumps(plan)
    plan.run(plan.job(0, 1))
    zarrow.open_array(tmp_path / "b.zarr").append([4])
    with pytest.raises(zarrow.StaleHandleError, match="has changed"):
        plan.finish()
    a.append([4])
    with pytest.raises(zarrow.StaleHandleError, match="have changed"):
        pickle.loads(pickled)


def test_what_people_wrote_into_a_ledger_is_checked(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", np.arange(3))
    plan = jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", chunks=1, memory_nbytes=1)
    plan.setup()
    plan.run(plan.job(0, 1))
    ledger = zarrow.open_group(f"{tmp_path}/b.zarr.jobs/{plan.fingerprint}")
    (record,) = ledger.keys()
    assert ledger[record].attrs["done"] == [[0, 3]]
    ledger.create_group("notes")
    assert plan.remaining() == 0
    for wrong in ("all", [[3, 1]], [[0]], [[0, "2"]], None, [[-1, 2]]):
        ledger[record].attrs["done"] = wrong
        with pytest.raises(zarrow.MetadataError, match="expected ranges"):
            plan.remaining()
    ledger[record].attrs["done"] = [[0, 10**9]]
    assert plan.remaining() == 0
    document = tmp_path / "b.zarr.jobs" / plan.fingerprint / "zarr.json"
    for broken in (b"", b"{", b'{"zarr_format": 3, "node_type": "array"}'):
        document.write_bytes(broken)
        with pytest.raises(
            zarrow.MetadataError, match="ledger of the plan cannot be read, delete it to begin"
        ):
            plan.setup()


def test_schedulers_are_understood() -> None:
    slurm = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_COUNT": "10"}
    assert environment.found(slurm | {"SLURM_PROCID": "0"}, None, None) == (6, 10)
    assert environment.found(slurm, 2, 3) == (2, 3)
    assert environment.found({"JOB_COMPLETION_INDEX": "4"}, None, 8) == (4, 8)
    assert environment.found({"RANK": "1", "WORLD_SIZE": "2"}, None, None) == (1, 2)
    assert environment.found({}, None, None) == (0, 1)
    with pytest.raises(ValueError, match="--count"):
        environment.found({"JOB_COMPLETION_INDEX": "4"}, None, None)
    with pytest.raises(ValueError, match="RANK is 'x'"):
        environment.found({"RANK": "x", "WORLD_SIZE": "2"}, None, None)
    with pytest.raises(ValueError, match="both"):
        environment.found({}, 1, None)


def test_jobs_run_from_the_command_line(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", np.arange(10))
    (tmp_path / "mine.py").write_text(
        "import zarrow\nfrom zarrow import jobs\n"
        "def plan():\n"
        "    return jobs.copy(zarrow.open('a.zarr'), 'b.zarr', chunks=1, memory_nbytes=1)\n",
        encoding="utf-8",
    )

    def command(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "zarrow.jobs", *arguments],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
        output, errors = process.communicate(timeout=60)
        return process.returncode, output + errors

    # The others wait for job 0, which sets up the plan.
    started = [command("mine.py:plan", "--index", str(index), "--count", "3") for index in (2, 1, 0)]
    assert [ended(process)[0] for process in started] == [0, 0, 0]
    assert ended(command("mine:plan", "--status")) == (0, "0 of 10 units are left\n")
    assert ended(command("mine:plan", "--finish"))[0] == 0
    assert zarrow.load(tmp_path / "b.zarr").tolist() == list(range(10))
    assert ended(command("none:plan"))[0] == 1
    status, text = ended(command("mine.py:plan", "--index", "5", "--count", "3"))
    assert status == 1
    assert "from 0 to 2" in text
    for wrong in ("mine.py", "a.zarr/zarr.json"):
        status, text = ended(command(wrong))
        assert status == 1 and "Traceback" not in text and ".py:plan" in text
    # Errors name options of the module. A finished plan stays finished.
    assert ended(command("mine.py:plan", "--overwrite"))[1] == "job 0 of 1: 0 units done, 10 before\n"
    shutil.rmtree(tmp_path / "b.zarr.jobs")
    status, text = ended(command("mine.py:plan", "--index", "1", "--count", "2", "--wait", "0"))
    assert status == 1 and "run it with --setup once" in text
    assert "pass --overwrite to erase it" in ended(command("mine.py:plan"))[1]
    assert ended(command("mine.py:plan", "--overwrite"))[1] == "job 0 of 1: 10 units done, 0 before\n"


KILLED = """
    import os, sys, time
    import numpy as np, zarrow
    from zarrow import jobs

    def logged(values, unit):
        os.write(log, f"{unit.number}\\n".encode())
        time.sleep(0.002)
        return values + 1

    log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    plan = jobs.map(logged, zarrow.open("a.zarr"), "b.zarr", with_unit=True, chunks=(2, 8), memory_nbytes=1)
    index, count, assign = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    plan.setup()
    plan.run(plan.job(index, count, assign))
"""


def test_killed_jobs_are_continued(tmp_path: Path) -> None:
    """Processes of one plan are killed at random; the next ones do no finished unit again."""
    rng = random.Random(1)
    values = np.arange(200 * 16).reshape(200, 16)
    zarrow.save(tmp_path / "a.zarr", values)
    program = "\n".join(line[4:] for line in KILLED.splitlines())
    (tmp_path / "jobs_to_kill.py").write_text(program, encoding="utf-8")
    log = tmp_path / "log"

    def started(index: int, count: int, assign: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "jobs_to_kill.py", str(index), str(count), assign], cwd=tmp_path
        )

    def finished() -> set[int]:
        found: set[int] = set()
        for record in tmp_path.glob("b.zarr.jobs/*/*-of-*/zarr.json"):
            attributes = json.loads(record.read_text(encoding="utf-8"))["attributes"]
            index, count, assign = attributes["job"]
            numbers = jobs.Job(index, count, assign).numbers(200)
            found |= {number for first, end in attributes["done"] for number in numbers[first:end]}
        return found

    log.touch()
    killed, expected = 0, kills(3)
    while len(before := finished()) < 200:
        size = log.stat().st_size
        count, assign = rng.randint(2, 3), rng.choice(("contiguous", "spread"))
        processes = [started(index, count, assign) for index in range(count)]
        enough = size + rng.randint(60, 450) // expected
        while log.stat().st_size < enough and any(process.poll() is None for process in processes):
            time.sleep(0.001)
        for process in processes:
            killed += process.poll() is None
            process.kill()
            process.wait(60)
        done = {int(line) for line in log.read_bytes()[size:].split()}
        assert not done & before
    assert killed >= expected
    assert finished() == set(range(200))
    assert set(tmp_path.iterdir()) == {
        tmp_path / name for name in ("a.zarr", "b.zarr", "b.zarr.jobs", "log", "jobs_to_kill.py")
    }
    np.testing.assert_array_equal(zarrow.load(tmp_path / "b.zarr"), values + 1)


def test_two_plans_do_not_write_the_same_array(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(8), chunks=4)
    first = jobs.write(ones_of_unit, array, memory_nbytes=1)
    first.setup()
    first.run(first.job(0, 2))
    others = [jobs.write(twos_of_unit, array, memory_nbytes=1), jobs.append(ones_of_unit, array, 4)]
    for other in others:
        with pytest.raises(jobs.ConflictError, match=rf"plan {first.fingerprint} \(write\) .* finish it"):
            other.setup()
        assert not other.is_begun
    # A plan that reads is no conflict, nor is a plan's own ledger.
    reading = jobs.collect(np.sum, array)
    reading.setup()
    first.setup()
    first.run(first.job(1, 2))
    first.finish()
    assert array[...].tolist() == [1] * 8
    others[0].setup()
    with pytest.raises(jobs.ConflictError, match=r"\(write\)"):
        others[1].setup()
    # Only overwrite=True replaces the ledger of the other plan.
    others[1].setup(overwrite=True)
    assert not others[0].is_begun
    with pytest.raises(jobs.ConflictError, match=r"\(append\)"):
        others[0].setup()
    others[0].complete(overwrite=True)
    assert not others[1].is_begun and array[...].tolist() == [2] * 8


def ones_of_unit(unit: jobs.Unit) -> np.ndarray[Any, Any]:
    return np.ones([part.stop - part.start for part in unit.region], "i8")


def twos_of_unit(unit: jobs.Unit) -> np.ndarray[Any, Any]:
    return 2 * ones_of_unit(unit)
