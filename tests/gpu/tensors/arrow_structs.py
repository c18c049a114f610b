"""Arrow's C structs of arrays on a device: read from capsules, and capsules made by hand.

Source: Arrow C data interface; Arrow C device data interface.
"""

from __future__ import annotations

import ctypes
from typing import Any


class Schema(ctypes.Structure):
    """`struct ArrowSchema`."""


Schema._fields_ = (
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.c_void_p),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
)


class DeviceArray(ctypes.Structure):
    """`struct ArrowDeviceArray`, with the fields of its `struct ArrowArray`."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.POINTER(ctypes.c_void_p)),
        ("reserved", ctypes.c_int64 * 3),
    )


Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def device_array(capsule: Any) -> DeviceArray:
    """Return the struct in a capsule."""
    return DeviceArray.from_address(_get(capsule, b"arrow_device_array"))


class Lent:
    """Exports a one-axis Tensor by its own structs, with the fields in `lies` replaced; counts releases."""

    def __init__(self, tensor: Any, kind: bytes = b"f", event: int | None = None, **lies: Any) -> None:
        self.tensor, self.released = tensor, 0
        self.kind, self.event, self.lies = kind, event, lies
        self.address = tensor.__cuda_array_interface__["data"][0]

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> Any:
        schema = Schema(
            format=self.kind, name=b"", flags=2, release=ctypes.cast(NOTHING, ctypes.c_void_p).value
        )
        lies = dict(self.lies)
        buffers = (ctypes.c_void_p * 2)(lies.pop("validity", None), self.address)
        device_type, device_id = self.tensor.__dlpack_device__()
        array = DeviceArray(
            length=self.tensor.size,
            n_buffers=2,
            buffers=buffers,
            device_id=device_id,
            device_type=device_type,
        )
        for field, value in lies.items():
            setattr(array, field, value)
        release = Release(self._release)
        array.release = ctypes.cast(release, ctypes.c_void_p).value
        event = None if self.event is None else ctypes.c_void_p(self.event)
        if event is not None:
            array.sync_event = ctypes.pointer(event)
        # The structs' memory and functions stay until the process ends.
        KEPT.append((schema, buffers, array, release, event))
        return (
            _new(ctypes.addressof(schema), b"arrow_schema", None),
            _new(ctypes.addressof(array), b"arrow_device_array", None),
        )

    def _release(self, address: int) -> None:
        self.released += 1
        DeviceArray.from_address(address).release = None


def _release_schema(address: int) -> None:
    Schema.from_address(address).release = None


NOTHING = Release(_release_schema)
KEPT: list[Any] = []
