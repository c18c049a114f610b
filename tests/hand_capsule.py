"""DLPack capsules made by hand: a test sets each field, validly or not."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

CPU, CUDA, PINNED = 1, 2, 3
READ_ONLY, COPIED = 1, 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    """`DLManagedTensor`."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]


def name(capsule: Any) -> str:
    """Return the name of a capsule."""
    return _name(capsule).decode()


class Producer:
    """Exports `array` by a struct with the fields in `lies` replaced; counts calls of the deleter.

    `called` records the arguments of each call of `__dlpack__`.
    """

    def __init__(self, array: np.ndarray, *, legacy: bool = False, flags: int = 0, **lies: Any) -> None:
        self.array, self.legacy, self.flags, self.lies = array, legacy, flags, lies
        self.deleted = 0
        self.called: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.lies.get("device_type", CPU), 0)

    def __dlpack__(self, **arguments: Any) -> Any:
        self.called.append(arguments)
        if self.legacy and arguments:
            raise TypeError("this library is of before DLPack 1.0")
        return self.capsule()

    def capsule(self) -> Any:
        """Make a capsule."""
        managed = Legacy() if self.legacy else Versioned(major=1, minor=3, flags=self.flags)
        axes = ctypes.c_int64 * max(self.array.ndim, 1)
        itemsize = self.array.dtype.itemsize
        shape, strides = axes(*self.array.shape), axes(*(step // itemsize for step in self.array.strides))
        fields = {
            "data": self.array.ctypes.data,
            "device_type": CPU,
            "device_id": 0,
            "ndim": self.array.ndim,
            "code": CODES.get(self.array.dtype.kind, 3),
            "bits": itemsize * 8,
            "lanes": 1,
            "shape": shape,
            "strides": strides,
            "byte_offset": 0,
        }
        for field, value in {**fields, **self.lies}.items():
            if field in ("major", "minor"):
                setattr(managed, field, value)
            elif field in ("shape", "strides"):
                numbers = None if value is None else (ctypes.c_int64 * max(len(value), 1))(*value)
                pointer = ctypes.POINTER(ctypes.c_int64)
                setattr(
                    managed.tensor, field, pointer() if numbers is None else ctypes.cast(numbers, pointer)
                )
                fields[f"keep {field}"] = numbers
            else:
                setattr(managed.tensor, field, value)
        address = ctypes.addressof(managed)
        deleter = Deleter(self._delete)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p).value
        LENT[address] = (managed, fields, self)
        DELETERS.append(deleter)
        # The name must live as long as the capsule: these are literals.
        return _new(address, NAMES[self.legacy], None)

    def _delete(self, address: int) -> None:
        self.deleted += 1
        del LENT[address]


NAMES: Sequence[bytes] = (b"dltensor_versioned", b"dltensor")
# The memory of the structs, until their deleters run.
LENT: dict[int, Any] = {}
# A C callback must not be freed while it runs: none is freed.
DELETERS: list[Any] = []
