"""Creating arrays: other libraries read them, and contradictory arguments are refused."""

from __future__ import annotations

import json
import re
import resource
from pathlib import Path
from typing import Any

import ml_dtypes
import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs

import zarrow
from oracle.arrays import bits
from oracle.elements import ELEMENTS, Element
from oracle.libraries import open_tensorstore, open_zarrs, unspecified

pytestmark = pytest.mark.small_files

RNG = np.random.default_rng(5)


def read_by_zarr_python(folder: Path, **how: Any) -> Any:
    with unspecified():
        return zarr.open_array(folder, mode="r", **how)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_every_type_is_read_by_the_others(element: Element, zarr_format: int, tmp_path: Path) -> None:
    if zarr_format not in element.formats():
        pytest.skip("version 2 has no such type")
    values = element.values(RNG, 35).reshape(7, 5)
    dtype = {"string": str, "bytes": bytes}.get(element.name, element.dtype)
    for number, fill in enumerate(element.fills):
        folder = tmp_path / str(number)
        array = zarrow.create_array(
            folder, shape=(7, 5), dtype=dtype, chunks=(3, 2), fill_value=fill, zarr_format=zarr_format
        )
        array[:3] = values[:3]
        expected = element.full((7, 5), fill)
        expected[:3] = values[:3]
        again = zarrow.open(folder)
        assert (again.metadata, again.dtype) == (array.metadata, array.dtype)
        assert bits(again[...].numpy()) == bits(expected)
        if element.zarr_python:
            read = read_by_zarr_python(folder)
            assert (read.shape, read.chunks) == ((7, 5), (3, 2))
            assert bits(np.asarray(read[...], element.dtype)) == bits(expected)
        if element.tensorstore and element.name != "raw":
            assert bits(open_tensorstore(folder, zarr_format).read().result()) == bits(expected)
        if element.name not in ("raw", "fixed-bytes", "float8_e4m3fn", "float8_e5m2") and zarr_format == 3:
            assert tuple(open_zarrs(folder).shape) == (7, 5)


DTYPES: list[tuple[Any, str]] = [
    ("i4", "int32"),
    (np.int32, "int32"),
    (np.dtype(">i4"), "int32"),
    (int, "int64"),
    (float, "float64"),
    (bool, "bool"),
    ("float16", "float16"),
    (complex, "complex128"),
    (ml_dtypes.bfloat16, "bfloat16"),
    ("bfloat16", "bfloat16"),
    ("float8_e4m3fn", "float8_e4m3fn"),
    (np.dtype(ml_dtypes.float8_e5m2), "float8_e5m2"),
    (str, "string"),
    ("string", "string"),
    (np.dtypes.StringDType(), "string"),
    (bytes, "bytes"),
    ("bytes", "bytes"),
    ("M8[ns]", "datetime64[ns]"),
    ("m8[10us]", "timedelta64[10us]"),
    ("U5", "U5"),
    ("S5", "S5"),
    ("V5", "V5"),
    ("optional[int32]", "optional[int32]"),
    ("optional[optional[string]]", "optional[optional[string]]"),
    ("optional[M8[D]]", "optional[datetime64[D]]"),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, "U2"),
]


@pytest.mark.parametrize(("dtype", "expected"), DTYPES, ids=repr)
def test_spellings_of_types(dtype: Any, expected: str) -> None:
    store = zarrow.MemoryStore()
    array = zarrow.create_array(store, shape=(2,), dtype=dtype)
    assert f"type     {expected}\n" in repr(array)
    again = zarrow.create_array(zarrow.MemoryStore(), shape=(2,), dtype=array.data_type)
    assert again.metadata["data_type"] == array.metadata["data_type"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_byte_order_is_kept(zarr_format: int, tmp_path: Path) -> None:
    values = np.arange(6, dtype=">i4")
    zarrow.create_array(tmp_path, data=values, zarr_format=zarr_format, compressors=None)
    assert (tmp_path / ("0" if zarr_format == 2 else "c/0")).read_bytes() == values.tobytes()
    assert zarrow.open(tmp_path)[...].tolist() == list(range(6))
    assert read_by_zarr_python(tmp_path)[...].tolist() == list(range(6))


CODECS: list[Any] = [
    "zstd",
    "gzip",
    "blosc",
    {"name": "zstd", "configuration": {"level": 9}},
    {"id": "zstd", "level": 2},
    {"name": "blosc", "configuration": {"cname": "lz4", "shuffle": "bitshuffle"}},
    {"id": "gzip", "level": 1},
    ["zstd"],
    [{"id": "blosc", "cname": "zlib", "clevel": 3, "shuffle": 2, "blocksize": 0}],
    numcodecs.Zstd(level=4),
    numcodecs.Blosc("zstd", 2, numcodecs.Blosc.BITSHUFFLE),
    None,
    (),
]
V3_CODECS: list[Any] = [
    "crc32c",
    ["zstd", "crc32c"],
    zarr.codecs.ZstdCodec(level=1, checksum=True),
    zarr.codecs.BloscCodec(cname="lz4", typesize=4),
    [zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()],
]
NUMCODECS: list[Any] = ["lz4", "zlib", {"id": "bz2", "level": 1}, numcodecs.LZ4()]


def cases() -> list[Any]:
    every = [(zarr_format, codec) for zarr_format in (2, 3) for codec in CODECS + NUMCODECS]
    return [pytest.param(*case, id=repr(case)) for case in [*every, *((3, codec) for codec in V3_CODECS)]]


@pytest.mark.parametrize(("zarr_format", "compressors"), cases())
def test_compressors_as_users_name_them(zarr_format: int, compressors: Any, tmp_path: Path) -> None:
    values = RNG.integers(0, 9, (20, 30)).astype("i4")
    zarrow.create_array(
        tmp_path, data=values, chunks=(7, 30), compressors=compressors, zarr_format=zarr_format
    )
    assert np.array_equal(read_by_zarr_python(tmp_path)[...], values)
    assert np.array_equal(zarrow.open(tmp_path)[...], values)
    # TensorStore refuses a zstd parameter of numcodecs; TensorStore and zarrs, as built, lack rare codecs.
    if any(compressors is codec for codec in NUMCODECS):
        return
    if repr(compressors) != repr(numcodecs.Zstd(level=4)):
        assert np.array_equal(open_tensorstore(tmp_path, zarr_format).read().result(), values)
    if zarr_format == 3:
        assert tuple(open_zarrs(tmp_path).shape) == (20, 30)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_compressed_by_default_with_a_checksum_raw_without(zarr_format: int, tmp_path: Path) -> None:
    values = np.zeros(1000, "f4") + 1
    zarrow.create_array(tmp_path / "a", data=values, zarr_format=zarr_format)
    chunk = tmp_path / "a" / ("0" if zarr_format == 2 else "c/0")
    frame = chunk.read_bytes()
    # The third bit of the header announces a checksum at the end (RFC 8878, 3.1.1.1.1).
    assert frame[:4] == b"\x28\xb5\x2f\xfd" and frame[4] & 0b100
    chunk.write_bytes(frame[:-1] + bytes([frame[-1] ^ 1]))
    with pytest.raises(zarrow.CodecError):
        zarrow.open(tmp_path / "a")[...]
    zarrow.create_array(tmp_path / "b", data=values, zarr_format=zarr_format, compressors=None)
    assert (tmp_path / "b" / chunk.relative_to(tmp_path / "a")).read_bytes() == values.tobytes()


@pytest.mark.parametrize("dtype", ["f4", str, "optional[int16]", "bool", "complex64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressors", ["auto", None])
def test_shards(dtype: Any, order: str, compressors: Any, tmp_path: Path) -> None:
    array = zarrow.create_array(
        tmp_path,
        shape=(10, 9),
        dtype=dtype,
        chunks=(2, 3),
        shards=(4, 6),
        order=order,
        compressors=compressors,
    )
    assert (array.chunks, array.shards, array.write_unit) == ((2, 3), (4, 6), (4, 6))
    if isinstance(dtype, str) and not dtype.startswith("optional"):
        values = RNG.integers(0, 2, (10, 9)).astype(dtype)
        array[...] = values
        assert np.array_equal(read_by_zarr_python(tmp_path)[...], values)
        assert np.array_equal(open_tensorstore(tmp_path, 3).read().result(), values)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_order(order: str, zarr_format: int, tmp_path: Path) -> None:
    values = np.arange(12, dtype="i2").reshape(3, 4)
    zarrow.create_array(tmp_path, data=values, order=order, zarr_format=zarr_format, compressors=None)
    chunk = tmp_path / ("0.0" if zarr_format == 2 else "c/0/0")
    assert chunk.read_bytes() == values.tobytes(order)
    assert np.array_equal(read_by_zarr_python(tmp_path)[...], values)
    assert np.array_equal(open_tensorstore(tmp_path, zarr_format).read().result(), values)


def test_all_codecs_by_one_list(tmp_path: Path) -> None:
    array = zarrow.create_array(
        tmp_path,
        data=np.arange(6.0),
        codecs=["bytes", {"name": "zstd", "configuration": {"level": 1}}],
    )
    assert [codec["name"] for codec in array.metadata["codecs"]] == ["bytes", "zstd"]
    assert read_by_zarr_python(tmp_path)[...].tolist() == list(range(6))
    for given in ({"compressors": None}, {"filters": []}, {"order": "F"}, {"shards": (6,)}):
        with pytest.raises(ValueError, match="codecs"):
            zarrow.create_array(zarrow.MemoryStore(), shape=6, dtype="i4", codecs=["bytes"], **given)


def test_filters_and_serializer(tmp_path: Path) -> None:
    values = np.arange(20, dtype="i4")
    shuffle = {"id": "shuffle", "elementsize": 4}
    zarrow.create_array(tmp_path / "2", shape=20, dtype="i4", filters=shuffle, zarr_format=2)
    zarr.open_array(tmp_path / "2", mode="r+")[...] = values
    assert zarrow.open(tmp_path / "2")[...].tolist() == values.tolist()
    transpose = {"name": "transpose", "configuration": {"order": [1, 0]}}
    grid = values.reshape(4, 5)
    zarrow.create_array(tmp_path / "4", data=grid, filters=[transpose], compressors=None)
    assert (tmp_path / "4" / "c/0/0").read_bytes() == grid.tobytes("F")
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    zarrow.create_array(tmp_path / "3", data=values, serializer=big, compressors=None)
    assert (tmp_path / "3" / "c/0").read_bytes() == values.astype(">i4").tobytes()


def test_names_of_chunks_and_axes(tmp_path: Path) -> None:
    for number, (given, key) in enumerate(
        [
            (None, "c/0/0"),
            ("default", "c/0/0"),
            ("v2", "0.0"),
            ({"name": "v2", "separator": "/"}, "0/0"),
            ({"name": "default", "configuration": {"separator": "."}}, "c.0.0"),
        ]
    ):
        folder = tmp_path / str(number)
        array = zarrow.create_array(folder, data=[[1]], chunk_key_encoding=given, dimension_names=["x", None])
        assert (folder / key).exists() and array.dimension_names == ("x", None)
        assert read_by_zarr_python(folder).metadata.dimension_names == ("x", None)
    zarrow.create_array(
        tmp_path / "v2", data=[[1]], zarr_format=2, chunk_key_encoding={"name": "v2", "separator": "/"}
    )
    assert (tmp_path / "v2" / "0/0").exists()


def test_chunks_accept_every_documented_form() -> None:
    def chunks(shape: Any, given: Any, **options: Any) -> Any:
        return zarrow.create_array(
            zarrow.MemoryStore(), shape=shape, dtype="f4", chunks=given, **options
        ).chunks

    assert chunks((100, 200), 7) == (7, 7)
    assert chunks((100, 200), (7, -1)) == (7, 200)
    assert chunks((100, 0), (None, np.int64(3))) == (100, 3)
    assert chunks((0, 5), (-1, 5)) == (1, 5)
    assert chunks((512, 512, 512), "auto") == chunks((512, 512, 512), None) == (64, 64, 64)
    assert chunks((512, 512, 512), "auto", compressors=None) == (4, 512, 512)
    assert chunks((), "auto") == () and chunks(10, "auto") == (10,)
    assert chunks((2048, 2048), "auto", shards=(1024, 1024)) == (512, 512)


def test_data_decide_shape_and_type(tmp_path: Path) -> None:
    store = zarrow.MemoryStore()
    root = zarrow.create_group(store)
    for number, (data, dtype) in enumerate(
        [
            ([1, 2], "int64"),
            (5.5, "float64"),
            (["a", "né"], "string"),
            ([b"a", b"\xff"], "bytes"),
            (np.array(["a", None], dtype=object), "optional[string]"),
            (np.array(["ab"]), "U2"),
            (np.ma.array([1, 2], mask=[0, 1], dtype="i2"), "optional[int16]"),
            (np.array(["2020"], "M8[D]"), "datetime64[D]"),
            (ml_dtypes.bfloat16(2), "bfloat16"),
            (zarrow.asarray(np.eye(2)), "float64"),
            (np.zeros((3, 0)), "float64"),
        ]
    ):
        array = root.create_array(str(number), data=data)
        assert f"type     {dtype}\n" in repr(array), dtype
        assert array.shape == zarrow.asarray(data).shape
        if not dtype.startswith("optional"):
            assert zarrow.open(store, str(number))[...].tolist() == zarrow.asarray(data).tolist()
    array = zarrow.create_array(tmp_path, data=np.arange(3, dtype="i2"), dtype="f8")
    assert array.dtype == np.float64 and array[...].tolist() == [0, 1, 2]


REFUSED: list[tuple[type[Exception], dict[str, Any]]] = [
    (TypeError, {"shape": None}),
    (TypeError, {"dtype": None}),
    (TypeError, {"shape": "ab"}),
    (TypeError, {"shape": (1.5,)}),
    (ValueError, {"shape": (-1,)}),
    (ValueError, {"shape": (2**63,)}),
    (ValueError, {"shape": (2**64,)}),
    (ValueError, {"shape": (2**40, 2**40)}),
    (ValueError, {"shape": (1,) * 33}),
    (ValueError, {"chunks": 0}),
    (ValueError, {"chunks": (-2,)}),
    (ValueError, {"chunks": (2, 2)}),
    (ValueError, {"chunks": (2**62,)}),
    (TypeError, {"chunks": (1.5,)}),
    (ValueError, {"chunks": (3,), "shards": (4,)}),
    (ValueError, {"chunks": (4,), "shards": (2,)}),
    (ValueError, {"shards": (0,)}),
    (ValueError, {"shards": (4, 4)}),
    (ValueError, {"shards": (4,), "zarr_format": 2}),
    (ValueError, {"compressors": "unheard"}),
    (ValueError, {"compressors": {"id": "unheard"}, "zarr_format": 2}),
    (ValueError, {"compressors": [5]}),
    (ValueError, {"compressors": {"level": 5}}),
    (ValueError, {"compressors": "bytes"}),
    (ValueError, {"compressors": ["zstd"] * 40}),
    (ValueError, {"compressors": {"name": "zstd", "configuration": {"level": "high"}}}),
    (ValueError, {"serializer": "vlen-utf8"}),
    (ValueError, {"filters": ["zstd"]}),
    (ValueError, {"codecs": []}),
    (ValueError, {"codecs": ["zstd"]}),
    (ValueError, {"order": "K"}),
    (ValueError, {"zarr_format": 4}),
    (ValueError, {"fill_value": 1.5}),
    (ValueError, {"fill_value": "text"}),
    (OverflowError, {"fill_value": 2**40}),
    (ValueError, {"fill_value": [1, 2]}),
    (ValueError, {"dtype": "U2", "fill_value": "too long"}),
    (TypeError, {"dtype": str, "fill_value": 5}),
    (TypeError, {"dtype": "not a type"}),
    (NotImplementedError, {"dtype": object}),
    (ValueError, {"dtype": {"name": "unheard"}}),
    (ValueError, {"dimension_names": ["x", "y"]}),
    (ValueError, {"dimension_names": [5]}),
    (ValueError, {"dimension_names": [None], "zarr_format": 2}),
    (ValueError, {"chunk_key_encoding": "unheard"}),
    (ValueError, {"chunk_key_encoding": {"name": "v2", "separator": ".."}}),
    (ValueError, {"chunk_key_encoding": "default", "zarr_format": 2}),
    (TypeError, {"attributes": {"x": {1, 2}}}),
    (TypeError, {"attributes": {5: 1}}),
    (ValueError, {"durability": "some"}),
    (ValueError, {"path": ".."}),
    (ValueError, {"path": "a/../b"}),
    (ValueError, {"path": "a//b"}),
    (ValueError, {"path": "__reserved"}),
    (ValueError, {"path": "a/zarr.json"}),
    (ValueError, {"path": "a\0b"}),
    (ValueError, {"path": "x" * 300}),
    (ValueError, {"path": "a", "name": "b"}),
    (TypeError, {"data": [1.5], "shape": None}),
    (ValueError, {"data": [1, 2, 3], "dtype": None}),
    (TypeError, {"unheard": 1}),
]


@pytest.mark.parametrize(("error", "options"), REFUSED, ids=repr)
def test_a_refused_creation_leaves_nothing(
    error: type[Exception], options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(error) as raised:
        zarrow.create_array(tmp_path / "new", **{"shape": (4,), "dtype": "i4", **options})
    if not isinstance(raised.value, zarrow.ZarrowError):
        assert type(raised.value) in (TypeError, ValueError, OverflowError)
    assert not (tmp_path / "new").exists()


def test_existing_nodes_stay_unless_overwritten(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path, "a/b", data=[1, 2])
    for path in ("a/b", "a", ""):
        with pytest.raises(FileExistsError) as raised:
            zarrow.create_array(tmp_path, path, shape=(2,), dtype="i1")
        assert raised.value.kind == "exists" and raised.value.path == path
    with pytest.raises(zarrow.NodeTypeError):
        zarrow.create_array(tmp_path, "a/b/c", shape=(2,), dtype="i1")
    with pytest.raises(NotImplementedError, match="version"):
        zarrow.create_array(tmp_path, "a/c", shape=(2,), dtype="i1", zarr_format=2)
    assert zarrow.open(tmp_path, "a/b")[...].tolist() == [1, 2]
    zarrow.create_array(tmp_path, "a/b", shape=(3,), dtype="i1", overwrite=True)
    assert zarrow.open(tmp_path, "a/b")[...].tolist() == [0, 0, 0]
    zarrow.create_array(tmp_path, name="a", data=[7], overwrite=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["0", "a", "c", "zarr.json", "zarr.json"]


def test_chunks_without_an_array_are_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "0").write_bytes(b"old")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError):
            zarrow.create_array(tmp_path, shape=(1,), dtype="i1", overwrite=overwrite)
    assert (tmp_path / "c" / "0").read_bytes() == b"old"
    (tmp_path / "notes.txt").write_text("mine")
    zarrow.create_group(tmp_path)
    assert (tmp_path / "notes.txt").exists()


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a", data=[1])
    array = zarrow.open(tmp_path / "a", mode="r")
    with pytest.raises(PermissionError) as raised:
        array.attrs["x"] = 1
    assert isinstance(raised.value, zarrow.ReadOnlyError) and raised.value.kind == "read_only"
    for refused in (
        lambda: array.resize(2),
        lambda: array.append([1]),
        lambda: array.__setitem__(0, 1),
    ):
        with pytest.raises(zarrow.ReadOnlyError):
            refused()
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError):
        zarrow.create_array(tmp_path / "file", data=[1])


def test_metadata_are_json_that_people_can_read(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path, shape=(2,), dtype="f4", fill_value=np.nan, attributes={"b": 1, "a": "né"})
    text = (tmp_path / "zarr.json").read_text()
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert document["fill_value"] == "NaN" and list(document["attributes"]) == ["b", "a"]
    assert text.count("\n") > 20 and "né" in text


@pytest.mark.parametrize(
    ("dtype", "data", "expected"),
    [
        ("f4", [1, 2], [1.0, 2.0]),
        ("i2", [[1], [2]], [[1], [2]]),
        ("f8", 5, 5.0),
        ("f8", [2**70], [2.0**70]),
        (">i2", (1, 2), [1, 2]),
        ("bfloat16", [1, 2], [1.0, 2.0]),
        ("U4", ["a", "bc"], ["a", "bc"]),
        ("M8[D]", ["2026-11-21"], [np.datetime64("2026-11-21").item()]),
        ("i4,f8", [(1, 2.5), (3, 4.5)], [(1, 2.5), (3, 4.5)]),
        ("i4,i4", [(1, 2)], [(1, 2)]),
        ("optional[string]", ["a", None], ["a", None]),
        (str, ["a", "b"], ["a", "b"]),
    ],
)
def test_python_objects_are_converted_to_the_type(dtype, data, expected):
    array = zarrow.create_array(zarrow.MemoryStore(), data=data, dtype=dtype)
    assert array[...].tolist() == expected
    array[...] = data
    assert array[...].tolist() == expected


@pytest.mark.parametrize(("dtype", "data"), [("i4", [1.5]), ("U3", ["long"]), ("i4", ["1"]), ("i4", [None])])
def test_python_objects_outside_the_type_are_refused(dtype, data):
    store = zarrow.MemoryStore()
    with pytest.raises(TypeError):
        zarrow.create_array(store, data=data, dtype=dtype)
    assert store.to_dict() == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunks": "big"}, "chunks is 'big', expected an int, one int per axis"),
        ({"chunks": (1.5,)}, "chunks is (1.5,), expected an int, one int per axis"),
        ({"chunks": {"x": 1}}, "chunks is {'x': 1}, expected an int, one int per axis"),
        ({"chunks": (1, 1)}, "chunks is (1, 1), expected one int per axis of the shape (3,)"),
        ({"shards": "3"}, "shards is '3', expected an int, one int per axis"),
        ({"shape": "3"}, "shape is '3', expected an int or a tuple of ints"),
        ({"shape": (3.0,)}, "shape is (3.0,), expected an int or a tuple of ints"),
        ({"dtype": "flot32"}, "dtype is 'flot32', expected an argument of numpy.dtype"),
        ({"fill_value": "x"}, "fill_value is 'x', expected a value of type int32"),
        ({"fill_value": [1]}, "fill_value is [1], expected a value of type int32"),
        ({"fill_value": 2**40}, f"fill_value is {2**40}, expected a value of type int32"),
        ({"dtype": str, "fill_value": 5}, "fill_value is 5, expected a value of type string"),
        ({"dtype": bytes, "fill_value": "x"}, "fill_value is 'x', expected a value of type bytes"),
        ({"attrs": {}}, "unknown option 'attrs' of create_array: type attributes="),
        ({"chunk": 1}, "unknown option 'chunk' of create_array: did you mean chunks?"),
    ],
    ids=str,
)
def test_messages_name_the_option_and_its_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError), match=re.escape(message)):
        zarrow.create_array(zarrow.MemoryStore(), **{"shape": 3, "dtype": "i4", **options})


def test_options_go_by_name(tmp_path: Path) -> None:
    root = zarrow.create_group(zarrow.MemoryStore())
    for create in (root.create_array, lambda *given: zarrow.create_array(zarrow.MemoryStore(), *given)):
        with pytest.raises(
            TypeError, match=r"options of .* go by name, as shape=\(365, 100\), dtype='f4', not by position"
        ):
            create("x", (3,), "f4")


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        (
            {"name": "zstd", "level": 3},
            r'type \{"name": "zstd", "configuration": \{"level": 3\}\}',
        ),
        ("zst", r"did you mean zstd\?"),
        ("bzip2", r"did you mean bz2\?"),
        ("unheard-of", r"zarrow\.codecs\.register"),
    ],
)
def test_a_codec_that_is_misspelt_says_what_to_type(codec: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(zarrow.CodecError, match=message):
        zarrow.create_array(tmp_path / "a.zarr", data=[1], compressors=codec)
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["S2147483647", "V2147483647", "U536870911"])
def test_elements_beyond_the_limit_are_refused_before_memory_is_taken(zarr_format, dtype):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(zarrow.MetadataError, match="size of one element"):
        zarrow.create_array({}, shape=4, dtype=dtype, zarr_format=zarr_format)
    # In KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10
