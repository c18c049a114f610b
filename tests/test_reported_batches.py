"""`progress=` of `read` with every option, `read_many`, `write_many`, `append`, and of tables."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import zarrow
from test_reported_calls import Reports, stored
from zarrow.api import reported_batches, reported_writes
from zarrow.interchange import lazy_arrays

pytestmark = pytest.mark.small_files

SHAPE = (9, 11, 7)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_arrays, "_PART_NBYTES", 500)
    for module in (reported_batches, reported_writes):
        monkeypatch.setattr(module, "READ_NBYTES", 500)


def numbers(dtype: str = "i4") -> Any:
    return np.arange(np.prod(SHAPE), dtype=dtype).reshape(SHAPE)


def described(elements: Any) -> tuple[Any, ...]:
    layout = elements.data if isinstance(elements, zarrow.MaskedTensor) else elements
    mask = elements.mask.tolist() if isinstance(elements, zarrow.MaskedTensor) else None
    strides = layout.numpy().strides if isinstance(layout, zarrow.Tensor) else None
    # NaN is not equal to itself.
    return type(elements), elements.shape, layout.dtype, strides, repr(layout.tolist()), mask


SELECTIONS = (..., np.s_[1:8, :, 3], np.s_[-1], np.s_[::2], ([0, 3], slice(1, 9)), np.s_[0:0], np.s_[1, 2, 3])


@pytest.mark.parametrize("chunks", [{"chunks": (2, 3, 7)}, {"chunks": (2, 2, 7), "shards": (4, 4, 7)}])
@pytest.mark.parametrize(
    "options",
    [
        {"mask": [5, 60]},
        {"mask": "cf"},
        {"mask": "fill"},
        {"decode": "cf"},
        {"order": "F"},
        {"order": "A"},
        {"order": "F", "dtype": "f8"},
    ],
)
def test_reads_of_all_options_equal_others(chunks: dict[str, Any], options: dict[str, Any]) -> None:
    attributes = {"_FillValue": 7, "scale_factor": 0.5}
    group = zarrow.create_group(zarrow.MemoryStore())
    for name, dtype, order in (("a", "i4", "C"), ("b", "f4", "F")):
        if order == "F" and "shards" in chunks:
            continue
        array = group.create_array(
            name, data=numbers(dtype), fill_value=9, attributes=attributes, order=order, **chunks
        )
        for selection in SELECTIONS:
            reports = Reports()
            found: Any = array.read(selection, progress=reports, **options)
            assert described(found) == described(array.read(selection, **options))
            if selection is ...:
                reports.check(found.size * (8 if "dtype" in options else 4), 3)
            # The mask does not count. With "cf", stored elements count.
            item = 8 if "dtype" in options else 4
            assert reports[0] == (0, reports[-1][1])
            reports.check(found.size * item, min(2, 1 + found.size))


def test_a_read_that_is_refused_stays_refused() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=numbers())
    out = np.zeros(SHAPE, "i4")
    lost: Any
    for lost in (
        {"order": "X"},
        {"mask": [1], "out": out},
        {"order": "F", "out": out},
        {"order": "F", "mask": [1]},
        {"dtype": "f8", "mask": [1]},
        {"decode": "other"},
        {"decode": "cf", "out": out},
        {"mmap": True},
        {"stream": 1},
        {"decompress": "device"},
    ):
        reports = Reports()
        with pytest.raises(ValueError, match=r"order|mask|decode|progress= is for reads to the CPU"):
            array.read(progress=reports, **lost)
        assert reports == []


def items_of(group: zarrow.Group) -> dict[str, list[Any]]:
    a, b, text = group["a"], group["b"], group["text"]
    return {
        "stacked": [(a, np.s_[at]) for at in range(9)],
        "two arrays": [(a, np.s_[:4]), (b, np.s_[1:5]), (a, np.s_[2:6])],
        "ragged": [(a, np.s_[:at, 0]) for at in range(9)] + [(b, ...)],
        "types": [a, b, group["f"]],
        "large": [a, b],
        "indexers": [(a.oindex, ([0, 5], [1, 2])), (a.vindex, ([0, 5], [1, 2]))],
        "points": [(a.vindex, ([0, at], [1, 2], [3, 4])) for at in range(5)],
        "elements": [(a, (0, 0, at)) for at in range(5)],
        "text": [(text, np.s_[:2]), (text, np.s_[1:3])],
        "text and numbers": [text, a],
        "missing": [(group["missing"], ...), (group["missing"], ...)],
        "none": [],
    }


@pytest.fixture
def group(tmp_path: Path) -> zarrow.Group:
    group = zarrow.create_group(tmp_path / "items.zarr")
    group.create_array("a", data=numbers(), chunks=(2, 3, 7), attributes={"scale_factor": 0.5})
    group.create_array("b", data=numbers() * 2, chunks=(4, 4, 4), attributes={"_FillValue": 8})
    group.create_array("f", data=numbers("f4"), chunks=(4, 4, 4))
    group.create_array("text", data=["a", "bcd", "", "d"])
    group.create_array("missing", data=np.ma.masked_array([1, 2], [False, True]), missing="optional")
    return group


NAMES = (
    "stacked",
    "two arrays",
    "ragged",
    "types",
    "large",
    "indexers",
    "points",
    "elements",
    "text",
    "text and numbers",
    "missing",
    "none",
)


@pytest.mark.parametrize("name", NAMES)
def test_items_are_read_as_without_reports(name: str, group: zarrow.Group) -> None:
    items = items_of(group)[name]
    for options in ({}, {"decode": "cf"}):
        reports = Reports()
        found: Any = zarrow.read_many(iter(items), progress=reports, **options)
        plain: Any = zarrow.read_many(items, **options)
        assert type(found) is type(plain)
        if not isinstance(plain, list):
            found, plain = [found], [plain]
        assert [described(each) for each in found] == [described(each) for each in plain]
        assert reports[-1][0] == reports[-1][1] and reports == sorted(reports)
        if name in ("stacked", "ragged", "large"):
            reports.check(reports[-1][1], 4)
    assert isinstance(zarrow.read_many(items, progress=False), type(zarrow.read_many(items)))


def test_items_are_read_into_memory(group: zarrow.Group) -> None:
    for name in ("stacked", "two arrays", "large", "points"):
        items = items_of(group)[name]
        expected: Any = zarrow.read_many(items)
        for out in (np.zeros(expected.shape, "i4"), np.zeros(expected.shape, "i4", order="F")):
            reports = Reports()
            assert zarrow.read_many(items, out=out, progress=reports) is out
            assert np.array_equal(out, expected.numpy())
            reports.check(out.nbytes, 2 if name == "points" else 3)
    out = np.zeros(3, "i4")
    assert zarrow.read_many([], out=out, progress=print) is out
    refused: Any
    for refused in ({"out": out}, {"out": np.zeros((9, 11, 7), "f8")}, {"device": "cuda"}, {"stream": 1}):
        with pytest.raises((ValueError, TypeError)):
            zarrow.read_many(items_of(group)["stacked"], progress=True, **refused)
    with pytest.raises(TypeError, match="progress is a function"):
        zarrow.read_many(items_of(group)["stacked"], progress=3)  # type: ignore[call-overload]
    wrong: Any
    for wrong in (3, [3], [(group, ...)]):
        for progress in (None, print):
            with pytest.raises(TypeError, match=r"\(array, selection\)"):
                zarrow.read_many(wrong, progress=progress)


class Exchanged:
    """Memory with DLPack, which cannot be sliced."""

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, values.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def test_memory_without_slices_is_filled_at_once(group: zarrow.Group) -> None:
    array = group["a"]
    for forms in (memoryview, Exchanged, zarrow.asarray, np.asfortranarray, lambda each: each[::-1]):
        for count in (None, 3):
            out = np.zeros(SHAPE if count is None else (count, *SHAPE), "i4")
            given: Any = forms(out)
            reports = Reports()
            if count is None:
                assert array.read(out=given, progress=reports) is given
            else:
                assert zarrow.read_many([array] * count, out=given, progress=reports) is given
            filled = given.values if isinstance(given, Exchanged) else np.asarray(given)
            assert np.array_equal(filled, np.broadcast_to(numbers(), filled.shape))
            reports.check(out.nbytes, 2 if forms in (memoryview, Exchanged) else 3)


def test_memory_that_is_refused_stays_refused(group: zarrow.Group) -> None:
    array = group["a"]
    zeros = np.zeros(1000, "i4")
    refused: Any
    for shape in (SHAPE, (3, *SHAPE)):
        for refused in (
            np.lib.stride_tricks.as_strided(zeros, shape, (0,) * len(shape)),
            np.lib.stride_tricks.as_strided(zeros, shape, (4,) * len(shape)),
            np.broadcast_to(zeros[:1], shape),
            zarrow.create_array(zarrow.MemoryStore(), shape=shape, dtype="i4"),
            np.ma.masked_array(np.zeros(shape, "i4"), np.ones(shape, bool)),
        ):
            errors = []
            for progress in (None, Reports()):
                with pytest.raises((TypeError, ValueError)) as raised:
                    if shape == SHAPE:
                        array.read(out=refused, progress=progress)
                    else:
                        zarrow.read_many([array] * 3, out=refused, progress=progress)
                errors.append((type(raised.value), str(raised.value)))
            assert errors[0] == errors[1]


def test_items_are_written_as_without_reports(tmp_path: Path) -> None:
    values = numbers()
    groups = [zarrow.create_group(tmp_path / name) for name in "ab"]
    reports = Reports()
    for group, progress in zip(groups, (None, reports), strict=True):
        source = zarrow.create_array(zarrow.MemoryStore(), data=values)
        one = group.create_array("one", shape=SHAPE, dtype="i4", chunks=(2, 3, 7))
        two = group.create_array("two", shape=SHAPE, dtype="f8", chunks=(4, 4, 4))
        items = [
            (one, ..., values),
            (two, np.s_[1:], values[1:]),
            (two, 0, source[0]),
            (one, np.s_[3:5], source[3:5]),
            (two.oindex, ([1, 3], [0], [2]), 5),
            (one, np.s_[0, 0, :2], [7, 8]),
        ]
        zarrow.write_many(iter(items), progress=progress, write_empty_chunks=True)
    assert stored(tmp_path / "a") == stored(tmp_path / "b")
    reports.check(values.nbytes * 2 + 2 * source[0].nbytes, 10)
    with pytest.raises(TypeError, match="progress is a function"):
        zarrow.write_many([(one, 0, 1)], progress=3)  # type: ignore[arg-type]
    for wrong in (3, [3], [(one, 0)], [(3, 0, 1)]):
        with pytest.raises(TypeError, match=r"\(array, selection, values\)"):
            zarrow.write_many(wrong, progress=print)  # type: ignore[arg-type]


APPENDED: list[Any] = [
    np.arange(300.0).reshape(100, 3),
    np.arange(300, dtype="i2").reshape(3, 100).T,
    np.arange(600, dtype=">f8").reshape(100, 6)[::-1, ::2],
    np.zeros((0, 3)),
    [[1, 2, 3]],
]


@pytest.mark.parametrize("layout", [{"chunks": (7, 2)}, {"chunks": (4, 3), "shards": (8, 3)}])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_appends_equal_others(layout: dict[str, Any], axis: int, tmp_path: Path) -> None:
    if axis:
        layout = {name: each[::-1] for name, each in layout.items()}
    arrays: list[zarrow.Array] = [
        zarrow.create_array(tmp_path / name, shape=(5, 3)[:: -1 if axis else 1], dtype="f8", **layout)
        for name in "ab"
    ]
    for values in APPENDED:
        given = np.transpose(values) if axis else values
        reports = Reports()
        assert arrays[0].append(given, axis) == arrays[1].append(given, axis, progress=reports)
        nbytes = getattr(given, "nbytes", 0)
        reports.check(nbytes, 3 if nbytes > 500 else 1)
    assert stored(tmp_path / "a") == stored(tmp_path / "b")
    with pytest.raises(TypeError, match="progress is a function"):
        arrays[0].append([[0, 0, 0]], progress=3)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        arrays[0].append([[0]], progress=print)


def test_text_and_missing_elements_are_appended() -> None:
    for values in (["a"] * 200, np.ma.masked_array(np.arange(200), np.arange(200) % 3 == 0)):
        for store in (zarrow.MemoryStore(), {}):
            options: Any = {"chunks": (9,), "missing": "optional"}
            array = zarrow.create_array(store, data=values[:2], **options)
            assert array.append(values, progress=Reports()) == (202,)
            assert array[2:].tolist() == list(values.tolist() if hasattr(values, "tolist") else values)


def test_appended_elements_appear_together(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.arange(10.0), chunks=(4,))
    shapes = []

    def look(done: int, total: int) -> None:
        shapes.append((array.shape, zarrow.open_array(tmp_path / "a.zarr").shape))

    array.append(np.ones(500), progress=look)
    assert len(shapes) > 5 and set(shapes[:-1]) == {((10,), (10,))}
    assert shapes[-1] == ((510,), (510,))


def calls(group: zarrow.Group) -> dict[str, Callable[[Any], object]]:
    a = group["a"]
    table = group["table"]
    return {
        "mask": lambda progress: a.read(mask=[1], progress=progress),
        "decode": lambda progress: a.read(decode="cf", progress=progress),
        "order": lambda progress: a.read(order="F", progress=progress),
        "read_many": lambda progress: zarrow.read_many([a, a], progress=progress),
        "read_many_async": lambda progress: asyncio.run(zarrow.read_many_async([a, a], progress=progress)),
        "ragged": lambda progress: zarrow.read_many([a, (a, 0)], progress=progress),
        "write_many": lambda progress: zarrow.write_many([(a, ..., numbers() + 1)], progress=progress),
        "append": lambda progress: a.append(numbers() + 1, progress=progress),
        "to_pandas": lambda progress: table.to_pandas(progress=progress),
        "to_polars": lambda progress: table.to_polars(progress=progress),
        "to_parquet": lambda progress: table.to_parquet(f"{group.store}/../t.parquet", progress=progress),
    }


@pytest.fixture
def table(group: zarrow.Group) -> zarrow.Group:
    rows = {"x": np.arange(1000.0), "y": np.arange(1000) % 7, "name": [str(at % 10) for at in range(1000)]}
    group["table"] = pandas.DataFrame(rows, index=np.arange(1000) * 2)
    group.create_array("short/x", data=np.arange(2000.0), chunks=(100,))
    group.create_array("short/text", data=["ab"] * 2000, chunks=(100,))
    return group


CALLS = (
    "mask",
    "decode",
    "order",
    "read_many",
    "read_many_async",
    "ragged",
    "write_many",
    "append",
    "to_pandas",
    "to_polars",
    "to_parquet",
)


@pytest.mark.parametrize("name", CALLS)
def test_an_exception_of_the_function_ends_the_call(name: str, table: zarrow.Group, tmp_path: Path) -> None:
    call = calls(table)[name]
    call(None)
    before, threads = stored(tmp_path), threading.active_count()
    for error in (ZeroDivisionError("stop"), KeyboardInterrupt()):

        def fail(done: int, total: int, error: BaseException = error) -> None:
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                signal.raise_signal(signal.SIGINT)
            raise error

        with pytest.raises(type(error)) as raised:
            call(fail)
        assert isinstance(error, KeyboardInterrupt) or raised.value is error
    assert stored(tmp_path) == before
    assert threading.active_count() <= threads + (name == "read_many_async")
    call(None)


def test_an_append_that_is_stopped_leaves_the_old_array(group: zarrow.Group, tmp_path: Path) -> None:
    array, before = group["a"], stored(tmp_path)
    for expected in (KeyboardInterrupt, ZeroDivisionError):

        def fail(done: int, total: int, expected: type[BaseException] = expected) -> None:
            if 0 < done < total:
                if expected is KeyboardInterrupt:
                    signal.raise_signal(signal.SIGINT)
                raise ZeroDivisionError

        with pytest.raises(expected):
            array.append(numbers(), progress=fail)
        assert array.shape == SHAPE and stored(tmp_path) == before
    assert array.append(numbers(), progress=Reports()) == (18, 11, 7)
    assert np.array_equal(array[9:].numpy(), numbers())


def test_tables_are_read_as_without_reports(table: zarrow.Group, tmp_path: Path) -> None:
    for group in (table["table"], table["short"]):
        for options in (
            {},
            {"rows": slice(10, 900)},
            {"filters": [("x", ">", 100.0)]},
            {"rows": slice(0, 0)},
        ):
            reports = Reports()
            plain = group.to_pandas(**options)
            pandas.testing.assert_frame_equal(plain, group.to_pandas(progress=reports, **options))
            assert reports[-1][0] == reports[-1][1] and reports == sorted(reports)
            reports = Reports()
            frame = group.to_polars(progress=reports, **options)
            expected = group.to_polars(**options)
            assert frame.equals(expected) and frame.schema == expected.schema
            reports.check(len(plain), 1 + (len(plain) > 0))
    reports = Reports()
    table["table"].to_pandas(progress=reports)
    reports.check(reports[-1][1], 4)
    rows = table["short"][5:1500]
    for read in (rows.to_pandas, rows.to_polars):
        reports = Reports()
        assert len(read(progress=reports)) == 1495 and reports[-1][0] == reports[-1][1]
    for source in (rows, table["short"]):
        reports = Reports()
        source.to_parquet(tmp_path / "t.parquet", progress=reports)
        reports.check(source.num_rows, 2)
        assert pyarrow.parquet.read_table(tmp_path / "t.parquet").equals(pyarrow.table(source))
    assert isinstance(table["short"].to_polars("x", progress=True), polars.DataFrame)


def test_tasks_read_as_without_reports(group: zarrow.Group) -> None:
    a = group["a"]
    reports = Reports()
    found = asyncio.run(zarrow.read_many_async([(a, 0), (a, 1)], progress=reports))
    assert described(found) == described(zarrow.read_many([(a, 0), (a, 1)]))
    reports.check(2 * 77 * 4, 2)
    for options in ({"mask": [1]}, {"decode": "cf"}):
        reports = Reports()
        masked = asyncio.run(a.read_async(progress=reports, **options))
        assert described(masked) == described(a.read(**options))
        reports.check(numbers().nbytes, 3)
