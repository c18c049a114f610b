"""Structured types: NumPy's layouts are read unchanged, in any byte order, and exposed by field."""

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import handwritten
import zarrow
from oracle.arrays import bits

pytestmark = pytest.mark.small_files

Values = npt.NDArray[Any]

LEAVES = [
    "|b1",
    "|i1",
    "<u2",
    ">i4",
    "<i8",
    ">f8",
    "<f2",
    ">c8",
    "<c16",
    "|S3",
    "<U2",
    ">U1",
    "|V3",
    ">M8[s]",
    "<m8[3ms]",
]


def fields_of(dtype: np.dtype[Any]) -> Mapping[str, tuple[Any, ...]]:
    """Type and offset of each field."""
    assert dtype.fields is not None
    return dtype.fields


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The native-endian type, with its padding."""
    if dtype.subdtype is not None:
        item, shape = dtype.subdtype
        return np.dtype((native(item), shape))
    if dtype.names is None:
        return dtype.newbyteorder("=")
    fields = [fields_of(dtype)[name] for name in dtype.names]
    return np.dtype(
        {
            "names": list(dtype.names),
            "formats": [native(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "itemsize": dtype.itemsize,
        }
    )


def v2_fields(dtype: np.dtype[Any]) -> Any:
    """The type as `.zarray` lists it, with padding as unnamed entries."""
    entries: list[Any] = []
    end = 0
    for name in dtype.names or ():
        field, offset = fields_of(dtype)[name][:2]
        item, shape = field.subdtype or (field, ())
        if offset > end:
            entries.append(["", f"|V{offset - end}"])
        entries.append([name, v2_fields(item) if item.names else item.str, *([list(shape)] if shape else [])])
        end = offset + field.itemsize
    if dtype.itemsize > end:
        entries.append(["", f"|V{dtype.itemsize - end}"])
    return entries


def write_v2(folder: Path, values: Values, chunks: tuple[int, ...], fill: Any, compressed: bool) -> None:
    """Write NumPy's bytes; chunks at the edge are padded with zeros."""
    folder.mkdir()
    document = {
        "zarr_format": 2,
        "shape": values.shape,
        "chunks": chunks,
        "dtype": v2_fields(values.dtype),
        "fill_value": fill,
        "order": "C",
        "filters": None,
        "compressor": {"id": "zlib", "level": 1} if compressed else None,
    }
    (folder / ".zarray").write_text(json.dumps(document))
    for place in np.ndindex(
        *(-(-extent // chunk) for extent, chunk in zip(values.shape, chunks, strict=True))
    ):
        slices = tuple(slice(at * n, (at + 1) * n) for at, n in zip(place, chunks, strict=True))
        whole = np.zeros(chunks, values.dtype)
        part = values[slices]
        whole[tuple(slice(n) for n in part.shape)] = part
        encoded = whole.tobytes()
        (folder / ".".join(map(str, place))).write_bytes(zlib.compress(encoded, 1) if compressed else encoded)


def equal(found: Values, expected: Values) -> bool:
    """Return whether the fields are equal, bit for bit; padding has no value."""
    if expected.dtype.names is None:
        return bits(found) == bits(expected)
    return found.dtype == native(expected.dtype) and all(
        equal(found[name], expected[name].astype(native(expected[name].dtype)))
        for name in expected.dtype.names
    )


@st.composite
def structures(draw: st.DrawFn, depth: int = 2) -> np.dtype[Any]:
    names = draw(st.lists(st.text("abcé :{}", min_size=1, max_size=3), min_size=1, max_size=4, unique=True))
    formats: list[Any] = []
    offsets: list[int] = []
    end = 0
    for _ in names:
        nested = depth and draw(st.integers(0, 3)) == 0
        item = draw(structures(depth - 1)) if nested else np.dtype(draw(st.sampled_from(LEAVES)))
        shape = draw(st.sampled_from([(), (), (), (2,), (2, 3)]))
        formats.append(np.dtype((item, shape)))
        offsets.append(end + draw(st.sampled_from([0, 0, 0, 1, 5])))
        end = offsets[-1] + formats[-1].itemsize
    itemsize = end + draw(st.sampled_from([0, 0, 3]))
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})


def random_values(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Values:
    """Return random bits, except for text and bools, which restrict their bits."""
    values = np.zeros(shape, dtype)
    for name in dtype.names or ():
        field = values[name]
        if field.dtype.names:
            field[...] = random_values(rng, field.dtype, field.shape)
        elif field.dtype.kind in "bU":
            field[...] = rng.integers(0, 2, field.shape).astype(field.dtype)
        else:
            field[...] = np.frombuffer(rng.bytes(field.size * field.dtype.itemsize), field.dtype).reshape(
                field.shape
            )
    return values


@settings(max_examples=120, deadline=None, database=None)
@given(dtype=structures(), seed=st.integers(0, 2**32), compressed=st.booleans(), fill=st.booleans())
def test_any_structure_of_version_2(
    dtype: np.dtype[Any], seed: int, compressed: bool, fill: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    values = random_values(rng, dtype, (5, 4))
    folder = tmp_path_factory.mktemp("structure") / "array"
    one = random_values(rng, dtype, ())
    write_v2(folder, values, (2, 3), base64.b64encode(one.tobytes()).decode() if fill else None, compressed)
    (folder / "1.0").unlink()
    values[2:4, :3] = one if fill else np.zeros((), dtype)
    array = zarrow.open(folder)
    assert array.dtype == native(dtype)
    tensor = array[...]
    assert equal(tensor.numpy(), values)
    assert equal(np.asarray(tensor), values)
    assert equal(array[::-2, 1:].numpy(), values[::-2, 1:])
    assert equal(array[3].numpy(), values[3])
    assert equal(np.asarray(array.fill_value), one if fill else np.zeros((), dtype))
    assert np.asarray(tensor).ctypes.data == tensor.numpy().ctypes.data


FIELDS = [
    ["x", "float32"],
    ["when", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}],
]
FIELDS += [
    ["inner", {"name": "structured", "configuration": {"fields": [["n", "int16"], ["b", "bfloat16"]]}}]
]
POINT = np.dtype([("x", "<f4"), ("when", "<M8[s]"), ("inner", [("n", "<i2"), ("b", ml_dtypes.bfloat16)])])


@pytest.mark.parametrize("order", ["little", "big", None])
@pytest.mark.parametrize("sharded", [False, True])
def test_version_3(order: str | None, sharded: bool, tmp_path: Path) -> None:
    """The codec's byte order applies to every field; old writers omit it, and mean little-endian."""
    values = np.zeros(6, POINT)
    values["x"], values["when"], values["inner"]["n"] = np.arange(6) / 3, np.arange(6), -np.arange(6)
    values["inner"]["b"] = np.arange(6)
    stored = values.byteswap() if order == "big" else values
    if order == "big":
        # NumPy does not know that a bfloat16 has a byte order.
        stored["inner"]["b"] = values["inner"]["b"].view("u2").byteswap().view(ml_dtypes.bfloat16)
    codec: dict[str, Any] = (
        {"name": "bytes", "configuration": {"endian": order}} if order else {"name": "bytes"}
    )
    chunk = stored.tobytes()
    if sharded:
        index = struct.pack("<QQ", 0, len(chunk))
        configuration = {
            "chunk_shape": [6],
            "codecs": [codec],
            "index_codecs": [handwritten.BYTES],
            "index_location": "end",
        }
        codec, chunk = {"name": "sharding_indexed", "configuration": configuration}, chunk + index
    data_type = {"name": "structured", "configuration": {"fields": FIELDS}}
    fill = {"x": 1.5, "when": "NaT", "inner": {"n": -3, "b": "NaN"}}
    array = zarrow.open(handwritten.write(tmp_path / "a", (6,), data_type, [codec], chunk, fill))
    assert array.dtype == POINT
    assert bits(array[...].numpy()) == bits(values)
    assert bits(array[::-2].numpy()) == bits(values[::-2])
    assert array.fill_value["x"] == 1.5
    assert array.fill_value["inner"]["n"] == -3
    assert np.isnat(array.fill_value["when"])
    assert array.data_type["name"] == "struct"
    assert array.data_type["configuration"]["fields"][0] == {"name": "x", "data_type": "float32"}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_arrays_of_zarr_python(version: Literal[2, 3], tmp_path: Path) -> None:
    dtype = np.dtype([("id", "<i4"), ("value", "<f8"), ("name", "S5")])
    values = np.zeros((7, 5), dtype)
    values["id"], values["value"], values["name"] = np.arange(35).reshape(7, 5), 0.5, b"abc"
    stored = zarr.create_array(
        tmp_path,
        shape=values.shape,
        chunks=(3, 2),
        dtype=dtype,
        zarr_format=version,
        fill_value=(7, 1.5, b"x"),
    )
    stored[:5] = values[:5]
    array = zarrow.open(tmp_path)
    assert array.dtype == dtype
    assert bits(array[...].numpy()) == bits(stored[...])
    assert array.fill_value == stored.fill_value


def test_protocols_take_a_structure_or_say_why_not(tmp_path: Path) -> None:
    dtype = np.dtype([("a", "<i4"), ("b", "<f8", (2,)), ("c", [("d", "|u1")])])
    write_v2(tmp_path / "packed", np.zeros((4,), dtype), (4,), None, False)
    tensor = zarrow.open(tmp_path / "packed")[...]
    assert tensor.__array_interface__["descr"] == [("a", "<i4"), ("b", "<f8", (2,)), ("c", [("d", "|u1")])]
    assert memoryview(tensor).format == "T{=i:a:(2)=d:b:T{=B:d:}:c:}"
    np.asarray(memoryview(tensor))["b"] = 3
    assert (tensor.numpy()["b"] == 3).all()
    with pytest.raises(BufferError, match="DLPack has no type for struct"):
        tensor.__dlpack__(max_version=(1, 0))
    padded = np.dtype([("a", "|u1"), ("t", "<M8[s]")], align=True)
    write_v2(tmp_path / "padded", np.zeros((4,), padded), (4,), None, False)
    tensor = zarrow.open(tmp_path / "padded")[...]
    assert not hasattr(tensor, "__array_interface__")
    with pytest.raises(BufferError, match="no type for struct"):
        memoryview(tensor)
    array = np.asarray(tensor)
    assert array.dtype == padded
    assert np.shares_memory(array, tensor.numpy())


@pytest.mark.parametrize("version", [2, 3])
def test_fields_in_different_orders_of_bytes_are_written(version: Literal[2, 3], tmp_path: Path) -> None:
    # NumPy does not know the byte order of a bfloat16, which version 2 lacks.
    short = ml_dtypes.bfloat16 if version == 3 else "u1"
    dtype = np.dtype([("a", "<i4"), ("b", ">f8"), ("c", short), ("d", [("e", ">u2")])])
    values = random_values(np.random.default_rng(5), dtype, (6,))
    for number, stored in enumerate([dtype, native(dtype), dtype.newbyteorder(">")]):
        array = zarrow.create_array(tmp_path / str(number), shape=6, dtype=stored, zarr_format=version)
        array[...] = values
        array[::2] = values[::2]
        assert equal(array[...].numpy(), values)


@pytest.mark.parametrize("version", [2, 3])
def test_many_fields(version: Literal[2, 3]) -> None:
    """The time grows linearly with the number of fields; a quadratic one would take a minute."""
    dtype = np.dtype([(f"f{number}", "u1") for number in range(60_000)])
    store: dict[str, bytes] = {}
    created = zarrow.create_array(store, shape=1, dtype=dtype, zarr_format=version)
    assert created.metadata == zarrow.open_array(store).metadata
    assert created.dtype == dtype
