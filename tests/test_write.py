"""Accepted and refused writes: values, shapes, types, masks, text, stores."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
import zarr

import handwritten
import zarrow
from zarrow import errors


@pytest.fixture
def numbers(tmp_path):
    """Create an array of 10 rows of 6 numbers in chunks of 4 by 4; return it and its elements."""
    values = np.arange(60, dtype=np.float32).reshape(10, 6)
    zarr.create_array(tmp_path / "numbers", shape=(10, 6), chunks=(4, 4), dtype="f4", fill_value=-1)[:] = (
        values
    )
    return zarrow.open(tmp_path / "numbers"), values


def small(tmp_path, dtype, **options):
    zarr.create_array(tmp_path / "small", shape=(6,), chunks=(4,), dtype=dtype, **options)
    return zarrow.open(tmp_path / "small")


SHAPES = [
    (..., (10, 6)),
    (..., (6,)),
    (..., (1, 6)),
    (..., (10, 1)),
    (..., ()),
    (..., (1, 1, 1, 10, 6)),
    (3, (6,)),
    ((slice(1, 9, 3), -1), (3,)),
    ((2, 3), ()),
    (slice(5, 5), (0, 6)),
    (slice(5, 5), ()),
    ((slice(None, None, -2), slice(4, None, -3)), (5, 1)),
    ((slice(None, None, -2), slice(4, None, -3)), (5, 2)),
    ((..., 0), (10,)),
    ((..., 0), (1,)),
]


@pytest.mark.parametrize(("selection", "shape"), SHAPES)
def test_values_are_repeated_as_by_numpy(numbers, selection, shape):
    array, expected = numbers
    values = 100 + np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    array[selection] = values
    expected[selection] = values
    np.testing.assert_array_equal(array[...].numpy(), expected)


@pytest.mark.parametrize(
    ("selection", "shape"),
    [
        (..., (10, 5)),
        (..., (10,)),
        (..., (2, 10, 6)),
        (3, (5,)),
        ((2, 3), (2,)),
        (slice(5, 5), (2, 6)),
        (0, (0,)),
    ],
)
def test_values_of_another_shape_are_refused(numbers, selection, shape):
    array, expected = numbers
    with pytest.raises(ValueError, match="cannot be broadcast to the selection") as caught:
        array[selection] = np.zeros(shape, np.float32)
    assert isinstance(caught.value, errors.ShapeError) and caught.value.store == array.store
    np.testing.assert_array_equal(array[...].numpy(), expected)


def test_a_selection_outside_is_refused(numbers):
    array, _ = numbers
    for selection in [10, (0, 6), (0, 0, 0)]:
        with pytest.raises(IndexError):
            array[selection] = 0


SCALARS = [7, 7.25, True, np.float32(7.5), np.float64(7.5), np.int64(9), np.float16(3), [1, 2.5, 3, 4, 5, 6]]


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_scalars_and_sequences_go_by_their_value(numbers, value):
    array, expected = numbers
    array[3] = value
    expected[3] = value
    np.testing.assert_array_equal(array[...].numpy(), expected)


@pytest.mark.parametrize(
    "value",
    [300, -1, np.int64(300), [1, 300], [np.int64(300)], np.uint16(256), 2**70, -(2**64), [2**70, 1]],
    ids=repr,
)
def test_numbers_that_the_type_does_not_have_are_refused(tmp_path, value):
    array = small(tmp_path, "u1")
    with pytest.raises(OverflowError):
        array[:2] = value
    assert array[:].tolist() == [0] * 6


@pytest.mark.parametrize(
    ("found", "stored"), [("i2", "i4"), ("u1", "f4"), ("f4", "c8"), ("?", "u1"), ("i8", "f8")]
)
def test_safe_casts_are_made(tmp_path, found, stored):
    array = small(tmp_path, stored)
    values = np.array([0, 1, 1, 0, 1, 1], found)
    array[:] = values
    assert array.dtype == np.dtype(stored) and array[:].tolist() == values.tolist()
    array[::-1] = zarrow.asarray(values)
    assert array[:].tolist() == values[::-1].tolist()


REFUSED = "f4-i4 f8-u1 c8-f4 i1-? f8-? U3-i4 i8-U3 S3-S2 M8[s]-i8 i8-M8[s] M8[s]-m8[s]"


@pytest.mark.parametrize("types", REFUSED.split())
@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
def test_other_casts_are_refused(tmp_path, types):
    found, stored = types.split("-")
    array = small(tmp_path, stored)
    before = array[:].numpy().copy()
    values = np.ones(6, found) if found[0] not in "M" else np.zeros(6, found)
    for value in (values, zarrow.asarray(values)):
        with pytest.raises(TypeError, match="cannot write") as caught:
            array[:] = value
        assert isinstance(caught.value, errors.DataTypeError) and caught.value.kind == "data_type"
    np.testing.assert_array_equal(array[:].numpy(), before)


CHANGED = [
    ("U2", "abc"),
    ("U2", ["ab", "abc"]),
    ("U2", 123),
    ("S2", b"abc"),
    ("S2", "abc"),
    ("V2", b"abc"),
    ("M8[s]", "2026-11-21T00:00:00.5"),
    ("M8[s]", np.datetime64("2026-11-21T00:00:00.5")),
    ("M8[D]", ["2026-11-21", "2026-11-21T12"]),
    ("?", "x"),
    ([("a", "i4"), ("b", "f4")], 1.5),
    ([("a", "i4"), ("b", "U1")], 12),
    ([("a", "i4"), ("b", "f4")], [(1, 2.1), (1.5, 2.1)]),
    ([("a", "U1"), ("b", "f4")], [("x", 2.1), ("xy", 2.1)]),
]


@pytest.mark.parametrize(("dtype", "value"), CHANGED, ids=str)
def test_values_that_would_be_truncated_are_refused(tmp_path, dtype, value):
    """NumPy would silently store another value."""
    array = zarrow.create_array(tmp_path, shape=2, dtype=dtype)
    before = array[:].tolist()
    with pytest.raises(errors.DataTypeError, match="cannot write"):
        array[:] = value
    assert array[:].tolist() == before


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("bool", [True, None, False], None),
        ("bool", [[None, True], [False, None]], None),
        *((name, [1, None], None) for name in ("uint8", "uint16", "uint32", "uint64", "int8", "float16")),
        ("uint64", [None, 2**64 - 1], None),
        ("float32", [1, None, 0.5], [1.0, None, 0.5]),
        ("complex64", [1j, None], None),
        ("M8[D]", ["2026-11-22", None], [datetime.date(2026, 11, 22), None]),
        ("m8[s]", [None, 3], [None, datetime.timedelta(seconds=3)]),
        ("U2", ["ab", None], None),
        ("S2", [None, b"a"], None),
        ([("a", "i4"), ("b", "U2")], [(1, "x"), None], [(1, "x"), (None, None)]),
        ("uint8", [None, None], None),
        ("string", [None, "a"], None),
    ],
    ids=str,
)
def test_none_is_written_beside_values_of_any_type(tmp_path, dtype, value, expected):
    """The other elements are the same as without None."""
    shape = (2, 2) if isinstance(value[0], list) else (len(value),)
    if isinstance(dtype, list):
        fields = [{"name": "a", "data_type": "int32"}]
        text = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
        fields.append({"name": "b", "data_type": text})
        struct = {"name": "struct", "configuration": {"fields": fields}}
        dtype = {"name": "optional", "configuration": struct}
    else:
        dtype = f"optional[{dtype}]"
    array = zarrow.create_array(tmp_path, shape=shape, dtype=dtype)
    for written in (value, tuple(value)):
        array[...] = written
        assert array[...].tolist() == (expected or value)


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        ("int8", [1000, None], OverflowError),
        ("uint8", [-1, None], OverflowError),
        ("int8", [1.5, None], errors.DataTypeError),
        ("bool", [2, None], errors.DataTypeError),
    ],
)
def test_none_hides_no_refused_value(tmp_path, dtype, value, error):
    array = zarrow.create_array(tmp_path, shape=2, dtype=f"optional[{dtype}]")
    for written in (value, value[:1]):
        with pytest.raises(error):
            array[:] = written
    assert array[:].tolist() == [None, None]


@pytest.mark.parametrize(
    "first", ["U4", "S4", "M8[s]", "m8[ms]", "V3", "i4", [("t", "M8[D]"), ("n", "U2")]], ids=str
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_void_scalar_is_an_element(tmp_path, first, zarr_format):
    """NumPy scalars of structures, whatever their first field."""
    dtype = np.dtype([("first", first), ("x", "f4")])
    value = np.frombuffer(np.arange(1, dtype.itemsize + 1, dtype="u1").tobytes(), dtype).copy()
    for path in ("first", ("first", "n")):
        field = (
            value[path] if isinstance(path, str) else value["first"]["n"] if isinstance(first, list) else None
        )
        if field is not None and field.dtype.kind == "U":
            field[...] = "ab"
    scalar = value[0]
    assert isinstance(scalar, np.void)
    array = zarrow.create_array(
        tmp_path, shape=3, chunks=2, dtype=dtype, fill_value=scalar, zarr_format=zarr_format
    )
    assert array[...].numpy().tobytes() == value.tobytes() * 3
    other = np.zeros(1, dtype)
    array[1:] = other[0]
    array[2] = scalar
    assert array[...].numpy().tobytes() == (value.tobytes() + other.tobytes() + value.tobytes())
    assert zarrow.open(tmp_path).fill_value == scalar


@pytest.mark.parametrize("value", [8, -9, [1, 100]])
def test_an_integer_that_a_small_type_does_not_have(tmp_path, value):
    array = zarrow.create_array(tmp_path, shape=2, dtype="int4")
    with pytest.raises(OverflowError, match="int4"):
        array[:] = value
    assert array[:].tolist() == [0, 0]


def test_values_that_are_kept(tmp_path):
    fitting = [
        ("U3", ["abc", ""]),
        ("S3", [b"abc", b""]),
        ("V3", [b"abc", b"xyz"]),
        ("int4", [-8, 7]),
        ("float32", [10**30, 1]),
        ("float32", 10**30),
        ("bfloat16", [1.1, 2]),
        ("M8[D]", ["2026-11-21", "NaT"]),
        ("M8[D]", [datetime.date(2026, 11, 21), None]),
        ("M8[D]", datetime.date(2026, 11, 21)),
        ([("a", "i4"), ("b", "f4")], 1),
        ([("a", "i4"), ("b", [("c", "f4"), ("d", "U2")])], [(1, (2.1, "x")), (3, (4.1, "yz"))]),
        ("optional[int8]", [100, None]),
    ]
    for number, (dtype, value) in enumerate(fitting):
        array = zarrow.create_array(tmp_path, str(number), shape=2, dtype=dtype)
        array[:] = value
        expected = np.empty(2, array.dtype)
        if dtype == "optional[int8]":
            assert array[:].tolist() == value
            continue
        expected[:] = value
        np.testing.assert_array_equal(array[:].numpy(), expected)


CUT = [
    *[("U3", value) for value in ("long", b"long", ["a", "long"], np.str_("long"), 5, [True], [None, "a"])],
    *[("S3", value) for value in ("long", b"long", [b"long"], np.bytes_(b"long"), 1.5, [2**70])],
    *[("V3", value) for value in (b"long", [b"long"], np.str_("a"))],
    *[(dtype, value) for dtype in ("i4", "f8", "?") for value in ("1", ["1", "2"], b"1", np.str_("1"))],
    *[("?", value) for value in (2, [1, 0], 2**70, [None, True])],
]


@pytest.mark.parametrize("stored", ["i8", "f8", "?", "U4", "M8[s]", "m8[s]"])
@pytest.mark.parametrize("value", [np.datetime64("2020-01-01"), np.timedelta64(3, "s")])
def test_times_do_not_mix_with_numbers_or_text(tmp_path, stored, value):
    array = zarrow.create_array(tmp_path, shape=2, dtype=stored)
    before = array[:].numpy().copy()
    for given in (value, [value], np.array(value)):
        if value.dtype.kind == array.dtype.kind:
            array[0:1] = given
            assert array[0].numpy() == value
        else:
            with pytest.raises(errors.DataTypeError):
                array[0:1] = given
            np.testing.assert_array_equal(array[:].numpy(), before)


@pytest.mark.parametrize(("stored", "value"), CUT)
def test_values_of_another_kind_are_refused(tmp_path, stored, value):
    array = zarrow.create_array(tmp_path, shape=2, dtype=stored)
    with pytest.raises(TypeError):
        array[:] = value
    assert array[:].numpy().tobytes().strip(b"\0") == b""


def test_fitting_values_are_written(tmp_path):
    for dtype, value, expected in [
        ("U3", "żół", "żół"),
        ("U3", b"ab", "ab"),
        ("S3", "abc", b"abc"),
        ("V3", b"abc", b"abc"),
        ("f8", 2**70, 2.0**70),
        ("M8[D]", "2026-11-21", np.datetime64("2026-11-21").item()),
    ]:
        array = zarrow.create_array(tmp_path, data=np.zeros(2, dtype), overwrite=True)
        array[:] = value
        array[1:] = [value]
        assert array[:].tolist() == [expected, expected], dtype


def test_objects_that_are_not_arrays_are_refused(numbers):
    array, expected = numbers
    for value in [object(), {}, None, "text", b"bytes", [1, [2, 3]], 1j]:
        with pytest.raises((TypeError, ValueError)):
            array[0] = value
    np.testing.assert_array_equal(array[...].numpy(), expected)


def test_arrays_of_other_libraries(numbers):
    array, expected = numbers
    torch = pytest.importorskip("torch", exc_type=ImportError)
    array[1:3] = torch.full((2, 6), 5.0)
    array[3] = memoryview(np.full(6, 6, np.float32))
    array[4] = zarrow.asarray(np.full((6, 1), 7, np.float32)).numpy().T
    expected[1:3], expected[3], expected[4] = 5, 6, 7
    np.testing.assert_array_equal(array[...].numpy(), expected)


def test_arrays_of_jax_and_arrow_and_ours(numbers):
    array, expected = numbers
    jax = pytest.importorskip("jax.numpy")
    array[0] = jax.full((6,), 4, "float32")
    array[1:3] = array[7:9]
    expected[0], expected[1:3] = 4, expected[7:9].copy()
    with pytest.raises(errors.ShapeError):
        array[5] = array
    array[...] = array
    np.testing.assert_array_equal(array[...].numpy(), expected)


def test_times_in_another_unit_and_text_of_another_length(tmp_path):
    array = small(tmp_path, "M8[ms]")
    array[:] = np.array(["2026-11-21", "NaT"] * 3, "M8[D]")
    assert array[:2].numpy().tolist() == np.array(["2026-11-21", "NaT"], "M8[ms]").tolist()
    names = zarr.create_array(tmp_path / "names", shape=(3,), chunks=(2,), dtype="U5", zarr_format=2)
    zarrow.open(tmp_path / "names")[:] = np.array(["a", "né", ""])
    assert names[:].tolist() == ["a", "né", ""]
    with pytest.raises(errors.DataTypeError):
        zarrow.open(tmp_path / "names")[:] = np.array(["longer than five"] * 3)


def test_text_in_every_form(tmp_path):
    zarr.create_array(tmp_path, shape=(7,), chunks=(3,), dtype="str")
    array = zarrow.open(tmp_path)
    expected = ["", "é", "日本語", "x" * 300, "five", "six", "seven"]
    for value in [
        expected,
        np.array(expected, object),
        np.array(expected, np.dtypes.StringDType()),
        np.array(expected),
        np.array(expected, object)[::-1].copy()[::-1],
    ]:
        array[:] = ""
        assert array[:].tolist() == [""] * 7
        array[:] = value
        assert array[:].tolist() == expected == zarr.open_array(tmp_path)[:].tolist()
    array[1::2] = "one text"
    array[0] = np.str_("0")
    words = array[::-1]
    array[:] = words
    assert array[:].tolist() == ["seven", "one text", "five", "one text", "日本語", "one text", "0"]
    for value in [1, b"bytes", [1, 2], ["a", None, "b", "c", "d", "e", "f"], np.zeros(7)]:
        with pytest.raises(TypeError):
            array[:] = value


def test_masks(tmp_path):
    handwritten.masked_tensor(
        tmp_path / "t", np.arange(1, 5, dtype=np.int16), np.array([False, True, False, False])
    )
    array = zarrow.open(tmp_path / "t")
    array[:] = np.ma.array([5, 6, 7, 8], mask=[1, 0, 0, 1], dtype="i2")
    assert array[:].tolist() == [None, 6, 7, None]
    array[2] = np.ma.masked
    array[0] = 9
    assert array[:].tolist() == [9, 6, None, None]
    array[1:] = [None, 4, 5]
    assert array[:].tolist() == [9, None, 4, 5]
    turned = array[::-1]
    array[:] = turned
    assert array[:].tolist() == [5, 4, None, 9]
    array[...] = None
    assert array[:].tolist() == [None] * 4
    array[1:3] = np.int16(3)
    assert array[:].tolist() == [None, 3, 3, None]
    with pytest.raises(TypeError):
        array[:] = np.ma.array([0.5] * 4, mask=[1, 0, 0, 0])
    handwritten.masked_variable(tmp_path / "v", ["a", None, "c"])
    words = zarrow.open(tmp_path / "v")
    words[:2] = [None, "bb"]
    assert words[:].tolist() == [None, "bb", "c"]
    backwards = words[::-1]
    words[:] = backwards
    words[1] = "new"
    assert words[:].tolist() == ["c", "new", None]


def test_a_mask_needs_a_place(numbers):
    array, expected = numbers
    with pytest.raises(errors.DataTypeError, match="missing"):
        array[0] = np.ma.array(np.ones(6, "f4"), mask=[0, 0, 1, 0, 0, 0])
    array[0] = np.ma.array(np.ones(6, "f4"), mask=False)
    expected[0] = 1
    np.testing.assert_array_equal(array[...].numpy(), expected)


def stored(folder):
    """Return the stored chunks, and all other files."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("fill", [0.0, 5.0, np.nan])
def test_chunks_of_the_fill_value_are_left_out(tmp_path, fill):
    zarr.create_array(tmp_path, shape=(6,), chunks=(2,), dtype="f8", fill_value=fill)
    array = zarrow.open(tmp_path)
    array[:] = [fill, fill, 1, fill, -0.0, 0.0]
    zeros = [] if fill == 0 else ["c/2"]
    assert stored(tmp_path) == sorted(["c/1", "c/2", "zarr.json"])
    assert np.signbit(array[4:].numpy()).tolist() == [True, False]
    array[2:4] = fill
    array[4:] = fill
    assert stored(tmp_path) == ["zarr.json"] and zeros is not None
    array.write(np.s_[1:3], fill, write_empty_chunks=True)
    assert stored(tmp_path) == ["c/0", "c/1", "zarr.json"]
    np.testing.assert_array_equal(zarr.open_array(tmp_path)[:], np.full(6, fill))


def test_inner_chunks_of_the_fill_value_are_left_out(tmp_path):
    zarr.create_array(
        tmp_path, shape=(16,), chunks=(2,), shards=(8,), dtype="u1", compressors=None, fill_value=9
    )
    array = zarrow.open(tmp_path)
    array[:] = [9, 9, 1, 2, 9, 9, 9, 9] + [9] * 8
    assert stored(tmp_path) == ["c/0", "zarr.json"]
    index = 4 * 16 + 4
    assert (tmp_path / "c/0").stat().st_size == 2 + index
    array[8] = 1
    assert (tmp_path / "c/1").stat().st_size == 2 + index
    array[2:4] = 9
    assert stored(tmp_path) == ["c/1", "zarr.json"]
    array.write(..., 9, write_empty_chunks=True)
    assert [(tmp_path / f"c/{at}").stat().st_size for at in (0, 1)] == [8 + index] * 2
    assert zarr.open_array(tmp_path)[:].tolist() == [9] * 16


def test_a_cache_sees_writes(tmp_path):
    zarr.create_array(tmp_path, shape=(8,), chunks=(2,), shards=(4,), dtype="u2")[:] = 1
    cached, other = (zarrow.open(tmp_path, cache_bytes=1 << 20) for _ in range(2))
    for number in range(2, 40):
        cached[3:5] = number
        assert other[:].tolist() == cached[:].tolist() == [1, 1, 1, number, number, 1, 1, 1]


@pytest.mark.parametrize("durability", ["none", "file", "full"])
def test_durability(numbers, durability):
    array, expected = numbers
    array.write(np.s_[2:5], 3, durability=durability)
    expected[2:5] = 3
    np.testing.assert_array_equal(array[...].numpy(), expected)
    with pytest.raises(ValueError, match="durability"):
        array.write(np.s_[2:5], 3, durability="some")


def test_write_unit(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(9, 9), chunks=(2, 3), dtype="u1")
    zarr.create_array(tmp_path / "b", shape=(9, 9), chunks=(2, 3), shards=(4, 9), dtype="u1")
    assert zarrow.open(tmp_path / "a").write_unit == (2, 3)
    assert zarrow.open(tmp_path / "b").write_unit == (4, 9)


def test_writing_part_of_a_broken_chunk_is_refused(tmp_path):
    """Part of an undecodable chunk cannot be written; the whole chunk can."""
    zarr.create_array(tmp_path, shape=(8,), chunks=(4,), dtype="u1")[:] = 1
    (tmp_path / "c/1").write_bytes(b"no frame of zstd")
    array = zarrow.open(tmp_path)
    with pytest.raises(errors.CodecError) as caught:
        array[3:6] = 2
    assert (caught.value.chunk, caught.value.codec) == ((1,), "zstd")
    array[4:] = 3
    assert array[4:].tolist() == [3] * 4


@pytest.fixture
def public():
    """A folder that every user may enter; pytest's folders are private."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
    os.umask(before)


def test_a_folder_that_cannot_be_written(public):
    """As another user than root, because root may write everywhere."""
    zarr.create_array(public / "a", shape=(8,), chunks=(4,), dtype="u1")[:] = 1
    (public / "a/c").chmod(0o555)
    code = f"""
        import errno, os
        import numpy, numpy.ma
        import zarrow
        array = zarrow.open({str(public / "a")!r})
        if os.getuid() == 0:
            os.setuid(65534)
        for selection in (slice(4), slice(2)):
            try:
                array[selection] = 2
            except zarrow.StoreError as error:
                assert isinstance(error, OSError) and error.chunk == (0,)
                assert error.errno == errno.EACCES and "Errno" not in str(error)
                print(error.kind)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["permission", "permission"]
    assert zarrow.open(public / "a")[:].tolist() == [1] * 8


def test_a_file_that_may_not_grow(tmp_path):
    """Like a full disk: the old chunk stays, nothing is left behind, and the next write succeeds."""
    zarr.create_array(tmp_path / "a", shape=(4, 100_000), chunks=(2, 100_000), dtype="u1", compressors=None)[
        :
    ] = 1
    code = f"""
        import errno, resource, signal
        import zarrow
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        array = zarrow.open({str(tmp_path / "a")!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        for selection in (slice(2), slice(1)):
            try:
                array[selection] = 2
            except zarrow.StoreError as error:
                assert error.errno == errno.EFBIG
                print(error.kind)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["no_space", "no_space"]
    assert stored(tmp_path / "a") == ["c/0/0", "c/1/0", "zarr.json"]
    array = zarrow.open(tmp_path / "a")
    assert (array[:].numpy() == 1).all()
    array[1] = 2
    assert array[:, 0].tolist() == [1, 2, 1, 1]


def test_levels_and_names_that_cannot_encode(tmp_path):
    zarr.create_array(tmp_path, shape=(4,), chunks=(2,), dtype="u1")
    document = (tmp_path / "zarr.json").read_text()
    (tmp_path / "zarr.json").write_text(document.replace('"level": 0', '"level": 99'))
    array = zarrow.open(tmp_path)
    assert array[:].tolist() == [0] * 4
    with pytest.raises(errors.CodecError) as caught:
        array[:] = 1
    assert caught.value.codec == "zstd"
