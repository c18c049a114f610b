"""`asarray` and similar functions: share the memory of any producer in both directions, unchanged."""

from __future__ import annotations

import array as arrays
import ctypes
import gc
import sys
import threading
import weakref

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handwritten
import zarrow
from canary import Canary, layouts
from hand_capsule import READ_ONLY, Producer
from handwritten import NUMBERS, numbers


class OnlyInterface:
    """A library that supports only `__array_interface__`."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class OnlyArray:
    """A library that supports only `__array__`."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype, copy=copy)


class OnlyDLPack:
    """A library that supports only DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return (1, 0)


class Subclass(np.ndarray):
    """A foreign subclass of ndarray."""


PRODUCERS = {
    "numpy": lambda array: array,
    "subclass": lambda array: array.view(Subclass),
    "memoryview": memoryview,
    "dlpack": OnlyDLPack,
    "by hand": Producer,
    "interface": OnlyInterface,
    "array": OnlyArray,
    "zarrow": zarrow.from_numpy,
}
TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
SLICES = st.slices(7).filter(lambda part: part.step is None or abs(part.step) < 4)


@st.composite
def sources(draw):
    """Draw an array of any type, extents, strides and offset, in memory with another owner."""
    shape = draw(st.lists(st.integers(0, 7), max_size=4))
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    whole = np.arange(7 ** len(shape)).astype(dtype).reshape((7,) * len(shape))
    axes = draw(st.permutations(range(len(shape))))
    view = whole.transpose(axes)[(*(draw(SLICES) for _ in shape), ...)]
    view = view[(*(slice(extent) for extent in shape), ...)]
    if draw(st.booleans()):
        view.flags.writeable = False
    return view


@settings(max_examples=300, deadline=None)
@given(sources(), st.sampled_from(sorted(PRODUCERS)), st.booleans())
def test_any_array_of_any_producer(array, producer, is_explicit):
    lender = (
        PRODUCERS[producer](array)
        if producer != "by hand"
        else Producer(array, flags=0 if array.flags.writeable else READ_ONLY)
    )
    tensor = zarrow.asarray(lender, dtype=array.dtype if is_explicit else None, copy=False)
    ours = tensor.numpy()
    assert tensor.shape == array.shape and tensor.dtype == array.dtype
    np.testing.assert_array_equal(ours, array)
    assert tensor.readonly == (not array.flags.writeable) == (not ours.flags.writeable)
    if array.size:
        assert ours.ctypes.data == array.ctypes.data
        stepped = [axis for axis, extent in enumerate(array.shape) if extent > 1]
        assert [tensor.strides[axis] for axis in stepped] == [array.strides[axis] for axis in stepped]
    if array.flags.writeable:
        array[...] = 1
        assert (ours == 1).all()
        ours[...] = 0
        assert not array.any()
    copied = zarrow.asarray(lender, copy=True)
    np.testing.assert_array_equal(copied.numpy(), array)
    assert not copied.readonly and not np.shares_memory(copied.numpy(), array)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("take", [zarrow.asarray, zarrow.from_numpy])
def test_every_number_in_every_layout(name, take):
    for layout in layouts(2).values():
        canary = Canary((4, 6), NUMBERS[name], **layout)
        canary.out[...] = numbers(name)
        tensor = take(canary.out)
        assert tensor.numpy().tobytes() == canary.out.tobytes() and tensor.dtype == NUMBERS[name]
        assert tensor.numpy().ctypes.data == canary.out.ctypes.data
        assert take(canary.out, dtype=name).dtype == take(canary.out, NUMBERS[name]).dtype == NUMBERS[name]
        assert canary.is_intact()


@pytest.mark.parametrize("dtype", ["M8[ns]", "m8[25us]", "M8", "S5", "U3", "V7"])
def test_every_other_type(dtype):
    array = np.zeros((3, 4), dtype)[::-1, ::2]
    for take in (zarrow.asarray, zarrow.from_numpy):
        tensor = take(array, dtype)
        assert tensor.dtype == array.dtype and tensor.strides == array.strides
        assert tensor.numpy().ctypes.data == array.ctypes.data


def test_the_fields_of_a_numpy_array():
    """Arrays of built-in numbers are read by the fields of their C struct."""
    swapped = np.arange(3, dtype=np.dtype(np.int32).newbyteorder())
    with pytest.raises(zarrow.ExchangeError):
        zarrow.asarray(swapped, copy=False)
    with pytest.raises(zarrow.UnsupportedError):
        zarrow.asarray(np.zeros(2, np.longdouble))
    # Writable, but NumPy warns on a write.
    stretched, _ = np.broadcast_arrays(np.zeros(3), np.zeros((2, 3)))
    assert zarrow.asarray(stretched).readonly
    assert zarrow.asarray(np.float64(3)).shape == zarrow.asarray(np.array(3.0)).shape == ()
    assert zarrow.asarray(np.zeros((0, 3), "f4")).shape == (0, 3)


def test_one_address_for_every_producer(tmp_path):
    column = arrays.array("d", [1, 2, 3])
    integers = (ctypes.c_long * 4)(1, 2, 3, 4)
    text = bytearray(b"abc")
    for lender, expected in [(column, [1.0, 2.0, 3.0]), (integers, [1, 2, 3, 4]), (text, [97, 98, 99])]:
        tensor = zarrow.asarray(lender)
        assert tensor.tolist() == expected
        lender[1] = 7
        assert tensor.tolist()[1] == 7
        tensor.numpy()[2] = 5
        assert lender[2] == 5
    with pytest.raises(BufferError):
        text.append(4)  # a view of its memory is exported
    constant = zarrow.asarray(memoryview(b"abc"))
    assert constant.readonly and constant.tolist() == [97, 98, 99]
    file = np.memmap(tmp_path / "file", "f4", "w+", shape=(4,))
    zarrow.asarray(file).numpy()[:] = 3
    file.flush()
    assert np.fromfile(tmp_path / "file", "f4").tolist() == [3] * 4


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "int32"])
def test_jax_stays_read_only(dtype):
    theirs = jnp.arange(6).astype(dtype).reshape(2, 3)
    for take in (zarrow.asarray, zarrow.from_dlpack):
        tensor = take(theirs)
        assert tensor.readonly and tensor.dtype == np.dtype(dtype)
        assert tensor.numpy().ctypes.data == theirs.unsafe_buffer_pointer()
        assert tensor.tolist() == np.asarray(theirs).tolist()


def test_arrays_of_zarrow_are_returned_unchanged(tmp_path):
    ours = [
        handwritten.tensor(tmp_path / "a", np.arange(3.0)),
        handwritten.variable(tmp_path / "b", ["x", "yz"]),
        handwritten.masked_tensor(tmp_path / "c", np.arange(3.0), np.array([True, False, False])),
        handwritten.masked_variable(tmp_path / "d", ["x", None]),
    ]
    for array in ours:
        assert zarrow.asarray(array) is array is zarrow.asarray(array, copy=False)
        copied = zarrow.asarray(array, copy=True)
        assert copied is not array and type(copied) is type(array) and copied.tolist() == array.tolist()
        with pytest.raises(zarrow.DataTypeError):
            zarrow.asarray(array, "i2")
    assert zarrow.asarray(ours[1], "string") is ours[1]


def test_the_requested_type_or_an_error():
    array = np.arange(3, dtype="i4")
    for take in (zarrow.asarray, zarrow.from_numpy, zarrow.from_dlpack):
        for same in ("i4", "int32", np.int32, np.dtype("i4"), "<i4"):
            assert take(array, same).tolist() == take(array, dtype=same).tolist() == [0, 1, 2]
        for other in ("f4", "i8", "u4", "bool", "string", str, bytes, "bfloat16", "M8[s]", "S4"):
            with pytest.raises(zarrow.DataTypeError) as raised:
                take(array, other)
            assert isinstance(raised.value, TypeError) and isinstance(raised.value, ValueError)
            assert raised.value.kind == "data_type" and "int32" in str(raised.value)
        with pytest.raises((TypeError, ValueError)):
            take(array, ">i4")
        with pytest.raises(TypeError):
            take(array, "no such type")
    assert zarrow.asarray(np.zeros(3, ml_dtypes.float8_e5m2), "float8_e5m2").tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c16", ">M8[s]", ">U2"])
def test_the_other_byte_order_is_copied(dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)[:, ::-2]
    tensor = zarrow.asarray(array)
    assert tensor.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.numpy().ctypes.data % 64 == 0
    for refuse in (lambda: zarrow.asarray(array, copy=False), lambda: zarrow.from_numpy(array)):
        with pytest.raises(zarrow.DataTypeError, match="native-endian"):
            refuse()
    assert zarrow.asarray(np.zeros(3, ">i1")).dtype == np.int8


def test_masks_are_shared():
    theirs = np.ma.MaskedArray(np.arange(12.0).reshape(3, 4), np.eye(3, 4, dtype=bool))
    for take in (zarrow.asarray, zarrow.from_numpy):
        masked = take(theirs)
        assert isinstance(masked, zarrow.MaskedTensor) and masked.tolist() == theirs.tolist()
        assert masked.data.numpy().ctypes.data == theirs.data.ctypes.data
        assert masked.mask.numpy().ctypes.data == theirs.mask.ctypes.data and masked.mask.readonly
        assert masked.arrow().storage.flatten().null_count == 3
    theirs[0, 1] = 50
    assert masked.data.tolist()[0][1] == 50
    none = zarrow.asarray(np.ma.arange(3))
    assert none.mask.tolist() == [False] * 3 and none.arrow().null_count == 0
    copied = zarrow.asarray(theirs, copy=True)
    assert copied.tolist() == theirs.tolist()
    assert not np.shares_memory(copied.data.numpy(), theirs.data)
    sliced = theirs[:, ::2]
    assert zarrow.asarray(sliced).tolist() == sliced.tolist()
    with pytest.raises(zarrow.ExchangeError, match="non-contiguous mask"):
        zarrow.from_numpy(sliced)
    # NumPy treats every nonzero byte of a bool as true.
    odd = np.ma.MaskedArray(np.arange(3), np.array([0, 255, 2], "u1").view(bool))
    assert zarrow.asarray(odd).arrow().to_pylist() == [0, None, None]


def test_a_mask_of_another_length_is_refused():
    class Short(np.ma.MaskedArray):
        mask = np.zeros(1, bool)

    with pytest.raises(zarrow.ExchangeError, match="the mask has 1 bytes, but the data has 4 elements"):
        zarrow.asarray(np.arange(4.0).view(Short))


def test_text_and_bytes_are_copied():
    for values in (["a", "bé", ""], [b"a", b"\xff\x00", b""], ["a", None, "c"], [None, b"x"]):
        for source in (values, tuple(values), np.array(values, object)):
            taken = zarrow.asarray(source)
            assert taken.tolist() == values
            assert isinstance(taken, zarrow.MaskedVariable if None in values else zarrow.Variable)
            with pytest.raises(zarrow.ExchangeError, match="cannot be shared"):
                zarrow.asarray(source, copy=False)
    strings = np.array([["a", "bé"], ["", "d"]], np.dtypes.StringDType())
    assert zarrow.asarray(strings, "string").tolist() == strings.tolist()
    missing = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    assert zarrow.asarray(missing).tolist() == ["a", None]
    masked = np.ma.MaskedArray(np.array(["a", "b", None], object), [False, True, False])
    assert zarrow.asarray(masked).tolist() == ["a", None, None]
    assert zarrow.asarray("text").shape == () and zarrow.asarray(b"bytes").dtype == object
    assert zarrow.asarray([], dtype="string").shape == (0,)
    assert zarrow.asarray([], dtype=bytes).tolist() == []
    with pytest.raises(UnicodeEncodeError):
        zarrow.asarray(["\ud800"])
    for mixed in ([b"a", "b"], np.array(["a", 1], object), np.array([1, {}], object)):
        with pytest.raises(TypeError):
            zarrow.asarray(mixed)


def test_numbers_of_python():
    assert zarrow.asarray(3).tolist() == 3 and zarrow.asarray(2.5).dtype == np.float64
    assert zarrow.asarray([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert zarrow.asarray([1, 2], "u1").dtype == np.uint8 and zarrow.asarray([1, 2], "f2").dtype == np.float16
    assert zarrow.asarray([1, 2], "bfloat16").dtype == ml_dtypes.bfloat16
    assert zarrow.asarray([], "i4").dtype == np.int32
    assert (
        zarrow.asarray(np.float32(3)).tolist() == 3 and zarrow.asarray(np.datetime64("2020", "D")).shape == ()
    )
    assert zarrow.asarray([1, 2]).numpy().ctypes.data % 64 == 0
    for lossy, dtype in [([1.5], "i4"), ([1j], "f8"), ([2], "bool")]:
        with pytest.raises(zarrow.DataTypeError):
            zarrow.asarray(lossy, dtype)
    with pytest.raises(OverflowError):
        zarrow.asarray([300], "u1")
    for wrong in (object(), {}, [object()], [[1], [2, 3]], lambda: 1, ...):
        with pytest.raises((TypeError, ValueError)):
            zarrow.asarray(wrong)
        with pytest.raises((TypeError, ValueError)):
            zarrow.asarray(wrong, copy=False)
    for scalar in (3, np.float32(3), [1]):
        with pytest.raises((TypeError, ValueError)):
            zarrow.from_numpy(scalar)
        with pytest.raises(zarrow.ExchangeError):
            zarrow.asarray(scalar, copy=False)


@pytest.mark.parametrize("producer", sorted({*PRODUCERS} - {"by hand", "zarrow"}))
def test_the_producer_lives_as_long_as_its_memory(producer):
    array = np.arange(1000.0)
    watch = weakref.ref(array)
    tensor = zarrow.asarray(PRODUCERS[producer](array))
    del array
    gc.collect()
    assert watch() is not None
    faces = [tensor[5:].numpy(), memoryview(tensor), np.from_dlpack(tensor[:4]), tensor.T]
    del tensor
    gc.collect()
    assert faces[0][0] == 5 and faces[1][999] == 999
    while faces:
        assert watch() is not None
        faces.pop()
        gc.collect()
    assert watch() is None


def test_nothing_leaks():
    array = np.arange(10.0)
    takes = [zarrow.asarray, zarrow.from_numpy, zarrow.from_dlpack]
    before = sys.getrefcount(array)
    for _ in range(100):
        for take in takes:
            take(array)
            with pytest.raises(zarrow.DataTypeError):
                take(array, "i4")
    assert sys.getrefcount(array) == before


def test_many_threads_import_and_release():
    source = np.arange(1000)
    producer = Producer(source)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(300):
                for lender in (source, producer, OnlyInterface(source), memoryview(source)):
                    assert zarrow.asarray(lender)[999].item() == 999
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and producer.deleted == 8 * 300


def test_a_deleter_in_python_leaves_the_exception_that_is_under_way():
    """The arguments of a failed call are freed while its exception is set."""
    producer = Producer(np.arange(5.0))
    for take in (zarrow.asarray, zarrow.from_dlpack, lambda lent: zarrow.asarray(lent)[1:]):
        with pytest.raises(TypeError, match="at most 2 arguments"):
            int(take(producer), "3", 4)
        with pytest.raises(KeyError, match="under way"):
            (take(producer), {}["under way"])
    capsules = [producer.capsule(), producer.capsule()]
    with pytest.raises(KeyError, match="under way"):
        (zarrow.from_dlpack(capsules.pop()).__dlpack__(), {}["under way"])
    with pytest.raises(KeyError, match="under way"):
        (zarrow.from_dlpack(capsules.pop()).__arrow_c_array__(), {}["under way"])
    assert producer.deleted == 8


def test_a_tensor_may_be_released_by_any_thread():
    array = np.arange(3)
    watch = weakref.ref(array)
    held = [zarrow.from_numpy(array)]
    del array
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert watch() is None


def test_pyarrow_is_taken():
    assert zarrow.asarray(pa.array([1, 2, 3])).tolist() == [1, 2, 3]
    assert zarrow.asarray(pa.py_buffer(b"abc")).tolist() == [97, 98, 99]


class Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_float))


def test_structures_of_a_buffer_are_shared():
    points = (Point * 3)((1, 2.5), (3, 4.5), (5, 6.5))
    for copy in (None, False):
        tensor = zarrow.asarray(points, copy=copy)
        assert tensor.dtype.names == ("x", "y") and tensor.numpy()["y"].tolist() == [2.5, 4.5, 6.5]
        points[0].x = 9
        assert tensor.numpy()["x"][0] == 9 and tensor.numpy().ctypes.data == ctypes.addressof(points)
    records = np.array([(1, 2.0)], "i2,>f8")
    assert zarrow.asarray(memoryview(records)).numpy()["f1"].tolist() == [2.0]
    assert zarrow.asarray(records).tolist() == records.tolist()
    with pytest.raises(zarrow.DataTypeError, match="native-endian"):
        zarrow.from_numpy(records)
    inner = np.zeros(4, [("a", "u1"), ("b", [("c", "f4", (2,))])])
    shared = zarrow.from_numpy(inner[::2])
    assert shared.dtype == inner.dtype and shared.numpy().ctypes.data == inner.ctypes.data
