"""Parameters of the kernels, as in `crates/zarrow-cuda/kernels/structs.cuh`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

MAX_RANK = 8
Lengths = ctypes.c_uint64 * MAX_RANK
Strides = ctypes.c_int64 * MAX_RANK

NO_SHUFFLE, BYTES, BITS, FILL = range(4)


class Piece(ctypes.Structure):
    """A box of elements to copy from a decoded buffer to its destination."""

    _fields_ = [
        ("source", ctypes.c_uint64),
        ("source_offset", ctypes.c_uint64),
        ("destination", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("shape", Lengths),
        ("source_stride", Strides),
        ("destination_stride", Strides),
        ("decoded_nbytes", ctypes.c_uint64),
        ("block_nbytes", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("element_nbytes", ctypes.c_uint32),
        ("shuffle", ctypes.c_uint32),
        ("word_nbytes", ctypes.c_uint32),
        ("fill", ctypes.c_uint8 * 16),
    ]


class Cast(ctypes.Structure):
    """Elements to convert to another type."""

    _fields_ = [
        ("source", ctypes.c_uint64),
        ("destination", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("shape", Lengths),
        ("source_stride", Strides),
        ("destination_stride", Strides),
        ("rank", ctypes.c_uint32),
        ("source_type", ctypes.c_uint32),
        ("destination_type", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class Compare(ctypes.Structure):
    """Elements to compare."""

    _fields_ = [
        ("left", ctypes.c_uint64),
        ("right", ctypes.c_uint64),
        ("destination", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("shape", Lengths),
        ("left_stride", Strides),
        ("right_stride", Strides),
        ("destination_stride", Strides),
        ("rank", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
        ("equal_nan", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class Gather(ctypes.Structure):
    """Rows by positions."""

    _fields_ = [
        ("source", ctypes.c_uint64),
        ("destination", ctypes.c_uint64),
        ("index", ctypes.c_uint64),
        ("index_count", ctypes.c_uint64),
        ("row_count", ctypes.c_uint64),
        ("source_row_stride", ctypes.c_int64),
        ("destination_row_stride", ctypes.c_int64),
        ("row_elements", ctypes.c_uint64),
        ("shape", Lengths),
        ("source_stride", Strides),
        ("destination_stride", Strides),
        ("rank", ctypes.c_uint32),
        ("scatter", ctypes.c_uint32),
    ]


class Guarded(ctypes.Structure):
    """A decompressed frame, and its expected checksum."""

    _fields_ = [
        ("source", ctypes.c_uint64),
        ("nbytes", ctypes.c_uint64),
        ("status", ctypes.c_uint64),
        ("state", ctypes.c_uint64 * 4),
        ("kind", ctypes.c_uint32),
        ("expected", ctypes.c_uint32),
    ]


def lengths(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    """A shape."""
    return Lengths(*numbers)


def strides(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Strides in bytes."""
    return Strides(*numbers)
