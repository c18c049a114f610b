"""The class zarrow.gpu.Tensor."""

import sys
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, ClassVar, Literal, NoReturn, SupportsIndex, TypeAlias, final

import cupy as _cupy
import jax as _jax
import numpy.typing as npt
import torch as _torch
from typing_extensions import CapsuleType

from zarrow.arrays._tensor import Tensor
from zarrow.device_tensor.methods import Flags

_Part: TypeAlias = SupportsIndex | slice | EllipsisType | npt.ArrayLike | DeviceTensor | None
_Index: TypeAlias = _Part | tuple[_Part, ...]
_Order: TypeAlias = Literal["K", "A", "C", "F"]

@final
class DeviceTensor:
    """A strided array of fixed-size elements in the memory of a GPU: `zarrow.gpu.Tensor`.

    `array.read(selection, device="cuda:0")` and `zarrow.gpu.asarray(x)` return it. PyTorch, CuPy, JAX and any
    other library with DLPack or `__cuda_array_interface__` take it without a copy. Its operations (copies,
    casts, fills, `==` and `!=`, indexing by lists and masks) run on the GPU, in order, in one stream of the
    device. Only operations that return a value to the CPU wait. Arithmetic, `<` and reductions raise a
    TypeError: use those libraries.

    Elements are copied to the CPU only by `.cpu()`. NumPy, `memoryview` and pickle are refused.

    Examples
    --------
    >>> import zarrow
    >>> array = zarrow.open("data.zarr")["temperature"]
    >>> if zarrow.gpu.is_available():
    ...     tensor = array.read(0, device="cuda:0")
    ...     mean = tensor.torch().mean()
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
    @property
    def dtype(self) -> Any:
        """The numpy.dtype of the elements, or that of ml_dtypes for types that NumPy lacks."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
    @property
    def nbytes(self) -> int:
        """The bytes of all elements without gaps."""
    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes from one element to the next, along each axis."""
    @property
    def device(self) -> str:
        """The device, such as `"cuda:0"`."""
    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only."""
    @property
    def flags(self) -> Flags:
        """The memory layout: `c_contiguous`, `f_contiguous`, `writeable` and `owndata`, as in NumPy.

        NumPy's keys work as well: `flags["C_CONTIGUOUS"]`.
        """
    @property
    def T(self) -> DeviceTensor:  # noqa: N802
        """The same memory with its axes reversed."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: _Index, /) -> DeviceTensor:
        """Return a part: a view for integers, slices, `...` and `None`.

        Lists, masks and arrays of integers also work as in NumPy, and copy on the device.

        Raises
        ------
        IndexingError
            The index is out of bounds (an `IndexError`).
        """
    def __setitem__(self, index: _Index, value: Any, /) -> None:
        """Write values to a part, by any NumPy index: arrays on any device, NumPy arrays and scalars.

        Raises
        ------
        ExchangeError
            The memory is read-only (a `ValueError`).
        ShapeError
            The values cannot be broadcast (a `ValueError`).
        """
    def __delitem__(self, index: _Index, /) -> NoReturn:
        """Refuse, with a ValueError that says what to type."""
    def __eq__(self, other: object, /) -> DeviceTensor:  # type: ignore[override]
        """Compare element by element, to a tensor of bool on the device.

        Raises
        ------
        TypeError
            The other operand is None: type `tensor is None`.
        UnsupportedError
            An operand is text, times or Python objects: compare on the CPU, with `.cpu()`.
        """
    def __ne__(self, other: object, /) -> DeviceTensor:  # type: ignore[override]
        """Compare element by element, to a tensor of bool on the device."""
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __copy__(self) -> DeviceTensor: ...
    def __deepcopy__(self, memo: Any) -> DeviceTensor: ...
    def reshape(self, *shape: Any, order: _Order | None = "C", copy: bool | None = None) -> DeviceTensor:
        """Return the elements in another shape: a view of the memory if possible, else a copy.

        Parameters
        ----------
        shape
            The extents; at most one may be -1.
        order
            Order of the elements: `"C"`, the last axis varies fastest; `"F"`, the first axis does; `"A"`, the
            memory order.
        copy
            True: always copy. False: raise an error instead of copying.

        Raises
        ------
        ShapeError
            The number of elements differs (a `ValueError`).
        ExchangeError
            The shape needs a copy, and `copy=False` (a `ValueError`).
        """
    def transpose(self, *axes: Any) -> DeviceTensor:
        """Return the same memory with permuted axes, by default reversed.

        Raises
        ------
        ShapeError
            The axes are not a permutation of the tensor's (a `ValueError`).
        """
    def squeeze(self, axis: Any = None) -> DeviceTensor:
        """Return the same memory without the given axes of length 1, or without all such axes.

        Raises
        ------
        ShapeError
            A given axis has a length other than 1 (a `ValueError`).
        """
    def ravel(self, order: _Order = "C") -> DeviceTensor:
        """Return all elements on one axis: the same memory if contiguous in that order, else a copy."""
    def view(self, dtype: Any, *shape: Any) -> DeviceTensor:
        """Return the same memory as elements of another type, as NumPy's `view` does.

        Raises
        ------
        TypeError
            A shape was given, as for PyTorch's `view`: use `reshape`.
        ShapeError
            The last axis does not hold a whole number of such elements, or is not contiguous (a
            `ValueError`).
        """
    def astype(self, dtype: Any, order: _Order = "K", *, copy: bool = True) -> DeviceTensor:
        """Convert the elements, as NumPy's `astype` does.

        Complex numbers become real with NumPy's ComplexWarning. NaN, and floats beyond an integer type's
        range, give the integers that NumPy on x86-64 gives for a single number, on every GPU. There is no
        warning, because it would have to wait for the GPU.

        Parameters
        ----------
        dtype
            A type of NumPy or ml_dtypes, or the name of a Zarr type, such as `"bfloat16"`.
        order
            `"C"` or `"F"`, the memory order of the result; `"A"` and `"K"`: `"F"` for a tensor in Fortran
            order, else `"C"`.
        copy
            False: the tensor itself, if it already has the type and the order.

        Raises
        ------
        UnsupportedError
            The GPU does not support one of the types: convert on the CPU, with `.cpu()`.
        """
    def copy(self, order: _Order = "C") -> DeviceTensor:
        """Copy the elements to new memory of the device."""
    def fill(self, value: Any) -> None:
        """Set each element to a value.

        Raises
        ------
        ExchangeError
            The memory is read-only (a `ValueError`).
        """
    def all(self) -> bool:
        """Return whether no element is zero. Waits for the device."""
    def item(self) -> Any:
        """Return the only element as a Python object. Waits for the device.

        Raises
        ------
        ValueError
            The tensor does not have exactly one element.
        """
    def cpu(self) -> Tensor:
        """Copy the elements to the CPU. Waits for the device.

        Raises
        ------
        DeviceError
            The copy or earlier work on the device failed.
        """
    def numpy(self) -> NoReturn:
        """Refuse, because it would be a copy: call `.cpu().numpy()`.

        Raises
        ------
        TypeError
            Always.
        """
    def torch(self, *, device: Any = None, dtype: Any = None) -> _torch.Tensor:
        """Return a torch.Tensor of the same memory, which PyTorch moves to a `device` or casts to a `dtype`.

        Raises
        ------
        ExchangeError
            The memory is read-only, or PyTorch has no such type (a `BufferError`).
        ImportError
            PyTorch is not installed: `pip install torch`.
        """
    def cupy(self) -> _cupy.ndarray:
        """Return a cupy.ndarray of the same memory.

        Raises
        ------
        ImportError
            CuPy is not installed: `pip install cupy-cuda13x`, or `cupy-cuda12x`.
        """
    def jax(self) -> _jax.Array:
        """Return a jax.Array of the same memory, which JAX assumes to be immutable.

        Raises
        ------
        ExchangeError
            The elements have gaps between them, or JAX would narrow them to 32 bits (a `BufferError`).
        DeviceError
            JAX has no GPU to use: `pip install 'jax[cuda13]'`, or `jax[cuda12]`.
        ImportError
            JAX is not installed.
        """
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        """Refuse, because it would be a copy.

        Raises
        ------
        TypeError
            Always; the message names `.cpu()`.
        """
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compare NumPy arrays by `==` and `!=`, and refuse NumPy's other element-wise functions.

        Raises
        ------
        TypeError
            Other functions; the message names `.cpu()`.
        """
    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Run those NumPy functions that make tensors on the device, such as `numpy.zeros_like`.

        Raises
        ------
        TypeError
            Other functions; the message says what to type.
        """
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """DLPack: a capsule of the same memory, versioned if the consumer supports that.

        Parameters
        ----------
        stream
            The consumer's stream for this memory: None and 1, the legacy default stream; 2, the default
            stream of the thread; -1, no synchronization; another number, a stream handle.
        max_version
            The newest version that the consumer supports: a versioned capsule from (1, 0) on, else a legacy
            one.
        dl_device
            None or the tensor's own device; (1, 0), the CPU: a copy there.
        copy
            True: a copy, marked as one. False: never a copy.

        Raises
        ------
        ValueError
            The stream is 0, which could mean either default stream.
        ExchangeError
            Another device, a type that DLPack lacks, the CPU with `copy=False`, or read-only memory in a
            legacy capsule, which cannot mark it (a `BufferError`).
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: the device as (type, number); (2, 0) is the first CUDA device."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3.

        The call waits for all of zarrow's work on the GPU, so `stream` is None: consumers need not wait. Keep
        a reference to the tensor as long as the memory is used.

        Raises
        ------
        AttributeError
            The interface has no code for the type, such as bfloat16: use DLPack.
        """
    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **options: Any
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: a capsule of the type and one of the device memory, with an event to wait for.

        Raises
        ------
        ExchangeError
            The elements are not contiguous, there is no axis, or Arrow has no such type (a
            `BufferError`).
        """
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Refuse: GPU memory cannot be pickled.

        Raises
        ------
        TypeError
            Always; the message names `.cpu()`.
        """
    if sys.version_info >= (3, 12):
        # Memory on a device has no buffer: these raise errors that say what to type.
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...
    @staticmethod
    def _count() -> int: ...
    @staticmethod
    def _synchronize(device: Any = None) -> None: ...
    @staticmethod
    def _release_memory() -> None: ...
    @staticmethod
    def _empty(
        shape: Sequence[int], dtype: Any, device: Any = None, column_major: bool = False
    ) -> DeviceTensor: ...
    @staticmethod
    def _of(object: Any, wanted: Any = None) -> DeviceTensor: ...
    @staticmethod
    def _is_on_device(object: Any) -> bool: ...
    @staticmethod
    def _staged(x: Any, device: Any = None) -> DeviceTensor: ...
    def _on_host(self) -> Tensor | None: ...
    @property
    def _assignments(self) -> int: ...
    @property
    def _address(self) -> int: ...
    def _may_overlap(self, other: DeviceTensor) -> bool: ...
    def _on_device(self) -> DeviceTensor: ...
    def _reshape(self, shape: Sequence[int]) -> DeviceTensor: ...
    def _transpose(self, axes: Sequence[int]) -> DeviceTensor: ...
    def _broadcast_to(self, shape: Sequence[int]) -> DeviceTensor: ...
    def _reinterpret(self, dtype: Any) -> DeviceTensor: ...
    def _astype(self, dtype: Any) -> DeviceTensor: ...
    def _copy(self, column_major: bool) -> DeviceTensor: ...
    def _assign(self, source: DeviceTensor) -> None: ...
    def _fill(self, value: bytes | Sequence[int]) -> None: ...
    def _take(self, positions: Any) -> DeviceTensor: ...
    def _put(self, positions: Any, rows: DeviceTensor) -> None: ...
    def _equal(self, other: DeviceTensor) -> DeviceTensor: ...
    def _all_equal(self, other: DeviceTensor, equal_nan: bool) -> bool: ...
    def _all(self) -> bool: ...
