"""Decoded arrays to Arrow, in each layout, compared with pyarrow's conversion of the NumPy array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import zarr

import handwritten
import zarrow

ARROW_NUMBERS = [
    name for name, dtype in handwritten.NUMBERS.items() if dtype.kind in "iuf" and dtype.num < 256
]
OPAQUE = [name for name, dtype in handwritten.NUMBERS.items() if dtype.num >= 256]


def address(array: pa.Array) -> int:
    """Return the array of elements, below all lists and extensions."""
    while array.type.num_buffers != 2 or pa.types.is_fixed_size_list(array.type):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.flatten()
    return array.buffers()[1].address


def sql(query: str, rows: Any) -> list[tuple[Any, ...]]:
    """Query `rows` with DuckDB."""
    with duckdb.connect() as connection:
        return connection.register("rows", rows).sql(query).fetchall()


def stored(folder: Path, values: np.ndarray[Any, Any]) -> Any:
    array = zarr.create_array(
        folder, shape=values.shape, dtype=values.dtype, chunks=values.shape, zarr_format=2
    )
    array[...] = values
    return zarrow.open(folder)[...]


@pytest.mark.parametrize("name", ARROW_NUMBERS)
def test_numbers_equal_pyarrows_and_are_shared(tmp_path, name):
    values = handwritten.numbers(name, (4, 6))
    tensor = handwritten.tensor(tmp_path, values)
    flat = tensor.arrow(layout="flat")
    assert flat.equals(pa.array(values.reshape(-1)))
    rows = tensor.arrow()
    assert rows.equals(pa.FixedShapeTensorArray.from_numpy_ndarray(values))
    nested = tensor.arrow(layout="nested")
    assert nested.equals(pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 6))
    for array in (flat, rows, nested):
        array.validate(full=True)
        assert address(array) == tensor.numpy().ctypes.data
        assert array.equals(pl.Series(array).to_arrow()) or name == "float16"


def test_bools_are_bytes_or_bits(tmp_path):
    values = np.arange(21).reshape(3, 7) % 3 == 0
    tensor = handwritten.tensor(tmp_path, values)
    line = tensor.reshape(21)
    assert line.arrow().type == pa.bool8() and address(line.arrow().storage) == tensor.numpy().ctypes.data
    bits = line.arrow(bools="bits")
    assert bits.equals(pa.array(values.reshape(-1)))
    assert pa.array(line, type=pa.bool_()).equals(bits), (
        "a consumer asks for bits by the schema that it requests"
    )
    assert line.polars(bools="bits").to_list() == values.reshape(-1).tolist()
    nested = tensor.arrow(bools="bits", layout="nested")
    assert nested.type == pa.list_(pa.bool_(), 7) and nested.to_pylist() == values.tolist()
    assert pa.array(tensor, type=nested.type).equals(nested)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_a_complex_number_is_a_list_of_two(tmp_path, name):
    values = (handwritten.numbers(name) * (1 + 2j)).astype(name)
    tensor = handwritten.tensor(tmp_path, values)
    parts = np.stack([values.real, values.imag], axis=-1)
    for layout in ("flat", "nested", "tensor"):
        array = tensor.arrow(layout=layout)
        assert address(array) == tensor.numpy().ctypes.data
        storage = array.storage if layout == "tensor" else array
        expected = parts.reshape(-1, 2) if layout == "flat" else parts
        assert storage.to_pylist() == expected.tolist()


@pytest.mark.parametrize("name", OPAQUE)
def test_types_that_arrow_lacks_are_opaque(tmp_path, name):
    values = handwritten.numbers(name, (6,))
    tensor = handwritten.tensor(tmp_path, values)
    array = tensor.arrow()
    assert array.type == pa.opaque(pa.binary(values.dtype.itemsize), name, "zarr")
    assert b"".join(array.storage.to_pylist()) == values.tobytes()
    assert address(array) == tensor.numpy().ctypes.data
    assert tensor.polars().dtype.ext_name() == "arrow.opaque"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_times_have_nulls_where_they_are_nat(tmp_path, unit, kind):
    values = np.array([0, 1, 10**9, np.iinfo(np.int64).min, -5]).astype(f"{kind}[{unit}]")
    array = stored(tmp_path, values).arrow()
    assert array.equals(pa.array(values)) and array.null_count == 1
    assert not array[3].is_valid


@pytest.mark.parametrize("dtype", ["m8[D]", "M8[2D]", "m8[h]", "M8[10s]", "M8[Y]"])
def test_times_of_other_units_are_refused(tmp_path, dtype):
    with pytest.raises(zarrow.ExchangeError, match="s, ms, us or ns") as raised:
        stored(tmp_path, np.arange(3).astype(dtype)).arrow()
    assert raised.value.kind == "no_such_type"


def test_fixed_length_text_is_transcoded(tmp_path):
    values = np.array([["Zürich", "", "東京"], ["a\0b", "🦀" * 4, "x"]])
    text = stored(tmp_path / "text", values)
    assert text.arrow(layout="flat").type == pa.large_string()
    assert text.arrow().to_pylist() == values.tolist()
    assert text.reshape(6).arrow().equals(pa.array(values.reshape(-1).tolist(), pa.large_string()))
    data = np.array([b"ab", b"", b"a\0c"])
    array = stored(tmp_path / "bytes", data).arrow()
    assert array.type == pa.binary(3) and [item.rstrip(b"\0") for item in array.to_pylist()] == data.tolist()


WORDS = ["Oslo", "", "a string that is longer than twelve bytes", "Zürich", "exactly12byt", "thirteen byte"]


@pytest.mark.parametrize(
    ("strings", "text", "binary"),
    [
        ("large", pa.large_string(), pa.large_binary()),
        ("small", pa.string(), pa.binary()),
        ("views", pa.string_view(), pa.binary_view()),
    ],
)
def test_strings_have_three_forms(tmp_path, strings, text, binary):
    words = handwritten.variable(tmp_path / "words", WORDS)
    array = words.arrow(strings=strings)
    array.validate(full=True)
    assert array.equals(pa.array(WORDS, text)) and pa.array(words, type=text).equals(array)
    start = words.data.numpy().ctypes.data
    used = [
        buffer.address
        for buffer in array.buffers()
        if buffer and start <= buffer.address < start + words.nbytes
    ]
    assert used, "the bytes of the strings are shared"
    blobs = handwritten.variable(tmp_path / "blobs", [word.encode() for word in WORDS])
    assert blobs.arrow(strings=strings).equals(pa.array([word.encode() for word in WORDS], binary))
    masked = handwritten.masked_variable(tmp_path / "masked", ["one", None, WORDS[2], None])
    assert masked.arrow(strings=strings).equals(pa.array(["one", None, WORDS[2], None], text))
    assert words.polars(strings=strings).to_list() == WORDS
    assert masked.polars(strings=strings).to_list() == ["one", None, WORDS[2], None]


def test_axes_have_names(tmp_path):
    tensor = handwritten.tensor(tmp_path, handwritten.numbers("float32", (4, 6))).reshape(4, 2, 3)
    named = tensor.arrow(dimension_names=["time", "y", "x"])
    assert named.type == pa.fixed_shape_tensor(pa.float32(), [2, 3], dim_names=["y", "x"])
    swapped = tensor.transpose(0, 2, 1).arrow(dimension_names=["time", "x", "y"])
    assert swapped.type.dim_names == ["y", "x"] and swapped.type.permutation == [1, 0]
    assert tensor.arrow(dimension_names=["time", None, "x"]).type.dim_names is None
    with pytest.raises(zarrow.ExchangeError, match="each of the 3 axes"):
        tensor.arrow(dimension_names=["x"])


def test_masks_are_nulls_of_the_elements(tmp_path):
    values, missing = handwritten.numbers("int32", (4, 6)), np.arange(24).reshape(4, 6) % 5 == 0
    masked = handwritten.masked_tensor(tmp_path, values, missing)
    expected = np.where(missing, None, values).tolist()
    assert masked.arrow().storage.to_pylist() == masked.arrow(layout="nested").to_pylist() == expected
    flat = masked.arrow(layout="flat")
    assert flat.equals(pa.array(values.reshape(-1), mask=missing.reshape(-1)))
    asked = sql("select x from rows", pa.table({"x": masked.arrow(layout="nested")}))
    assert [list(row[0]) for row in asked] == expected
    assert [list(row) for row in masked.polars(layout="nested").to_list()] == expected
    bools = handwritten.masked_tensor(tmp_path / "bools", values[0] > 4, missing[0])
    assert bools.arrow(bools="bits").equals(pa.array(values[0] > 4, mask=missing[0]))


def test_an_unknown_form_is_refused(tmp_path):
    tensor = handwritten.tensor(tmp_path, np.arange(3.0))
    for keyword in ("layout", "bools", "strings"):
        with pytest.raises(ValueError, match=keyword):
            tensor.arrow(**{keyword: "other"})
    with pytest.raises(TypeError, match="arrow_schema"):
        tensor.__arrow_c_array__(requested_schema=3)
    schema, _ = tensor.__arrow_c_array__(pa.int8().__arrow_c_schema__())
    assert pa.DataType._import_from_c_capsule(schema) == pa.float64(), (
        "what cannot be had is left to the consumer"
    )


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_duckdb_and_polars_take_each(tmp_path, count):
    numbers = handwritten.tensor(tmp_path / "numbers", np.arange(count, dtype=np.int64))
    words = handwritten.variable(tmp_path / "words", [f"word {index % 3}" for index in range(count)] or [])
    rows = pa.table({"number": numbers, "word": words})
    ((total, longest),) = sql("select sum(number), max(word) from rows", rows)
    assert total == (sum(range(count)) if count else None)
    assert longest == (f"word {min(count, 3) - 1}" if count else None)
    frame = pl.DataFrame({"number": pl.Series(numbers), "word": pl.Series(words)})
    assert frame["number"].sum() == sum(range(count)) and frame["word"].n_unique() == min(count, 3)
