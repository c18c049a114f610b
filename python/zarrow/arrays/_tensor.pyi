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
    """A strided array of fixed-size elements in one buffer, shared with every library that asks for it.

    All views have one address: NumPy, PyTorch, JAX, Arrow, the buffer protocol. A write through one view
    shows in the others, including JAX and Arrow. The memory is aligned to 64 bytes and writable, unless
    `readonly` says otherwise; it lives as long as any of its views.

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
        """The bytes from one element to the next, along each axis."""
    @property
    def readonly(self) -> bool:
        """Whether no face of the memory may write to it."""
    @property
    def _assignments(self) -> int: ...
    @property
    def is_mapped(self) -> bool:
        """Whether the memory is a map of the store's files, and was not read from them.

        It is if `Array.read` was given `mmap=True` and could map it. Views of such a tensor are also mapped,
        copies are not.
        """
    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
    @property
    def T(self) -> Tensor:  # noqa: N802
        """The same memory with its axes reversed."""
    def item(self, *index: Any) -> Any:
        """Return an element as a Python object: the only one, or the one at these positions.

        Raises
        ------
        ValueError
            There is not exactly one element, and no position was given.
        """
    def fill(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.fill`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def partition(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.partition`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def put(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.put`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def sort(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.sort`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __format__(self, specification: str, /) -> str:
        """Format the one element, as in `f"{tensor:.2f}"`; without a specification, all as `str` does."""
    def __contains__(self, value: Any, /) -> bool: ...
    def __getitem__(self, index: _Index, /) -> Tensor:
        """Return a view of the same memory, by integers, slices with any step, `...` and `None`.

        Lists, masks and arrays of integers are taken as NumPy takes them, and copy.

        Raises
        ------
        IndexingError
            The index lies outside (an `IndexError`).
        """
    def __setitem__(self, index: _Index, value: Any, /) -> None:
        """Write values to part of the memory, by any index of NumPy and with its casts.

        Raises
        ------
        ValueError
            The memory is read-only, or the values do not fit.
        """
    def __iadd__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __isub__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __imul__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __imatmul__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __itruediv__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __ifloordiv__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __imod__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __ipow__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __ilshift__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __irshift__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __iand__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __ior__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __ixor__(self, other: Any, /) -> Self:
        """As NumPy does it, in the memory of this tensor; without axes it gives a new value."""
    def __index__(self) -> int:
        """As NumPy does it."""
    def __complex__(self) -> complex:
        """As NumPy does it."""
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        """Give the same memory another shape; one extent may be -1.

        Raises
        ------
        ShapeError
            The number of elements differs (a `ValueError`).
        ExchangeError
            No strides over this memory have that shape: `.copy()` first (a `BufferError`).
        """
    def transpose(self, *axes: SupportsIndex | Sequence[SupportsIndex]) -> Tensor:
        """Return the same memory with its axes in another order: reversed, if none is given.

        Raises
        ------
        ShapeError
            The axes are not a permutation of the tensor's (a `ValueError`).
        """
    def copy(self) -> Tensor:
        """Make a contiguous, writable copy in new memory."""
    def numpy(self) -> npt.NDArray[Any]:
        """Return a numpy.ndarray of the same memory."""
    to_numpy = numpy
    def torch(self) -> _torch.Tensor:
        """Return a torch.Tensor of the same memory.

        Raises
        ------
        ExchangeError
            The memory is read-only, strides are negative, or DLPack has no such type (a `BufferError`).
        """
    to_torch = torch
    def jax(self) -> _jax.Array:
        """Return a jax.Array of the same memory, which JAX takes to be immutable.

        Raises
        ------
        ExchangeError
            JAX would copy or narrow: memory with gaps or not aligned to 64 bytes, 64-bit numbers while
            `jax_enable_x64` is off (a `BufferError`).
        """
    to_jax = jax
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: a view, or a copy if dtype or copy ask for one.

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
            NumPy has no code for the type: it then asks `__array__`.
        """
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """DLPack: a capsule of the same memory, versioned if the consumer takes that.

        Parameters
        ----------
        stream
            None: memory of the CPU has no streams.
        max_version
            The newest version that the consumer takes: from (1, 0) on a versioned capsule, else a legacy one.
        dl_device
            None or (1, 0), the CPU.
        copy
            True: a copy, marked as one. False and None: never a copy.

        Raises
        ------
        ExchangeError
            Another device, a stream, a type that DLPack lacks, or read-only memory in a legacy capsule,
            which cannot say so (a `BufferError`).
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
