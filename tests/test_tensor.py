"""The class Tensor: all exports share one address, views copy nothing, and the rest is refused."""

from __future__ import annotations

import ctypes
import io
import itertools
from typing import Any

import jax
import ml_dtypes
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import handwritten
import zarrow
from handwritten import NUMBERS, numbers

WITHOUT_BUFFER = [name for name in NUMBERS if name == "bfloat16" or name.startswith("float8")]
CPU, VERSION = (1, 0), (1, 0)


@pytest.fixture
def tensor(tmp_path):
    return handwritten.tensor(tmp_path / "tensor", np.arange(24, dtype=np.float32).reshape(4, 6))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    return handwritten.tensor(tmp_path_factory.mktemp("wide"), np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5))


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def test_properties(tensor):
    assert isinstance(tensor, zarrow.Tensor) and isinstance(tensor, zarrow.DecodedArray)
    assert not isinstance(tensor, zarrow.Variable | zarrow.MaskedTensor | zarrow.MaskedVariable)
    assert (tensor.shape, tensor.strides, tensor.ndim, tensor.size) == ((4, 6), (24, 4), 2, 24)
    assert (tensor.nbytes, tensor.itemsize, tensor.dtype, tensor.device) == (96, 4, np.float32, "cpu")
    assert len(tensor) == 4 and not tensor.readonly
    assert "(4, 6) float32" in repr(tensor) and "23." in repr(tensor)
    assert "<td" in tensor._repr_html_() and "float32" in tensor._repr_html_()


@pytest.mark.parametrize("name", NUMBERS)
def test_numpy_shares_every_type(tmp_path, name):
    values = numbers(name)
    tensor = handwritten.tensor(tmp_path, values)
    array = tensor.numpy()
    assert array.dtype == tensor.dtype == NUMBERS[name]
    np.testing.assert_array_equal(array.astype(np.complex128), values.astype(np.complex128))
    assert array.ctypes.data == tensor.numpy().ctypes.data == np.asarray(tensor).ctypes.data
    array[0, 0] = values[0, 1]
    assert tensor.numpy()[0, 0] == values[0, 1]
    assert tensor.tolist() == array.tolist()


@pytest.mark.parametrize("name", [name for name in NUMBERS if name not in WITHOUT_BUFFER])
def test_faces_of_numpy_have_one_address(tmp_path, name):
    tensor = handwritten.tensor(tmp_path, numbers(name))
    view = memoryview(tensor)
    assert np.dtype(NUMBERS[name]) == np.asarray(view).dtype
    assert (view.shape, view.strides, view.readonly) == (tensor.shape, tensor.strides, False)
    assert np.asarray(view).ctypes.data == address(tensor) == np.from_dlpack(tensor).ctypes.data
    assert address(tensor) % 64 == 0


@pytest.mark.parametrize("name", WITHOUT_BUFFER)
def test_types_without_a_code_go_by_array(tmp_path, name):
    tensor = handwritten.tensor(tmp_path, numbers(name))
    with pytest.raises(BufferError, match=r"\.numpy\(\)"):
        memoryview(tensor)
    with pytest.raises(AttributeError):
        _ = tensor.__array_interface__
    assert np.asarray(tensor).dtype == NUMBERS[name]
    # A consumer that requests bytes without a format gets the bytes.
    file = io.BytesIO()
    file.write(tensor)
    assert file.getvalue() == numbers(name).tobytes()


@pytest.mark.parametrize(
    ("dtype", "name", "configuration"),
    [
        ("M8[s]", "numpy.datetime64", {"unit": "s", "scale_factor": 1}),
        ("m8[ms]", "numpy.timedelta64", {"unit": "ms", "scale_factor": 1}),
        ("U3", "fixed_length_utf32", {"length_bytes": 12}),
        ("S4", "null_terminated_bytes", {"length_bytes": 4}),
        ("V4", "raw_bytes", {"length_bytes": 4}),
    ],
)
def test_types_other_than_numbers(tmp_path, dtype, name, configuration):
    values = np.arange(4).astype("S4").view("V4") if dtype == "V4" else np.arange(4).astype(dtype)
    fills = {"U3": "", "S4": "", "V4": "AAAAAA=="}
    folder = handwritten.write(
        tmp_path,
        (4,),
        {"name": name, "configuration": configuration},
        [handwritten.BYTES],
        values.tobytes(),
        fills.get(dtype, 0),
    )
    tensor = zarrow.open(folder)[...]
    assert tensor.dtype == values.dtype
    assert tensor.numpy().tobytes() == values.tobytes()
    assert tensor.numpy().ctypes.data == np.asarray(tensor).ctypes.data == address(tensor)
    assert tensor[::-1].tolist() == values[::-1].tolist()
    with pytest.raises(BufferError):
        tensor.__dlpack__(max_version=VERSION)
    if dtype[0] in "Mm":
        with pytest.raises(BufferError):
            memoryview(tensor)
        assert tensor.arrow().buffers()[1].address == address(tensor)


@pytest.mark.parametrize("name", ["bool", "int64", "uint8", "float16", "float32", "float64"])
def test_arrow_and_polars_share(tmp_path, name):
    tensor = handwritten.tensor(tmp_path, numbers(name, (5,)))
    array = tensor.arrow()
    assert array.buffers()[1].address == address(tensor) and array.null_count == 0
    assert array.type == (pa.bool8() if name == "bool" else pa.from_numpy_dtype(NUMBERS[name]))
    series = tensor.polars(bools="bytes")
    newest = series.to_arrow(compat_level=pl.CompatLevel.newest())
    assert newest.buffers()[1].address == address(tensor)
    assert pa.array(tensor).equals(array) and len(pl.Series(tensor)) == 5
    assert tensor.polars().dtype == (pl.Boolean if name == "bool" else series.dtype)


def test_arrow_takes_rows_as_fixed_shape_tensors(wide):
    array = wide.arrow()
    assert array.type == pa.fixed_shape_tensor(pa.int64(), [3, 4, 5])
    assert array.to_numpy_ndarray().ctypes.data == address(wide)
    np.testing.assert_array_equal(array.to_numpy_ndarray(), wide.numpy())
    swapped = wide.transpose(0, 3, 2, 1)
    assert swapped.arrow().to_numpy_ndarray().ctypes.data == address(wide)
    np.testing.assert_array_equal(swapped.arrow().to_numpy_ndarray(), swapped.numpy())
    for view in (wide.T, wide.transpose(0, 2, 3, 1), wide[:, ::2]):
        with pytest.raises(BufferError, match=r"\.copy\(\)"):
            view.arrow()
    assert wide.T.copy().arrow().to_numpy_ndarray().shape == (5, 4, 3, 2)


@pytest.mark.parametrize("name", NUMBERS)
def test_jax_shares_every_type(tmp_path, x64, name):
    tensor = handwritten.tensor(tmp_path, numbers(name))
    array = tensor.jax()
    assert array.dtype == NUMBERS[name]
    assert array.unsafe_buffer_pointer() == tensor.numpy().ctypes.data


def test_jax_refuses_views_that_it_would_copy(tensor, wide):
    assert tensor.T.jax().shape == (6, 4)
    for view in (tensor[1:, 1:], tensor[:, ::2], tensor[0, 1:]):
        with pytest.raises(BufferError, match=r"\.copy\(\)"):
            view.jax()
        np.testing.assert_array_equal(view.copy().jax(), view.numpy())
    with jax.enable_x64(False), pytest.raises(BufferError, match="jax_enable_x64"):
        wide.jax()


def test_to_methods_are_the_same_methods():
    for name in ("numpy", "torch", "jax", "arrow", "polars"):
        assert getattr(zarrow.Tensor, f"to_{name}") is getattr(zarrow.Tensor, name)
    assert zarrow.MaskedTensor.to_numpy is zarrow.MaskedTensor.numpy


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(index=hnp.basic_indices((2, 3, 4, 5), allow_newaxis=True, allow_ellipsis=True))
def test_views_are_those_of_numpy(wide, index):
    expected = wide.numpy()[index]
    view = wide[index]
    assert isinstance(view, zarrow.Tensor)
    assert view.shape == expected.shape
    np.testing.assert_array_equal(view.numpy(), expected)
    if view.size:
        # NumPy gives a scalar where zarrow gives a view without axes.
        parts = index if isinstance(index, tuple) else (index,)
        expected = wide.numpy()[parts if ... in parts else (*parts, ...)]
        assert address(view) == address(expected)
        assert [s for s, n in zip(view.strides, view.shape, strict=True) if n > 1] == [
            s for s, n in zip(expected.strides, expected.shape, strict=True) if n > 1
        ]
        np.testing.assert_array_equal(view.copy().numpy(), expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(
    index=hnp.basic_indices((2, 3, 4, 5), allow_newaxis=True, min_dims=1),
    axes=st.randoms(use_true_random=False),
    data=st.data(),
)
def test_reshape_shares_wherever_numpy_does(wide, index, axes, data):
    view = wide[index]
    order = list(range(view.ndim))
    axes.shuffle(order)
    view, array = view.transpose(order), wide.numpy()[index].transpose(order)
    factors = [n for n in array.shape for n in ([2, 2] if n == 4 else [n])]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(factors)), max_size=4)))
    edges = [0, *cuts, len(factors)]
    shape = [int(np.prod(factors[a:b], dtype=int)) for a, b in itertools.pairwise(edges)]
    expected = array.reshape(shape)
    if array.size == 0 or np.shares_memory(expected, array):
        np.testing.assert_array_equal(view.reshape(shape).numpy(), expected)
    else:
        with pytest.raises(BufferError, match=r"\.copy\(\)"):
            view.reshape(shape)


def test_reshape_and_transpose_as_numpy_calls_them(tensor):
    assert tensor.reshape(2, -1).shape == tensor.reshape((2, 12)).shape == tensor.reshape([-1, 12]).shape
    assert tensor.reshape(-1).shape == (24,)
    assert tensor.transpose().shape == tensor.T.shape == tensor.transpose(-1, 0).shape == (6, 4)
    for shape in [(5, -1), (-1, -1), (24, 0), (0, -1), (2**62, 2**62), ()]:
        with pytest.raises(ValueError):
            tensor.reshape(shape)
    for axes in [(0,), (0, 0), (0, 2), (0, -3), (0, 1, 2)]:
        with pytest.raises(ValueError):
            tensor.transpose(axes)


@pytest.mark.parametrize(
    "index",
    [
        4,
        -5,
        2**70,
        (0, 0, 0),
        1.5,
        "a",
        [0, 9],
        np.array([7]),
        (..., ...),
        slice(None, None, 0),
        slice(1.5),
    ],
)
def test_other_indices_are_index_errors(tensor, index):
    with pytest.raises(IndexError):
        tensor[index]


def test_integers_of_numpy_and_huge_slices(tensor):
    assert tensor[np.int8(1), np.uint64(2)].item() == 8.0
    assert tensor[-(2**80) : 2**80].shape == (4, 6)


def test_one_element_is_a_number(tensor):
    element = tensor[1, 2]
    assert (element.shape, element.ndim, element.size, element.item()) == ((), 0, 1, 8.0)
    assert type(element.item()) is float and float(element) == 8.0 and int(tensor[3:4, 1:2]) == 19
    assert bool(element) and not bool(tensor[0, 0])
    for convert in (float, int, bool):
        with pytest.raises(ValueError):
            convert(tensor)
    with pytest.raises(TypeError):
        len(element)
    assert [row.tolist() for row in tensor] == tensor.tolist()
    assert 23 in tensor and 24 not in tensor


def test_0d_and_empty_go_everywhere_they_can(tmp_path, x64):
    scalar = handwritten.tensor(tmp_path / "scalar", np.array(7, dtype=np.int64))
    empty = handwritten.tensor(tmp_path / "empty", np.zeros((3, 0), dtype=np.float64))
    for tensor in (scalar, empty):
        expected = tensor.numpy()
        assert expected.shape == tensor.shape and tensor.copy().shape == tensor.shape
        for face in (
            np.from_dlpack(tensor),
            np.asarray(memoryview(tensor)),
            tensor.jax(),
            tensor.T.T.numpy(),
        ):
            np.testing.assert_array_equal(face, expected)
    assert empty.arrow().type == pa.fixed_shape_tensor(pa.float64(), [0]) and len(empty.arrow()) == 3
    assert empty[:0, :].shape == (0, 0) and empty.reshape(0, 7).tolist() == []
    with pytest.raises(BufferError, match="axis"):
        scalar.arrow()
    assert scalar[None].arrow().to_pylist() == scalar.reshape(1).tolist() == [7]


def test_a_copy_is_elsewhere_and_writable(tensor):
    copy = tensor[::-2, 1:].copy()
    np.testing.assert_array_equal(copy.numpy(), tensor.numpy()[::-2, 1:])
    assert copy.strides == (20, 4) and not copy.readonly
    copy.numpy()[:] = -1
    assert tensor.numpy().min() == 0


def test_array_makes_a_copy_only_where_asked(tensor):
    assert address(tensor.__array__()) == address(tensor.__array__(np.float32, copy=False)) == address(tensor)
    assert address(np.asarray(tensor, copy=False)) == address(tensor)
    assert address(np.array(tensor)) != address(tensor)
    assert address(tensor.__array__(copy=True)) != address(tensor)
    assert tensor.__array__("int16").dtype == np.int16
    with pytest.raises(ValueError, match="copy=False"):
        tensor.__array__(np.int16, copy=False)


def test_dlpack_arguments(tensor):
    assert tensor.__dlpack_device__() == CPU
    legacy, versioned = '"dltensor"', '"dltensor_versioned"'
    assert legacy in repr(tensor.__dlpack__()) and legacy in repr(tensor.__dlpack__(max_version=(0, 8)))
    for version in [(1, 0), (1, 3), (2, 0)]:
        assert versioned in repr(tensor.__dlpack__(max_version=version, dl_device=CPU, copy=False))
    copied = np.from_dlpack(tensor, copy=True)
    assert address(copied) != address(tensor) and copied.flags.writeable
    assert address(np.from_dlpack(tensor, copy=False)) == address(np.from_dlpack(tensor, device="cpu"))
    for device in [(2, 0), (13, 0), (99, 0), (1, 1)]:
        with pytest.raises(BufferError):
            tensor.__dlpack__(dl_device=device, max_version=VERSION)
    for stream in (0, 1, -1):
        with pytest.raises(BufferError, match="stream"):
            tensor.__dlpack__(stream=stream)
    for stream in (object(), "0", 1.0):
        with pytest.raises(TypeError, match="stream"):
            tensor.__dlpack__(stream=stream)
    with pytest.raises(TypeError):
        tensor.__dlpack__(None)
    with pytest.raises(TypeError):
        tensor.__dlpack__(unknown=1)
    for wrong in ({"max_version": 1}, {"max_version": (1,)}, {"max_version": ("1", 0)}, {"copy": "yes"}):
        with pytest.raises((TypeError, ValueError)):
            tensor.__dlpack__(**wrong)


def test_names_of_arguments_need_not_be_interned(tensor):
    name = "".join(["max", "_", "version"])
    assert name is not "".join(["max_", "version"])
    assert '"dltensor_versioned"' in repr(tensor.__dlpack__(**{name: VERSION, "copy": None}))
    assert len(tensor.__arrow_c_array__(**{"".join(["requested", "_schema"]): None})) == 2
    with pytest.raises(TypeError, match=r"__arrow_c_array__\(\) got requested_schema twice"):
        tensor.__arrow_c_array__(None, requested_schema=None)
    with pytest.raises(TypeError, match="at most 1 positional argument"):
        tensor.__arrow_c_array__(None, None)
    with pytest.raises(TypeError, match=r"'numpy.ndarray' object"):
        zarrow.Tensor.__dlpack__(np.zeros(3))


def test_every_number_has_its_dlpack_type(tmp_path):
    for name, dtype in NUMBERS.items():
        tensor = handwritten.tensor(tmp_path / name, numbers(name))
        shared = jax.dlpack.from_dlpack(tensor) if dtype.itemsize < 8 else np.from_dlpack(tensor)
        assert shared.dtype == dtype


def test_dlpack_keeps_strides(wide):
    view = wide.T[::2, 1:, ::-1]
    shared = np.from_dlpack(view)
    assert shared.strides == view.strides and address(shared) == address(view)


@pytest.fixture
def readonly(tmp_path):
    return handwritten.variable(tmp_path / "words", ["a", "bc"]).offsets


def test_read_only_memory_stays_read_only(readonly):
    assert (
        readonly.readonly and readonly[1:].readonly and readonly.T.readonly and not readonly.copy().readonly
    )
    assert memoryview(readonly).readonly and not readonly.numpy().flags.writeable
    assert readonly.__array_interface__["data"][1] is True
    assert not np.from_dlpack(readonly).flags.writeable
    assert np.from_dlpack(readonly, copy=True).flags.writeable
    for refused in (readonly.__dlpack__, readonly.torch):
        with pytest.raises(BufferError, match=r"read-only"):
            refused()
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(bytes(99)).readinto(readonly)
    assert '"dltensor"' in repr(readonly.__dlpack__(copy=True))


class Buffer(ctypes.Structure):
    """`Py_buffer`."""

    _fields_ = [
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
    ]


SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 1, 4, 8, 0x18
C_ORDER, F_ORDER, ANY_ORDER = 0x38, 0x58, 0x98


def request(array: Any, flags: int) -> dict[str, Any] | None:
    """Return the buffer's description, or None if refused; NumPy then raises ValueError too."""
    buffer = Buffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(array), ctypes.byref(buffer), flags)
    except (BufferError, ValueError) as error:
        assert isinstance(error, BufferError) or isinstance(array, np.ndarray)
        return None
    axes = range(buffer.ndim)
    answer = {
        "address": buffer.buf,
        "nbytes": buffer.len,
        "format": buffer.format,
        "shape": [buffer.shape[axis] for axis in axes] if buffer.shape else None,
        # Strides of empty buffers have no effect.
        "strides": [buffer.strides[axis] for axis in axes] if buffer.strides and buffer.len else None,
        "readonly": buffer.readonly,
    }
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return answer


# With PyTorch imported, a request for bytes without a shape warns.
@pytest.mark.filterwarnings("ignore::zarrow.ZarrowWarning")
@pytest.mark.parametrize("flags", [SIMPLE, ND, STRIDES, C_ORDER, F_ORDER, ANY_ORDER])
@pytest.mark.parametrize("extra", [0, WRITABLE, FORMAT])
def test_buffer_requests_are_answered_as_numpy_does(tensor, readonly, flags, extra):
    for ours in (tensor, tensor.T, tensor[::2], tensor[::-1], tensor[0], tensor[0, 0], tensor[:0], readonly):
        assert request(ours, flags | extra) == request(ours.numpy(), flags | extra)


def test_views_outlive_the_tensor(tensor):
    faces = [tensor.numpy(), memoryview(tensor), np.from_dlpack(tensor), tensor.arrow(), tensor[1:].numpy()]
    expected = tensor.numpy().copy()
    del tensor
    assert all(np.array_equal(np.asarray(face), expected) for face in faces[:3])
    assert np.array_equal(faces[3].to_numpy_ndarray(), expected) and np.array_equal(faces[4], expected[1:])


def test_bfloat16_keeps_its_name_in_numpy(tmp_path):
    tensor = handwritten.tensor(tmp_path, np.array([1.5, -2], dtype=ml_dtypes.bfloat16))
    assert tensor.tolist() == [1.5, -2.0] and tensor[0].item() == 1.5 and float(tensor[1]) == -2.0


def test_one_element_is_formatted_as_a_number():
    tensor = zarrow.asarray(np.array([1.25, 2.5]))
    assert f"{tensor[0]:.1f}" == "1.2" and f"{tensor}" == str(tensor)
    with pytest.raises(ValueError, match=r"2 elements is not a single value.*\.tolist\(\)"):
        format(tensor, ".1f")


@pytest.mark.parametrize("dtype", ["M8[ns]", "M8[us]", "M8[D]", "m8[ns]"])
def test_one_time_prints_as_numpy_prints_it(dtype):
    times = np.array([10957, 10958]).astype(dtype)
    tensor = zarrow.asarray(times)
    assert str(tensor[1]) == f"{tensor[1]}" == str(times[1])
    masked = zarrow.asarray(np.ma.MaskedArray(times, [False, True]))
    assert str(masked[0]) == f"{masked[0]}" == str(times[0]) and str(masked[1]) == "None"


def test_dlpack_reads_each_version_and_each_order_of_names() -> None:
    """Tuples of names and versions are remembered by their identity."""
    tensor = zarrow.asarray(np.arange(3.0))
    for major in (1, 0, 1, 2, 0):
        versioned = '"dltensor_versioned"' if major else '"dltensor"'
        for options in (
            {"max_version": (major, 0), "copy": True},
            {"copy": True, "max_version": (major, 0)},
            {"dl_device": (1, 0), "max_version": (major, 0)},
        ):
            assert versioned in repr(tensor.__dlpack__(**options))
    for wrong in ({"version": (1, 0)}, {"copy": True, "max_versions": (1, 0)}):
        with pytest.raises(TypeError, match=r"has no parameter (version|max_versions)"):
            tensor.__dlpack__(**wrong)
    with pytest.raises(ValueError, match="tuple of length 2"):
        tensor.__dlpack__(max_version=(1, 0, 0))  # type: ignore[arg-type]


def test_numpy_and_jax_cast_to_a_type(tensor):
    assert np.shares_memory(tensor.numpy(dtype="f4"), tensor.numpy())
    cast = tensor.numpy(dtype="i2")
    assert (
        cast.dtype == "i2" and cast.tolist() == tensor.tolist() and not np.shares_memory(cast, tensor.numpy())
    )
    array = tensor.jax(dtype="float16")
    assert isinstance(array, jax.Array) and array.dtype == "float16" and array.tolist() == tensor.tolist()
    moved = tensor.jax(device=jax.devices("cpu")[0])
    assert moved.dtype == "float32" and moved.tolist() == tensor.tolist()
    with pytest.raises(TypeError):
        tensor.numpy("i2")
