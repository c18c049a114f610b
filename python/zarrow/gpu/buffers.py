"""Buffers of zarr-python on a GPU.

1. Data from a store stays on the host until its elements are needed on the device: zarr-python's codecs
   decode on the host, and bytes sent to the device at once would have to come back.
2. `as_numpy_array`, which codecs call, copies to the host only data that exists on the device alone.
3. Some codecs of zarr-python compute with NumPy or numcodecs. They get the elements on the CPU: reading has
   them there, and writing takes them there anyway.
4. A CuPy array is kept and returned unchanged, since zarr-python knows its methods. Every other array is
   viewed as a Tensor of the same memory.

Source: `zarr.abc.buffer` of zarr-python 3.1 to 3.4.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
import zarr.errors
from zarr.abc.buffer import Buffer as AbstractBuffer
from zarr.abc.buffer import NDBuffer as AbstractNDBuffer
from zarr.core.buffer import BufferPrototype
from zarr.core.buffer.cpu import NDBuffer as HostNDBuffer
from zarr.registry import register_buffer, register_ndbuffer

from zarrow._zarrow import DeviceTensor
from zarrow.device_tensor.comparison import all_equal
from zarrow.device_tensor.functions import refuse_text
from zarrow.device_tensor.methods import byte_swapped, is_on_device, on_device_of
from zarrow.gpu.enabling import current_device

# Modules of zarr-python with codecs that compute with NumPy or numcodecs.
ON_THE_CPU = (
    "zarr.codecs._v2",
    "zarr.codecs.cast_value",
    "zarr.codecs.numcodecs._codecs",
    "zarr.codecs.scale_offset",
)


def _kept(array: Any) -> Any:
    """Return the array to put into a buffer for an array on a device (step 4)."""
    if isinstance(array, DeviceTensor) or type(array).__module__.partition(".")[0] == "cupy":
        return array
    return DeviceTensor._of(array)


def _tensor(array: Any) -> Any:
    """Return a Tensor of the memory, ordered after earlier work on the device."""
    return array if isinstance(array, DeviceTensor) else DeviceTensor._of(array)


def _on_host(array: Any) -> Any:
    """Return elements as a NumPy array, if the device does not have them yet."""
    on_host = array._on_host() if isinstance(array, DeviceTensor) else None
    return None if on_host is None else on_host.numpy()


def _of(array: Any, kind: str) -> Any:
    """Return the elements of a buffer, with zarr-python's warning if the host has them."""
    if is_on_device(array):
        return _kept(array)
    warnings.warn(
        f"Creating a zarr.buffer.gpu.{kind} with an array that does not support the __cuda_array_interface__ "
        "for zero-copy transfers, falling back to slow copy based path: zarrow.gpu.asarray(x) copies without "
        "this warning",
        getattr(zarr.errors, "ZarrUserWarning", UserWarning),
        stacklevel=3,
    )
    return _uploaded(array)


def _uploaded(array: Any) -> Any:
    """Copy an array of the host to the device."""
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return DeviceTensor._of(array, current_device())


def _staged(array: Any) -> Any:
    """Copy bytes from the host to the device when they are needed there (step 1)."""
    return DeviceTensor._staged(np.ascontiguousarray(array), current_device())


def _unchanging(array: Any) -> Any:
    """Return the array if it is read-only, else a copy: its owner may change it before the upload."""
    return array.copy(order="K") if array.flags.writeable else array


class Buffer(AbstractBuffer):
    """Bytes for zarr-python, moved to a GPU when they are needed there.

    Parameters
    ----------
    array_like
        One axis of bytes: of PyTorch, CuPy, JAX or zarrow on a GPU, sharing its memory; or of NumPy, which
        is copied, with a UserWarning.

    Raises
    ------
    ValueError
        There are more axes, or other elements than bytes.
    """

    def __init__(self, array_like: Any) -> None:
        # An array known only by a protocol is viewed as a Tensor.
        array = array_like if hasattr(array_like, "ndim") else _of(array_like, "Buffer")
        if array.ndim != 1:
            raise ValueError(f"a Buffer is made of one axis of bytes, found {array.ndim} axes")
        if str(array.dtype) not in ("uint8", "torch.uint8"):
            raise ValueError(f"a Buffer is made of bytes, found elements of {array.dtype}")
        self._data: Any = _of(array, "Buffer")

    @classmethod
    def create_zero_length(cls) -> Self:
        """Make a buffer of no bytes."""
        return cls(_staged(np.empty(0, np.uint8)))

    @classmethod
    def from_array_like(cls, array_like: Any) -> Self:
        """Make a buffer of an array. It is copied to the device when needed there."""
        if isinstance(array_like, np.ndarray) and array_like.ndim == 1 and array_like.dtype == np.uint8:
            return cls(_staged(_unchanging(array_like)))
        return cls(array_like)

    @classmethod
    def from_buffer(cls, buffer: AbstractBuffer) -> Self:
        """Make a buffer that shares the memory of another one."""
        return cls.from_array_like(buffer.as_array_like())

    @classmethod
    def from_bytes(cls, bytes_like: Any) -> Self:
        """Make a buffer of bytes of the CPU, which are copied when the device needs them."""
        array = np.frombuffer(bytes_like, np.uint8)
        # Memory that may change later is copied now.
        return cls(_uploaded(array) if array.flags.writeable else _staged(array))

    def as_array_like(self) -> Any:
        """Return the buffer's array without a copy: a Tensor, or the CuPy array."""
        return self._data

    def as_numpy_array(self) -> Any:
        """Return the bytes on the CPU, copied there where only the GPU has them."""
        on_host = self._on_host()
        return _tensor(self._data).cpu().numpy() if on_host is None else on_host

    def to_bytes(self) -> bytes:
        """Copy the bytes to the CPU."""
        return bytes(self.as_numpy_array().tobytes())

    def combine(self, others: Iterable[AbstractBuffer]) -> Self:
        """Join buffers, on the CPU if all bytes are still there."""
        parts: list[AbstractBuffer] = [self, *others]
        on_host = [_on_host_of(part) for part in parts]
        if all(array is not None for array in on_host):
            return self.__class__(_staged(np.concatenate([np.asarray(array) for array in on_host])))
        joined, start = DeviceTensor._empty([sum(map(len, parts))], "u1", _tensor(self._data).device), 0
        for part in parts:
            array, stop = part.as_array_like(), start + len(part)
            joined[start:stop] = _tensor(array) if is_on_device(array) else array
            start = stop
        return self.__class__(joined)

    def __getitem__(self, key: Any) -> Self:
        _check_slice(key)
        return self.__class__(self._data[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        _check_slice(key)
        if isinstance(value, AbstractBuffer):
            value = value.as_array_like()
        elif isinstance(value, bytes | bytearray | memoryview):
            value = np.frombuffer(value, np.uint8)
        _tensor(self._data)[key] = value

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractBuffer) or len(self) != len(other):
            return False
        ours, theirs = self._on_host(), _on_host_of(other)
        if ours is not None and theirs is not None:
            return bool(np.array_equal(ours, theirs))
        array = other.as_array_like()
        return all_equal(_tensor(self._data), _tensor(array) if is_on_device(array) else array)

    __hash__ = None  # type: ignore[assignment]

    def _on_host(self) -> Any:
        """Return the bytes as a NumPy array, if the device does not have them yet."""
        return _on_host(self._data)


def _on_host_of(buffer: AbstractBuffer) -> Any:
    """Return the bytes of any buffer on the host, else None."""
    if isinstance(buffer, Buffer):
        return buffer._on_host()
    array = buffer.as_array_like()
    return None if is_on_device(array) else array


def _check_slice(key: Any) -> None:
    if not isinstance(key, slice):
        raise TypeError(f"a Buffer is indexed by slices, found {type(key).__name__}")
    if key.step not in (None, 1):
        raise ValueError(f"a Buffer is indexed by slices of step 1, found step {key.step}")


class NDBuffer(AbstractNDBuffer):
    """Elements for zarr-python, on a GPU.

    Parameters
    ----------
    array
        An array of PyTorch, CuPy, JAX or zarrow on a GPU, sharing its memory; or of NumPy, which is copied,
        with a UserWarning.

    Raises
    ------
    TypeError
        The elements are Python objects.
    """

    def __init__(self, array: Any) -> None:
        refuse_text(getattr(array, "dtype", None))
        self._data: Any = _of(array, "NDBuffer")
        self._swapped: Any = None

    @classmethod
    def create(
        cls, *, shape: Iterable[int], dtype: Any, order: Literal["C", "F"] = "C", fill_value: Any = None
    ) -> Self:
        """Make a buffer of one value, 0 by default."""
        made = cls.empty(tuple(shape), dtype, order)
        if fill_value is None:
            made._data._fill(bytes(made.dtype.itemsize))
        else:
            made.fill(fill_value)
        return made

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any, order: Literal["C", "F"] = "C") -> Self:
        """Make a buffer with uninitialized elements."""
        dtype = np.dtype(dtype)
        refuse_text(dtype)
        dtype = dtype.newbyteorder("=")
        return cls(DeviceTensor._empty(shape, dtype, current_device(), order == "F"))

    @classmethod
    def from_ndarray_like(cls, ndarray_like: Any) -> Self:
        """Make a buffer of an array. It is copied to the device when needed there."""
        if not isinstance(ndarray_like, np.ndarray):
            return cls(ndarray_like)
        if ndarray_like.dtype.kind in "OT" or not ndarray_like.dtype.isnative:
            return cls.from_numpy_array(ndarray_like)
        return cls(DeviceTensor._staged(_unchanging(ndarray_like), current_device()))

    @classmethod
    def from_numpy_array(cls, array_like: Any) -> Self:
        """Make a buffer of an array of the CPU, which is copied."""
        array = np.asarray(array_like)
        refuse_text(array.dtype)
        return cls(_uploaded(array))

    def as_ndarray_like(self) -> Any:
        """Return the buffer's array without a copy: a Tensor, or the CuPy array.

        Elements in the other byte order, which no tensor has, are shown as raw bytes, a `V` type of as many:
        codecs view them as bytes, and nothing takes them for numbers.

        Codecs of zarr-python that compute on the CPU get an array of NumPy (step 3).
        """
        if sys._getframe(1).f_globals.get("__name__") in ON_THE_CPU:
            return self.as_numpy_array()
        return self._data if self._swapped is None else self._data.view(f"V{self._swapped.itemsize}")

    def as_numpy_array(self) -> Any:
        """Return the elements on the CPU, copied there where only the GPU has them."""
        on_host = _on_host(self._data)
        array = _tensor(self._data).cpu().numpy() if on_host is None else on_host
        return array if self._swapped is None else array.view(self._swapped)

    def as_scalar(self) -> Any:
        """Return the one element."""
        if _tensor(self._data).size != 1:
            raise ValueError(f"a buffer of {_tensor(self._data).size} elements is not a single value")
        return self.as_numpy_array().reshape(())[()]

    @property
    def dtype(self) -> Any:
        """The numpy.dtype of the elements."""
        return self._data.dtype if self._swapped is None else self._swapped

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return tuple(self._data.shape)

    def reshape(self, newshape: Any) -> Self:
        """Return another shape; -1 is one axis of all elements."""
        return self._like(_tensor(self._data).reshape((-1,) if newshape == -1 else newshape))

    def squeeze(self, axis: tuple[int, ...]) -> Self:
        """Leave out axes of one element."""
        return self._like(_tensor(self._data).squeeze(axis))

    def transpose(self, axes: Any = None) -> Self:
        """Return the axes in another order, reversed for None."""
        return self._like(_tensor(self._data).transpose(axes))

    def copy(self) -> Self:
        """Copy the elements."""
        return self._like(_tensor(self._data).copy("K"))

    def astype(self, dtype: Any, order: Any = "K") -> Self:
        """Convert the elements, also to the other byte order."""
        wanted = np.dtype(dtype)
        native = wanted.newbyteorder("=")
        tensor = self._native()
        converted = self.__class__(tensor.astype(native, order=order))
        if native != wanted:
            converted._data, converted._swapped = byte_swapped(converted._data), wanted
        return converted

    def fill(self, value: Any) -> None:
        """Set each element to a value."""
        if self._swapped is None:
            _tensor(self._data).fill(value)
        else:
            self[...] = value

    def all_equal(self, other: Any, equal_nan: bool = True) -> bool:
        """Return whether each element is that of `other`, bit by bit."""
        if other is None:
            return False
        if isinstance(other, NDBuffer):
            other = other._native()
        elif isinstance(other, AbstractNDBuffer):
            other = other.as_ndarray_like()
        if _on_host(self._data) is not None and np.isscalar(other):
            return bool(HostNDBuffer(self.as_numpy_array()).all_equal(other, equal_nan))
        return all_equal(self._native(), other, equal_nan)

    def __getitem__(self, key: Any) -> Self:
        return self._like(_tensor(self._data)[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, NDBuffer):
            value = value._native()
        elif isinstance(value, AbstractNDBuffer):
            value = value.as_ndarray_like()
        tensor = _tensor(self._data)
        if self._swapped is not None:
            # Values of the machine's byte order, turned as the elements are that they are written between.
            value = byte_swapped(on_device_of(tensor, value))
        tensor[key] = value

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"<zarrow.gpu.NDBuffer shape={self.shape} dtype={self.dtype} {self._data!r}>"

    def _like(self, array: Any) -> Self:
        made = self.__class__(array)
        made._swapped = self._swapped
        return made

    def _native(self) -> Any:
        """Return a Tensor of the machine's byte order."""
        tensor = _tensor(self._data)
        return tensor if self._swapped is None else byte_swapped(tensor)


buffer_prototype = BufferPrototype(buffer=Buffer, nd_buffer=NDBuffer)

# Their names in zarr-python's settings.
Buffer.__module__ = NDBuffer.__module__ = "zarrow.gpu"
register_buffer(Buffer)
register_ndbuffer(NDBuffer)
