"""Saves and copies in a bucket: round trips, and equal nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas
import pytest

import zarrow
from counted_bucket import Bucket, counted_bucket
from round_trips import in_few_round_trips

pytestmark = [pytest.mark.small_files, pytest.mark.filterwarnings("ignore::zarrow.errors.ZarrowWarning")]

# No more requests at once than a host gets at first.
ARRAYS = {f"a{number}": np.arange(10) + number for number in range(50)}


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with counted_bucket() as found:
        yield found


def expect_same(found: Any, expected: Any) -> None:
    """Compare the attributes, layouts and elements of two groups."""
    ours, theirs = dict(found.members(max_depth=None)), dict(expected.members(max_depth=None))
    assert ours.keys() == theirs.keys()
    assert dict(found.attrs) == dict(expected.attrs)
    for name, member in theirs.items():
        assert dict(ours[name].attrs) == dict(member.attrs)
        if isinstance(member, zarrow.Array):
            assert ours[name].metadata == member.metadata
            assert ours[name][...].equals(member[...])


# Saves, and the most round trips of each to a new place and over existing arrays.
SAVES: dict[str, tuple[Callable[[Any], None], int, int]] = {
    "by name": (lambda store: zarrow.save(store, **ARRAYS), 4, 8),
    "a dict": (lambda store: zarrow.save(store, ARRAYS), 4, 9),
    "a dict below groups": (lambda store: zarrow.save(store, ARRAYS, path="a/b"), 6, 10),
}


@pytest.mark.parametrize("case", SAVES)
@in_few_round_trips(counted_bucket)
def test_many_small_arrays_are_saved_in_few_round_trips(bucket: Bucket, tmp_path: Path, case: str) -> None:
    save, new, replaced = SAVES[case]
    store = zarrow.CloudStore(bucket.url(case), storage_options=bucket.options)
    save(tmp_path)
    for most in (new, replaced):
        bucket.expect(lambda: save(store), most)
        expect_same(zarrow.open(store), zarrow.open(tmp_path))


@in_few_round_trips(counted_bucket)
def test_many_arrays_are_created_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    store = zarrow.CloudStore(bucket.url("created"), storage_options=bucket.options)
    root = zarrow.create_group(store)
    named: Any = {f"level{number % 3}/{name}": {"data": ARRAYS[name]} for number, name in enumerate(ARRAYS)}
    root.create_array("one", shape=1000, dtype="i4")
    empty = {f"empty/{path}": {"shape": 1000, "dtype": "i4"} for path in named}
    bucket.expect(lambda: root.create_arrays(empty), 4)
    bucket.expect(lambda: root.create_arrays(named), 6)
    local = zarrow.create_group(tmp_path)
    local.create_array("one", shape=1000, dtype="i4")
    local.create_arrays({**empty, **named})
    expect_same(zarrow.open(store), local)


@in_few_round_trips(counted_bucket)
def test_many_arrays_are_written_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    store = zarrow.CloudStore(bucket.url("writes"), storage_options=bucket.options)
    zarrow.save(store, **ARRAYS)
    zarrow.save(tmp_path, **ARRAYS)
    root = zarrow.open(store, mode="r+")
    arrays = [root[name] for name in ARRAYS]

    def whole() -> None:
        zarrow.write_many((array, ..., np.arange(10) * 2) for array in arrays)

    def parts() -> None:
        zarrow.write_many([(array.oindex, [1, 3], -1) for array in arrays])

    bucket.expect(whole, bucket.count(lambda: arrays[0].write(..., np.arange(10) * 2)))
    # A host gets 64 requests at once at first, and this needs 100.
    bucket.expect(parts, 1 + bucket.count(lambda: arrays[0].write([1, 3], -1)))
    local = zarrow.open(tmp_path, mode="r+")
    for name in ARRAYS:
        local[name][...] = np.arange(10) * 2
        local[name][[1, 3]] = -1
    expect_same(root, local)


def mixed(store: Any) -> zarrow.Group:
    """Create groups, and arrays of several types and sizes."""
    root = zarrow.create_group(store, attributes={"title": "mixed", "limit": float("nan")})
    for name, array in ARRAYS.items():
        root.create_array(f"few/{name}", data=array, attributes={"number": name})
    root["few"].attrs["units"] = "m"
    root.create_array("text", data=["a", "é", ""], dimension_names=["city"])
    root.create_array("missing", data=[1, None, 3], missing="optional")
    root.create_array("sharded", data=np.ones((8, 8), "f4"), chunks=(2, 2), shards=(4, 8), fill_value=1)
    root.create_array("structured", data=np.zeros(3, [("x", "i2"), ("y", "f4")]))
    root.create_array("large", data=np.arange(700_000.0), chunks=300_000)
    return root


@in_few_round_trips(counted_bucket)
def test_a_group_is_copied_to_and_from_a_bucket_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    original = mixed(tmp_path / "original")
    store = zarrow.CloudStore(bucket.url("copies"), storage_options=bucket.options)
    for name, source, large in (("all", original, 5), ("few", original["few"], 0)):
        # The large array takes five.
        root = zarrow.create_group(store, name)
        bucket.expect(partial(root.__setitem__, "one", source), 4 + large)
        expect_same(root["one"], source)
        one = zarrow.open(store)[f"{name}/one"]
        bucket.expect(partial(root.__setitem__, "two", one), 7 + 2 * large)
        expect_same(root["two"], source)
        one = zarrow.open(store)[f"{name}/one"]
        bucket.expect(partial(zarrow.save, tmp_path / name, one), 4 + large)
        expect_same(zarrow.open(tmp_path / name), source)


@in_few_round_trips(counted_bucket)
def test_an_anndata_is_saved_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    rows = [f"r{number}" for number in range(5)]
    columns = pandas.DataFrame({f"c{number}": np.arange(5.0) for number in range(40)}, index=rows)
    saved = anndata.AnnData(np.ones((5, 4), "f4"), obs=columns)
    store = zarrow.CloudStore(bucket.url("anndata"), storage_options=bucket.options)
    bucket.expect(lambda: zarrow.save(store, saved), 12)
    zarrow.save(tmp_path, saved)
    expect_same(zarrow.open(store), zarrow.open(tmp_path))
    assert zarrow.open(store)._is_consolidated()


IMAGE = np.arange(16 * 24, dtype="u2").reshape(16, 24)
LEVELS = [IMAGE, IMAGE[::2, ::2], IMAGE[::4, ::4]]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@in_few_round_trips(counted_bucket)
def test_an_image_is_saved_in_few_round_trips(bucket: Bucket, tmp_path: Path, version: Any) -> None:
    source = zarrow.CloudStore(bucket.url("source"), storage_options=bucket.options)
    zarrow.save(source, {str(at): level for at, level in enumerate(LEVELS)})
    stored = [zarrow.open(source)[str(at)] for at in range(3)]
    # Levels and labels, and the most round trips to a new place and over an existing image.
    cases: dict[str, tuple[list[Any], int, int, int]] = {
        "alone": (LEVELS, 0, 6, 10),
        "with labels": (LEVELS, 2, 8, 12),
        "with many labels": (LEVELS, 10, 8, 12),
        "from a store": (stored, 0, 9, 13),
    }
    for name, (levels, count, new, replaced) in cases.items():
        store = zarrow.CloudStore(bucket.url(name), storage_options=bucket.options)
        save = partial(
            zarrow.ome.save,
            axes="yx",
            levels=levels,
            labels={f"label{number}": LEVELS for number in range(count)},
            version=version,
        )
        save(tmp_path / name)
        bucket.expect(partial(save, store), new)
        expect_same(zarrow.open(store), zarrow.open(tmp_path / name))
        bucket.expect(partial(save, store, overwrite=True), replaced)
        expect_same(zarrow.open(store), zarrow.open(tmp_path / name))


@in_few_round_trips(counted_bucket)
def test_the_nodes_of_a_plan_are_created_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    zarrow.save(tmp_path / "image", np.ones((64, 64), "u2"))
    for levels in (2, 5):
        store = zarrow.CloudStore(bucket.url(f"{levels} levels"), storage_options=bucket.options)
        plan = zarrow.ome.plan_pyramid(
            tmp_path / "image", store, axes="yx", levels=levels, ledger=zarrow.MemoryStore()
        )
        bucket.expect(plan.setup, 7)
        assert list(zarrow.open(store).keys()) == [str(at) for at in range(levels)]
        # Another process finds the nodes.
        bucket.expect(plan.setup, 1)
    zarrow.save(tmp_path / "group", {f"a{number}": [number] for number in range(20)}, path="below")
    store = zarrow.CloudStore(bucket.url("copy"), storage_options=bucket.options)
    copy = zarrow.jobs.copy(zarrow.open(tmp_path / "group"), store, ledger=zarrow.MemoryStore())
    bucket.expect(copy.setup, 11)
    copy.complete()
    expect_same(zarrow.open(store), zarrow.open(tmp_path / "group"))


@pytest.mark.parametrize("version", [2, 3])
@in_few_round_trips(counted_bucket)
def test_a_group_is_consolidated_in_few_round_trips(bucket: Bucket, tmp_path: Path, version: Any) -> None:
    del tmp_path
    store = zarrow.CloudStore(bucket.url(f"consolidated {version}"), storage_options=bucket.options)
    zarrow.create_group(store, zarr_format=version)
    zarrow.save(store, {name: array for name, array in ARRAYS.items() if name < "a4"})
    members = dict(zarrow.open_group(store).members())
    # However many members there are.
    bucket.expect(zarrow.open_group(store).consolidate_metadata, {2: 12, 3: 7}[version])
    group = zarrow.open_group(store)
    assert group._is_consolidated() and dict(group.members()) == members


@pytest.mark.parametrize("version", [2, 3])
@in_few_round_trips(counted_bucket)
def test_rows_are_appended_in_few_round_trips(bucket: Bucket, tmp_path: Path, version: Any) -> None:
    for count in (2, 12):
        columns = {f"c{number}": np.arange(10) + number for number in range(count)}
        store = zarrow.CloudStore(bucket.url(f"rows of {count}"), storage_options=bucket.options)
        for path, trips in (("", 6), ("below/the/root", 7)):
            zarrow.create_group(store, path, zarr_format=version, overwrite=True)
            zarrow.save(store, columns, path=path)
            table = zarrow.open(store, path, mode="r+")
            bucket.expect(partial(table.append, columns), trips)
            for name, column in columns.items():
                assert zarrow.open(store, path)[name][...].tolist() == [*column, *column]


@in_few_round_trips(counted_bucket)
def test_rows_within_a_chunk_are_appended_in_few_round_trips(bucket: Bucket, tmp_path: Path) -> None:
    del tmp_path
    for count in (2, 12):
        columns = {f"c{number}": np.arange(10) + number for number in range(count)}
        store = zarrow.CloudStore(bucket.url(f"parts of {count}"), storage_options=bucket.options)
        group = zarrow.create_group(store, overwrite=True)
        for name, column in columns.items():
            group.create_array(name, data=column, chunks=8)
        before = bucket.rounds.requests
        # Seven for whole chunks, if each array was created alone.
        bucket.expect(partial(zarrow.open(store, mode="r+").append, columns), 9)
        # Each array asks for its own document alone.
        assert bucket.rounds.requests - before <= 12 * count + 12
        for name, column in columns.items():
            assert zarrow.open(store)[name][...].tolist() == [*column, *column]


def test_rows_are_appended_one_column_after_the_other_to_consolidated_arrays(bucket: Bucket) -> None:
    store = zarrow.CloudStore(bucket.url("consolidated"), storage_options=bucket.options)
    columns = {f"c{number}": np.arange(3) for number in range(8)}
    for path in ("", "below"):
        zarrow.save(store, columns, path=path)
        zarrow.consolidate_metadata(store)
        table = zarrow.open(store, path, mode="r+")
        before = bucket.rounds.requests
        bucket.count(partial(table.append, columns))
        # Changes at once would repeat their conditional puts of the one document.
        assert bucket.rounds.requests - before < 20 * len(columns)
        group = zarrow.open(store)
        assert group._is_consolidated()
        group = group[path] if path else group
        assert {group[name].shape for name in columns} == {(6,)}


def test_a_save_into_a_group_of_version_2_keeps_the_version(bucket: Bucket) -> None:
    store = zarrow.CloudStore(bucket.url("version 2"), storage_options=bucket.options)
    zarrow.create_group(store, zarr_format=2)
    zarrow.save(store, {"x": [1, 2], "below": {"y": [3]}})
    root = zarrow.open(store)
    assert {member.zarr_format for _, member in root.members(max_depth=None)} == {2}
    assert root["below/y"][...].tolist() == [3]


def test_a_refused_save_writes_nothing(bucket: Bucket) -> None:
    store = zarrow.CloudStore(bucket.url("refused"), storage_options=bucket.options)
    root = zarrow.create_group(store, attributes={"title": "kept"})
    root.create_group("group")
    root["array"] = [1, 2]

    def keys() -> dict[str, Any]:
        listed = bucket.client.list_objects_v2(Bucket=bucket.name, Prefix="refused/")["Contents"]
        return {item["Key"]: item["ETag"] for item in listed}

    before = keys()
    refused: list[tuple[dict[str, Any], str, type[Exception]]] = [
        ({"x": [1], "group": [2]}, "", zarrow.NodeExistsError),
        ({"x": [1], "y": object()}, "", TypeError),
        ({"x": [1], "__y": [2]}, "", zarrow.InvalidKeyError),
        ({"x": [1], "": [2]}, "", ValueError),
        ({"x": [1], "y/../z": [2]}, "", zarrow.InvalidKeyError),
        ({"x": [1]}, "array", zarrow.NodeTypeError),
        ({"x": [1]}, "array/below", zarrow.NodeTypeError),
    ]
    for named, path, error in refused:
        with pytest.raises(error):
            zarrow.save(store, named, path=path)
        assert keys() == before
