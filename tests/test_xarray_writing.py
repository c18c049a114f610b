"""`zarrow.xarray.to_zarr` beside xarray's own: the same documents, chunks and elements, and refusals."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from zarr.codecs import GzipCodec
from zarr.storage import MemoryStore

import zarrow
import zarrow.xarray
from xarray_cases import DATASETS, cf, kinds, same, tree
from xarray_marks import marks
from zarrow.xarray.chunk_targets import ChunkTarget
from zarrow.xarray.staged_store import StagedStore

pytestmark = marks()

DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}


def values(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file, and None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"folder"
        for path in sorted(folder.rglob("*"))
    }


def expect_equal(ours: Path, stock: Path, *, has_empty_shards: bool = False) -> None:
    """Compare the documents byte by byte, the names of chunks, and the elements.

    With `has_empty_shards`, ours may store shards of only fill values.
    """
    found, expected = values(ours), values(stock)
    if has_empty_shards:
        assert found.keys() >= expected.keys()
    else:
        assert found.keys() == expected.keys()
    for key, value in expected.items():
        if Path(key).name in DOCUMENTS:
            assert found[key] == value, key
    for path in sorted(key for key in expected if Path(key).name in ("zarr.json", ".zarray")):
        node = str(Path(path).parent)
        read = [zarrow.open(folder, "" if node == "." else node, mode="r") for folder in (ours, stock)]
        if isinstance(read[0], zarrow.Array):
            first, second = (np.asarray(array[...].numpy()) for array in read)
            assert first.dtype == second.dtype
            assert first.tobytes() == second.tobytes() or first.tolist() == second.tolist(), node


def to_both(obj: Callable[[], Any], folder: Path, **options: Any) -> tuple[Path, Path]:
    """Write what a function makes by both, and return the folders."""
    ours, stock = folder / "ours.zarr", folder / "stock.zarr"
    obj().to_zarr(stock, **options)
    zarrow.xarray.to_zarr(obj(), ours, **options)
    expect_equal(ours, stock)
    return ours, stock


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [None, True, False])
@pytest.mark.parametrize("name", DATASETS)
def test_datasets_of_each_kind(tmp_path: Path, name: str, version: int, consolidated: bool | None) -> None:
    paths = to_both(DATASETS[name], tmp_path, zarr_format=version, consolidated=consolidated)
    for engine in ("zarr", "zarrow"):
        ours, stock = (xr.open_dataset(path, engine=engine, consolidated=consolidated) for path in paths)
        ours.encoding = stock.encoding = {}
        same(ours.load(), stock.load())


@pytest.mark.parametrize("version", [2, 3])
def test_trees(tmp_path: Path, version: int) -> None:
    paths = to_both(tree, tmp_path, zarr_format=version)
    ours, stock = (xr.open_datatree(path, engine="zarrow").load() for path in paths)
    xr.testing.assert_identical(ours, stock)
    to_both(tree, tmp_path, zarr_format=version, mode="w", write_inherited_coords=True)
    to_both(tree, tmp_path, zarr_format=version, mode="a", consolidated=False)


def steps(start: int, stop: int, *, chunks: int | None = None) -> xr.Dataset:
    """Return some days of a dataset that grows."""
    days = pd.date_range("2000", periods=stop)[start:]
    values = np.arange(stop * 3.0).reshape(stop, 3)[start:]
    dataset = xr.Dataset(
        {
            "rain": (("time", "x"), values),
            "name": ("time", np.array([f"d{n:02}" for n in range(start, stop)])),
            "fixed": ("x", [1, 2, 3]),
        },
        coords={"time": days, "x": [10, 20, 30]},
        attrs={"from": start},
    )
    dataset["time"].encoding = {"units": "hours since 2000-01-01", "dtype": "i4"}
    return dataset if chunks is None else dataset.chunk(time=chunks)


CODED = {"rain": {"chunks": (4, 2), "dtype": "f4", "_FillValue": -1.0}}
SHARDED = {"rain": {"chunks": (2, 3), "shards": (4, 3)}}
Program = list[tuple[Callable[[], Any], dict[str, Any]]]

PROGRAMS: dict[str, Program] = {
    "append": [
        (lambda: steps(0, 4), {}),
        (lambda: steps(4, 7), {"append_dim": "time"}),
        (lambda: steps(7, 8), {"append_dim": "time", "mode": "a-"}),
    ],
    "append coded": [
        (lambda: steps(0, 5), {"encoding": CODED}),
        (lambda: steps(5, 11), {"append_dim": "time"}),
    ],
    "append dask": [
        (lambda: steps(0, 4, chunks=2), {}),
        (lambda: steps(4, 8, chunks=2), {"append_dim": "time"}),
    ],
    "append aligned": [
        (lambda: steps(0, 5, chunks=5), {"encoding": {"rain": {"chunks": (4, 3)}}}),
        (lambda: steps(5, 12, chunks=2), {"append_dim": "time", "align_chunks": True}),
    ],
    "append unsafe": [
        (lambda: steps(0, 4), {"encoding": CODED}),
        (lambda: steps(4, 9, chunks=4), {"append_dim": "time", "safe_chunks": False}),
    ],
    "shards": [
        (lambda: steps(0, 6, chunks=4), {"encoding": SHARDED}),
        (lambda: steps(6, 9), {"append_dim": "time"}),
    ],
    "replace": [
        (lambda: steps(0, 4), {"encoding": CODED}),
        (lambda: steps(2, 9), {"mode": "w"}),
        (kinds, {"mode": "w"}),
    ],
    "change": [
        (lambda: steps(0, 4), {}),
        (
            lambda: steps(0, 4) + 1 if False else steps(0, 4).assign(more=("x", [1.0, np.nan, 2.0])),
            {"mode": "a"},
        ),
    ],
    "values": [
        (lambda: steps(0, 4), {}),
        (lambda: steps(0, 4).assign(rain=lambda d: d.rain * 2), {"mode": "r+"}),
    ],
    "region": [
        (lambda: steps(0, 8), {"encoding": CODED}),
        (lambda: (steps(3, 6)[["rain"]] * -1).drop_vars("x"), {"region": {"time": slice(3, 6)}}),
    ],
    "region auto": [
        (lambda: steps(0, 8), {"encoding": CODED}),
        (lambda: steps(3, 8)[["rain", "name"]], {"region": "auto"}),
        (lambda: steps(4, 8, chunks=4)[["rain"]], {"region": {"time": "auto", "x": slice(0, 3)}}),
    ],
    "empty chunks": [
        (
            lambda: xr.zeros_like(steps(0, 4)[["rain"]]),
            {"write_empty_chunks": True, "encoding": {"rain": {"chunks": (2, 2)}}},
        ),
        (
            lambda: xr.zeros_like(steps(0, 4)[["rain"]]),
            {"mode": "w", "write_empty_chunks": False, "encoding": {"rain": {"fill_value": 0.0}}},
        ),
    ],
    "group": [
        (lambda: steps(0, 4), {"group": "a/b"}),
        (lambda: steps(0, 3), {"group": "a/c", "mode": "a"}),
        (lambda: steps(4, 5), {"group": "/a/b", "append_dim": "time"}),
        (cf, {"group": "a/c", "mode": "w"}),
    ],
    "array": [
        (lambda: steps(0, 4)["rain"], {}),
        (lambda: steps(0, 4)["x"], {"mode": "w"}),
        (lambda: steps(0, 4)["rain"].rename(None), {"mode": "w"}),
    ],
    "delayed": [
        (lambda: steps(0, 4, chunks=2), {"compute": False}),
        (lambda: steps(4, 8, chunks=2), {"append_dim": "time", "compute": False}),
    ],
    "codecs": [
        (
            lambda: steps(0, 4),
            {
                "encoding": {
                    "rain": {"compressors": None},
                    "fixed": {"filters": None, "chunk_key_encoding": {"name": "v2", "separator": "."}},
                }
            },
        )
    ],
    "transposed": [(lambda: steps(0, 4), {}), (lambda: steps(4, 6).transpose(), {"append_dim": "time"})],
    "x": [
        (lambda: steps(0, 4), {}),
        (
            lambda: steps(0, 4).assign_coords(x=[1, 2, 3])[["rain", "fixed"]].drop_vars("time"),
            {"append_dim": "x"},
        ),
    ][:1],
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_store_what_xarray_stores(tmp_path: Path, name: str, version: int) -> None:
    if name == "shards" and version == 2:
        pytest.skip("version 2 has no shards")
    for number, (made, options) in enumerate(PROGRAMS[name]):
        given = {"zarr_format": version, **options} if number == 0 or name == "group" else options
        results = [run(made, tmp_path / folder, given) for folder in ("ours.zarr", "stock.zarr")]
        assert [type(result) for result in results[:1]] == [type(result) for result in results[1:]]
        expect_equal(tmp_path / "ours.zarr", tmp_path / "stock.zarr")
        if options.get("compute") is False:
            for result in results:
                assert result.compute() is None
            expect_equal(tmp_path / "ours.zarr", tmp_path / "stock.zarr")


def run(made: Callable[[], Any], path: Path, options: dict[str, Any]) -> Any:
    """Write by one of the two, and return the result."""
    return (
        made().to_zarr(path, **options)
        if path.name == "stock.zarr"
        else zarrow.xarray.to_zarr(made(), path, **options)
    )


def test_unchanged_programs_write_by_zarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []
    monkeypatch.setattr(ChunkTarget, "__setitem__", _counted(ChunkTarget.__setitem__, written), raising=True)
    made = {
        "dataset": steps(0, 4),
        "dask": steps(0, 4, chunks=2),
        "array": steps(0, 4)["rain"],
        "tree": tree(),
    }
    for name, obj in made.items():
        obj.to_zarr(tmp_path / name / "stock.zarr")
        assert not written
        with zarrow.xarray.enable():
            obj.to_zarr(tmp_path / name / "ours.zarr")
        assert written
        written.clear()
        expect_equal(tmp_path / name / "ours.zarr", tmp_path / name / "stock.zarr")


def _counted(function: Any, calls: list[Any]) -> Any:
    def call(self: Any, region: Any, value: Any) -> None:
        calls.append(self)
        function(self, region, value)

    return call


def test_stores_of_others_are_left_to_xarray(tmp_path: Path) -> None:
    dataset = steps(0, 4)
    values: dict[str, Any] = {}
    with zarrow.xarray.enable():
        dataset.to_zarr(MemoryStore(values))
        dataset.to_zarr(tmp_path / "archive.zip")
        assert type(dataset.to_zarr()) is xr.backends.ZarrStore
        with pytest.raises(TypeError, match="storage_options"):
            dataset.to_zarr(tmp_path / "folder", storage_options={"anon": True})
    assert "rain/zarr.json" in values and (tmp_path / "archive.zip" / "zarr.json").is_file()
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("scheduler", "is_delayed"), [("threads", False), ("threads", True), ("processes", True)]
)
def test_tasks_of_dask_share_chunks(tmp_path: Path, scheduler: str, is_delayed: bool) -> None:
    elements = np.arange(400.0).reshape(20, 20)
    dataset = xr.Dataset({"a": (("y", "x"), elements)}).chunk(y=3, x=7)
    encoding = {"a": {"chunks": (2, 5), "shards": (10, 20)}}
    with dask.config.set(scheduler=scheduler, num_workers=4):
        found = zarrow.xarray.to_zarr(
            dataset, tmp_path / "a.zarr", encoding=encoding, safe_chunks=False, compute=not is_delayed
        )
        if is_delayed:
            assert np.isnan(xr.open_zarr(tmp_path / "a.zarr")["a"].values).all()
            found.compute()
    assert np.array_equal(xr.open_zarr(tmp_path / "a.zarr")["a"].values, elements)


def _write_region(path: Path, start: int) -> None:
    part = xr.Dataset({"a": ("x", np.arange(start, start + 25))})
    zarrow.xarray.to_zarr(part, path, region={"x": slice(start, start + 25)}, safe_chunks=False)


def test_eight_processes_write_regions_of_one_shard(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    encoding = {"a": {"chunks": (10,), "shards": (200,)}}
    zarrow.xarray.to_zarr(xr.Dataset({"a": ("x", np.zeros(200, "i8"))}), path, encoding=encoding)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_region, args=(path, start)) for start in range(0, 200, 25)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert xr.open_zarr(path)["a"].values.tolist() == list(range(200))


def test_a_killed_append_leaves_the_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zarr"
    zarrow.xarray.to_zarr(steps(0, 5), path, encoding=CODED)
    before = xr.open_zarr(path).load()

    def stop(_: StagedStore, **_options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StagedStore, "commit", stop)
        with pytest.raises(KeyboardInterrupt):
            zarrow.xarray.to_zarr(steps(5, 9), path, append_dim="time")
    xr.testing.assert_identical(xr.open_zarr(path).load(), before)
    zarrow.xarray.to_zarr(steps(5, 9), path, append_dim="time")
    assert xr.open_zarr(path)["rain"].values.tolist() == steps(0, 9)["rain"].values.tolist()


FULL = """
import errno, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np, xarray as xr, zarrow.xarray

def rows(start, stop):
    noise = np.random.default_rng(start).random((stop - start, 1000))
    return xr.Dataset({"a": (("time", "x"), noise)}, coords={"time": range(start, stop)}).chunk(time=1)

path = Path(sys.argv[1]) / "a.zarr"
encoding = {"a": {"chunks": (1, 1000)}, "time": {"chunks": (1,)}}
zarrow.xarray.to_zarr(rows(0, 20), path, encoding=encoding)
before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
try:
    zarrow.xarray.to_zarr(rows(20, 400), path, append_dim="time")
except zarrow.StoreError as error:
    assert error.errno == errno.ENOSPC, error
else:
    raise AssertionError("appended")
after = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
assert {file: after[file] for file in before} == before
assert len(after) > len(before) + 10
xr.testing.assert_identical(zarrow.xarray.open_zarr(path).load().drop_encoding(), rows(0, 20).load())

def lengthen():
    # Makes room: chunks behind the end of an array are erased before it grows.
    for name in ("a", "time"):
        array = zarrow.open(path)[name]
        array.resize((21, *array.shape[1:]))
        array.resize((20, *array.shape[1:]))

try:
    lengthen()
except zarrow.StoreError as error:
    assert error.errno == errno.ENOSPC, error
    lengthen()
assert {file for file in path.rglob("*") if file.is_file()} == set(before)
zarrow.xarray.to_zarr(rows(20, 22), path, append_dim="time")
expected = xr.concat([rows(0, 20), rows(20, 22)], "time").load()
xr.testing.assert_identical(zarrow.xarray.open_zarr(path).load().drop_encoding(), expected.drop_encoding())
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs to mount a file system")
def test_an_append_to_a_full_disk_leaves_the_dataset(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", tmp_path], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed")
    try:
        done = subprocess.run(
            [sys.executable, "-c", FULL, tmp_path], check=False, capture_output=True, timeout=120
        )
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)
    assert done.returncode == 0, done.stderr.decode()


def test_an_append_after_an_interrupted_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zarrow.xarray.to_zarr(steps(0, 4), path, consolidated=False)
    zarrow.open(path)["rain"].resize((6, 3))
    before = values(path)
    with pytest.raises(ValueError, match="different extents along 'time'"):
        zarrow.xarray.to_zarr(steps(4, 6), path, append_dim="time")
    assert values(path) == before


def test_stores_of_zarrow(tmp_path: Path) -> None:
    store = zarrow.MemoryStore()
    zarrow.xarray.to_zarr(steps(0, 4), store)
    zarrow.xarray.to_zarr(steps(4, 6, chunks=2), store, append_dim="time")
    found = zarrow.xarray.open_zarr(store)
    xr.testing.assert_equal(found.load(), steps(0, 6))


def test_codecs_that_zarrow_lacks_are_left_to_zarr_python(tmp_path: Path) -> None:
    class Own(GzipCodec):
        """A codec of another class."""

    for number, dataset in enumerate((steps(0, 4), steps(0, 4, chunks=2))):
        encoding = {"rain": {"compressors": [Own(level=1)]}}
        ours, stock = tmp_path / f"{number}/ours.zarr", tmp_path / f"{number}/stock.zarr"
        zarrow.xarray.to_zarr(dataset, ours, encoding=encoding)
        dataset.to_zarr(stock, encoding=encoding)
        expect_equal(ours, stock)


CHANGES: dict[str, Callable[[zarrow.Group], object]] = {
    "attribute of the root": lambda root: root.attrs.update(seen=1),
    "attribute of an array": lambda root: root["r"].attrs.update(seen=1),
    "erased array": lambda root: root.__delitem__("r"),
    "new array": lambda root: root.create_array("q", data=np.arange(3)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_a_change_by_the_engine_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, version: int, change: Any
) -> None:
    store: Any = tmp_path / "a.zarr" if kind == "folder" else zarrow.MemoryStore()
    first = xr.Dataset({"r": ("t", np.arange(4.0))}, coords={"t": np.arange(4)})
    zarrow.xarray.to_zarr(first, store, zarr_format=version)
    commit = StagedStore.commit

    def late(staged: StagedStore, **options: Any) -> None:
        monkeypatch.setattr(StagedStore, "commit", commit)
        change(zarrow.open_group(store, mode="r+"))
        after.update(documents())
        commit(staged, **options)

    def documents() -> dict[str, Any]:
        root = zarrow.open_group(store, mode="r")
        return {name: (node.attrs.asdict(), getattr(node, "shape", None)) for name, node in root.items()} | {
            "": root.attrs.asdict()
        }

    after: dict[str, Any] = {}
    monkeypatch.setattr(StagedStore, "commit", late)
    with pytest.raises(zarrow.StoreError, match="was changed by another writer"):
        zarrow.xarray.to_zarr(first, store, append_dim="t")
    assert documents() == after
    fresh = zarrow.open_group(store, mode="r")._without_consolidated()
    assert {name for name, _ in fresh.items()} | {""} == set(after)


def _append_steps(path: Path, count: int) -> None:
    for at in range(count):
        more = xr.Dataset({"r": ("t", [float(at)])}, coords={"t": [at]})
        with contextlib.suppress(zarrow.StoreError):
            zarrow.xarray.to_zarr(more, path, append_dim="t")


@pytest.mark.filterwarnings("ignore:the change is stored, but")
def test_appends_beside_attributes_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    zarrow.xarray.to_zarr(xr.Dataset({"r": ("t", [0.0])}, coords={"t": [0]}), path)
    child = multiprocessing.get_context("spawn").Process(target=_append_steps, args=(path, 40))
    child.start()
    number = 0
    while child.is_alive():
        number += 1
        zarrow.open_group(path, mode="r+").attrs["k"] = number
        assert zarrow.open(path).attrs["k"] == number
    child.join()
    assert child.exitcode == 0
    with zarrow.xarray.open_zarr(path) as found:
        assert found.r.shape == found.t.shape and found.attrs["k"] == number
    plain = zarrow.open(path)._without_consolidated()
    assert plain["r"].shape == plain["t"].shape == zarrow.open(path)["r"].shape
