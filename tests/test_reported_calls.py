"""`progress=` of calls that read and write elements or metadata: equal results, rising reports."""

from __future__ import annotations

import asyncio
import gc
import io
import math
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow
from zarrow.checks import diff
from zarrow.interchange import lazy_arrays
from zarrow.xarray import loading

pytestmark = pytest.mark.small_files

LARGE = 20_000_000


class Reports(list[tuple[int, int]]):
    """The calls of a progress function, and checks of them."""

    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))

    def check(self, total: int, least: int) -> None:
        done = [each for each, _ in self]
        assert done == sorted(done)
        assert self[-1] == (total, total)
        assert len(set(done)) >= least


def stored(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def large() -> Any:
    values = np.zeros(LARGE, "f8")
    values[::1000] = np.arange(LARGE // 1000)
    return values


def test_a_large_array_is_stored_and_loaded_part_by_part(tmp_path: Path, large: Any) -> None:
    reports = Reports()
    zarrow.save(tmp_path / "a.zarr", large, progress=reports)
    reports.check(large.nbytes, 3)
    zarrow.save(tmp_path / "b.zarr", large)
    assert stored(tmp_path / "a.zarr") == stored(tmp_path / "b.zarr")
    reports = Reports()
    read = zarrow.load(tmp_path / "a.zarr", progress=reports)
    reports.check(large.nbytes, 3)
    plain = zarrow.load(tmp_path / "a.zarr")
    assert type(read) is type(plain) is zarrow.Tensor
    for name in ("shape", "dtype", "nbytes", "strides"):
        assert getattr(read, name) == getattr(plain, name)
    assert np.array_equal(read.numpy(), large)
    assert read.numpy().ctypes.data % 64 == 0
    read[0] = 5.0
    assert read.numpy()[0] == 5
    view = read.numpy()
    del read
    gc.collect()
    assert view[1000] == 1


@pytest.mark.parametrize("options", [{"shards": (4000, 3000), "chunks": (100, 3000)}, {"zarr_format": 2}])
def test_layouts_and_types_of_large_arrays_are_loaded(tmp_path: Path, options: dict[str, Any]) -> None:
    for dtype in (">f4", "M8[s]", "c8"):
        values = np.arange(4500 * 5000).reshape(4500, 5000).astype(dtype)
        array = zarrow.create_array(tmp_path / "a.zarr", data=values, overwrite=True, **options)
        reports = Reports()
        read = zarrow.load(tmp_path / "a.zarr", progress=reports)
        assert read.dtype == array[...].dtype
        np.testing.assert_array_equal(read.numpy(), values)
        reports.check(values.nbytes, 2)


VALUES: dict[str, Any] = {
    "numbers": np.arange(6.0).reshape(2, 3),
    "scalar": np.float32(1),
    "empty": np.zeros((0, 2)),
    "text": ["a", "bc"],
    "masked": np.ma.masked_array([1, 2, 3], [False, True, False]),
    "table": {"x": [1, 2], "y": ["a", "b"]},
    "frame": polars.DataFrame({"x": [1.5, None], "name": ["a", "b"]}),
    "categories": polars.Series(["a", "b", "a"], dtype=polars.Categorical),
    "structures": np.zeros(2, "i4, f8"),
}


@settings(max_examples=25)
@given(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, unique=True), st.booleans())
def test_groups_are_stored_and_loaded_as_without_reports(names: list[str], is_in_memory: bool) -> None:
    import tempfile

    values = {name: VALUES[name] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        stores: list[Any] = [zarrow.MemoryStore(), zarrow.MemoryStore()]
        if not is_in_memory:
            stores = [Path(folder) / "a.zarr", Path(folder) / "b.zarr"]
        reports = Reports()
        zarrow.save(stores[0], values, progress=reports, missing="optional")
        zarrow.save(stores[1], values, missing="optional")
        assert reports[-1][0] == reports[-1][1]
        assert list(diff(stores[0], stores[1])) == []
        reports = Reports()
        loaded, plain = zarrow.load(stores[0], progress=reports), zarrow.load(stores[1])
        assert reports[-1][0] == reports[-1][1]
        assert [done for done, _ in reports] == sorted(done for done, _ in reports)
        assert isinstance(loaded, dict) and isinstance(plain, dict)
        assert described(loaded) == described(plain)


def described(loaded: Any) -> Any:
    if isinstance(loaded, dict):
        return {name: described(each) for name, each in loaded.items()}
    return type(loaded), repr(loaded), loaded.tolist()


def test_copies_of_stored_arrays_are_reported(tmp_path: Path, large: Any) -> None:
    source = zarrow.create_group(tmp_path / "a.zarr")
    source.create_array("large", data=large)
    source.create_array("below/small", data=[1, 2])
    total = large.nbytes + 16
    reports = Reports()
    zarrow.save(tmp_path / "b.zarr", source, progress=reports)
    reports.check(total, 4)
    assert list(diff(tmp_path / "a.zarr", tmp_path / "b.zarr")) == []
    reports = Reports()
    zarrow.save(tmp_path / "c.zarr", source["large"], progress=reports)
    reports.check(large.nbytes, 3)
    reports = Reports()
    zarrow.save(tmp_path / "d.zarr", progress=reports, one=source["large"], two=source, three=np.ones(5))
    reports.check(2 * large.nbytes + 16 + 40, 7)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = large
        reports = Reports()
        zarrow.save(tmp_path / "e.zarr", file["x"], progress=reports)
    reports.check(large.nbytes, 3)


def test_a_function_that_fails_leaves_the_store_unchanged(tmp_path: Path, large: Any) -> None:
    zarrow.save(tmp_path / "a.zarr", [1, 2])
    before = stored(tmp_path / "a.zarr")

    def fail(done: int, total: int) -> None:
        if 0 < done < total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        zarrow.save(tmp_path / "a.zarr", large, progress=fail)
    assert stored(tmp_path / "a.zarr") == before
    zarrow.save(tmp_path / "b.zarr", large)
    with pytest.raises(KeyboardInterrupt):
        zarrow.load(tmp_path / "b.zarr", progress=fail)


def test_a_function_that_always_fails_changes_nothing(tmp_path: Path) -> None:
    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    zarrow.save(tmp_path / "a.zarr", [1, 2])
    zarrow.save(tmp_path / "b.zarr", a=[1], b=[2])
    before = stored(tmp_path)
    values: Any
    for name, values in (("a", [3, 4]), ("b", {"a": [3], "b": [4]}), ("c", ["text"]), ("d", [1, None])):
        with pytest.raises(ZeroDivisionError):
            zarrow.save(tmp_path / f"{name}.zarr", values, progress=fail)
    assert stored(tmp_path) == before


def test_a_damaged_chunk_is_an_error(tmp_path: Path, large: Any) -> None:
    zarrow.save(tmp_path / "a.zarr", large)
    last = max((tmp_path / "a.zarr" / "c").iterdir(), key=lambda path: int(path.name))
    last.write_bytes(b"garbage")
    with pytest.raises(zarrow.CodecError):
        zarrow.load(tmp_path / "a.zarr", progress=lambda *_: None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class GoneTerminal(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


class UnknownTerminal(Terminal):
    def isatty(self) -> bool:
        raise OSError


class Sink:
    """A stream with few methods."""

    def write(self, text: str) -> None:
        raise AssertionError

    flush = None


def test_a_terminal_that_fails_does_not_end_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Terminal()
    closed.close()
    terminal = Terminal()
    array = zarrow.create_array(zarrow.MemoryStore(), shape=0, dtype="i4")
    for stream in (closed, GoneTerminal(), UnknownTerminal(), Sink(), None, terminal):
        monkeypatch.setattr("sys.stderr", stream)
        assert array.read(progress=True).shape == array.shape
        array.append([1], progress=True)
        zarrow.read_many([array], progress=True)
    text = terminal.getvalue()
    assert text.count("\n") == 3 and "100%" in text and "append" in text


def test_other_values_of_progress_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r'save\(store, \{"progress"'):
        zarrow.save(tmp_path / "a.zarr", progress=np.ones(3))  # type: ignore[arg-type]
    assert not (tmp_path / "a.zarr").exists()
    zarrow.save(tmp_path / "a.zarr", {"progress": np.ones(3)}, progress=True)
    assert zarrow.load(tmp_path / "a.zarr", progress=True)["progress"].shape == (3,)
    with pytest.raises(TypeError, match="progress is a function"):
        zarrow.load(tmp_path / "a.zarr", progress=3)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(st.data())
def test_reads_with_progress_equal_others(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("reads")
    shape, chunks = (9, 11, 7), data.draw(st.sampled_from([(2, 3, 7), (9, 11, 7), (1, 11, 2)]))
    values = np.arange(math.prod(shape), dtype="i4").reshape(shape)
    array = zarrow.create_array(folder / "x.zarr", data=values, chunks=chunks, overwrite=True)
    places = [
        data.draw(st.one_of(st.integers(-extent, extent - 1), st.slices(extent), st.just(slice(None))))
        for extent in shape
    ]
    selection = data.draw(st.sampled_from([tuple(places), (places[0], ...), (..., places[2]), places[0]]))
    expected = values[selection]
    reports = Reports()
    found: Any = array.read(selection, dtype="f8", progress=reports)
    assert np.array_equal(np.asarray(found), expected) and np.asarray(found).dtype == "f8"
    assert reports[-1] == (expected.size * 8, expected.size * 8) and reports == sorted(reports)
    out = np.zeros(expected.shape, "i4")
    if expected.shape:
        assert array.read(selection, out=out, progress=True) is out and np.array_equal(out, expected)


def test_a_large_read_is_reported_part_by_part(tmp_path: Path, large: Any) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=large, chunks=(100_000,))
    reports = Reports()
    found: Any = array.read(slice(150_000, None), progress=reports)
    assert np.array_equal(found.numpy(), large[150_000:])
    reports.check(large[150_000:].nbytes, 3)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        array.read(progress=stop)
    with pytest.raises(ValueError, match="shape"):
        array.read(out=np.zeros(3), progress=reports)
    lost: Any
    for lost in ({"mmap": True}, {"stream": 1}, {"decompress": "device"}):
        with pytest.raises(ValueError, match="progress= is for reads to the CPU"):
            array.read(progress=True, **lost)
    with pytest.raises(ValueError, match="pass it without decompress="):
        array.read(decode="cf", decompress="device")
    assert zarrow.create_array(tmp_path / "t.zarr", data=np.array(["a"])).read(progress=reports).tolist() == [
        "a"
    ]


def test_a_large_write_is_reported_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_arrays, "_PART_NBYTES", 1000)
    large = np.arange(1000.0)
    reports = Reports()
    array = zarrow.create_array(tmp_path / "a.zarr", data=large, chunks=(100,), progress=reports)
    reports.check(large.nbytes, 3)
    for call in (array.write, lambda *given, **options: asyncio.run(array.write_async(*given, **options))):
        for values in (large[1:] + 1, array):
            array.resize(len(values))
            reports = Reports()
            call(slice(0, None), values, progress=reports)
            reports.check(values.nbytes, 3)
    assert np.array_equal(array[...].numpy(), large[1:] + 1)
    reports = Reports()
    assert asyncio.run(array.read_async(slice(5), out=(out := np.zeros(5)), progress=reports)) is out
    assert out[0] == large[1] + 1 and reports[-1] == (40, 40)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = stored(tmp_path / "a.zarr")
    with pytest.raises(KeyboardInterrupt):
        array.write(..., large[1:], progress=stop)
    assert stored(tmp_path / "a.zarr") == before


@pytest.mark.parametrize("value", [7, [1, 2], np.ones((2, 1)), np.ma.masked_array([1, 2], [True, False])])
def test_small_writes_with_progress_equal_others(value: Any) -> None:
    options: dict[str, Any] = {"shape": (3, 2), "dtype": "f8", "attributes": {"_FillValue": -1.0}}
    group = zarrow.create_group(zarrow.MemoryStore())
    plain, reported = (group.create_array(name, **options, progress=True) for name in "xy")
    plain.write(np.s_[1:], value)
    reported.write(np.s_[1:], value, progress=True)
    assert plain[...].tolist() == reported[...].tolist()
    for call in (
        lambda: plain.write(0, 1, progress=3),
        lambda: group.create_array("z", data=[1], progress=3),
    ):
        with pytest.raises(TypeError, match="progress is a function"):
            call()
    assert plain[0].tolist() == [0, 0] and "z" not in group


def test_datasets_are_written_and_loaded_as_without_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xarray = pytest.importorskip("xarray")
    monkeypatch.setattr(loading, "READ_NBYTES", 100)
    values = xarray.Dataset({"a": ("x", np.arange(10.0)), "b": (("y", "x"), np.ones((3, 10)))})
    values["c"] = values["b"].chunk(1) * 2
    for name, saved in (("a", values), ("b", xarray.DataTree.from_dict({"/": values, "/below": values}))):
        reports = Reports()
        zarrow.xarray.to_zarr(saved, tmp_path / name, consolidated=False, progress=reports)
        reports.check(saved.nbytes, 3)
    opened = xarray.open_dataset(tmp_path / "a", engine="zarrow", consolidated=False)
    reports = Reports()
    loaded = zarrow.xarray.load(opened, progress=reports)
    reports.check(values.nbytes, 3)
    assert loaded.identical(values.compute()) and all(each._in_memory for each in loaded.variables.values())


def test_a_bar_of_a_job_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    zarrow.save(tmp_path / "a.zarr", np.zeros((8, 8)))
    plan = zarrow.jobs.copy(zarrow.open(tmp_path / "a.zarr"), tmp_path / "b.zarr", chunks=2, memory_nbytes=1)
    plan.setup()
    assert plan.run(plan.job(0, 1), progress=True).done == 16
    assert "100%  16 units of 16 units" in stream.getvalue() and stream.getvalue().endswith("\n")
    with pytest.raises(TypeError, match="progress is a function"):
        plan.run(plan.job(0, 1), progress=16)  # type: ignore[arg-type]


def tree(folder: Path, version: Any) -> zarrow.Group:
    root = zarrow.create_group(folder, zarr_format=version)
    for name in ("a", "a/b", "a/b/c", "d"):
        root.create_group(name, attributes={"name": name})
        for number in range(5):
            root.create_array(f"{name}/{number}", data=[number])
    return root


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_stale", [False, True])
def test_a_reported_consolidation_stores_the_same_bytes(version: Any, is_stale: bool, tmp_path: Path) -> None:
    (tmp_path / "below/junk").mkdir(parents=True)
    for name in ("plain", "reported", "below/root"):
        tree(tmp_path / name, version)
        if is_stale:
            zarrow.create_group(tmp_path / name / "d/late", zarr_format=version)
            zarrow.consolidate_metadata(tmp_path / name)
            zarrow.create_array(tmp_path / name / "d/late/x", data=[1], zarr_format=version)
    zarrow.consolidate_metadata(tmp_path / "plain")
    nodes = 24 + 2 * is_stale
    reports = Reports()
    root = zarrow.consolidate_metadata(tmp_path / "reported", progress=reports)
    reports.check(nodes + 1, 5)
    assert all(done < total for done, total in reports[:-1])
    assert root.nmembers(max_depth=None) == nodes
    reports = Reports()
    zarrow.open(tmp_path / "below/root").consolidate_metadata(progress=reports)
    reports.check(nodes + 1, 5)
    assert stored(tmp_path / "plain") == stored(tmp_path / "reported") == stored(tmp_path / "below/root")
    reports = Reports()
    zarrow.consolidate_metadata(zarrow.create_group(tmp_path / "empty"), progress=reports)
    assert reports == [(0, 1), (1, 1)]


def test_a_failing_report_of_a_consolidation_ends_it(tmp_path: Path) -> None:
    root = tree(tmp_path, 3)
    before = stored(tmp_path)

    def fail(done: int, total: int) -> None:
        raise OSError("stop")

    with pytest.raises(OSError, match="stop"):
        root.consolidate_metadata(progress=fail)
    for wrong in (1, "bar"):
        with pytest.raises(TypeError, match="progress is a function, or True for a bar, got"):
            zarrow.consolidate_metadata(tmp_path, progress=wrong)  # type: ignore[arg-type]
    assert stored(tmp_path) == before
    with pytest.raises(OSError, match="stop"):
        root.consolidate_metadata(progress=lambda done, total: done == total and fail(done, total))
    assert zarrow.open(tmp_path)._is_consolidated()


def test_damaged_members_and_link_loops_of_a_reported_consolidation(tmp_path: Path) -> None:
    root = tree(tmp_path, 3)
    (tmp_path / "a/0/zarr.json").write_text('{"zarr_format": 3, "node_type": "array", "shape": [-1]}')
    root.consolidate_metadata()
    plain = stored(tmp_path)
    reports = Reports()
    root.consolidate_metadata(progress=reports)
    reports.check(25, 5)
    assert stored(tmp_path) == plain
    (tmp_path / "d/up").symlink_to(tmp_path)
    for progress in (None, reports):
        with pytest.raises(zarrow.ZarrowError, match="link"):
            root.consolidate_metadata(progress=progress)
