"""The class MaskedVariable: strings and bytes, None for missing ones."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import handwritten
import zarrow

WORDS = ["Oslo", None, "", "Zürich", None]
BLOBS = [None, b"\xff\0", b""]


@pytest.fixture
def words(tmp_path):
    return handwritten.masked_variable(tmp_path / "words", WORDS)


@pytest.fixture
def blobs(tmp_path):
    return handwritten.masked_variable(tmp_path / "blobs", BLOBS)


def test_properties(words, blobs):
    assert isinstance(words, zarrow.MaskedVariable) and isinstance(words, zarrow.DecodedArray)
    assert not isinstance(words, zarrow.Variable | zarrow.MaskedTensor)
    assert (words.shape, words.ndim, words.size, len(words), words.device) == ((5,), 1, 5, 5, "cpu")
    assert words.dtype == np.dtypes.StringDType() and blobs.dtype == np.dtype(object)
    assert words.nbytes == words.data.nbytes + 5
    assert "None" in repr(words) and "None" in words._repr_html_()


def test_elements_and_parts(words, blobs):
    assert list(words) == words.tolist() == [words[index] for index in range(5)] == WORDS
    assert list(blobs) == BLOBS
    assert isinstance(words.data, zarrow.Variable) and words.data.tolist() == ["Oslo", "", "", "Zürich", ""]
    assert words.mask.tolist() == [False, True, False, False, True] and words.mask.readonly
    for index in (5, [7], "a"):
        with pytest.raises(IndexError):
            words[index]


def test_numpy_gets_objects_with_none(words, blobs):
    assert (
        words.numpy().dtype == object and words.numpy().tolist() == WORDS and blobs.numpy().tolist() == BLOBS
    )
    assert np.asarray(words).tolist() == WORDS and np.array(blobs, object).tolist() == BLOBS
    with pytest.raises(ValueError, match="copy"):
        np.array(words, copy=False)


@pytest.mark.parametrize("dtype", [str, bytes, "U3", "S", np.dtypes.StringDType()])
def test_missing_text_is_not_converted_to_none(words, dtype):
    with pytest.raises(ValueError, match=r"some elements are missing: type x.filled\(value\)"):
        words.astype(dtype)
    assert words.astype(object).tolist() == words.tolist()
    filled = [
        value.decode() if isinstance(value, bytes) else value for value in words.filled("x").astype(dtype)
    ]
    assert filled[1] == filled[4] == "x"


def test_filled_is_a_new_variable(words, blobs):
    filled = words.filled("ü")
    assert isinstance(filled, zarrow.Variable)
    assert filled.tolist() == ["Oslo", "ü", "", "Zürich", "ü"]
    assert blobs.filled(b"abc").tolist() == [b"abc", b"\xff\0", b""]
    for masked, value in [(words, b"a"), (blobs, "a"), (words, 1), (words, None), (blobs, [1, 2])]:
        with pytest.raises(TypeError):
            masked.filled(value)


def test_arrow_has_nulls_and_shares_both_buffers(words, blobs):
    for masked, kind in [(words, pa.large_string()), (blobs, pa.large_binary())]:
        array = masked.arrow()
        array.validate(full=True)
        _, offsets, data = array.buffers()
        assert offsets.address == masked.data.offsets.__array_interface__["data"][0]
        assert data.address == masked.data.data.__array_interface__["data"][0]
        assert array.type == kind and array.to_pylist() == masked.tolist()
    assert words.polars().to_list() == pl.Series(words).to_list() == WORDS
