"""The class MaskedTensor: data and mask stay together."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import handwritten
import zarrow

MISSING = np.array([[False, True, False], [True, False, False]])


@pytest.fixture
def masked(tmp_path):
    return handwritten.masked_tensor(
        tmp_path / "masked", np.arange(6, dtype=np.float32).reshape(2, 3), MISSING
    )


@pytest.fixture
def line(tmp_path):
    return handwritten.masked_tensor(tmp_path / "line", np.arange(6, dtype=np.int16), MISSING.ravel())


def address(array: object) -> int:
    return np.asarray(array).ctypes.data


def test_properties(masked):
    assert isinstance(masked, zarrow.MaskedTensor) and isinstance(masked, zarrow.DecodedArray)
    assert not isinstance(masked, zarrow.Tensor | zarrow.MaskedVariable)
    assert (masked.shape, masked.ndim, masked.size, len(masked)) == ((2, 3), 2, 6, 2)
    assert (masked.dtype, masked.nbytes, masked.device) == (np.float32, 24 + 6, "cpu")
    assert "--" in repr(masked) and "MaskedTensor (2, 3) float32" in repr(masked)
    assert "--" in masked._repr_html_()
    assert masked.tolist() == [[0.0, None, 2.0], [None, 4.0, 5.0]]


def test_data_and_mask_are_tensors(masked):
    assert isinstance(masked.data, zarrow.Tensor) and isinstance(masked.mask, zarrow.Tensor)
    assert masked.mask.dtype == bool and masked.mask.readonly and not masked.data.readonly
    np.testing.assert_array_equal(masked.mask, MISSING)
    # Missing values are zero, not leftovers.
    np.testing.assert_array_equal(masked.data, [[0, 0, 2], [0, 4, 5]])
    assert address(masked.data) == address(masked.data) and address(masked.data) % 64 == 0


def test_numpy_shares_data_and_mask(masked):
    array = masked.numpy()
    assert isinstance(array, np.ma.MaskedArray) and array.dtype == np.float32
    assert array.data.ctypes.data == address(masked.data)
    assert array.mask.ctypes.data == address(masked.mask)
    assert array.sum() == 11 and array.count() == 4
    with pytest.raises(ValueError, match="read-only"):
        array.mask[0, 0] = True


def test_plain_exports_are_refused_with_a_way_out(masked):
    way_out = r"\.to_pandas\(\).*\.filled\(value\).*\.numpy\(\).*\.data.*\.mask"
    for refused in (
        lambda: np.asarray(masked),
        lambda: np.array(masked, dtype=float),
        lambda: np.from_dlpack(masked),
        lambda: masked.__dlpack__(),
        masked.torch,
        masked.jax,
        masked.to_jax,
    ):
        with pytest.raises(BufferError, match=way_out) as raised:
            refused()
        assert raised.value.kind == "masked"
    assert masked.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError):
        memoryview(masked)


def test_filled_is_a_new_tensor(masked, line):
    filled = masked.filled(-1)
    assert isinstance(filled, zarrow.Tensor) and not filled.readonly
    assert filled.tolist() == [[0, -1, 2], [-1, 4, 5]]
    assert address(filled) != address(masked.data)
    assert np.isnan(masked.filled(np.nan).numpy()).sum() == 2
    assert line.filled(np.int16(9)).tolist() == [0, 9, 2, 9, 4, 5]
    for value in (1.5, "a"):
        with pytest.raises(TypeError):
            line.filled(value)
    with pytest.raises(OverflowError):
        line.filled(10**6)


def test_arrow_has_nulls_and_shares_the_data(line, masked):
    array = line.arrow()
    array.validate(full=True)
    assert array.to_pylist() == [0, None, 2, None, 4, 5] and array.null_count == 2
    assert array.buffers()[1].address == address(line.data)
    assert masked.arrow().type == pa.fixed_shape_tensor(pa.float32(), [3])
    assert masked.arrow().storage.to_pylist() == masked.tolist()
    series = line.polars()
    assert series.to_list() == pl.Series(line).to_list() == line.tolist()
    newest = series.to_arrow(compat_level=pl.CompatLevel.newest())
    assert newest.buffers()[1].address == address(line.data)


def test_nothing_missing_needs_no_bitmap(tmp_path):
    whole = handwritten.masked_tensor(tmp_path, np.arange(3.0), np.zeros(3, dtype=bool))
    assert isinstance(whole, zarrow.MaskedTensor)
    assert whole.arrow().buffers()[0] is None and whole.numpy().count() == 3


@pytest.mark.parametrize("name", handwritten.NUMBERS)
def test_every_type(tmp_path, name):
    values = handwritten.numbers(name, (6,))
    masked = handwritten.masked_tensor(tmp_path, values, MISSING.ravel())
    array = masked.numpy()
    assert array.dtype == values.dtype and array.data.ctypes.data == masked.data.numpy().ctypes.data
    assert array[0] == values[0] and array[1] is np.ma.masked
    assert masked.filled(values[0]).numpy()[1] == values[0]
    assert repr(masked)


def test_0d_and_empty(tmp_path):
    scalar = handwritten.masked_tensor(tmp_path / "scalar", np.array(7, dtype=np.int8), np.array(True))
    assert scalar.numpy()[()] is np.ma.masked and scalar.filled(3).item() == 3 and scalar.tolist() is None
    with pytest.raises(BufferError, match="axis"):
        scalar.arrow()
    empty = handwritten.masked_tensor(tmp_path / "empty", np.zeros((0, 2), np.int8), np.zeros((0, 2), bool))
    assert empty.numpy().shape == empty.filled(1).shape == (0, 2) and len(empty.arrow()) == 0


def test_bfloat16_can_be_masked(tmp_path):
    values = np.array([1.5, 2.5], dtype=ml_dtypes.bfloat16)
    masked = handwritten.masked_tensor(tmp_path, values, np.array([False, True]))
    assert masked.tolist() == [1.5, None]
