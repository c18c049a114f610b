"""The class Tensor."""

import sys
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, ClassVar, Self, SupportsIndex, TypeAlias, final

import jax as _jax
import numpy.typing as npt
import torch as _torch
from typing_extensions import CapsuleType

from zarrow.arrays._decoded_array import DecodedArray

_Part: TypeAlias = SupportsIndex | slice | EllipsisType | npt.ArrayLike | None
_Index: TypeAlias = _Part | tuple[_Part, ...]

@final
class Tensor(DecodedArray):
    """A strided array of fixed-size elements in one buffer, which all libraries share.

    All views have the same address: NumPy, PyTorch, JAX, Arrow, the buffer protocol. A write through one view
    is visible in the others, including JAX and Arrow. The memory of a read is aligned to 64 bytes and
    writable; it lives as long as any of its views.

    Examples
    --------
    >>> import zarrow
    >>> tensor = zarrow.open("data.zarr")["temperature"][0]
    >>> array = tensor.numpy()
    >>> array[0, 1] = 999
    >>> tensor[0, :3].tolist()
    [0.0, 999.0, 2.0]
    """

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance in bytes from one element to the next, along each axis."""
    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only, in every view."""
    @property
    def _assignments(self) -> int: ...
    @property
    def is_mapped(self) -> bool:
        """Whether the memory is a map of the store's files instead of a copy.

        It is True if `Array.read` got `mmap=True` and could map the files. Views of such a tensor are also
        mapped, copies are not.
        """
    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
    @property
    def T(self) -> Tensor:  # noqa: N802
        """The same memory with its axes reversed."""
    def item(self, *index: Any) -> Any:
        """Return the only element, or the one at these positions, as a Python object.

        Raises
        ------
        ValueError
            No position was given, and the array does not have exactly one element.
        """
    def fill(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.fill`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def partition(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.partition`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def put(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.put`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def sort(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.sort`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __format__(self, specification: str, /) -> str:
        """Format the only element, as in `f"{tensor:.2f}"`; without a specification, same as `str`."""
    def __contains__(self, value: Any, /) -> bool: ...
    def __getitem__(self, index: _Index, /) -> Tensor:
        """Return a view of the same memory, by integers, slices with any step, `...` and `None`.

        Lists, masks and arrays of integers also work as in NumPy, and copy.

        Raises
        ------
        IndexingError
            The index is out of bounds (an `IndexError`).
        """
    def __setitem__(self, index: _Index, value: Any, /) -> None:
        """Write values to part of the memory, with any NumPy index and NumPy's casts.

        Raises
        ------
        ValueError
            The memory is read-only, or the values do not fit.
        """
    def __iadd__(self, other: Any, /) -> Self: ...
    def __isub__(self, other: Any, /) -> Self: ...
    def __imul__(self, other: Any, /) -> Self: ...
    def __imatmul__(self, other: Any, /) -> Self: ...
    def __itruediv__(self, other: Any, /) -> Self: ...
    def __ifloordiv__(self, other: Any, /) -> Self: ...
    def __imod__(self, other: Any, /) -> Self: ...
    def __ipow__(self, other: Any, /) -> Self: ...
    def __ilshift__(self, other: Any, /) -> Self: ...
    def __irshift__(self, other: Any, /) -> Self: ...
    def __iand__(self, other: Any, /) -> Self: ...
    def __ior__(self, other: Any, /) -> Self: ...
    def __ixor__(self, other: Any, /) -> Self: ...
    def __index__(self) -> int: ...
    def __complex__(self) -> complex: ...
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        """Return the same memory with another shape; one extent may be -1.

        Raises
        ------
        ShapeError
            The number of elements differs (a `ValueError`).
        ExchangeError
            The shape needs a copy: call `.copy()` first (a `BufferError`).
        """
    def transpose(self, *axes: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        """Return the same memory with permuted axes, by default reversed.

        Raises
        ------
        ShapeError
            The axes are not a permutation of the tensor's (a `ValueError`).
        """
    def copy(self) -> Tensor:
        """Return a contiguous, writable copy in new memory."""
    def numpy(self, *, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Return a numpy.ndarray of the same memory, or a copy of another `dtype`."""
    to_numpy = numpy
    def torch(self, *, device: Any = None, dtype: Any = None) -> _torch.Tensor:
        """Return a torch.Tensor of the same memory, which PyTorch moves to a `device` or casts to a `dtype`.

        The `dtype` is one of PyTorch, or one of NumPy or its name, such as "float32".

        Raises
        ------
        DataTypeError
            PyTorch has no such `dtype` (a `TypeError`).
        ExchangeError
            The memory is read-only, strides are negative, or DLPack has no such type (a `BufferError`).
        """
    to_torch = torch
    def jax(self, *, device: Any = None, dtype: Any = None) -> _jax.Array:
        """Return a jax.Array of the same memory, which JAX assumes to be immutable.

        With a `dtype`, NumPy casts to it first. With a `device`, JAX copies to it.

        Raises
        ------
        ExchangeError
            JAX would copy or narrow: the memory has gaps or is not aligned to 64 bytes, or the numbers have
            64 bits and `jax_enable_x64` is off (a `BufferError`).
        """
    to_jax = jax
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: a view, or a copy if `dtype` or `copy` requires one.

        Raises
        ------
        ExchangeError
            Another dtype was asked for with `copy=False` (a `ValueError`).
        """
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3.

        Raises
        ------
        AttributeError
            NumPy has no code for the type; it then calls `__array__`.
        """
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """DLPack: a capsule of the same memory, versioned if the consumer supports that.

        Parameters
        ----------
        stream
            None: memory of the CPU has no streams.
        max_version
            The newest version that the consumer supports: a versioned capsule from (1, 0) on, else a legacy
            one.
        dl_device
            None or (1, 0), the CPU.
        copy
            True: a copy, marked as one. False and None: never a copy.

        Raises
        ------
        ExchangeError
            Another device, a stream, a type that DLPack lacks, or read-only memory in a legacy capsule, which
            cannot mark it (a `BufferError`).
        """
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    """DLPack: the C functions of this class (`DLPackExchangeAPI` 1.3), in a capsule.

    Other libraries use them to lend and borrow tensors without calling Python, sharing the memory. A
    description (`DLTensor`) of read-only memory is refused, since it has no flag for that; a managed tensor
    has one.
    """
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: the device as (type, number); (1, 0) is the CPU."""
    if sys.version_info >= (3, 12):
        # The buffer protocol (PEP 3118); Python 3.11 has it too, but no names for it.
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...
