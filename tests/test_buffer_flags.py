"""The buffer protocol handles every combination of flags as NumPy does."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
from typing import Any

import numpy as np
import pytest

import zarrow

# Every sum of the flags: writable, format, extents, strides, C, Fortran or any order, indirect.
BITS = (0x1, 0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100)
# The indirect flag alone equals `PyBUF_READ`, which is not a request: Python 3.13 refuses it.
SUMS = (sum(bits) for count in range(len(BITS) + 1) for bits in itertools.combinations(BITS, count))
FLAGS = [flags for flags in SUMS if flags != 0x100]


class Buffer(ctypes.Structure):
    """`Py_buffer`."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


GET, RELEASE = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
GET.argtypes, RELEASE.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int], [ctypes.c_void_p]


def answer(producer: Any, flags: int) -> Any:
    """Request a buffer; return its description, or None if refused."""
    memory = ctypes.create_string_buffer(ctypes.sizeof(Buffer))
    try:
        GET(producer, memory, flags)
    except (BufferError, ValueError):
        return None
    view = Buffer.from_buffer(memory)
    axes = view.ndim
    said = {
        "address": view.buf,
        "len": view.len,
        "itemsize": view.itemsize,
        "readonly": view.readonly,
        "ndim": axes,
        "format": view.format,
        "shape": view.shape[:axes] if view.shape else None,
        "strides": view.strides[:axes] if view.strides else None,
        "suboffsets": view.suboffsets,
    }
    RELEASE(memory)
    return said


def readonly(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


def block() -> np.ndarray[Any, Any]:
    return np.arange(24.0).reshape(2, 3, 4)


ARRAYS = {
    "one axis": np.arange(5, dtype="i4"),
    "C order": block(),
    "F order": np.asfortranarray(block()),
    "permuted": block().transpose(1, 0, 2),
    "strided": block()[:, ::2],
    "backwards": block()[::-1],
    "no axis": np.array(1.5),
    "empty": np.ones((3, 0, 2)),
    "empty, F order": np.asfortranarray(np.ones((3, 0))),
    "one element": np.ones((1, 3, 1))[:, :1].transpose(2, 1, 0),
    "axis of one": np.ones((4, 1, 3)),
    "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    "read-only": readonly(block()),
    "bools": np.ones((2, 2), "?"),
    "half": np.ones((2, 2), "f2"),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("wrapped", [False, True], ids=["Tensor", "BufferProducer"])
def test_every_flag_is_answered_as_by_numpy(name, wrapped):
    array = ARRAYS[name]
    tensor = zarrow.asarray(array)
    producer = zarrow._zarrow.BufferProducer(tensor) if wrapped else tensor
    for flags in FLAGS:
        expected, found = answer(array, flags), answer(producer, flags)
        if expected is not None and array.size == 0:
            expected["address"] = found["address"]
        assert found == expected, (hex(flags), found, expected)


def test_hashes_of_several_axes():
    for array in (block(), np.arange(7, dtype="u2"), np.array(3.0)):
        assert hashlib.sha256(zarrow.asarray(array)).digest() == hashlib.sha256(array).digest()
    with pytest.raises(BufferError):
        hashlib.sha256(zarrow.asarray(block()[:, ::2]))


def test_simple_views_have_no_axis():
    """A view from `__buffer__(0)` with several axes and no extents crashed Python 3.12 and 3.13."""
    tensor = zarrow.asarray(block())
    if hasattr(tensor, "__buffer__"):
        assert bytes(tensor.__buffer__(0)) == block().tobytes()
    assert answer(tensor, 0)["ndim"] == 0
    assert bytes(tensor) == block().tobytes()
    assert memoryview(tensor).tolist() == block().tolist()
