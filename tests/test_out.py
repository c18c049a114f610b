"""`out=`: reads into memory of other libraries, with any strides, and refusals."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

import handwritten
import zarrow
from canary import Canary, layouts
from handwritten import NUMBERS, numbers

VALUES = np.random.default_rng(7).integers(-1000, 1000, (9, 13, 11), dtype=np.int32)
STORES = {
    "raw": {"compressors": None},
    "big-endian": {"compressors": None, "serializer": BytesCodec(endian="big")},
    "transposed": {"compressors": None, "filters": [TransposeCodec(order=(2, 0, 1))]},
    "zstd": {"compressors": ZstdCodec()},
    "gzip": {"compressors": GzipCodec()},
    "blosc": {"compressors": BloscCodec(cname="lz4")},
    "sharded": {"compressors": ZstdCodec(), "chunks": (2, 4, 6), "shards": (4, 8, 12)},
}
SELECTIONS = [
    np.s_[...],
    np.s_[1:8, 2:12:3, ::-1],
    np.s_[::-2, 5, 3:],
    np.s_[4, -1, 2],
    np.s_[:, 20:, :],
]


@pytest.fixture(scope="module", params=STORES)
def array(request, tmp_path_factory):
    arguments = {"chunks": (4, 5, 6), **STORES[request.param]}
    folder = tmp_path_factory.mktemp("out")
    written = zarr.create_array(folder, shape=VALUES.shape, dtype="i4", fill_value=-7, **arguments)
    # The last rows are missing.
    written[:8] = VALUES[:8]
    return zarrow.open(folder)


@pytest.fixture
def small(tmp_path):
    zarr.create_array(tmp_path / "small", shape=(4, 6), chunks=(2, 3), dtype="f4")[:] = np.arange(24).reshape(
        4, 6
    )
    return zarrow.open(tmp_path / "small")


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_every_layout(array, selection):
    expected = VALUES.copy()
    expected[8:] = -7
    expected = expected[selection]
    for name, layout in layouts(expected.ndim).items() if expected.ndim else {"scalar": {}}.items():
        canary = Canary(expected.shape, np.int32, **layout)
        assert array.read(selection, out=canary.out) is canary.out
        np.testing.assert_array_equal(canary.out, expected, err_msg=name)
        assert canary.is_intact(), name


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number(name, tmp_path):
    expected = numbers(name)
    handwritten.tensor(tmp_path, expected)
    for layout in layouts(2).values():
        canary = Canary(expected.shape, expected.dtype, **layout)
        zarrow.open(tmp_path).read(out=canary.out)
        assert canary.out.tobytes() == expected.tobytes() and canary.is_intact()


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[s]", "S5", "U3", "V7"])
def test_every_other_type(dtype, tmp_path):
    expected = np.frombuffer(np.arange(16 * np.dtype(dtype).itemsize, dtype=np.uint8) % 100, dtype).reshape(
        4, 4
    )
    if dtype == "U3":
        expected = np.array([["a", "bcd"], ["Ø", ""]], dtype)
    store = zarr.open_group(tmp_path, mode="w", zarr_format=2)
    fill = {"S": b"", "U": "", "V": b""}.get(expected.dtype.kind, 0)
    written = store.create_array("a", shape=expected.shape, chunks=(3, 1), dtype=dtype, fill_value=fill)
    written[:] = expected
    array = zarrow.open(tmp_path, "a")
    for layout in layouts(2).values():
        canary = Canary(expected.shape, array.dtype, **layout)
        array.read(out=canary.out)
        assert canary.out.tobytes() == expected.tobytes() and canary.is_intact()


def test_memory_of_many_owners(small, tmp_path):
    expected = small[...].tolist()
    ours = small[...]
    ours.numpy()[:] = 0
    assert small.read(out=ours) is ours and ours.tolist() == expected
    owner = bytearray(96)
    small.read(out=np.frombuffer(owner, "f4").reshape(4, 6))
    assert bytes(owner) == np.array(expected, "f4").tobytes()
    file = np.memmap(tmp_path / "result", "f4", "w+", shape=(4, 6))
    small.read(out=file)
    file.flush()
    assert np.fromfile(tmp_path / "result", "f4").reshape(4, 6).tolist() == expected
    anonymous = np.frombuffer(mmap.mmap(-1, 4096), "f4")
    small.read(2, out=anonymous[7:13])
    assert anonymous[6:14].tolist() == [0, *expected[2], 0]


class OnlyDLPack:
    """A library that supports only DLPack."""

    def __init__(self, array: np.ndarray, *, legacy: bool = False) -> None:
        self.array, self.legacy = array, legacy

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None):
        return self.array.__dlpack__(max_version=None if self.legacy else max_version)


def test_dlpack(small):
    for layout in layouts(2).values():
        canary = Canary((4, 6), np.float32, **layout)
        theirs = OnlyDLPack(canary.out)
        assert small.read(out=theirs) is theirs
        assert canary.out.tolist() == small[...].tolist() and canary.is_intact()
    read_only = np.zeros((4, 6), np.float32)
    read_only.flags.writeable = False
    with pytest.raises(zarrow.ExchangeError, match="read-only"):
        small.read(out=OnlyDLPack(read_only))
    with pytest.raises(zarrow.ExchangeError, match="does not declare"):
        small.read(out=OnlyDLPack(np.zeros((4, 6), np.float32), legacy=True))
    for wrong, error in [(np.zeros((4, 6)), TypeError), (np.zeros((6, 4), "f4"), ValueError)]:
        with pytest.raises(error):
            small.read(out=OnlyDLPack(wrong))


def test_a_type_that_only_dlpack_names(tmp_path):
    handwritten.tensor(tmp_path, np.arange(5).astype(ml_dtypes.bfloat16))
    array = zarrow.open(tmp_path)
    out = array[...].copy()
    out.numpy()[:] = 0
    assert array.read(out=out) is out and out.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError):
        array.read(out=np.zeros(5, np.uint16))


def read_only(shape=(4, 6)):
    array = np.full(shape, 9, np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: np.zeros((6, 4), "f4"), ValueError),
        (lambda: np.zeros((4, 6, 1), "f4"), ValueError),
        (lambda: np.zeros(24, "f4"), ValueError),
        (lambda: np.zeros((4, 6), "f8"), TypeError),
        (lambda: np.zeros((4, 6), ">f4"), TypeError),
        (lambda: np.zeros((4, 6), "i4"), TypeError),
        (read_only, BufferError),
        (lambda: np.frombuffer(bytes(96), "f4").reshape(4, 6), BufferError),
        (lambda: np.broadcast_to(np.zeros(6, "f4"), (4, 6)), BufferError),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(6, "f4"), (4, 6), (0, 4)), ValueError),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(40, "f4"), (4, 6), (8, 4)), ValueError),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(40, "f4"), (4, 6), (12, 2)), ValueError),
        (lambda: jnp.zeros((4, 6), "f4"), BufferError),
        (lambda: np.ma.zeros((4, 6), "f4"), TypeError),
        (lambda: [[0.0] * 6] * 4, TypeError),
        (lambda: bytearray(96), TypeError),
        (lambda: "text", TypeError),
    ],
)
def test_unwritable_memory_is_refused(small, make, error):
    out = make()
    before = np.array(out).copy()
    with pytest.raises(error):
        small.read(out=out)
    with pytest.raises(error):
        zarrow.read_many([(small, ...)], out=out)
    np.testing.assert_array_equal(np.array(out), before)


def test_immutable_memory_is_refused(small, tmp_path):
    column = pa.array(np.zeros(6, "f4"))
    with pytest.raises(BufferError):
        small.read(0, out=column)
    assert column.to_pylist() == [0] * 6
    with pytest.raises(TypeError, match=r"out is .* expected an array with writable memory"):
        small.read((0, 1), out=np.float32(3))
    offsets = handwritten.variable(tmp_path / "strings", ["a", "b"]).offsets
    zarr.create_array(tmp_path / "integers", shape=(3,), chunks=(3,), dtype="i8")[:] = 7
    with pytest.raises(BufferError, match="read-only"):
        zarrow.open(tmp_path / "integers").read(out=offsets)
    assert offsets.tolist() == [0, 1, 2]


class Interface:
    """A library that describes its memory, correctly or not."""

    def __init__(self, **interface):
        self.memory = np.zeros((4, 6), "f4")
        self.dtype = self.memory.dtype
        self.__array_interface__ = {**self.memory.__array_interface__, **interface}


def test_wrong_descriptions_are_refused(small):
    assert small.read(out=Interface()).memory.tolist() == small[...].tolist()
    for interface in [
        {"strides": (24,)},
        {"strides": (24, 4, 4)},
        {"strides": (2**62, 4)},
        {"strides": (-(2**63), 2**62)},
        {"shape": (4, 6, 1)},
        {"data": np.zeros((4, 6), "f4")},
        {"data": None},
    ]:
        with pytest.raises((TypeError, ValueError)):
            small.read(out=Interface(**interface))


def test_strings_and_masks_are_refused(tmp_path):
    handwritten.variable(tmp_path / "strings", ["a", "b", "c"])
    missing = np.array([False, True, False])
    handwritten.masked_tensor(tmp_path / "masked", np.arange(3, dtype="i2"), missing)
    handwritten.masked_variable(tmp_path / "names", ["a", None, "c"])
    for name, out in [
        ("strings", np.empty(3, np.dtypes.StringDType())),
        ("strings", np.empty(3, object)),
        ("masked", np.zeros(3, "i2")),
        ("names", np.empty(3, object)),
    ]:
        array = zarrow.open(tmp_path / name)
        with pytest.raises(NotImplementedError, match="into out="):
            array.read(out=out)
        with pytest.raises(NotImplementedError, match="into out="):
            zarrow.read_many([(array, ...)], out=out.reshape(1, 3))


@pytest.mark.parametrize("codec", ["zstd", "blosc", "gzip", "raw"])
@pytest.mark.parametrize("layout", layouts(2))
def test_an_error_leaves_the_rest_untouched(codec, layout, tmp_path):
    compressors = {"zstd": ZstdCodec(), "blosc": BloscCodec(), "gzip": GzipCodec(), "raw": None}[codec]
    serializer = [compressors, Crc32cCodec()] if compressors else [Crc32cCodec()]
    written = zarr.create_array(tmp_path, shape=(64, 64), chunks=(16, 16), dtype="u2", compressors=serializer)
    expected = np.random.default_rng(1).integers(0, 2**16, (64, 64), dtype=np.uint16)
    written[:] = expected
    chunk = tmp_path / "c/3/3"
    damaged = bytearray(chunk.read_bytes())
    damaged[len(damaged) // 2] ^= 0x10
    chunk.write_bytes(damaged)
    canary = Canary((64, 64), np.uint16, **layouts(2)[layout])
    with pytest.raises(zarrow.CodecError) as raised:
        zarrow.open(tmp_path).read(out=canary.out)
    assert raised.value.chunk == (3, 3) and canary.is_intact()
    # The damaged chunk's destination may hold anything; the others hold old or correct elements.
    whole = canary.out[:48, :48]
    assert ((whole == expected[:48, :48]) | (whole == 0xA5A5)).all()


def test_a_bad_selection_writes_nothing(small):
    canary = Canary((4, 6), np.float32)
    for selection in [(9,), (0, 0, 0), "a"]:
        with pytest.raises(IndexError):
            small.read(selection, out=canary.out)
    assert canary.is_untouched()


@pytest.mark.parametrize("name", [name for name in NUMBERS if name.startswith("complex")])
def test_complex_numbers_of_every_kind(name):
    """Types of `ml_dtypes`, and types that are a structure of two parts in NumPy."""
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(6,), chunks=(4,), dtype=name)
    expected = array[:].numpy()
    out = np.full(6, 0xFF, "u1").repeat(expected.itemsize).view(expected.dtype)
    array.read(out=out)
    assert out.tobytes() == expected.tobytes()
    assert out.dtype == expected.dtype


def test_errors_describe_out(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path, data=np.zeros((2, 3), "f4"))
    for out, message in (
        ("x", "out is <class 'str'>, expected an array with writable memory"),
        ([1], "out is <class 'list'>"),
        (np.zeros((2, 3), "i4"), "out has type int32, but the array has type float32"),
        (np.zeros((3, 2), "f4"), "out has shape"),
        (np.broadcast_to(np.float32(0), (2, 3)), "out is read-only"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            array.read(out=out)
    with pytest.raises(zarrow.ZarrowError) as caught:
        array.read(out=np.zeros((2, 3), ">f4"))
    assert caught.value.__notes__ == ["while processing 'out'"]
