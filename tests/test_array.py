"""The class Array: its metadata, and reads by selection and by chunk."""

from __future__ import annotations

import operator
import re
import signal
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec

import zarrow

VALUES = np.arange(7 * 9, dtype=np.int32).reshape(7, 9)


@pytest.fixture(scope="module", params=[2, 3])
def array(request, tmp_path_factory):
    store = tmp_path_factory.mktemp("store") / "data.zarr"
    group = zarr.open_group(store, mode="w", zarr_format=request.param)
    names = {"dimension_names": ["row", None]} if request.param == 3 else {}
    written = group.create_array(
        "model/grid",
        shape=(7, 9),
        chunks=(3, 4),
        dtype="int32",
        fill_value=-5,
        attributes={"units": "K"},
        **names,
    )
    written[:] = VALUES
    return zarrow.open(store)["model/grid"]


def test_properties(array):
    assert isinstance(array, zarrow.Array)
    assert (array.shape, array.ndim, array.size, len(array), array.dtype) == ((7, 9), 2, 63, 7, np.int32)
    assert (array.chunks, array.shards, array.nbytes) == ((3, 4), None, 252)
    assert (array.path, array.name, array.attrs) == ("model/grid", "/model/grid", {"units": "K"})
    assert array.store.endswith("data.zarr")
    assert array.fill_value == -5 and type(array.fill_value) is np.int32
    assert array.dimension_names == (("row", None) if array.zarr_format == 3 else None)
    assert array.metadata["shape"] == [7, 9] and array.metadata["zarr_format"] == array.zarr_format
    assert array.nbytes_stored() > 252 // 4


def test_attributes_are_a_new_dict(array):
    array.attrs.asdict()["units"] = "changed"
    assert array.attrs == {"units": "K"}


def test_text_and_html_show_the_essentials(array):
    for text in (repr(array), array._repr_html_()):
        for part in ("(7, 9)", "int32", "(3, 4)", array.metadata["codecs"][-1]["name"], "252 B", "stored"):
            assert part in text, part


@pytest.mark.parametrize(
    "index",
    [
        ...,
        (),
        slice(None),
        3,
        -1,
        (2, 5),
        slice(1, 6, 2),
        (slice(None, None, -2), -3),
        (..., slice(2, 3)),
        slice(9, 2),
        np.int64(2),
    ],
)
def test_selections_are_those_of_numpy(array, index):
    for decoded in (array[index], array.read(index), array.read(selection=index)):
        assert isinstance(decoded, zarrow.Tensor) and decoded.shape == VALUES[index].shape
        np.testing.assert_array_equal(decoded.numpy(), VALUES[index])


@pytest.mark.parametrize(
    "index", [7, (0, 9), (0, 0, 0), -8, 1.5, "a", None, True, [1, 7], slice(None, None, 0)]
)
def test_bad_selections_are_index_errors(array, index):
    with pytest.raises(IndexError):
        array[index]


def test_an_index_error_says_where(array):
    with pytest.raises(zarrow.IndexingError, match="out of bounds") as raised:
        array[7]
    assert (raised.value.kind, raised.value.path, raised.value.store) == ("index", "model/grid", array.store)


def test_chunks_are_cut_to_the_array(array):
    assert array.retrieve_chunk((0, 0)).tolist() == VALUES[:3, :4].tolist()
    assert array.retrieve_chunk([2, 2]).tolist() == VALUES[6:, 8:].tolist()
    for indices in [(3, 0), (0, 3), (-1, 0), (0,), (0, 0, 0), 0, (2**63 - 1, 0)]:
        with pytest.raises(IndexError):
            array.retrieve_chunk(indices)


def test_each_read_has_separate_memory(array):
    first, second = array[...], array[...]
    first.numpy()[:] = 0
    assert second.tolist() == VALUES.tolist() and not first.readonly


def test_numpy_reads_it_all(array):
    np.testing.assert_array_equal(np.asarray(array), VALUES)
    assert np.asarray(array, dtype="f8").dtype == np.float64
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(array, copy=False)


def test_shards(tmp_path):
    written = zarr.create_array(
        tmp_path, shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="f8", compressors=BloscCodec()
    )
    written[:] = np.eye(8)
    array = zarrow.open(tmp_path)
    assert (array.chunks, array.shards, array.path, array.name) == ((2, 2), (4, 4), "", "/")
    assert "sharding_indexed(bytes, blosc)" in repr(array)
    assert array.retrieve_chunk((1, 1)).tolist() == np.eye(4).tolist()


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("M8[s]", np.datetime64("2020-01-01", "s")),
        ("f4", np.nan),
        ("c8", 1 - 2j),
        ("bool", True),
        (str, "none"),
    ],
)
def test_fill_values_are_of_the_type(tmp_path, dtype, fill):
    zarr.create_array(tmp_path, shape=(3,), chunks=(2,), dtype=dtype, fill_value=fill)
    array = zarrow.open(tmp_path)
    if dtype is str:
        assert array.fill_value == "none" and array.nbytes is None and array[:].tolist() == ["none"] * 3
    else:
        assert array.fill_value.dtype == np.dtype(dtype)
        np.testing.assert_equal(array.fill_value, np.array(fill, dtype=dtype)[()])
        np.testing.assert_array_equal(array[:].numpy(), np.full(3, fill, dtype=dtype))


def test_0d(tmp_path):
    zarr.create_array(tmp_path, shape=(), dtype="i8")[()] = 42
    array = zarrow.open(tmp_path)
    assert array.size == 1 and array[()].item() == array[...].item() == array.retrieve_chunk(()).item() == 42
    with pytest.raises(TypeError):
        len(array)


def test_control_c_stops_a_read(tmp_path):
    zarr.create_array(tmp_path, shape=(100_000_000,), chunks=(1000,), dtype="i1", fill_value=3)
    program = f"""
        import signal, threading, time, zarrow
        array = zarrow.open({str(tmp_path)!r})
        pings = []
        def interrupt():
            # This thread can only run if the read releases the GIL.
            time.sleep(0.2)
            pings.append(1)
            signal.raise_signal(signal.SIGINT)
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            while True:
                array[...]
        except KeyboardInterrupt:
            print("interrupted", len(pings))
        thread.join()
        print(array[:3].tolist())
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100
    )
    assert finished.stdout == "interrupted 1\n[3, 3, 3]\n", finished.stderr
    assert finished.returncode == 0
    assert signal.getsignal(signal.SIGINT) is not None


def test_threads_are_set_and_read():
    before = zarrow.num_threads()
    try:
        zarrow.set_num_threads(3)
        assert zarrow.num_threads() == 3
        with pytest.raises(ValueError):
            zarrow.set_num_threads(0)
    finally:
        zarrow.set_num_threads(before)


def test_rows_are_read_one_by_one(tmp_path):
    array = zarrow.create_array(tmp_path / "rows", data=[[1, 2], [3, 4]])
    assert [row.tolist() for row in array] == [[1, 2], [3, 4]]
    point = zarrow.create_array(tmp_path / "point", data=5)
    with pytest.raises(TypeError, match="0-d array"):
        iter(point)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda array: array.read(mask="cfx"), "'cf', 'fill' or a value"),
        (lambda array: zarrow.read_many([(np.zeros(3), 0)]), "takes a list of (array, selection)"),
        (
            lambda array: zarrow.create_array(zarrow.MemoryStore(), dtype="i4", compresor=None),
            "did you mean compressor?",
        ),
        (
            lambda array: zarrow.create_array(zarrow.MemoryStore(), shape=1, dtype=object),
            "which has no Zarr data type",
        ),
        (lambda array: array.write(0, None), "optional["),
    ],
)
def test_an_error_says_what_to_do(tmp_path, call, text):
    array = zarrow.create_array(tmp_path, data=[1, 2])
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=re.escape(text)):
        call(array)


def test_an_array_shows_axes_fill_value_missing_chunks_and_attributes(tmp_path):
    array = zarrow.create_array(
        tmp_path / "grid",
        shape=(365, 4),
        chunks=(1, 4),
        dtype="f4",
        fill_value=np.nan,
        dimension_names=["time", None],
        attributes={"units": "K", "long": "x" * 1000, **{f"key{number}": number for number in range(50)}},
    )
    array[3:5] = 1
    for text in (repr(array), array._repr_html_()):
        for part in ("time, unnamed", "nan", "(1, 4), 2 of 365 stored", "more"):
            assert part in text, part
        assert "units=" in text and len(text) < 1500
    array[...] = 1
    assert "chunks   (1, 4), 365 in all" in repr(array)
    word = zarrow.create_array(tmp_path / "word", shape=2, dtype=str, fill_value="no")
    assert "fill     'no'" in repr(word) and "\n  axes" not in repr(word) and "\n  attrs" not in repr(word)


def test_an_array_of_many_chunks_is_shown_without_a_look_at_each(tmp_path):
    """Showing the array must not list the folder: the grid has 10¹² chunks."""
    array = zarrow.create_array(tmp_path, shape=(10**15,), chunks=(1000,), dtype="i1", shards=None)
    array[:5] = 1
    shown = repr(array)
    assert "chunks   (1000,), 1000000000000 in all" in shown and "stored   not counted" in shown
    sharded = zarrow.create_array(
        zarrow.MemoryStore(), shape=(40, 40), chunks=(5, 5), shards=(20, 20), dtype="i1"
    )
    sharded[:3] = 1
    assert "shards   (20, 20), 2 of 4 stored" in repr(sharded)


@pytest.mark.parametrize("value", [3, 3.5, True, "Oslo", b"x"], ids=repr)
def test_an_array_in_the_store_is_not_compared_with_values(array: zarrow.Array, value: Any) -> None:
    for compare in (operator.eq, operator.ne, operator.gt, operator.le):
        with pytest.raises(TypeError, match=r"by array\[\.\.\.\] first"):
            compare(array, value)
    assert array == array and (array == None) is False  # noqa: E711
