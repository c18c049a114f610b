"""The codec pipeline of `zarrow.zarr_python`: reads and writes equal those of zarr-python's own pipeline."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.core.codec_pipeline import BatchedCodecPipeline

import zarrow
from oracle.gaps import ZARR_PYTHON
from zarr_pipelines import (
    CHUNKS,
    DTYPES,
    DTYPES_OF_V2,
    LAYOUTS,
    SHAPE,
    assert_equal,
    elements,
    outcome,
    pair,
    read,
    selections,
    write,
)
from zarr_versions import needs_new_zarr

pytestmark = [
    pytest.mark.small_files,
    pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning"),
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
]


@pytest.fixture
def by_zarr_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """List the batches that zarr-python's own pipeline reads and writes."""
    calls: list[str] = []
    for name in ("read", "write"):
        original = getattr(BatchedCodecPipeline, name)

        def counted(*arguments: Any, name: str = name, original: Any = original, **options: Any) -> Any:
            calls.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(BatchedCodecPipeline, name, counted)
    yield calls


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=6, deadline=None)
@given(
    chosen=selections(),
    dtype=st.sampled_from(DTYPES + DTYPES_OF_V2),
    how=st.sampled_from(["sync", "async"]),
    seed=st.integers(0, 9),
)
def test_reads_and_writes_equal_those_of_zarr_python(
    layout: str, chosen: tuple[str, Any], dtype: str, how: str, seed: int
) -> None:
    if layout == "index first" and ZARR_PYTHON < (3, 4):
        pytest.skip("zarr-python 3.1 refuses some writes")
    kind, selection = chosen
    options = LAYOUTS[layout]
    if dtype in DTYPES_OF_V2 and options.get("zarr_format") != 2:
        dtype = dtype.lstrip(">")
    if layout == "big-endian" and np.dtype(dtype).kind not in "iufcmM":
        dtype = "i4"
    with tempfile.TemporaryDirectory() as folder:
        arrays = pair(Path(folder), shape=SHAPE, dtype=dtype, **options)
        values = elements(SHAPE, dtype, seed)
        for array in (arrays.own, arrays.engine):
            array[3:, :-2] = values[3:, :-2]
        arrays.stored_equal()
        arrays.equal(lambda array: read(array, kind, selection, how))
        shape = np.shape(outcome(lambda array: read(array, kind, selection), arrays.own))
        new = elements(shape, dtype, seed + 1) if shape else values[0, 0]
        arrays.equal(lambda array: write(array, kind, selection, new))
        arrays.equal(lambda array: write(array, kind, selection, values[1, 1]))
        arrays.equal(lambda array: array[...])
        arrays.stored_equal()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["v3", "shards", "v2"])
def test_the_engine_reads_and_writes(
    tmp_path: Path, layout: str, dtype: str, by_zarr_python: list[str]
) -> None:
    with zarrow.zarr_python.enable():
        array = zarr.create_array(tmp_path, shape=SHAPE, dtype=dtype, **LAYOUTS[layout])
    values = elements(SHAPE, dtype, 1)
    array[:] = values
    array[2:4, 3] = values[2:4, 3]
    array.oindex[[1, 7], :] = values[[1, 7]]
    array.vindex[[1, 7], [30, 2]] = values[[1, 7], [30, 2]]
    for found, expected in [
        (array[:], values),
        (array[1::3, 5], values[1::3, 5]),
        (array.oindex[[7, 1], 2:9], values[[7, 1], 2:9]),
        (array.oindex[[7, 1], [30, 3]], values[np.ix_([7, 1], [30, 3])]),
        (array.vindex[[7, 1, 22], [30, 3, 3]], values[[7, 1, 22], [30, 3, 3]]),
        (array.blocks[1:], values[array.shards[0] if array.shards else CHUNKS[0] :]),
    ]:
        assert_equal(expected, found)
    assert by_zarr_python == []


def test_a_document_without_extra_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_zarr_python: list[str]
) -> None:
    """zarr-python 3.1.3 has no such fields."""
    from zarr.abc.metadata import Metadata

    zarr.create_array(tmp_path, shape=(4,), chunks=(2,), dtype="i4", fill_value=7)
    to_dict = Metadata.to_dict
    without = {"extra_fields"}
    monkeypatch.setattr(
        Metadata,
        "to_dict",
        lambda self: {key: value for key, value in to_dict(self).items() if key not in without},
    )
    with zarrow.zarr_python.enable():
        assert zarr.open_array(tmp_path)[...].tolist() == [7] * 4
    assert by_zarr_python == []


@pytest.mark.parametrize("overlap", [0, 2])
def test_runs_of_one_chunk_are_one_read(tmp_path: Path, by_zarr_python: list[str], overlap: int) -> None:
    """annbatch makes an indexer of many runs, with several entries for each chunk.

    Places in the result that overlap are left to zarr-python.
    """
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.indexing import BasicIndexer
    from zarr.core.sync import sync

    with zarrow.zarr_python.enable():
        array = zarr.create_array(tmp_path, shape=(100, 6), chunks=(10, 2), shards=(50, 4), dtype="i4")
    values = np.arange(600, dtype="i4").reshape(100, 6)
    array[:] = values
    runs = [slice(3, 7), slice(55, 71), slice(8, 9), slice(70, 90)]
    # Its place since zarr-python 3.2.
    grid = getattr(array._async_array, "_chunk_grid", array.metadata.chunk_grid)
    indexers = [BasicIndexer((run, slice(None)), (100, 6), grid) for run in runs]

    class Runs:
        shape = (sum(run.stop - run.start for run in runs) - overlap * (len(runs) - 1), 6)
        drop_axes = ()

        def __iter__(self) -> Iterator[Any]:
            start = 0
            for indexer in indexers:
                for part in indexer:
                    where, columns = part.out_selection
                    moved = slice(start + where.start, start + where.stop)
                    yield part._replace(out_selection=(moved, columns))
                start += indexer.shape[0] - overlap

    prototype = default_buffer_prototype()
    reading = array._async_array._get_selection(Runs(), prototype=prototype)
    expected = np.empty(Runs.shape, "i4")
    start = 0
    for run in runs:
        expected[start : start + run.stop - run.start] = values[run]
        start += run.stop - run.start - overlap
    found = sync(reading)
    if overlap == 0:
        assert_equal(expected, found)
    assert bool(by_zarr_python) == (overlap > 0)


@pytest.mark.parametrize("dtype", [np.dtypes.StringDType(), "O"])
@pytest.mark.parametrize("layout", [{}, {"shards": (6,)}, {"zarr_format": 2}])
def test_the_engine_reads_text_that_zarr_python_writes(
    tmp_path: Path, dtype: Any, layout: dict[str, Any], by_zarr_python: list[str]
) -> None:
    arrays = pair(tmp_path, shape=(14,), chunks=(3,), dtype=str, **layout)
    for array in (arrays.own, arrays.engine):
        array[1:7] = np.array(["a", "bß", "", "\0d", "e" * 100, "€"], dtype)
        array[9] = "last"
    found = zarrow.zarr_python.explain(arrays.engine)
    assert (found.read, found.write) == ("zarrow", "zarr-python")
    assert "variable length" in str(found.why)
    own = zarr.open_array(arrays.own.store, mode="r")
    for chosen in [..., np.s_[2:9], np.s_[1::4], 5, -1]:
        expected = own[chosen]
        by_zarr_python.clear()
        assert_equal(expected, arrays.engine[chosen])
        assert by_zarr_python == []
    expected = [own.oindex[[6, 1, 9]], own.vindex[[6, 1, 9]]]
    by_zarr_python.clear()
    for one, ours in zip(expected, (arrays.engine.oindex, arrays.engine.vindex), strict=True):
        assert_equal(one, ours[[6, 1, 9]])
    assert by_zarr_python == []


@pytest.mark.parametrize(
    "chosen", [..., np.s_[2:21, 1:4], np.s_[3:, 2], np.s_[1::3], np.s_[5, 1:], np.s_[4:4]]
)
def test_many_rows_of_text_are_read_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: Any, by_zarr_python: list[str]
) -> None:
    monkeypatch.setattr("zarrow.zarr_python.pipeline._BLOCK", 20)
    arrays = pair(tmp_path, shape=(23, 5), chunks=(3, 2), dtype=str)
    for array in (arrays.own, arrays.engine):
        array[:20] = np.char.mod("%d", np.arange(100).reshape(20, 5)).astype(np.dtypes.StringDType())
    arrays.equal(lambda array: array[chosen])
    # The engine reads without zarr-python's pipeline.
    by_zarr_python.clear()
    arrays.engine[chosen]
    assert by_zarr_python == []


@pytest.mark.parametrize("how", ["torn", "no text"])
def test_a_bad_chunk_of_text_is_an_error_as_in_zarr_python(tmp_path: Path, how: str) -> None:
    arrays = pair(tmp_path, shape=(6,), chunks=(3,), dtype=str, compressors=None)
    for array in (arrays.own, arrays.engine):
        array[:] = np.array(list("abcdef"), np.dtypes.StringDType())
        chunk = Path(array.store.root) / "c/1"
        stored = chunk.read_bytes()
        chunk.write_bytes(stored[:-1] if how == "torn" else stored[:-1] + b"\xff")
    arrays.equal(lambda array: array[:3])
    arrays.equal(lambda array: array[:])


@pytest.mark.parametrize("dtype", ["S4", "V3", [("x", "i2"), ("y", "S4")], "U1"])
def test_types_without_a_specification_are_read_without_a_warning(tmp_path: Path, dtype: Any) -> None:
    values = np.frombuffer(b"a\0\0\0" * 6, dtype)
    zarr.create_array(tmp_path / "a", data=values, chunks=2)
    with warnings.catch_warnings(), zarrow.zarr_python.enable():
        warnings.simplefilter("error")
        array = zarr.open_array(tmp_path / "a", mode="r")
        assert array[:].tobytes() == values.tobytes()
        assert zarrow.zarr_python.explain(array).read == "zarrow"


def test_fields_are_read_by_zarr_python(tmp_path: Path) -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    arrays = pair(tmp_path, shape=(7,), chunks=(3,), dtype=dtype, zarr_format=2)
    for array in (arrays.own, arrays.engine):
        array[:5] = np.array([(number, -number) for number in range(5)], dtype)
    arrays.equal(lambda array: array[:])
    arrays.equal(lambda array: array.get_basic_selection(slice(2, 6), fields="b"))
    explain = zarrow.zarr_python.explain
    assert explain(arrays.engine).read == "zarrow"
    assert "which field" in str(explain(arrays.engine, ("b", slice(2, 6))).why)


def test_arrays_without_axes_and_without_elements(tmp_path: Path) -> None:
    scalar = pair(tmp_path / "scalar", shape=(), dtype="f8")
    empty = pair(tmp_path / "empty", shape=(0, 3), chunks=(2, 2), dtype="f8")
    for array in (scalar.own, scalar.engine):
        array[()] = 3.5
    for arrays in (scalar, empty):
        arrays.equal(lambda array: array[...])
    scalar.equal(lambda array: array[()])
    scalar.stored_equal()


@needs_new_zarr
def test_rectilinear_grids(tmp_path: Path, by_zarr_python: list[str]) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        arrays = pair(tmp_path, shape=(12, 9), chunks=[[2, 7, 3], [4, 5]], dtype="i4")
        values = elements((12, 9), "i4", 1)
        arrays.engine[:] = values
        arrays.engine[1:10, 3] = 7
        assert_equal(arrays.engine.oindex[[11, 2], 1:9], arrays.engine[:][[11, 2], 1:9])
        assert by_zarr_python == []
        arrays.own[:] = values
        arrays.own[1:10, 3] = 7
        arrays.equal(lambda array: array[::2, 1:])
        for array in (arrays.own, arrays.engine):
            array.resize((14, 11))
            array[11:, 8:] = 5
        arrays.equal(lambda array: array[:])
        arrays.stored_equal()


def test_resize_after_opening(tmp_path: Path) -> None:
    arrays = pair(tmp_path, shape=(6,), chunks=(8,), dtype="i4")
    for array in (arrays.own, arrays.engine):
        array[:6] = np.arange(1, 7)
        array.resize(8)
        array[:6] = np.arange(11, 17)
        array[6:] = 5
        array.resize(3)
        array[:] = 9
        array.resize(20)
        array[18:] = 2
    arrays.equal(lambda array: array[:])
    arrays.stored_equal()


@pytest.mark.parametrize("fill", [0.0, -0.0, np.nan, 3.0])
@pytest.mark.parametrize("write_empty_chunks", [True, False])
@pytest.mark.parametrize("layout", ["v3", "shards", "v2"])
def test_empty_chunks(tmp_path: Path, fill: float, write_empty_chunks: bool, layout: str) -> None:
    config = {"write_empty_chunks": write_empty_chunks}
    arrays = pair(tmp_path, shape=SHAPE, dtype="f8", fill_value=fill, config=config, **LAYOUTS[layout])
    for array in (arrays.own, arrays.engine):
        array[:, 3:20] = fill
        array[3, 2] = 1
        array[15:18] = 0.0 if np.isnan(fill) else -fill
    arrays.stored_equal()
    for array in (arrays.own, arrays.engine):
        array[:] = fill
    arrays.stored_equal()


def test_a_null_fill_value(tmp_path: Path) -> None:
    arrays = pair(tmp_path, shape=(7,), chunks=(3,), dtype="f4", fill_value=None, zarr_format=2)
    for array in (arrays.own, arrays.engine):
        array[3:] = [0, 0, 0, 1]
    arrays.equal(lambda array: array[:])
    arrays.stored_equal()


@pytest.mark.parametrize("checksum", [None, False, True])
def test_frames_of_version_2_have_a_checksum_only_if_asked_for(tmp_path: Path, checksum: bool | None) -> None:
    options = {} if checksum is None else {"checksum": checksum}
    compressor = numcodecs.Zstd(level=0, **options)
    arrays = pair(tmp_path, shape=(6,), chunks=(2,), dtype="i4", zarr_format=2, compressors=compressor)
    for array in (arrays.own, arrays.engine):
        array[:] = np.arange(6)
    folders = [Path(array.store.root) for array in (arrays.own, arrays.engine)]
    own, engine = ([path.read_bytes() for path in sorted(folder.rglob("[012]"))] for folder in folders)
    assert own == engine and len(own) == 3


@pytest.mark.parametrize(
    ("data_type", "fill"),
    [
        ("float32", "0x7fc00001"),
        ("float32", "0xffc00000"),
        ("float64", "0xfff8000000000001"),
        ("float16", "0xfe00"),
        ("float32", "NaN"),
        ("complex64", ["0x7fc00001", "0xffc00000"]),
        ("complex128", [1.5, "0x7ff8000000000003"]),
    ],
)
def test_fill_values_keep_the_bits_of_their_nan(tmp_path: Path, data_type: str, fill: Any) -> None:
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [6],
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {},
    }

    def stored(folder: Path) -> tuple[bytes, dict[str, bytes]]:
        folder.mkdir()
        (folder / "zarr.json").write_text(json.dumps(document))
        array: Any = zarr.open_array(folder)
        array[0] = 1
        # A chunk of the fill value is left out.
        array[2:4] = np.full(2, array.fill_value)
        chunks = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("c/*")}
        return array[:].tobytes(), chunks

    expected = stored(tmp_path / "stock")
    with zarrow.zarr_python.enable():
        assert stored(tmp_path / "engine") == expected
    assert list(expected[1]) == ["c/0"]


@needs_new_zarr
@pytest.mark.parametrize("layout", ["v3", "shards"])
def test_missing_chunks_are_named(tmp_path: Path, layout: str) -> None:
    from zarr.errors import ChunkNotFoundError

    config = {"read_missing_chunks": False}
    arrays = pair(tmp_path, shape=SHAPE, dtype="f8", config=config, **LAYOUTS[layout])
    for array in (arrays.own, arrays.engine):
        array[:11] = 1
    arrays.equal(lambda array: array[:10, 3:])
    errors = []
    for array in (arrays.own, arrays.engine):
        with pytest.raises(ChunkNotFoundError) as error:
            array[5:]
        errors.append(str(error.value).replace("own", "engine"))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("layout", ["shards", "nested shards", "v3"])
@pytest.mark.parametrize("damage", [b"", b"torn", None])
def test_a_torn_chunk_is_overwritten_by_a_whole_write(
    tmp_path: Path, layout: str, damage: bytes | None, by_zarr_python: list[str]
) -> None:
    with zarrow.zarr_python.enable():
        array = zarr.create_array(tmp_path, shape=SHAPE, dtype="i4", **LAYOUTS[layout])
    values = elements(SHAPE, "i4", 1)
    array[:] = values
    for chunk in (tmp_path / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(chunk.read_bytes()[:-9] if damage is None else damage)
    array[:] = values + 1
    assert by_zarr_python == []
    assert_equal(values + 1, array[:])


def test_damaged_chunks_are_errors_of_zarr_python(tmp_path: Path) -> None:
    arrays = pair(tmp_path, shape=SHAPE, dtype="i4", **LAYOUTS["shards"])
    for array in (arrays.own, arrays.engine):
        array[:] = 1
        for shard in (Path(array.store.root) / "c").rglob("*"):
            if shard.is_file():
                shard.write_bytes(shard.read_bytes()[:-9])
    arrays.equal(lambda array: array[:])
    arrays.equal(lambda array: array[3, 3])


def test_results_may_be_strided_or_of_the_other_byte_order(tmp_path: Path) -> None:
    from zarr.core.buffer.cpu import NDBuffer

    with zarrow.zarr_python.enable():
        array = zarr.create_array(tmp_path, shape=SHAPE, dtype=">i4", zarr_format=2, chunks=CHUNKS)
    values = elements(SHAPE, ">i4", 1)
    array[:] = values
    memory = np.full((2 * SHAPE[0], SHAPE[1]), -1, ">i4")
    array.get_basic_selection(..., out=NDBuffer.from_numpy_array(memory[::-2]))
    assert_equal(values, memory[::-2].copy())
    assert (memory[::2] == -1).all()


def test_other_codecs_and_stores_fall_back(tmp_path: Path) -> None:
    class OwnCodec(zarr.codecs.BytesCodec):
        """A codec of a user, under the name of a built-in one."""

    explain = zarrow.zarr_python.explain
    with zarrow.zarr_python.enable():
        in_memory = zarr.create_array(zarr.storage.MemoryStore(), shape=(4,), dtype="i4")
        with_codec = zarr.create_array(tmp_path / "a", shape=(4,), dtype="i4", serializer=OwnCodec())
        read_only = zarr.open_array(zarr.storage.LocalStore(tmp_path / "a"), mode="r")
    own = zarr.create_array(tmp_path / "b", shape=(4,), dtype="i4")
    for array in (in_memory, with_codec):
        array[1:3] = 7
        assert array[:].tolist() == [0, 7, 7, 0]
    assert "MemoryStore" in str(explain(in_memory).why)
    assert "OwnCodec is not a class of zarr-python" in str(explain(with_codec).why)
    assert explain(read_only).write == "zarr-python" and explain(read_only).read == "zarrow"
    assert "BatchedCodecPipeline" in str(explain(own).why)
    with pytest.raises(ValueError, match="read-only"):
        read_only[:] = 1
    with pytest.raises(TypeError, match=r"expected an array of zarr-python, found builtins\.list"):
        explain([1])


def test_explain_names_the_store_and_the_reason(tmp_path: Path) -> None:
    with zarrow.zarr_python.enable():
        array = zarr.create_array(tmp_path, shape=SHAPE, dtype="i4", **LAYOUTS["shards"])
    found = zarrow.zarr_python.explain(array, (slice(3), [1, 1]))
    assert (found.read, found.write) == ("zarrow", "zarr-python")
    assert str(found) == f"read   zarrow\nwrite  zarr-python\nstore  {tmp_path}\nwhy    {found.why}"
    assert found.why == "a position is written several times"
    assert zarrow.zarr_python.explain(array) == zarrow.zarr_python.explain(array, (slice(3), 4))


SELECTIONS: list[Any] = [
    ...,
    3,
    np.s_[2:4, 1],
    [0, 3],
    ([0, 3], [1, 5]),
    (np.array([0, 3]), np.array([1, 5])),
    np.arange(48).reshape(8, 6) % 5 == 0,
    (slice(None), [1, 2]),
    (np.arange(8) < 4, slice(2)),
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=map(str, range(len(SELECTIONS))))
def test_explain_takes_what_brackets_take(tmp_path: Path, selection: Any) -> None:
    values = np.arange(48, dtype="i4").reshape(8, 6)
    with zarrow.zarr_python.enable():
        array: Any = zarr.create_array(tmp_path, data=values, chunks=(4, 3))
        array[selection]
        found = zarrow.zarr_python.explain(array, selection)
    assert found.read == "zarrow" and found.store == str(tmp_path)


def test_explain_refuses_what_brackets_refuse(tmp_path: Path) -> None:
    with zarrow.zarr_python.enable():
        array: Any = zarr.create_array(tmp_path, shape=(8, 6), dtype="i4")
    for selection in np.s_[9], np.s_[0, 0, 0], (np.array([0, 9]), np.array([0, 0])), np.ones((8, 5), bool):
        with pytest.raises(IndexError):
            array[selection]
        with pytest.raises(IndexError):
            zarrow.zarr_python.explain(array, selection)


@pytest.mark.parametrize("layout", ["v3", "shards", "v2"])
@pytest.mark.parametrize("mask", ["all", "none", "half", "one", "others"])
def test_masks_along_an_axis_are_positions(tmp_path: Path, layout: str, mask: str) -> None:
    options: dict[str, Any] = {"zarr_format": 2} if layout == "v2" else {}
    if layout == "shards":
        options["shards"] = (4, 6)
    chosen = {
        "all": np.ones(8, bool),
        "none": np.zeros(8, bool),
        "half": np.arange(8) < 4,
        "one": np.arange(8) == 1,
        "others": np.arange(8) % 2 == 1,
    }[mask]
    values = np.arange(48, dtype="i4").reshape(8, 6)
    for rows in (1, 2, 4):
        path = tmp_path / str(rows)
        with zarrow.zarr_python.enable():
            array: Any = zarr.create_array(path, shape=(8, 6), chunks=(rows, 6), dtype="i4", **options)
        array[:] = values
        assert_equal(array.oindex[chosen], values[chosen])
        assert_equal(array[chosen, 2:4], values[chosen, 2:4])
        assert_equal(array.oindex[:, chosen[:6]], values[:, chosen[:6]])
        new = values.copy()
        new[chosen] = -values[chosen]
        array.oindex[chosen] = new[chosen]
        assert_equal(zarr.open_array(path)[:], new)
        assert zarrow.zarr_python.explain(array, chosen).read in ("zarrow", "zarr-python")


def test_a_folder_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    with zarrow.zarr_python.enable():
        array: Any = zarr.create_array(path, data=np.arange(6.0), chunks=(2,))
        array[:]
        other: Any = zarr.create_array(path, data=np.arange(6.0) + 10, chunks=(2,), overwrite=True)
    assert array[:].tolist() == other[:].tolist() == [10, 11, 12, 13, 14, 15]
    shutil.copytree(path, tmp_path / "copy")
    path.rename(tmp_path / "old")
    (tmp_path / "copy").rename(path)
    array[:3] = 7
    assert zarr.open_array(path)[:].tolist() == [7, 7, 7, 13, 14, 15]
    assert zarr.open_array(tmp_path / "old")[:].tolist() == [10, 11, 12, 13, 14, 15]
    shutil.rmtree(path)
    array[:2] = 5
    assert sorted(file.name for file in (path / "c").iterdir()) == ["0"]
