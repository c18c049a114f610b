"""Headers of NPY files.

Source: NEP 1, versions 1.0 and 2.0 of the format. NumPy parses the header, without pickles.
"""

from __future__ import annotations

import os
import tokenize
from typing import Any, BinaryIO, cast

import numpy as np

from zarrow.errors import DataTypeError, UnsupportedError
from zarrow.files.elements import FileElements, malformed


def opened(file: BinaryIO) -> FileElements:
    """Return the elements of a file.

    Raises
    ------
    MetadataError
        The header is malformed, or the file is too short.
    UnsupportedError
        The elements are Python objects, or the version is newer.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, is_reversed, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, is_reversed, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise UnsupportedError(f"version {version} of NPY, expected 1.0 or 2.0")
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError, tokenize.TokenError) as error:
        if isinstance(error, UnsupportedError):
            raise
        raise malformed(file, f"no NPY file: {error}") from error
    if any(type(extent) is not int or extent < 0 for extent in shape):
        raise malformed(file, f"shape {shape} has an extent below 0")
    if dtype.hasobject:
        raise UnsupportedError("the elements are pickled Python objects, which zarrow does not load")
    elements = FileElements(file, file.tell(), shape, dtype, "F" if is_reversed else "C")
    elements.check_length(os.fstat(file.fileno()).st_size)
    return elements


def begun(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> FileElements:
    """Write the header, and return the elements to write.

    Raises
    ------
    DataTypeError
        The format has no name for the type.
    """
    described = np.lib.format.dtype_to_descr(dtype)
    if np.lib.format.descr_to_dtype(described) != dtype:
        raise DataTypeError(f"NPY has no elements of type {dtype}: export to .safetensors or .bin")
    header = {"descr": described, "fortran_order": False, "shape": shape}
    cast("Any", np.lib.format).write_array_header_2_0(file, header)
    return FileElements(file, file.tell(), shape, dtype)
