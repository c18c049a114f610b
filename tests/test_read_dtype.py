"""`Array.read(dtype=)` equals a read that NumPy casts, over types, chunkings, orders and selections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrow
from zarrow.errors import CodecError, DataTypeError, UnsupportedError

STORED = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">i2", ">f8"]
READ = [dtype for dtype in STORED if dtype != "?" and dtype[0] != ">"]
SELECTIONS: list[Any] = [..., np.s_[3:15:2, ::-1], np.s_[5], np.s_[[4, 2, 2]], np.s_[0:0]]
LAYOUTS: list[dict[str, Any]] = [
    {"chunks": (4, 5)},
    {"chunks": (4, 5), "compressors": None, "order": "F", "zarr_format": 2},
    {"chunks": (4, 5), "zarr_format": 2},
    {"chunks": (2, 3), "shards": (8, 6)},
    {"chunks": (17, 13), "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dtype")


@given(st.sampled_from(STORED), st.sampled_from(READ), st.sampled_from(LAYOUTS), st.integers(0, 2**32))
def test_reads_equal_those_that_numpy_casts(
    folder: Path, stored: str, wanted: str, layout: dict[str, Any], seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, 100, (17, 13)).astype(stored)
    array = zarrow.create_array(
        folder / "x.zarr", shape=(17, 13), dtype=stored, fill_value=1, overwrite=True, **layout
    )
    array[:11] = values[:11]  # the last chunks are missing
    values[11:] = 1
    for selection in SELECTIONS:
        if np.dtype(stored).kind == "f" and np.dtype(wanted).kind != "f":
            with pytest.raises(DataTypeError, match=r"type array\[\.\.\.\]\.astype\(dtype\)"):
                array.read(selection, dtype=wanted)
            continue
        expected = values[selection].astype(wanted)
        found: Any = array.read(selection, dtype=wanted)
        assert found.dtype == wanted and np.array_equal(found.numpy(), expected)
        out = np.full(expected.shape, 7, wanted)
        assert array.read(selection, dtype=wanted, out=out) is out and np.array_equal(out, expected)


def test_floats_are_cast_as_numpy_does(tmp_path: Path) -> None:
    values = np.array([0.1, -0.0, 1e300, -1e300, np.nan, np.inf, 70000, 1e-300])
    array = zarrow.create_array(tmp_path / "x.zarr", data=values)
    with np.errstate(over="ignore"):
        for wanted in ("f4", "f2"):
            found: Any = array.read(dtype=wanted)
            assert found.numpy().tobytes() == values.astype(wanted).tobytes()


def test_an_integer_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "x.zarr", data=np.array([1, 300]), chunks=(1,))
    assert array.read(slice(1), dtype="u1").tolist() == [1]
    with pytest.raises(CodecError, match="300 is out of range for uint8") as caught:
        array.read(dtype="u1")
    assert caught.value.chunk == (1,)
    fills = zarrow.create_array(tmp_path / "y.zarr", shape=(2,), dtype="i8", fill_value=-1)
    with pytest.raises(ValueError, match="the fill value does not fit uint8"):
        fills.read(dtype="u1")


def test_an_integer_outside_of_the_selection_need_not_fit(tmp_path: Path) -> None:
    values = np.array([1, 2, 300, 4])
    for options in ({"chunks": (4,)}, {"chunks": (2,), "fill_value": -9999}, {"missing": "optional"}):
        array = zarrow.create_array(tmp_path / "x.zarr", data=values, overwrite=True, **options)
        assert array.read(np.s_[:2], dtype="u1").tolist() == [1, 2]
        assert array.read([3, 0], dtype="u1", order="F").tolist() == [4, 1]
        out = np.zeros(2, "u1")
        assert array.read(np.s_[:2], dtype="u1", out=out) is out and out.tolist() == [1, 2]
        assert array.read(np.s_[:2], dtype="u1", progress=lambda *_: None).tolist() == [1, 2]
        with pytest.raises((CodecError, OverflowError, ValueError), match=r"300|does not fit"):
            array.read(dtype="u1")


SMALL = ("bfloat16", "float8_e4m3fn", "int4")
PAIRS = [(one, other) for one in (*SMALL, "f4", "c8") for other in (*SMALL, "f8", "c16")]


@pytest.mark.parametrize(("stored", "wanted"), PAIRS)
def test_small_floats_and_complex_numbers_are_cast(tmp_path: Path, stored: str, wanted: str) -> None:
    own, other = (np.dtype(getattr(ml_dtypes, name, name)) for name in (stored, wanted))
    values = np.array([0, 1, 2, 3]).astype(own)
    array = zarrow.create_array(tmp_path / "x.zarr", data=values, chunks=(2,))
    try:
        found: Any = array.read(np.s_[1:], dtype=other)
    except DataTypeError:
        # Only what loses the fraction or the imaginary part.
        assert (stored == "c8" and other.kind != "c") or wanted == "int4"
        return
    assert found.dtype == other and np.array_equal(found.numpy(), values[1:].astype(other))


def test_the_array_stays_as_it_was(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "x.zarr", data=np.arange(8, dtype="u1"), chunks=(4,))
    array.resize(12)
    document = (tmp_path / "x.zarr/zarr.json").read_bytes()
    assert array.read(dtype=float).tolist() == [*range(8), 0, 0, 0, 0]
    array[0] = 9
    zarrow.open_array(tmp_path / "x.zarr").attrs["unit"] = "m"
    # The missing chunk makes it look at the document, which has changed.
    assert array.read(dtype="f4").tolist() == [9, *range(1, 8), 0, 0, 0, 0] and array.dtype == "u1"
    assert b"cast_value" not in document and b"astype" not in (tmp_path / "x.zarr/zarr.json").read_bytes()


@pytest.mark.parametrize("options", [{"mmap": True}, {"mask": 1}, {"decode": "cf"}])
def test_options_that_exclude_a_cast(tmp_path: Path, options: Any) -> None:
    array = zarrow.create_array(tmp_path / "x.zarr", data=np.arange(8))
    with pytest.raises(ValueError, match="pass it without mmap=, mask= and decode="):
        array.read(dtype="f4", **options)


def test_types_that_are_not_cast(tmp_path: Path) -> None:
    numbers = zarrow.create_array(tmp_path / "numbers.zarr", data=np.arange(8))
    for wanted in ("?", "S3", "U3", "m8[s]", "M8[s]"):
        with pytest.raises(DataTypeError, match="cannot be read as"):
            numbers.read(dtype=wanted)
    for unknown in ("nonsense", 5):
        with pytest.raises(DataTypeError, match="expected a number type of NumPy, ml_dtypes or PyTorch"):
            numbers.read(dtype=unknown)  # type: ignore[call-overload]
    assert numbers.read(dtype="c8").tolist() == list(range(8))
    text = zarrow.create_array(tmp_path / "text.zarr", data=np.array(["a", "b"]))
    with pytest.raises((DataTypeError, UnsupportedError)):
        text.read(dtype="f4")


INDEXERS: list[tuple[str, Any, Any]] = [
    ("oindex", ([5, 0, 5], slice(1, 9, 3)), np.s_[[5, 0, 5], 1:9:3]),
    ("vindex", ([5, 0, 16], [1, 2, 12]), np.s_[[5, 0, 16], [1, 2, 12]]),
    ("blocks", (1, slice(0, 2)), np.s_[4:8, :10]),
    ("oindex", None, ...),
]


@pytest.mark.parametrize("wanted", [*READ, "c8"])
@pytest.mark.parametrize(("kind", "selection", "same"), INDEXERS)
def test_indexers_cast_as_reads_do(tmp_path: Path, kind: str, selection: Any, same: Any, wanted: str) -> None:
    values = np.random.default_rng(1).integers(0, 100, (17, 13)).astype(">i2")
    array = zarrow.create_array(tmp_path / "x.zarr", data=values, chunks=(4, 5))
    indexer = getattr(array, kind)
    found = indexer.read(selection, dtype=wanted)
    expected = values[same].astype(wanted)
    assert found.dtype == wanted and np.array_equal(found.numpy(), expected)
    out = np.full(expected.shape, 7, wanted)
    assert indexer.read(selection, dtype=wanted, out=out) is out and np.array_equal(out, expected)


def test_indexers_refuse_what_reads_refuse(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "x.zarr", data=np.array([1.5, 300, -2]))
    with pytest.raises(DataTypeError, match=r"type array\[\.\.\.\]\.astype\(dtype\)"):
        array.oindex.read([0], dtype="i4")
    whole = zarrow.create_array(tmp_path / "y.zarr", data=np.array([1, 300, -2]))
    assert whole.oindex.read([0, 1], dtype="u2").tolist() == [1, 300]
    with pytest.raises(OverflowError, match="-2 does not fit uint16"):
        whole.vindex.read(([0, 2],), dtype="u2")
    with pytest.raises(ValueError, match="casts on the CPU: pass it without device="):
        whole.oindex.read([0], dtype="u2", device="cuda")
    with pytest.raises(TypeError, match="no parameter 'typo'"):
        whole.oindex.read([0], dtype="u2", typo=1)  # type: ignore[call-overload]


def test_missing_elements_stay_missing(tmp_path: Path) -> None:
    values = np.ma.masked_array([1, 300, 3], [False, True, False])
    array = zarrow.create_array(tmp_path / "x.zarr", data=values, missing="optional")
    assert array.oindex.read([2, 1], dtype="u1").tolist() == [3, None]


def test_fields_of_structures_are_cast_by_name(tmp_path: Path) -> None:
    values = np.array([(1, 2.5), (3, 4.5)], [("x", "i4"), ("y", "f8")])
    array = zarrow.create_array(tmp_path / "x.zarr", data=values)
    assert array.oindex.read(("x", [1, 0]), dtype="f4").tolist() == [3, 1]
    assert array.blocks.read(("y", 0), dtype=np.float32).dtype == "f4"
    for read in (array.read, array.oindex.read):
        with pytest.raises(DataTypeError, match=r"are structures: type array\['x'\]\.astype\(dtype\)"):
            read(dtype="f4")
    assert array["x"].astype("f4").tolist() == [1, 3]


def test_names_of_pytorch_are_types(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "x.zarr", data=np.arange(3, dtype="i2"))
    assert array.read(dtype="torch.float32").dtype == "f4"
    with pytest.raises(DataTypeError, match="expected a number type"):
        array.read(dtype="torch.float")  # has 32 bits, but "float" of NumPy 64


@pytest.mark.parametrize("shards", [None, 8])
def test_fields_are_cast(tmp_path: Path, shards: int | None) -> None:
    values = np.zeros(20, [("x", "f4"), ("n", "i8"), ("name", "S3")])
    values["x"], values["n"] = np.arange(20) / 8, np.arange(20)
    array = zarrow.create_array(tmp_path / "a", data=values, chunks=4, shards=shards)
    for index in ("x", ("x", slice(3, 17, 2))):
        found = array.read(index, dtype="f8")
        expected = values["x"] if index == "x" else values["x"][3:17:2]
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    out = np.zeros(20, "u1")
    array.read("n", dtype="u1", out=out)
    assert out.tolist() == list(range(20))
    array[7] = (0, 300, b"")
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        array.read("n", dtype="u1")
    for index in ("name", ["x", "n"], ...):
        with pytest.raises(zarrow.errors.DataTypeError):
            array.read(index, dtype="f4")


def test_a_pair_of_iter_chunks_is_no_index(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a", data=np.arange(6.0).reshape(2, 3), chunks=2)
    with pytest.raises(zarrow.errors.IndexingError, match=r"for selection, values in array\.iter_chunks\(\)"):
        for pair in array.iter_chunks():
            array[pair]
    for selection, values in array.iter_chunks():
        np.testing.assert_array_equal(array[selection], values)
