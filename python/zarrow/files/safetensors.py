"""Headers of safetensors files: a length of 8 bytes, JSON, and then the elements of all tensors.

1. The offsets of tensors cover the rest of the file, without gaps and overlaps.
2. Tensors are written in the order of their sizes of elements, so that each begins at a multiple of it.
3. `__metadata__` has texts: the group's attributes of type text.

Source: the README of huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from zarrow._zarrow import _import
from zarrow.errors import DataTypeError, UnsupportedError
from zarrow.files.elements import FileElements, malformed

# The limit of the reference implementation.
_MOST_HEADER_NBYTES = 100_000_000

_METADATA = "__metadata__"

_TYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "C64": "<c8",
}

# Types that NumPy gets from ml_dtypes.
_ML_TYPES = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}


def opened(file: BinaryIO) -> tuple[dict[str, FileElements], dict[str, str]]:
    """Return the tensors of a file by name, and its metadata.

    Raises
    ------
    MetadataError
        The header is malformed, or contradicts the length of the file.
    UnsupportedError
        A tensor has a type that is not known.
    """
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MOST_HEADER_NBYTES):
        raise malformed(file, f"no safetensors file: a header of {length} bytes in a file of {size}")
    try:
        header = json.loads(_all(file, length), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise malformed(file, f"no safetensors file: the header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise malformed(file, "no safetensors file: the header is no object")
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise malformed(file, f"{_METADATA!r} is {metadata!r}, expected texts by name")
    tensors, ranges = {}, []
    for name, described in header.items():
        elements, begin, end = _tensor(file, name, described, 8 + length)
        tensors[name] = elements
        ranges.append((begin, end, name))
    at = 0
    for begin, end, name in sorted(ranges):
        if begin != at:
            raise malformed(file, f"tensor {name!r} begins at {begin}, but the one before ends at {at}")
        at = end
    if 8 + length + at != size:
        raise malformed(file, f"the tensors end at byte {8 + length + at}, but the file has {size} bytes")
    return tensors, metadata


def begun(
    file: BinaryIO,
    tensors: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]],
    attributes: Mapping[str, Any],
) -> dict[str, FileElements]:
    """Write the header for tensors of these shapes and types, and return the elements to write.

    Raises
    ------
    DataTypeError
        The format has no name for a type.
    ValueError
        A tensor has the name of the metadata.
    """
    texts = {name: text for name, text in attributes.items() if isinstance(text, str)}
    header: dict[str, Any] = {_METADATA: texts} if texts else {}
    if _METADATA in tensors:
        raise ValueError(f"a tensor is named {_METADATA!r}, which safetensors uses for metadata: rename it")
    places, at = {}, 0
    for name, (shape, dtype) in sorted(tensors.items(), key=lambda each: (-each[1][1].itemsize, each[0])):
        end = at + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": _name_of(name, dtype), "shape": list(shape), "data_offsets": [at, end]}
        places[name], at = at, end
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    first = 8 + len(text)
    return {
        name: FileElements(file, first + places[name], shape, dtype.newbyteorder("<"))
        for name, (shape, dtype) in tensors.items()
    }


def _tensor(file: BinaryIO, name: str, described: Any, first: int) -> tuple[FileElements, int, int]:
    match described:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise malformed(file, f"tensor {name!r} is {described!r}, expected dtype, shape and data_offsets")
    if any(type(extent) is not int or not 0 <= extent < 1 << 63 for extent in shape):
        raise malformed(file, f"tensor {name!r} has the shape {shape}, expected extents of at least 0")
    if kind in _ML_TYPES:
        dtype = np.dtype(getattr(_import("ml_dtypes"), _ML_TYPES[kind]))
    elif kind in _TYPES:
        dtype = np.dtype(_TYPES[kind])
    else:
        raise UnsupportedError(f"tensor {name!r} has the type {kind!r}")
    nbytes = math.prod(shape) * dtype.itemsize
    if not 0 <= begin <= end or end - begin != nbytes:
        raise malformed(
            file,
            f"tensor {name!r} has the offsets {[begin, end]}, but shape {shape} of type {kind} takes "
            f"{nbytes} bytes",
        )
    return FileElements(file, first + begin, tuple(shape), dtype), begin, end


def _name_of(name: str, dtype: np.dtype[Any]) -> str:
    for known, found in _TYPES.items():
        if np.dtype(found) == dtype.newbyteorder("<"):
            return known
    for known, found in _ML_TYPES.items():
        if dtype.name == found:
            return known
    raise DataTypeError(f"array {name!r} has the type {dtype}, which safetensors does not have")


def _all(file: BinaryIO, length: int) -> bytes:
    text = bytearray()
    while len(text) < length and (part := file.read(length - len(text))):
        text += part
    return bytes(text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found
