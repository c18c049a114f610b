"""What elements of an array are in batches: their size, their form in NumPy, and the fill value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array

# A string or byte string counts as this many bytes in a plan: metadata do not have its size.
VARIABLE_NBYTES = 64


def may_be_missing(array: Array) -> bool:
    """Return whether elements are masked."""
    name = array.data_type["name"] if isinstance(array.data_type, dict) else array.data_type
    return "optional" in str(name)


def has_fixed_size(array: Array) -> bool:
    """Return whether elements have one size, and none is missing."""
    return array.nbytes is not None and not may_be_missing(array)


def element_nbytes(array: Array) -> int:
    """Return the bytes of an element and of its mask: `VARIABLE_NBYTES` for a string."""
    if array.nbytes is None:
        return VARIABLE_NBYTES
    return array.dtype.itemsize + may_be_missing(array)


def numpy_form(decoded: Any) -> npt.NDArray[Any]:
    """Return decoded elements for NumPy, all writable.

    A `MaskedTensor` is a masked array, strings have NumPy's `StringDType`, and byte strings are objects, as
    are optional strings, with None for a missing one.
    """
    values: npt.NDArray[Any] = decoded.numpy()
    if isinstance(values, np.ma.MaskedArray):
        # The engine lends its mask for reading only.
        return np.ma.MaskedArray(values.data, np.ma.getmaskarray(values).copy())
    return values


def filled(array: Array, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return elements of the fill value: missing ones if it is null."""
    fill, is_optional = array.fill_value, may_be_missing(array)
    if array.nbytes is None:
        dtype = np.dtype(object) if is_optional else array.dtype
        values: Any = np.empty(shape, dtype)
        values[...] = fill
        return np.asarray(values)
    values = np.zeros(shape, array.dtype)
    if fill is not None:
        values[...] = fill
    return np.ma.MaskedArray(values, np.full(shape, fill is None)) if is_optional else values
