"""The DLPack C exchange API of `Tensor`, called as by a C library, and by tvm-ffi.

ctypes calls the functions of the table with the GIL held, and their structs are laid out as in
the DLPack header.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

import handwritten
import zarrow
from handwritten import NUMBERS, numbers

READ_ONLY = 1
CPU = (1, 0)


class DLTensor(ctypes.Structure):
    _fields_: ClassVar = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("version", ctypes.c_uint32 * 2),
    ("context", ctypes.c_void_p),
    ("deleter", Deleter),
    ("flags", ctypes.c_uint64),
    ("tensor", DLTensor),
]
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Table(ctypes.Structure):
    _fields_: ClassVar = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int,
                ctypes.POINTER(DLTensor),
                ctypes.POINTER(ctypes.POINTER(Managed)),
                ctypes.c_void_p,
                SetError,
            ),
        ),
        (
            "lend",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed))),
        ),
        (
            "take",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object)),
        ),
        ("describe", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
        (
            "stream",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)),
        ),
    ]


def table_of(class_: type) -> Table:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = class_.__dlpack_c_exchange_api__
    return Table.from_address(pointer(capsule, b"dlpack_exchange_api"))


TABLE = table_of(zarrow.Tensor)


def describe(tensor: Any) -> DLTensor:
    described = DLTensor()
    assert TABLE.describe(tensor, described) == 0
    return described


def lend(tensor: Any) -> Any:
    lent = ctypes.POINTER(Managed)()
    assert TABLE.lend(tensor, lent) == 0
    return lent


def take(lent: Any) -> Any:
    taken = ctypes.py_object()
    assert TABLE.take(lent, taken) == 0
    value = taken.value
    # The function returned a reference, and so did reading it.
    ctypes.pythonapi.Py_DecRef(taken)
    return value


def axes(tensor: DLTensor) -> tuple[list[int], list[int]]:
    return tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]


class Lent:
    """A managed tensor over a NumPy array, which counts the calls of its deleter."""

    def __init__(self, array: np.ndarray, code: int = 2, flags: int = 0, major: int = 1) -> None:
        self.deleted = 0
        self.axes = (ctypes.c_int64 * (2 * array.ndim))(
            *array.shape, *(stride // array.itemsize for stride in array.strides)
        )
        self.array, self.deleter = array, Deleter(self.delete)
        first = ctypes.cast(self.axes, ctypes.POINTER(ctypes.c_int64))
        second = ctypes.cast(ctypes.addressof(self.axes) + 8 * array.ndim, ctypes.POINTER(ctypes.c_int64))
        tensor = DLTensor(array.ctypes.data, CPU, array.ndim, code, 8 * array.itemsize, 1, first, second, 0)
        self.managed = Managed((major, 3), None, self.deleter, flags, tensor)

    def delete(self, managed: Any) -> None:
        self.deleted += 1


@pytest.fixture
def tensor(tmp_path):
    return handwritten.tensor(tmp_path, np.arange(24, dtype=np.float32).reshape(4, 6))


def test_the_table_is_the_types_own(tensor):
    assert list(TABLE.version) == [1, 3] and TABLE.previous is None
    for name in ("allocate", "lend", "take", "describe", "stream"):
        assert ctypes.cast(getattr(TABLE, name), ctypes.c_void_p).value
    assert tensor.__dlpack_c_exchange_api__ is zarrow.Tensor.__dlpack_c_exchange_api__
    for other in (zarrow.Variable, zarrow.MaskedTensor, zarrow.DecodedArray):
        assert not hasattr(other, "__dlpack_c_exchange_api__")
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Other", (zarrow.Tensor,), {})


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_is_described(tmp_path, name):
    tensor = handwritten.tensor(tmp_path, numbers(name))
    described = describe(tensor)
    assert described.data == tensor.numpy().ctypes.data and tuple(described.device) == CPU
    assert (described.bits, described.lanes) == (8 * tensor.itemsize, 1) and described.byte_offset == 0
    assert axes(described) == (list(tensor.shape), [step // tensor.itemsize for step in tensor.strides])


def test_a_description_points_into_the_object(tensor):
    first, second = describe(tensor), describe(tensor)
    for field in ("shape", "strides"):
        address = [ctypes.cast(getattr(each, field), ctypes.c_void_p).value for each in (first, second)]
        assert address[0] == address[1]
    view = tensor[::-2, 1:4].T
    assert axes(describe(view)) == ([3, 2], [1, -12])
    assert describe(view).data == view.numpy().ctypes.data
    # The caller must keep the described memory alive.
    empty, scalar = tensor[2:2], tensor[1, 1]
    assert describe(empty).data is None and axes(describe(empty))[0] == [0, 6]
    assert describe(scalar).ndim == 0 and not describe(scalar).shape and not describe(scalar).strides


def test_other_objects_are_refused(tmp_path, tensor):
    times = zarrow.from_numpy(np.zeros(3, "M8[s]"))
    offsets = handwritten.variable(tmp_path / "text", ["a", "b"]).offsets
    for refused, error in ((np.zeros(3), TypeError), (None, TypeError), (times, BufferError)):
        with pytest.raises(error):
            TABLE.describe(refused, DLTensor())
        with pytest.raises(error):
            TABLE.lend(refused, ctypes.POINTER(Managed)())
    with pytest.raises(BufferError, match="read-only"):
        TABLE.describe(offsets, DLTensor())
    lent = lend(offsets)
    assert lent.contents.flags == READ_ONLY
    lent.contents.deleter(lent)
    many = tensor[(None,) * 70]
    for call in (lambda: TABLE.describe(many, DLTensor()), many.__dlpack__):
        with pytest.raises(ValueError, match="64 axes"):
            call()


def test_exported_memory_outlives_the_object(tensor):
    address = tensor.numpy().ctypes.data
    lent = lend(tensor)
    assert list(lent.contents.version) == [1, 3] and lent.contents.flags == 0
    del tensor
    gc.collect()
    again = take(lent)
    assert type(again) is zarrow.Tensor and again.numpy().ctypes.data == address
    assert again.tolist() == np.arange(24.0).reshape(4, 6).tolist() and not again.readonly


def test_imported_tensors_are_released_once():
    lent = Lent(np.arange(6.0).reshape(2, 3)[:, ::-1])
    taken = take(lent.managed)
    assert taken.tolist() == lent.array.tolist() and taken.strides == (24, -8) and lent.deleted == 0
    taken.numpy()[0, 0] = 7
    assert lent.array[0, 0] == 7
    view = taken[1]
    del taken
    gc.collect()
    assert lent.deleted == 0
    del view
    gc.collect()
    assert lent.deleted == 1
    assert take(Lent(np.zeros(3), flags=READ_ONLY).managed).readonly


@pytest.mark.parametrize("wrong", [{"code": 3}, {"major": 2}, {"code": 99}])
def test_refused_tensors_are_released_too(wrong):
    lent = Lent(np.zeros(3), **wrong)
    with pytest.raises((BufferError, ValueError, TypeError)):
        TABLE.take(lent.managed, ctypes.py_object())
    assert lent.deleted == 1


def test_new_tensors():
    errors: list[tuple[bytes, bytes]] = []
    set_error = SetError(lambda context, kind, message: errors.append((kind, message)))
    shape = (ctypes.c_int64 * 2)(3, 5)
    prototype = DLTensor(None, CPU, 2, 2, 32, 1, shape, None, 0)
    made = ctypes.POINTER(Managed)()
    assert TABLE.allocate(prototype, made, None, set_error) == 0
    assert axes(made.contents.tensor) == ([3, 5], [5, 1]) and made.contents.tensor.data % 64 == 0
    tensor = take(made)
    assert tensor.shape == (3, 5) and tensor.dtype == np.float32 and not tensor.readonly
    tensor.numpy()[:] = 1

    shape[0] = 1 << 50
    for change in ({"lanes": 4}, {"device": (2, 0)}, {"ndim": -1}, {"shape": None}, {}):
        bad = DLTensor(None, CPU, 2, 2, 32, 1, shape, None, 0)
        for field, value in change.items():
            setattr(bad, field, value)
        assert TABLE.allocate(bad, made, None, set_error) == -1
    assert TABLE.allocate(None, made, None, set_error) == -1
    kinds = [kind for kind, _ in errors]
    assert kinds == [b"BufferError"] * 4 + [b"MemoryError", b"ValueError"] and all(text for _, text in errors)


def test_there_is_no_stream():
    stream = ctypes.c_void_p(7)
    assert TABLE.stream(*CPU, stream) == 0 and stream.value is None


def test_tvm_ffi_goes_through_the_table(tensor):
    echo = tvm_ffi.get_global_func("testing.echo")
    back = echo(tensor)
    assert type(back) is zarrow.Tensor and back is not tensor
    assert back.numpy().ctypes.data == tensor.numpy().ctypes.data
    theirs = tvm_ffi.from_dlpack(tensor)
    assert tuple(theirs.shape) == tensor.shape
    np.from_dlpack(theirs)[0, 0] = 9
    assert tensor[0, 0].item() == 9


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_tvm_ffi_sees_the_small_floats(name):
    tensor = zarrow.from_numpy(np.zeros(3, getattr(ml_dtypes, name)))
    assert str(tvm_ffi.from_dlpack(tensor).dtype) == name
