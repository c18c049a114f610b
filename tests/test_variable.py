"""The class Variable: strings and bytes, which share their two buffers with Arrow."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import handwritten
import zarrow

WORDS = ["Oslo", "", "Zürich", "東京", "a" * 40, "\0x"]


@pytest.fixture
def words(tmp_path):
    return handwritten.variable(tmp_path / "words", WORDS)


@pytest.fixture
def blobs(tmp_path):
    return handwritten.variable(tmp_path / "blobs", [b"\xff\0", b"", b"abc"])


def address(tensor: zarrow.Tensor) -> int:
    return tensor.__array_interface__["data"][0]


def test_properties(words, blobs):
    nbytes = sum(len(word.encode()) for word in WORDS)
    assert isinstance(words, zarrow.Variable) and isinstance(words, zarrow.DecodedArray)
    assert not isinstance(words, zarrow.Tensor | zarrow.MaskedVariable)
    assert (words.shape, words.ndim, words.size, len(words), words.device) == ((6,), 1, 6, 6, "cpu")
    assert words.nbytes == nbytes + 7 * 8
    assert words.dtype == np.dtypes.StringDType() and blobs.dtype == np.dtype(object)
    assert "'Zürich'" in repr(words) and "string" in repr(words) and "'Zürich'" in words._repr_html_()


def test_offsets_and_data_are_read_only_tensors(words):
    text = "".join(WORDS).encode()
    assert words.offsets.readonly and words.data.readonly
    assert words.offsets.tolist() == np.cumsum([0] + [len(word.encode()) for word in WORDS]).tolist()
    assert bytes(words.data)[: len(text)] == text and words.data.dtype == np.uint8
    assert words.offsets.dtype == np.int64


def test_elements(words, blobs):
    assert [words[index] for index in range(6)] == list(words) == words.tolist() == WORDS
    assert words[-1] == words[np.int8(5)] == words[(5,)] == words[5, ...] == "\0x"
    assert list(blobs) == blobs.tolist() == [b"\xff\0", b"", b"abc"]
    for index in (6, -7, 2**70, (0, 0), "a", [6]):
        with pytest.raises(IndexError):
            words[index]


def test_numpy_gets_a_copy_of_its_own_type(words, blobs):
    array = words.numpy()
    assert array.dtype == np.dtypes.StringDType() and array.tolist() == WORDS
    assert blobs.numpy().dtype == object and blobs.numpy().tolist() == blobs.tolist()
    assert np.asarray(words).tolist() == WORDS and np.asarray(words, dtype="U5")[2] == "Züric"
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(words, copy=False)


def test_arrow_shares_both_buffers(words, blobs):
    for variable, kind in [(words, pa.large_string()), (blobs, pa.large_binary())]:
        array = variable.arrow()
        array.validate(full=True)
        validity, offsets, data = array.buffers()
        assert (validity, offsets.address, data.address) == (
            None,
            address(variable.offsets),
            address(variable.data),
        )
        assert array.type == kind and array.to_pylist() == variable.tolist()
        assert pa.array(variable).equals(array) and array.null_count == 0


def test_polars_gets_the_strings(words):
    series = words.polars()
    assert series.dtype == pl.String and series.to_list() == WORDS == pl.Series(words).to_list()


def test_several_axes_become_nested_lists(tmp_path):
    table = handwritten.variable(tmp_path, list("abcdef"), (2, 3))
    assert (
        table.shape == (2, 3) and table[1, -1] == "f" and table.tolist() == [["a", "b", "c"], ["d", "e", "f"]]
    )
    assert table.numpy().shape == (2, 3)
    assert table.arrow().to_pylist() == table.tolist()
    assert table.arrow().type == pa.list_(pa.large_string(), 3)


def test_0d_and_empty(tmp_path):
    scalar = handwritten.variable(tmp_path / "scalar", ["x"], ())
    assert scalar[()] == "x" and scalar.tolist() == "x" and scalar.numpy().shape == ()
    with pytest.raises(TypeError):
        len(scalar)
    with pytest.raises(BufferError, match="axis"):
        scalar.arrow()
    empty = handwritten.variable(tmp_path / "empty", [], (0,))
    assert empty.tolist() == list(empty) == empty.arrow().to_pylist() == empty.numpy().tolist() == []
    assert empty.offsets.tolist() == [0] and empty.data.shape == (0,)


def test_strings_have_no_dlpack(words):
    assert not hasattr(words, "__dlpack__") and not hasattr(words, "torch")
