"""Producers with false descriptions: typed errors, one call of the deleter, no read out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

import zarrow
from hand_capsule import CUDA, PINNED, Producer

MAX = 2**63 - 1

LIES = {
    "negative extent": {"shape": [-1]},
    "negative extents": {"shape": [-2, -3], "ndim": 2, "strides": [1, 1]},
    "more elements than memory": {"shape": [MAX]},
    "an overflowing product": {"shape": [2**40, 2**40], "ndim": 2, "strides": None},
    "an overflowing stride": {"strides": [MAX]},
    "a stride to minus infinity": {"strides": [-MAX - 1]},
    "an overflowing sum": {"shape": [2, 2], "ndim": 2, "strides": [MAX, MAX]},
    "NULL with elements": {"data": None},
    "negative axes": {"ndim": -1},
    "too many axes": {"ndim": 65, "shape": [1] * 65, "strides": [1] * 65},
    "a million axes": {"ndim": 10**6},
    "no shape": {"shape": None},
    "an offset beyond memory": {"byte_offset": 2**64 - 1},
    "an address beyond memory": {"data": 2**64 - 8},
    "not aligned": {"byte_offset": 1},
    "an unknown code": {"code": 200},
    "a handle": {"code": 3, "bits": 64},
    "bits that no type has": {"bits": 24},
    "no bits": {"bits": 0},
    "lanes": {"lanes": 4},
    "no lanes": {"lanes": 0},
    "packed int4": {"code": 0, "bits": 4},
    "a GPU": {"device_type": CUDA},
    "an unknown device": {"device_type": 999},
    "another major version": {"major": 2, "minor": 0},
    "an ancient version": {"major": 0, "minor": 8},
}


@pytest.mark.parametrize("lies", LIES.values(), ids=LIES)
@pytest.mark.parametrize("legacy", [False, True])
def test_lying_capsules(lies, legacy):
    if legacy and "major" in lies:
        lies = {"ndim": -7}
    for take in (zarrow.from_dlpack, zarrow.asarray):
        producer = Producer(np.arange(4.0), legacy=legacy, **lies)
        with pytest.raises((zarrow.ExchangeError, zarrow.ShapeError)) as raised:
            take(producer)
        assert isinstance(raised.value, (BufferError, ValueError)) and producer.deleted == 1


def test_a_device_is_named():
    with pytest.raises(zarrow.ExchangeError, match="kDLCUDA") as raised:
        zarrow.from_dlpack(Producer(np.arange(4.0), device_type=CUDA))
    assert raised.value.kind == "device"
    assert zarrow.from_dlpack(Producer(np.arange(4.0), device_type=PINNED)).tolist() == [0, 1, 2, 3]


def test_invalid_capsules():
    class Wrong:
        def __init__(self, answer):
            self.answer = answer

        def __dlpack__(self, **arguments):
            if isinstance(self.answer, BaseException):
                raise self.answer
            return self.answer

    for answer in (None, 5, zarrow, Producer(np.arange(3)).array):
        with pytest.raises((TypeError, BufferError)):
            zarrow.from_dlpack(Wrong(answer))
    for error in (RuntimeError, BufferError, TypeError, KeyboardInterrupt):
        with pytest.raises(error):
            zarrow.from_dlpack(Wrong(error("no")))
    used = Producer(np.arange(3)).capsule()
    zarrow.from_dlpack(used)
    with pytest.raises(zarrow.ExchangeError, match="unconsumed capsule"):
        zarrow.from_dlpack(used)


class Interface:
    """An array with a correct or wrong description of its memory."""

    def __init__(self, **lies):
        self.memory = np.arange(24, dtype="f4").reshape(4, 6)
        self.__array_interface__ = {**self.memory.__array_interface__, **lies}


@pytest.mark.parametrize(
    "lies",
    [
        {"strides": (24,)},
        {"strides": (24, 4, 4)},
        {"strides": (2**62, 4)},
        {"strides": (-(2**63), 2**62)},
        {"strides": (24, 2)},
        {"strides": "x"},
        {"shape": (-4, 6)},
        {"shape": (2**62, 6)},
        {"shape": (2**62, 0, 2**62)},
        {"shape": None},
        {"shape": 4},
        {"data": None},
        {"data": (0, False)},
        {"data": (2**64 - 4, False)},
        {"data": (-1, False)},
        {"data": (1,)},
        {"data": "text"},
        {"typestr": None},
        {"typestr": ""},
        {"typestr": "<f3"},
        {"typestr": "|O8"},
        {"typestr": 5},
        {"mask": np.zeros((4, 6), bool)},
    ],
    ids=str,
)
def test_lying_interfaces(lies):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        zarrow.from_numpy(Interface(**lies))


def test_honest_interfaces():
    whole = Interface()
    tensor = zarrow.from_numpy(whole)
    assert tensor.numpy().ctypes.data == whole.memory.ctypes.data and not tensor.readonly
    assert zarrow.asarray(whole).tolist() == whole.memory.tolist()
    address = whole.memory.ctypes.data
    constant = zarrow.from_numpy(Interface(data=(address, True), strides=None))
    assert constant.readonly and constant.tolist() == whole.memory.tolist()
    empty = zarrow.from_numpy(Interface(data=(0, False), shape=(3, 0), strides=None))
    assert empty.shape == (3, 0) and empty.tolist() == [[], [], []]
    # A stride along an axis of extent 0 or 1 has no effect.
    assert zarrow.from_numpy(Interface(shape=(1, 6), strides=(7, 4))).shape == (1, 6)


def test_an_interface_names_its_fields():
    memory = np.array([(1.5, 2), (3.5, 4)], [("a", "<f4"), ("b", "<i4")])

    class Structures:
        __array_interface__ = memory.__array_interface__

    for take in (zarrow.asarray, zarrow.from_numpy):
        assert take(Structures()).tolist() == [(1.5, 2), (3.5, 4)]
        assert take(Structures()).numpy().ctypes.data == memory.ctypes.data
    # Fields of another total size than the element's are invalid.
    Structures.__array_interface__ |= {"descr": [("a", "<f8"), ("b", "<i8")]}
    assert zarrow.from_numpy(Structures()).dtype == np.dtype("V8")
    Structures.__array_interface__ |= {"descr": [("", "|V8")]}
    assert zarrow.from_numpy(Structures()).dtype == np.dtype("V8")


def test_a_buffer_in_place_of_an_address():
    memory = bytearray(np.arange(6, dtype="i4").tobytes())
    lender = Interface(data=memory, shape=(6,), strides=None, typestr="<i4")
    tensor = zarrow.asarray(lender)
    memory[0] = 9
    assert tensor.tolist() == [9, 1, 2, 3, 4, 5]
