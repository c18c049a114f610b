"""Datasets of Ray in worker processes: rows and refusals beside Ray's own reader, writes, kills, failures."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

ray: Any = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pytestmark = [
    pytest.mark.ray,
    # Ray leaves files and sockets of its processes to the garbage collector.
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
    ),
]

import pyarrow.fs  # noqa: E402
from ray.data._internal.datasource import zarrv2_datasource as stock  # noqa: E402
from ray.data.block import BlockAccessor  # noqa: E402

import zarrow  # noqa: E402
import zarrow.ray  # noqa: E402
from zarrow.ray.tiling import Tiling  # noqa: E402

SHAPE = (20, 30)
EIGHT = {"shape": 8, "dtype": "f4"}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Start Ray with two worker processes, on loopback, in a folder of its own."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    # Ray's sockets need a short path.
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=100 << 20,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
    )
    # Workers do not find the modules of tests.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.verbose_progress = False
    yield
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def values() -> np.ndarray:
    return np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write a group with arrays of several types; in version 3 one is sharded."""
    root = zarr.create_group(tmp_path / "source.zarr", zarr_format=request.param)
    shards = {"shards": (6, 8)} if request.param == 3 else {}
    root.create_array("a", data=values(), chunks=(3, 4), attributes={"units": "mm"}, **shards)
    root.create_array("b", data=np.arange(20, dtype=">i8"), chunks=(3,))
    root.create_array("below/c", data=np.arange(20) > 3, chunks=(20,))
    zarrow.consolidate_metadata(tmp_path / "source.zarr")
    return tmp_path / "source.zarr"


def stock_rows(array: Any, name: str, tile: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the rows of Ray's own reader, which reads through zarr-python."""
    meta = stock.ZarrArrayMeta(array.shape, tile, str(array.dtype))
    grid = meta.grid_shape(tile)
    whole = stock._ChunkRange(name, meta, tile, grid, 0, int(np.prod(grid)))
    (block,) = stock._create_read_fn(whole, {name: array}, None, None)()
    return list(BlockAccessor.for_block(block).iter_rows(public_row_format=True))


def key(row: dict[str, Any]) -> Any:
    return row["array"], list(row["chunk_index"])


def test_rows_are_those_of_rays_reader(store: Path) -> None:
    rows = zarrow.ray.read_zarr(store, override_num_blocks=4).take_all()
    root: Any = zarr.open_group(store, mode="r")
    expected = list(
        itertools.chain.from_iterable(
            stock_rows(root[name], name, root[name].chunks) for name in ("a", "b", "below/c")
        )
    )
    assert len(rows) == len(expected) == 56 + 7 + 1
    for row, wanted in zip(sorted(rows, key=key), sorted(expected, key=key), strict=True):
        assert list(row) == list(wanted)
        assert (row["array"], row["chunk_index"]) == (wanted["array"], list(wanted["chunk_index"]))
        assert row["chunk_slices"] == [list(part) for part in wanted["chunk_slices"]]
        assert row["chunk"].dtype == wanted["chunk"].dtype
        np.testing.assert_array_equal(row["chunk"], wanted["chunk"])


def test_aligned_rows_are_those_of_rays_reader(store: Path) -> None:
    source = zarrow.ray.ZarrDatasource(
        store, array_paths=["a", "b"], chunk_shapes=[4], align_axis_0=True, overlap=2
    )
    tasks = source.get_read_tasks(3)
    blocks = [block for task in tasks for block in task()]
    rows = [row for block in blocks for row in BlockAccessor.for_block(block).iter_rows(True)]
    described = [
        stock._AlignedChunkDescriptor(i // 4, i, min(i + 4, 20), min(i + 6, 20)) for i in range(0, 20, 4)
    ]
    (block,) = stock._create_aligned_read_fn(described, ["a", "b"], zarr.open_group(store), None, None)()
    expected = list(BlockAccessor.for_block(block).iter_rows(True))
    assert len(rows) == len(expected) == sum(task.metadata.num_rows for task in tasks) == 5
    for row, wanted in zip(rows, expected, strict=True):
        assert list(row) == list(wanted)
        for name in row:
            np.testing.assert_array_equal(row[name], wanted[name])
    stored = sum(row["a"].nbytes + row["b"].nbytes for row in rows)
    assert source.estimate_inmemory_data_size() == stored
    assert sum(task.metadata.size_bytes for task in tasks) == stored


@pytest.mark.parametrize("seed", range(30))
def test_tasks_know_their_rows_and_bytes(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.randint(0, 12) for _ in range(rng.randint(0, 3)))
    tile = tuple(rng.randint(1, 5) for _ in shape)
    unit = tuple(rng.randint(1, 6) for _ in shape)
    tiling = Tiling.over(shape, tile, rng.choice([unit, None]), 1)
    seen = np.zeros(shape, int)
    tiles = elements = 0
    for number in range(len(tiling.blocks)):
        assert (tiling.tiles_before(number), tiling.elements_before(number)) == (tiles, elements)
        for index, region in tiling.tiles(tiling.blocks.region(number)):
            assert all(
                part.start == place * step for place, part, step in zip(index, region, tile, strict=True)
            )
            seen[region] += 1
            tiles += 1
            elements += seen[region].size
    assert (seen == 1).all()
    count = len(tiling.blocks)
    assert (tiling.tiles_before(count), tiling.elements_before(count)) == (tiles, elements)


def test_each_shard_is_read_by_one_task(store: Path) -> None:
    source = zarrow.ray.ZarrDatasource(store, array_paths=["a"])
    unit = source.arrays["a"].write_unit
    assert unit is not None
    tasks_of: dict[tuple[int, ...], set[int]] = {}
    for number, task in enumerate(source.get_read_tasks(5)):
        for row in itertools.chain.from_iterable(BlockAccessor.for_block(b).iter_rows(True) for b in task()):
            place = tuple(s[0] // step for s, step in zip(row["chunk_slices"], unit, strict=True))
            tasks_of.setdefault(place, set()).add(number)
    assert {len(tasks) for tasks in tasks_of.values()} == {1}
    assert source.stored_data_size() == source.arrays["a"].nbytes_stored()


def test_attributes_are_in_the_schema_once(store: Path) -> None:
    rows = zarrow.ray.read_zarr(store)
    assert "attributes" not in rows.columns()
    for found in (rows, rows.map(lambda row: row), rows.schema(), rows.materialize()):
        arrays = zarrow.ray.metadata(found)["arrays"]
        assert list(arrays) == ["a", "b", "below/c"]
        assert arrays["a"]["attributes"] == {"units": "mm"} and arrays["a"]["shape"] == list(SHAPE)


def test_a_limit_reads_no_more_chunks(store: Path) -> None:
    assert len(zarrow.ray.read_zarr(store, array_paths=["a"]).limit(3).take_all()) == 3
    source = zarrow.ray.ZarrDatasource(store, array_paths=["a"])
    shutil.rmtree(store / "a" / "c", ignore_errors=True)
    (task,) = source.get_read_tasks(1, per_task_row_limit=5)
    assert sum(block.num_rows for block in task()) == 5


def test_types_without_an_arrow_tensor(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    root.create_array("text", data=["a", "bc", "d\0"], chunks=2)
    root.create_array("z", data=np.array([1j, 2]), chunks=2)
    root.create_array("missing", data=np.ma.array([1, 2, 3], mask=[0, 1, 0]), missing="fill", chunks=3)
    root.create_array("scalar", data=np.float32(2.5))
    rows = zarrow.ray.read_zarr(tmp_path / "a.zarr", allow_full_metadata_scan=True).take_all()
    found: dict[str, list[Any]] = {}
    for row in sorted(rows, key=key):
        found.setdefault(row["array"], []).extend(np.ravel(row["chunk"]).tolist())
    assert found["text"] == ["a", "bc", "d\0"] and found["z"] == [1j, 2] and found["scalar"] == [2.5]
    assert len(found["missing"]) == 3


def test_stores_by_file_systems_archives_and_local_paths(store: Path, tmp_path: Path) -> None:
    import fsspec

    archive = shutil.make_archive(str(tmp_path / "source"), "zip", store)
    for path, options in (
        (str(store), {"filesystem": pyarrow.fs.LocalFileSystem()}),
        (str(store), {"filesystem": fsspec.filesystem("file")}),
        (str(store), {"filesystem": pyarrow.fs.SubTreeFileSystem("/", pyarrow.fs.LocalFileSystem())}),
        (f"file://{store}", {}),
        (f"local://{store}", {}),
        (archive, {}),
    ):
        rows = zarrow.ray.read_zarr(path, array_paths=["b"], **options).take_all()
        assert sorted(itertools.chain.from_iterable(row["chunk"].tolist() for row in rows)) == list(range(20))
    with pytest.raises(TypeError, match="filesystem must be"):
        zarrow.ray.read_zarr(str(store), filesystem="file")
    with pytest.raises(TypeError, match="MemoryStore"):
        zarrow.ray.read_zarr(zarrow.MemoryStore())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chunk_shapes": [1, 2, 3]}, "rank 2"),
        ({"chunk_shapes": []}, "positive integers"),
        ({"chunk_shapes": [True]}, "positive integers"),
        ({"chunk_shapes": {"a": [0]}}, "positive integers"),
        ({"chunk_shapes": 3}, "positive integers"),
        ({"chunk_shapes": {"x": [1]}}, "Unknown array path"),
        ({"array_paths": ["x"]}, "not found"),
        ({"array_paths": ["below"]}, "is a group"),
        ({"overlap": 1}, "align_axis_0=True"),
        ({"overlap": -1, "align_axis_0": True}, "non-negative"),
        ({"align_axis_0": True, "array_paths": ["a", "below/c"]}, "same axis-0 chunk size"),
        ({"align_axis_0": True, "array_paths": ["a", "short"]}, "must share shape"),
        ({"align_axis_0": True, "array_paths": ["a", "scalar"]}, "0-D"),
    ],
)
def test_refusals_are_those_of_ray(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    root = zarrow.create_group(tmp_path / "a.zarr")
    for name, array in {"a": values(), "short": np.ones(3), "scalar": np.ones(())}.items():
        root.create_array(name, data=array)
    root.create_array("below/c", data=np.ones(20), chunks=7)
    zarrow.consolidate_metadata(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match=words):
        zarrow.ray.read_zarr(tmp_path / "a.zarr", **({"array_paths": ["a"]} | options))


def test_unconsolidated_groups_need_paths_or_a_scan(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", x=[1, 2])
    with pytest.raises(ValueError, match="array_paths"):
        zarrow.ray.read_zarr(tmp_path / "a.zarr")
    assert zarrow.ray.read_zarr(tmp_path / "a.zarr", array_paths=["/x/"]).count() == 1
    assert zarrow.ray.read_zarr(tmp_path / "a.zarr", allow_full_metadata_scan=True).count() == 1
    with pytest.raises(ValueError, match="single root-level array"):
        zarrow.ray.read_zarr(tmp_path / "a.zarr" / "x", array_paths=["x"])


def test_a_source_that_changes_is_refused(store: Path) -> None:
    rows = zarrow.ray.read_zarr(store, array_paths=["b"])
    zarrow.open(store)["b"].append([1])
    with pytest.raises(Exception, match="has changed since the dataset was made"):
        rows.take_all()


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "chunk": row["chunk"] * 2}


def test_written_arrays_are_as_the_dataset_says(store: Path, tmp_path: Path) -> None:
    rows = zarrow.ray.read_zarr(store, array_paths=["a", "b"])
    zarrow.ray.write_zarr(rows.map(doubled), tmp_path / "twice.zarr", {"a": {"chunks": (7, 9)}, "b": {}})
    found: Any = zarr.open_group(tmp_path / "twice.zarr", mode="r")
    np.testing.assert_array_equal(found["a"][...], values() * 2)
    np.testing.assert_array_equal(found["b"][...], np.arange(20) * 2)
    assert found["a"].chunks == (7, 9) and found["b"].chunks == (3,)
    assert dict(found["a"].attrs) == {"units": "mm"} and dict(found["b"].attrs) == {}
    assert zarrow.open(tmp_path / "twice.zarr")._is_consolidated()
    with pytest.raises(zarrow.NodeExistsError, match="mode='w'"):
        zarrow.ray.write_zarr(rows, tmp_path / "twice.zarr")
    with pytest.raises(ValueError, match="which would be erased"):
        zarrow.ray.write_zarr(rows, store, mode="w")
    np.testing.assert_array_equal(zarrow.open(store)["a"][...], values())
    zarrow.ray.write_zarr(rows, tmp_path / "twice.zarr", mode="r+")
    np.testing.assert_array_equal(found["a"][...], values())


def test_aligned_rows_are_written_without_their_overlap(store: Path, tmp_path: Path) -> None:
    rows = zarrow.ray.read_zarr(store, array_paths=["a", "b"], align_axis_0=True, overlap=3)
    options: dict[str, Any] = {"a": {"chunks": (8, 8)}, "b": {}}
    zarrow.ray.write_zarr(rows, tmp_path / "copy.zarr", options)
    np.testing.assert_array_equal(zarrow.open(tmp_path / "copy.zarr")["a"][...], values())
    np.testing.assert_array_equal(zarrow.open(tmp_path / "copy.zarr")["b"][...], np.arange(20))


KILLS = ([0, 2], [4, 6])


def kill_once(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker at some rows, at each once."""
    mark = folder / str(row["chunk_index"])
    if list(row["chunk_index"]) in KILLS and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return doubled(row)


class Doubled:
    """The same in an actor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return kill_once(self.folder, row)


@pytest.mark.parametrize("kind", ["tasks", "actors"])
def test_killed_workers_are_replaced_and_lose_nothing(tmp_path: Path, kind: str) -> None:
    (tmp_path / "kills").mkdir()
    zarrow.create_array(tmp_path / "a.zarr", data=values(), chunks=(3, 4), attributes={"units": "mm"})
    rows = zarrow.ray.read_zarr(tmp_path / "a.zarr", override_num_blocks=6)
    if kind == "tasks":
        rows = rows.map(lambda row, folder=tmp_path / "kills": kill_once(folder, row))
    else:
        rows = rows.map(
            Doubled,
            fn_constructor_args=(tmp_path / "kills",),
            compute=ray.data.ActorPoolStrategy(size=2),
        )
    # Chunks of the target are shared by tasks, and no task writes whole shards.
    options = {"": {"chunks": (5, 7), "shards": (10, 14)}}
    zarrow.ray.write_zarr(rows, tmp_path / "twice.zarr", options)
    assert len(list((tmp_path / "kills").iterdir())) == len(KILLS)
    found = zarrow.open_array(tmp_path / "twice.zarr", mode="r")
    np.testing.assert_array_equal(found[...], values() * 2)
    assert dict(found.attrs) == {"units": "mm"}


def wrong(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "chunk": row["chunk"][:, :1]} if row["chunk_index"] == [2, 2] else row


def broken(row: dict[str, Any]) -> dict[str, Any]:
    if row["chunk_index"] == [2, 2]:
        raise RuntimeError("a broken function")
    return row


def test_a_failed_write_leaves_no_array(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=values(), chunks=(3, 4))
    rows = zarrow.ray.read_zarr(tmp_path / "a.zarr", override_num_blocks=2)
    for path, key in (("b.zarr", ""), ("c.zarr", "x")):
        options = {key: {"shape": SHAPE, "dtype": "f4", "chunks": (3, 4)}}
        named = rows.map(lambda row, key=key: {**broken(row), "array": key})
        with pytest.raises(Exception, match="a broken function"):
            zarrow.ray.write_zarr(named, tmp_path / path, options)
        with pytest.raises(zarrow.NotFoundError):
            zarrow.open(tmp_path / path, key, mode="r")
    outside = rows.map(lambda row: {**row, "chunk_slices": [[18, 21], [0, 4]]})
    with pytest.raises(Exception, match="outside of its shape"):
        zarrow.ray.write_zarr(outside, tmp_path / "b.zarr", {"": {}})
    np.testing.assert_array_equal(zarrow.open(tmp_path / "a.zarr")[...], values())


@pytest.mark.parametrize("name", ["", "x"])
@pytest.mark.parametrize("mode", ["w-", "w"])
def test_a_failed_write_leaves_other_files(tmp_path: Path, name: str, mode: Any) -> None:
    sink = zarrow.ray.ZarrDatasink(tmp_path / "a", {name: EIGHT}, mode=mode)
    notes = tmp_path / "a" / name / "notes" / "mine.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    with contextlib.suppress(zarrow.NodeExistsError):
        sink.on_write_start()
    sink.on_write_failed(RuntimeError())
    assert notes.read_text() == "mine"


def test_an_array_of_another_writer_stays(tmp_path: Path) -> None:
    sink = zarrow.ray.ZarrDatasink(tmp_path / "a.zarr", {"": {"shape": 4, "dtype": "i4"}})
    sink.on_write_start()
    zarrow.create_array(tmp_path / "a.zarr", data=[1, 2], overwrite=True)
    block = BlockAccessor.batch_to_arrow_block({"array": [""], "chunk_slices": [[[0, 1]]], "chunk": [[3]]})
    with pytest.raises(zarrow.StaleHandleError, match="another writer"):
        sink.write([block], None)
    with pytest.raises(zarrow.StaleHandleError, match="another writer"):
        sink.on_write_complete(None)
    sink.on_write_failed(RuntimeError())
    assert zarrow.open(tmp_path / "a.zarr")[...].tolist() == [1, 2]


def test_writes_that_cannot_work_are_refused_first(tmp_path: Path) -> None:
    rows = ray.data.range(3)
    for arguments, options, words in (
        ((rows, tmp_path / "x", {"a": EIGHT, "b": EIGHT | {"zarr_format": 2}}), {}, "zarr_format"),
        ((rows, tmp_path / "x"), {}, "no arrays to create"),
        ((rows, tmp_path / "x", {"a": {"chunks": 2}}), {}, "pass their shape and dtype"),
        ((rows, tmp_path / "x", {"a": EIGHT}), {"mode": "a"}, "expected mode"),
        ((rows, tmp_path / "x", {"a": EIGHT}), {"mode": "r+"}, "leave out arrays"),
        ((rows, tmp_path / "x", {"a": EIGHT | {"compressors": "no"}}), {}, "no"),
    ):
        with pytest.raises((ValueError, zarrow.UnsupportedError), match=words):
            zarrow.ray.write_zarr(*arguments, **options)
        assert not (tmp_path / "x").exists()
    with pytest.raises(Exception, match="a row has columns"):
        zarrow.ray.write_zarr(rows, tmp_path / "x", {"a": {"shape": 3, "dtype": "i8"}})
    assert not (tmp_path / "x" / "a").exists()
