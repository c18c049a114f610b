"""The buffers of zarr-python alone."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.buffer import cpu
from zarr.errors import ZarrUserWarning

import zarrow
from zarrow.gpu import Buffer, NDBuffer, Tensor

from .conftest import Border
from .libraries import LIBRARIES, OfCupy, OfJax, OfNobody, OfTorch
from .test_exchange import Described

BYTES = np.arange(10, dtype="u1")


def on_device(array: Any = BYTES) -> Tensor:
    return zarrow.gpu.asarray(array)


def test_classes() -> None:
    assert issubclass(Buffer, zarr.abc.buffer.Buffer) and issubclass(NDBuffer, zarr.abc.buffer.NDBuffer)
    assert zarrow.gpu.buffer_prototype == (Buffer, NDBuffer)
    assert isinstance(on_device(), zarr.core.buffer.NDArrayLike)
    assert {"Buffer", "NDBuffer", "buffer_prototype"} <= set(zarrow.gpu.__all__)


@pytest.mark.parametrize("library", [*LIBRARIES, Described, lambda tensor: tensor])
def test_memory_of_the_device_is_shared_without_a_warning(library: Any, border: Border) -> None:
    """Warnings are errors here."""
    tensor = on_device()
    given = library(tensor)
    sent = border.to_device
    for buffer in (Buffer(given), Buffer.from_array_like(given), Buffer.from_buffer(Buffer(given))):
        array = buffer.as_array_like()
        assert array is given if isinstance(given, OfCupy | Tensor) else isinstance(array, Tensor)
        assert len(buffer) == 10 and buffer.to_bytes() == BYTES.tobytes()
    for elements in (NDBuffer(given), NDBuffer.from_ndarray_like(given)):
        array = elements.as_ndarray_like()
        assert array is given if isinstance(given, OfCupy | Tensor) else isinstance(array, Tensor)
        assert (elements.shape, elements.dtype, len(elements)) == ((10,), np.dtype("u1"), 10)
    tensor[:2] = 7
    assert buffer.to_bytes()[:3] == elements.as_numpy_array()[:3].tobytes() == b"\7\7\2"
    assert border.to_device == sent


@pytest.mark.parametrize("library", [OfTorch, OfCupy, OfNobody, Described])
def test_memory_of_the_device_is_written(library: Any) -> None:
    tensor = on_device()
    buffer, elements = Buffer(library(tensor)), NDBuffer(library(tensor))
    buffer[0:2] = b"ab"
    elements[2:4] = 9
    assert bytes(tensor[:5].cpu()) == b"ab\x09\x09\4"


def test_arrays_of_jax_never_change() -> None:
    buffer, elements = Buffer(OfJax(on_device())), NDBuffer(OfJax(on_device()))
    with pytest.raises(ValueError, match="read-only"):
        buffer[0:2] = b"ab"
    with pytest.raises(ValueError, match="read-only"):
        elements.fill(1)


def test_parts_of_an_array_of_cupy_are_of_cupy() -> None:
    buffer = Buffer(OfCupy(on_device()))
    assert buffer[2:4].to_bytes() == b"\2\3" and type(buffer[2:4].as_array_like()) is OfCupy


def test_the_prototype_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(zarrow.gpu.buffer_prototype)) == (Buffer, NDBuffer)


def test_memory_of_the_host_is_copied_with_a_warning(border: Border) -> None:
    with pytest.warns(ZarrUserWarning, match="does not support the __cuda_array_interface__") as caught:
        buffer = Buffer(BYTES)
        elements = NDBuffer(BYTES)
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert (border.to_device, border.pageable) == (2 * BYTES.nbytes, 0)
    assert buffer.to_bytes() == BYTES.tobytes() and elements.as_numpy_array().tobytes() == BYTES.tobytes()


def test_bytes_go_to_the_device_when_they_are_needed(border: Border) -> None:
    buffer = Buffer.from_bytes(BYTES.tobytes())
    part = buffer[2:5]
    assert bytes(memoryview(buffer.as_array_like())) == BYTES.tobytes()
    assert (part.to_bytes(), len(part), len(buffer)) == (b"\2\3\4", 3, 10)
    assert (buffer + part).to_bytes() == BYTES.tobytes() + b"\2\3\4"
    assert border.to_device == 0
    assert part.as_array_like().astype("i4").cpu().tolist() == [2, 3, 4]
    assert border.to_device == 3
    with pytest.raises(TypeError, match=r"\.cpu\(\)"):
        memoryview(part.as_array_like())


def test_bytes_that_may_change_are_copied() -> None:
    content = bytearray(b"abc")
    buffer = Buffer.from_bytes(content)
    content[0] = 0
    assert buffer.to_bytes() == b"abc"


def test_each_call_copies_the_expected_bytes(border: Border) -> None:
    mine = Buffer(on_device())
    sent = border.to_device
    assert mine.as_array_like() is mine.as_array_like() and border.to_host == 0
    assert bytes(mine.as_buffer_like()) == mine.as_numpy_array().tobytes() == BYTES.tobytes()
    assert border.to_host == 2 * BYTES.nbytes
    staged = Buffer.from_bytes(BYTES.tobytes())
    copied = staged.to_bytes()
    staged[0:1] = b"x"
    assert copied == BYTES.tobytes() and staged.to_bytes() == b"x" + BYTES.tobytes()[1:]
    assert border.to_device == sent + BYTES.nbytes + 1


def test_defaults_and_arguments() -> None:
    """Like zarr-python: keywords for `create`, order C, no value, equal NaN, the order of memory."""
    made = NDBuffer.create(shape=(2, 3), dtype="f4")
    assert made.as_ndarray_like().flags.c_contiguous and not made.as_numpy_array().any()
    fortran = NDBuffer.create(shape=[2, 3], dtype=np.dtype("i2"), order="F", fill_value=3)
    assert fortran.as_ndarray_like().flags.f_contiguous and fortran.all_equal(3)
    assert NDBuffer.empty((2, 3), "f4").as_ndarray_like().flags.c_contiguous
    assert fortran.astype("f8").as_ndarray_like().flags.f_contiguous
    assert fortran.astype("f8", order="C").as_ndarray_like().flags.c_contiguous
    with pytest.raises(TypeError):
        NDBuffer.create((2, 3), "f4")  # type: ignore[misc]
    for cls, base in ((Buffer, cpu.Buffer), (NDBuffer, cpu.NDBuffer)):
        for name, theirs in inspect.getmembers(base, callable):
            if name.startswith("_") and name not in ("__init__", "__getitem__", "__setitem__"):
                continue
            ours = inspect.signature(getattr(cls, name))
            given = [
                (item.name, item.kind, item.default) for item in inspect.signature(theirs).parameters.values()
            ]
            # Arguments that zarr-python omits are optional.
            assert [item[:2] for item in given] == [
                (item.name, item.kind) for item in ours.parameters.values()
            ]
            assert all(
                ours.parameters[item].default == default
                for item, _, default in given
                if default is not inspect.Parameter.empty
            )


def test_elements_are_worked_on_by_kernels(border: Border) -> None:
    """Casts, fills, comparisons and strided copies launch kernels, and only one flag comes back."""
    elements = NDBuffer(on_device(np.arange(24, dtype="i4").reshape(4, 6)))
    for work in (
        lambda: elements.astype("f8"),
        lambda: elements.fill(3),
        lambda: elements.all_equal(3),
        lambda: elements.transpose(None).copy(),
        lambda: elements.__setitem__(np.s_[:, ::2], elements[:, 1::2]),
    ):
        before, back = border.launches, border.to_host
        work()
        assert border.launches > before and border.to_host - back <= 4


@pytest.mark.parametrize("wrong", [BYTES.reshape(2, 5), BYTES.astype("i1"), np.zeros((), "u1")])
def test_only_lines_of_bytes_become_buffers(wrong: Any) -> None:
    for array in (wrong, on_device(wrong), OfTorch(on_device(wrong)), OfNobody(on_device(wrong))):
        with pytest.raises(ValueError, match="a Buffer is made of"):
            Buffer(array)


def test_slices() -> None:
    for buffer in (Buffer(on_device()), Buffer.from_bytes(BYTES.tobytes())):
        for key in (0, [1], ...):
            with pytest.raises(TypeError, match="slices"):
                buffer[key]
            with pytest.raises(TypeError, match="slices"):
                buffer[key] = b"a"
        with pytest.raises(ValueError, match="step 1"):
            buffer[::2]
        assert buffer[2:4:1].to_bytes() == b"\2\3" and buffer[-3:].to_bytes() == b"\7\x08\x09"
        buffer[1:3] = Buffer.from_bytes(b"xy")
        buffer[3:5] = cpu.Buffer.from_bytes(b"zw")
        buffer[5:6] = np.frombuffer(b"v", "u1")
        assert buffer.to_bytes() == b"\0xyzwv\6\7\x08\x09"


def test_combine() -> None:
    mine, theirs = Buffer(on_device()), cpu.Buffer.from_bytes(b"cpu")
    for first, others, expected in (
        (mine, [theirs, mine[:2]], BYTES.tobytes() + b"cpu\0\1"),
        (Buffer.from_bytes(b"ab"), [theirs], b"abcpu"),
        (Buffer.create_zero_length(), [mine], BYTES.tobytes()),
        (mine, [], BYTES.tobytes()),
    ):
        joined = first.combine(others)
        assert isinstance(joined, Buffer) and joined.to_bytes() == expected
    assert (mine + theirs).to_bytes() == BYTES.tobytes() + b"cpu"


def test_equality(border: Border) -> None:
    mine = Buffer(on_device())
    for other in (
        Buffer(on_device()),
        Buffer.from_bytes(BYTES.tobytes()),
        cpu.Buffer.from_bytes(BYTES.tobytes()),
    ):
        assert mine == other and other != Buffer.from_bytes(b"0123456789") and mine[1:] != other
    assert mine != BYTES.tobytes() and mine != BYTES.tolist()
    # Each comparison on the device returns one flag, and no elements.
    assert border.to_host < 100


def test_from_other_buffers(border: Border) -> None:
    assert Buffer.from_buffer(cpu.Buffer.from_bytes(b"abc")).to_bytes() == b"abc"
    assert border.to_device == 0
    mine = Buffer(on_device())
    shared = Buffer.from_buffer(mine)
    shared[0:1] = b"\7"
    assert mine.to_bytes()[0] == 7
    assert Buffer.create_zero_length().to_bytes() == b"" and len(Buffer.create_zero_length()) == 0
    assert bytes(mine.as_buffer_like()) == mine.to_bytes()


def test_arrays_are_made() -> None:
    made = NDBuffer.create(shape=(2, 3), dtype="f4", fill_value=2)
    assert (made.as_numpy_array() == 2).all() and made.shape == (2, 3) and made.dtype == np.float32
    assert not NDBuffer.create(shape=[2], dtype="i8").as_numpy_array().any()
    fortran = NDBuffer.empty((2, 3), "i2", order="F")
    assert fortran.as_ndarray_like().flags.f_contiguous
    with pytest.raises(TypeError, match="objects"):
        NDBuffer.create(shape=(1,), dtype=object)
    with pytest.raises(TypeError, match="objects"):
        NDBuffer(np.array([object()]))
    with pytest.raises(TypeError, match="objects"):
        NDBuffer.from_ndarray_like(np.array([object()]))


def test_arrays_behave_like_numpys() -> None:
    array = np.arange(24, dtype="f4").reshape(2, 3, 4, 1)
    for buffer in (
        NDBuffer(on_device(array)),
        NDBuffer.from_ndarray_like(array.copy()),
        NDBuffer.from_numpy_array(array),
    ):
        pairs = [
            (buffer, array),
            (buffer.reshape((6, 4)), array.reshape(6, 4)),
            (buffer.reshape(-1), array.reshape(-1)),
            (buffer.squeeze((3,)), array.squeeze(3)),
            (buffer.transpose(None), array.transpose()),
            (buffer.transpose((1, 0, 2, 3)), array.transpose(1, 0, 2, 3)),
            (buffer.astype("i8"), array.astype("i8")),
            (buffer.astype(">f4"), array.astype(">f4")),
            (buffer.astype(">f4").reshape((6, 4))[1:], array.astype(">f4").reshape(6, 4)[1:]),
            (buffer.astype(">c8").astype("<c8"), array.astype("c8")),
            (buffer.copy(), array),
            (buffer[1, ::-1], array[1, ::-1]),
            (buffer[:, [2, 0]], array[:, [2, 0]]),
        ]
        for ours, expected in pairs:
            assert (
                isinstance(ours, NDBuffer) and ours.dtype == expected.dtype and ours.shape == expected.shape
            )
            assert np.array_equal(ours.as_numpy_array(), expected)
        assert len(buffer) == 2 and buffer.byteorder == "little" and buffer.astype(">i2").byteorder == "big"
        assert repr(buffer).startswith("<zarrow.gpu.NDBuffer shape=(2, 3, 4, 1) dtype=float32")
        assert buffer[0, 0, 1].as_scalar() == 1.0
        with pytest.raises(ValueError, match="not a single value"):
            buffer.as_scalar()


def test_values_are_written() -> None:
    expected = np.zeros((4, 3), "f4")
    buffer = NDBuffer.from_numpy_array(expected)
    rows = np.arange(3, dtype="f4")
    for index, value, plain in (
        (0, NDBuffer(on_device(rows)), rows),
        (np.s_[1, ::-1], cpu.NDBuffer.from_numpy_array(rows), rows),
        (np.s_[2:, 1], 5, 5),
        (np.s_[[3], :2], rows[:2], rows[:2]),
        (np.s_[..., 2], NDBuffer(on_device(rows[:1])).astype(">f4"), rows[:1]),
    ):
        buffer[index] = value
        expected[index] = plain
        assert np.array_equal(buffer.as_numpy_array(), expected)
    buffer.fill(9)
    assert buffer.all_equal(9)


def test_all_equal() -> None:
    for make in (lambda array: NDBuffer(on_device(array)), NDBuffer.from_ndarray_like):
        ones, nan = make(np.ones((2, 3), "f4")), make(np.full(3, np.nan))
        assert (
            not ones.all_equal(None)
            and ones.all_equal(1)
            and ones.all_equal(np.ones(3))
            and not ones.all_equal(2)
        )
        assert not ones.all_equal(1.5) and not ones.all_equal(np.ones(4)) and ones.all_equal(ones)
        assert nan.all_equal(np.nan) and not nan.all_equal(np.nan, equal_nan=False) and not nan.all_equal(0)
        assert not make(np.full(3, -0.0)).all_equal(0.0) and make(np.full(3, -0.0)).all_equal(-0.0)
        assert make(np.zeros(3)).all_equal(0.0) and make(np.zeros(3, "M8[s]")).all_equal(
            np.datetime64(0, "s")
        )
        assert make(np.zeros(3, "i4")).all_equal(0) and not make(np.zeros(3, "i4")).all_equal(0.5)
        assert ones.all_equal(cpu.NDBuffer.from_numpy_array(np.ones((2, 3), "f4")))


def test_elements_of_the_other_byte_order_are_written_and_shown() -> None:
    buffer = NDBuffer.from_numpy_array(np.arange(6, dtype="u2")).astype(">u2")
    buffer[1:3] = np.array([300, 400], "u2")
    buffer[3:4] = 7
    buffer[4:6] = NDBuffer.from_numpy_array(np.array([8, 9], "u2")).astype(">u2")
    expected = np.array([0, 300, 400, 7, 8, 9], ">u2")
    assert buffer.as_numpy_array().dtype == ">u2" and np.array_equal(buffer.as_numpy_array(), expected)
    shown = buffer.as_ndarray_like()
    assert shown.dtype == "V2" and bytes(shown.ravel().view("B").cpu()) == expected.tobytes()
    assert buffer.all_equal(buffer.copy()) and not buffer.all_equal(7)
    buffer.fill(258)
    assert buffer.all_equal(258) and buffer.as_numpy_array().tobytes() == bytes([1, 2]) * 6
