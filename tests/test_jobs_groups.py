"""Plans with a function over groups: which arrays they compute, write and append to."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest

import zarrow
from test_copy import contents
from test_jobs import carry_out
from zarrow import jobs

NAMES = ("time", "t", "lat", "crs", "n", "below/t")


def dataset(store: Any) -> zarrow.Group:
    """Return a group with coordinates, a grid mapping, and a group below it."""
    root = zarrow.create_group(store, attributes={"title": "days"})
    named: dict[str, Any] = {"coordinates": "lat", "grid_mapping": "crs: x"}
    root.create_array("time", data=np.arange(6), dimension_names=["time"], chunks=2)
    t = np.arange(24.0).reshape(6, 4)
    root.create_array("t", data=t, dimension_names=["time", "x"], chunks=(2, 2), attributes=named)
    root.create_array("lat", data=np.arange(4.0), dimension_names=["x"])
    root.create_array("crs", data=np.array(0))
    root.create_array("n", data=np.arange(6), dimension_names=["time"], chunks=3)
    root.create_group("below", attributes={"deep": 1}).create_array(
        "t", data=np.arange(6.0), dimension_names=["time"], chunks=4
    )
    return zarrow.open_group(store, mode="r+")


def values(root: Any) -> dict[str, Any]:
    return {name: np.asarray(root[name][...]).tolist() for name in NAMES}


def filled(unit: jobs.Unit) -> Any:
    """Return the number of the first row plus 100, for each element."""
    return np.full([part.stop - part.start for part in unit.region], 100 + unit.region[0].start)


def reversed_sum(first: Any, second: Any, unit: jobs.Unit) -> Any:
    assert unit.path in ("t", "n", "below/t")
    return first + 10 * second


def test_a_map_over_groups_computes_variables_and_copies_the_rest(tmp_path: Path) -> None:
    root = dataset(tmp_path / "a.zarr")
    before = values(root)
    for sources, target in ([root, root], "b.zarr"), ([root, root], "a.zarr"):
        path = "copy" if target == "a.zarr" else ""
        plan = jobs.map(
            reversed_sum, sources, tmp_path / target, path, with_unit=True, memory_nbytes=1, dtype="f4"
        )
        assert len(pickle.dumps(plan)) < 1000
        carry_out(plan, 3)
        found = zarrow.open_group(tmp_path / target, path)
        for name in NAMES:
            is_computed = name in ("t", "n", "below/t")
            assert values(found)[name] == (np.array(before[name]) * (11 if is_computed else 1)).tolist()
            assert found[name].dtype == (np.dtype("f4") if is_computed else root[name].dtype)
            assert found[name].dimension_names == root[name].dimension_names
        assert dict(found.attrs) == {"title": "days"}
        assert dict(found["below"].attrs) == {"deep": 1}
    jobs.map(np.negative, root, tmp_path / "c.zarr", arrays=["lat", "/below/t"]).complete()
    found = values(zarrow.open(tmp_path / "c.zarr"))
    assert found == {**before, "lat": [0, -1, -2, -3], "below/t": [0, -1, -2, -3, -4, -5]}


def test_sources_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    root, other = dataset(tmp_path / "a.zarr"), dataset(tmp_path / "b.zarr")
    del other["n"]
    with pytest.raises(ValueError, match="array 'n' of the first source is missing"):
        jobs.map(np.add, [root, other], tmp_path / "c.zarr")
    other.create_array("n", data=[1])
    with pytest.raises(zarrow.ShapeError, match=r"got \(6,\) and \(1,\)"):
        jobs.collect(np.add, [root, other])
    with pytest.raises(TypeError, match="arrays or groups, got both"):
        jobs.map(np.add, [root, root["n"]], tmp_path / "c.zarr")
    with pytest.raises(ValueError, match="arrays has 'm', but the source has below/t, crs, lat"):
        jobs.write(filled, root, arrays=["m"])
    with pytest.raises(ValueError, match="leave out arrays"):
        jobs.write(filled, root["n"], arrays=["n"])
    with pytest.raises(TypeError, match=r"pass arrays=\['n'\]"):
        jobs.write(filled, root, arrays="n")
    with pytest.raises(ValueError, match="would replace"):
        jobs.map(np.negative, root, tmp_path / "a.zarr")
    with pytest.raises(TypeError, match='name of a dimension, such as "time"'):
        jobs.append(filled, root, 1)
    with pytest.raises(IndexError, match="has a dimension 'day'"):
        jobs.append(filled, root, 1, axis="day")
    twice = root.create_array("twice", data=np.zeros((6, 6)), dimension_names=["time", "time"])
    for target in (root, twice):
        with pytest.raises(zarrow.ShapeError, match=r"array 'twice' .* has the dimension 'time' twice"):
            jobs.append(filled, target, 1, axis="time")
    del root["twice"]
    with pytest.raises(IndexError, match="axis 'x' is out of bounds for an array with 1 axes, named time"):
        jobs.append(filled, root["n"], 1, axis="x")
    root["n"].resize((5,))
    with pytest.raises(zarrow.ShapeError, match="'n': 5"):
        jobs.append(filled, root, 2, axis="time")


def test_values_are_collected_from_each_variable(tmp_path: Path) -> None:
    plan = jobs.collect(np.max, dataset(tmp_path / "a.zarr"), memory_nbytes=1)
    carry_out(plan)
    found: dict[str, float] = {}
    for number, value in plan.results().items():
        path = plan.units[number].path
        found[path] = max(value, found.get(path, 0))
    assert found == {"t": 23.0, "n": 5, "below/t": 5.0}


def test_names_of_coordinates_are_found_in_groups_above(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    for name in ("absolute", "relative", "above", "near", "b/near", "variable"):
        root.create_array(name, data=np.arange(3.0))
    named = {"coordinates": "/absolute ../relative above near missing", "grid_mapping": "crs: /absolute"}
    root.create_array("b/c", data=np.arange(3.0), attributes=named)
    jobs.map(np.negative, root, tmp_path / "b.zarr").complete()
    found = zarrow.open(tmp_path / "b.zarr")
    nodes = found.members(max_depth=None)
    computed = {path for path, node in nodes if isinstance(node, zarrow.Array) and node[1] == -1}
    assert computed == {"near", "variable", "b/c"}


def _a_member(root: zarrow.Group) -> None:
    root.create_array("x", data=np.arange(5))


def _an_array_for_a_group(root: zarrow.Group) -> None:
    _a_member(root)
    root.create_array("z", data=np.arange(5))


def _a_group_for_an_array(root: zarrow.Group) -> None:
    root.create_group("z")
    root.create_group("x").create_array("y", data=np.arange(5))


@pytest.mark.parametrize("kind", ["map", "copy", "raw"])
@pytest.mark.parametrize("build", [_an_array_for_a_group, _a_group_for_an_array])
def test_a_node_of_another_kind_is_refused_before_anything_changes(
    build: Any, kind: str, tmp_path: Path
) -> None:
    source = zarrow.create_group(tmp_path / "a.zarr")
    _a_member(source)
    source.create_array("z/x", data=np.arange(3))
    build(zarrow.create_group(tmp_path / "b.zarr"))
    before = contents(tmp_path / "b.zarr")
    plan = {
        "map": lambda: jobs.map(np.negative, source, tmp_path / "b.zarr"),
        "copy": lambda: jobs.copy(source, tmp_path / "b.zarr"),
        "raw": lambda: jobs.copy(source, tmp_path / "b.zarr", raw=True),
    }[kind]()
    given: list[dict[str, bool]] = [{}, {"skip_existing": True}]
    if build is _an_array_for_a_group and kind != "raw":
        given.append({"overwrite": True})
    for options in given:
        with pytest.raises(zarrow.NodeExistsError):
            plan.setup(**options)
        assert contents(tmp_path / "b.zarr") == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


def test_an_append_to_a_group_with_a_new_array_is_refused(tmp_path: Path) -> None:
    """The new array would stay shorter."""
    root = dataset(tmp_path / "a.zarr")
    plan = jobs.append(filled, root, 3, axis="time")
    plan.setup()
    plan.run(plan.job(0, 1))
    root.create_array("new", data=np.arange(6), dimension_names=["time"])
    for each in (plan, pickle.dumps(plan)):
        with pytest.raises(zarrow.StaleHandleError, match="make it again"):
            (pickle.loads(each) if isinstance(each, bytes) else each).finish()
    assert root["time"].shape == (6,)
    jobs.append(filled, root, 3, axis="time").complete(overwrite=True)
    assert {zarrow.open(tmp_path / "a.zarr")[name].shape[0] for name in ("time", "t", "new")} == {9}
    root.create_array("later", data=np.arange(9), dimension_names=["time"])
    plan = jobs.append(filled, root, 1, axis="time")
    plan.setup()
    plan.run(plan.job(0, 1))
    plan.finish()
    root.create_array("last", data=np.arange(10), dimension_names=["time"])
    plan.finish()  # It is finished already.


def test_the_end_of_an_append_checks_all_arrays_before_one_grows(tmp_path: Path) -> None:
    root = dataset(tmp_path / "a.zarr")
    plan = jobs.append(filled, root, 3, axis="time")
    plan.setup()
    plan.run(plan.job(0, 1))
    before = {name: root[name].shape for name in ("t", "n", "below/t")}
    del root["time"]  # It would grow last.
    with pytest.raises(zarrow.NotFoundError):
        plan.finish()
    assert {name: zarrow.open(tmp_path / "a.zarr")[name].shape for name in before} == before


def test_a_write_into_a_group_leaves_coordinates(tmp_path: Path) -> None:
    root = dataset(tmp_path / "a.zarr")
    before = values(root)
    plan = jobs.write(filled, root, memory_nbytes=1)
    assert len(pickle.dumps(plan)) < 1000
    plan.setup()
    with pytest.raises(jobs.ConflictError, match=r"plan .* \(write\) writes array 'n'"):
        jobs.write(abs, root["n"]).setup()
    carry_out(plan, 3)
    rows = np.repeat(np.array([100, 102, 104]), 2)
    expected = {"t": np.tile(rows[:, None], 4).tolist(), "n": [100] * 3 + [103] * 3}
    assert values(root) == {**before, **expected, "below/t": [100] * 4 + [104] * 2}


@pytest.mark.parametrize("is_versioned", [False, True])
def test_an_append_to_a_group_makes_all_arrays_of_a_dimension_longer(
    tmp_path: Path, is_versioned: bool
) -> None:
    store: Any = tmp_path / "a.zarr"
    ledger = os.fspath(tmp_path / "ledger")
    if is_versioned:
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(store)))
        session = repository.writable_session("main")
        dataset(session)
        session.commit("days")
        store = repository.writable_session("main")
    root = dataset(store) if not is_versioned else zarrow.open_group(store, mode="r+")
    before = values(root)
    plan = jobs.append(filled, root, 3, axis="time", memory_nbytes=1, ledger=ledger)
    plan.setup()
    plan.run(plan.job(0, 1))
    if not is_versioned:
        assert values(zarrow.open(store)) == before
        assert len(pickle.dumps(plan)) < 1000
        with pytest.raises(jobs.ConflictError, match="is not finished: finish it first"):
            jobs.append(filled, root["n"], 1, ledger=ledger).setup()
        # `finish` was killed after the first array.
        path, item = next(iter(plan._work.items.items()))
        assert path != "time"
        item.finish(item.opened())
        with pytest.raises(jobs.ConflictError, match="its end was interrupted"):
            jobs.append(filled, root[path], 1, ledger=ledger).setup()
        # A script that is run again makes the same plan.
        again = jobs.append(filled, root, 3, axis="time", memory_nbytes=1, ledger=ledger)
        assert again.fingerprint == pickle.loads(pickle.dumps(plan)).fingerprint == plan.fingerprint
        with pytest.raises(zarrow.StaleHandleError, match=r"its shape is \(9,\), and was \(6,\)"):
            jobs.append(filled, root, 3, axis="time").setup()
        again.setup()
        plan = again
    plan.finish()
    found = values(zarrow.open(repository.readonly_session("main") if is_versioned else store))
    assert found["time"] == [*range(6), 106, 106, 108]
    assert found["n"] == [*range(6), 106, 106, 106]
    assert found["below/t"] == [*range(6), 106, 106, 108]
    assert found["t"] == [*before["t"], [106] * 4, [106] * 4, [108] * 4]
    assert (found["lat"], found["crs"]) == (before["lat"], before["crs"])
