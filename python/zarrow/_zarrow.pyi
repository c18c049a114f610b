"""The compiled part of zarrow: everything here is public as `zarrow.*`."""

import os
import sys
from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any, NoReturn, SupportsIndex, TypeAlias, final

import jax as _jax
import numpy as np
import numpy.typing as npt
import polars as _polars
import pyarrow as _pyarrow
import torch as _torch
from typing_extensions import CapsuleType, disjoint_base

_Part: TypeAlias = SupportsIndex | slice | EllipsisType
_Index: TypeAlias = _Part | tuple[_Part, ...]
_ViewPart: TypeAlias = _Part | None
_ViewIndex: TypeAlias = _ViewPart | tuple[_ViewPart, ...]

__all__ = [
    "Array",
    "DecodedArray",
    "Group",
    "MaskedTensor",
    "MaskedVariable",
    "Tensor",
    "Tree",
    "Variable",
    "__version__",
    "num_threads",
    "open",
    "set_num_threads",
]

__version__: str

def open(store: str | os.PathLike[str], path: str = "") -> Any:
    """Open the array or group at a path of a store, which is a folder or a file:// URL.

    Metadata is read, chunks are not. Versions 2 and 3 of Zarr are told apart by what is there.

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL. It may lie anywhere inside a larger hierarchy.
    path
        Where in the store to look; `""` is its root.

    Returns
    -------
    Array or Group
        Typed as `Any`, so that `zarrow.open(...)["name"][0:10]` passes a type checker.

    Raises
    ------
    NotFoundError
        There is neither an array nor a group (a `FileNotFoundError`).
    MetadataError
        The metadata is malformed (a `ValueError`).
    UnsupportedError
        The URL is of another scheme (a `NotImplementedError`).

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open("data.zarr")
    >>> root["temperature"].shape
    (48, 6, 8)
    """

def set_num_threads(count: int) -> None:
    """Set how many threads a read may use, the calling one among them.

    The environment variable `ZARROW_NUM_THREADS` sets it from outside.

    Raises
    ------
    ValueError
        The count is 0.
    """

def num_threads() -> int:
    """Tell how many threads a read may use, the calling one among them."""

@disjoint_base
class DecodedArray:
    """A decoded array: the base class of Tensor, Variable, MaskedTensor and MaskedVariable.

    Every array in Zarr decodes to one of these four, which `isinstance` tells apart.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis, outermost first."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements.

        `numpy.dtypes.StringDType()` for strings, `object` for bytes of any length, and the types of
        `ml_dtypes` for bfloat16 and the 8-bit floats.
        """
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int:
        """The bytes of all buffers: elements, and offsets and mask where there are any."""
    @property
    def device(self) -> str:
        """Where the memory is: "cpu"."""
    def __len__(self) -> int: ...
    def tolist(self) -> Any:
        """Give the elements as nested lists of Python objects, None where one is missing."""
    def arrow(self) -> _pyarrow.Array:
        """Give a pyarrow.Array of the same memory.

        One axis gives a primitive or string array; more axes `arrow.fixed_shape_tensor` over axis 0
        (strings: nested lists). bool is `arrow.bool8`, one byte an element. Times that are NaT become null.
        A mask becomes a bitmap, which is the one thing that is new.

        Raises
        ------
        ExchangeError
            Arrow has no such type, the array has no axis, or rows with gaps (a `BufferError`).

        Examples
        --------
        >>> import zarrow
        >>> tensor = zarrow.open("data.zarr")["temperature"][:, 0, 0]
        >>> tensor.arrow().buffers()[1].address == tensor.numpy().ctypes.data
        True
        """
    to_arrow = arrow
    def polars(self) -> _polars.Series:
        """Give a polars.Series of the same memory.

        It goes by way of Arrow: what `arrow` says holds here, errors too.
        """
    to_polars = polars

@final
class Tensor(DecodedArray):
    """A strided array of fixed-size elements in one buffer, shared with every library that asks for it.

    All faces have one address: NumPy, PyTorch, JAX, Arrow, the buffer protocol. A write through one of them
    shows in the others, those of JAX and Arrow too. The memory is aligned to 64 bytes and writable, unless
    `readonly` says otherwise; it lives as long as any of its faces.

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
    def itemsize(self) -> int:
        """The bytes of one element."""
    @property
    def T(self) -> Tensor:  # noqa: N802
        """The same memory with its axes reversed."""
    def item(self) -> Any:
        """Give the one element as a Python object.

        Raises
        ------
        ValueError
            There is not just one element.
        """
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __contains__(self, value: Any, /) -> bool: ...
    def __getitem__(self, index: _ViewIndex, /) -> Tensor:
        """Give a view of the same memory, by integers, slices with any step, `...` and `None`.

        Raises
        ------
        IndexingError
            The index lies outside, or is an array or a mask (an `IndexError`).
        """
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
        """Give the same memory with its axes in another order: reversed, where none is given.

        Raises
        ------
        ShapeError
            The axes are no order of those of the tensor (a `ValueError`).
        """
    def copy(self) -> Tensor:
        """Make a contiguous, writable copy in memory of its own."""
    def numpy(self) -> npt.NDArray[Any]:
        """Give a numpy.ndarray of the same memory."""
    to_numpy = numpy
    def torch(self) -> _torch.Tensor:
        """Give a torch.Tensor of the same memory.

        Raises
        ------
        ExchangeError
            The memory is read-only, strides are negative, or DLPack has no such type (a `BufferError`).
        """
    to_torch = torch
    def jax(self) -> _jax.Array:
        """Give a jax.Array of the same memory, which JAX takes to be immutable.

        Raises
        ------
        ExchangeError
            JAX would copy or narrow: memory with gaps or not aligned to 64 bytes, 64-bit numbers while
            `jax_enable_x64` is off (a `BufferError`).
        """
    to_jax = jax
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: a view, or a copy where dtype or copy ask for one.

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
        """DLPack: a capsule of the same memory, versioned where the consumer takes that.

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
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: the device as (type, number); (1, 0) is the CPU."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each; the requested type is not looked at."""
    if sys.version_info >= (3, 12):
        # The buffer protocol (PEP 3118); Python 3.11 has it too, but no names for it.
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class Variable(DecodedArray):
    """An array of strings or bytes, as Arrow has them: offsets and the bytes of all elements.

    Element `i` in C order is `data[offsets[i]:offsets[i + 1]]`. The memory is immutable; Arrow and polars
    share it.

    Examples
    --------
    >>> import zarrow
    >>> names = zarrow.open("data.zarr")["station"][:3]
    >>> names[0], names.tolist()
    ('Oslo', ['Oslo', 'Rome', 'Quito'])
    """

    @property
    def offsets(self) -> Tensor:
        """Where each element starts in the data, and where the last one ends: a read-only Tensor of int64."""
    @property
    def data(self) -> Tensor:
        """The bytes of all elements: a read-only Tensor of uint8."""
    def __getitem__(self, index: SupportsIndex | tuple[SupportsIndex, ...], /) -> str | bytes:
        """One element, by an integer for each axis.

        Raises
        ------
        IndexingError
            It lies outside, or there is not an integer for each axis (an `IndexError`).
        """
    def numpy(self) -> npt.NDArray[Any]:
        """Make a numpy.ndarray: of StringDType for strings, of objects for bytes. NumPy cannot share them."""
    to_numpy = numpy
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: always a copy.

        Raises
        ------
        ExchangeError
            `copy` is False (a `ValueError`).
        """
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each; the requested type is not looked at."""

@final
class MaskedTensor(DecodedArray):
    """A tensor and a mask that is True where a value is missing, as in numpy.ma.

    Examples
    --------
    >>> import zarrow
    >>> masked = zarrow.open("data.zarr")["turbidity_on_land"][...]
    >>> masked.tolist(), masked.filled(-1).tolist()
    ([1, None, 3, 4], [1, -1, 3, 4])
    """

    @property
    def data(self) -> Tensor:
        """The elements: a Tensor of the same memory, zero where one is missing."""
    @property
    def mask(self) -> Tensor:
        """Which elements are missing: a read-only Tensor of bool."""
    def filled(self, value: Any) -> Tensor:
        """Make a Tensor with value where an element is missing.

        Raises
        ------
        TypeError
            The value does not cast to the type without loss of its kind, such as 1.5 to an integer.
        """
    def numpy(self) -> np.ma.MaskedArray[Any, Any]:
        """Give a numpy.ma.MaskedArray of the same data and mask memory; the mask is read-only."""
    to_numpy = numpy
    def torch(self) -> NoReturn:
        """Refuse, with an ExchangeError: PyTorch has no masks."""
    to_torch = torch
    def jax(self) -> NoReturn:
        """Refuse, with an ExchangeError: JAX has no masks."""
    to_jax = jax
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        """Refuse, with an ExchangeError: a plain array has no mask."""
    def __dlpack__(self, **arguments: Any) -> NoReturn:
        """Refuse, with an ExchangeError: DLPack has no masks."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: the device as (type, number); (1, 0) is the CPU."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each, with a bitmap of what is there."""

@final
class MaskedVariable(DecodedArray):
    """An array of strings or bytes and a mask that is True where one is missing.

    Examples
    --------
    >>> import zarrow
    >>> names = zarrow.open("data.zarr")["nickname"][...]
    >>> names.tolist()
    ['Tigerstaden', None, 'Luz de América']
    """

    @property
    def data(self) -> Variable:
        """The elements: a Variable of the same memory, empty where one is missing."""
    @property
    def mask(self) -> Tensor:
        """Which elements are missing: a read-only Tensor of bool."""
    def filled(self, value: str | bytes) -> Variable:
        """Make a Variable with value where an element is missing.

        Raises
        ------
        TypeError
            The value is no str where the elements are strings, or no bytes where they are bytes.
        """
    def __getitem__(self, index: SupportsIndex | tuple[SupportsIndex, ...], /) -> str | bytes | None:
        """One element, None where it is missing, by an integer for each axis.

        Raises
        ------
        IndexingError
            It lies outside, or there is not an integer for each axis (an `IndexError`).
        """
    def numpy(self) -> npt.NDArray[np.object_]:
        """Make a numpy.ndarray of objects, None where one is missing."""
    to_numpy = numpy
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        """Refuse, with an ExchangeError: a plain array has no mask."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each, with a bitmap of what is there."""

@final
class Array:
    """An array in a store: its metadata is read, its chunks are read when they are asked for.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> temperature[0:24, ::2, -1].shape
    (24, 3)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis, outermost first."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int | None:
        """The bytes of all elements when decoded; None where they have no fixed size."""
    @property
    def nbytes_stored(self) -> int:
        """The bytes that the store holds for the array, metadata included; looks at every chunk."""
    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of what is decoded at once, inside shards if there are any.

        None for a rectilinear grid.
        """
    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard; None where the array has none."""
    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, as a new dict."""
    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The name of each axis, None where it has none; None where no axis has one."""
    @property
    def fill_value(self) -> Any:
        """What an element is where no chunk is stored: a NumPy scalar, str, bytes, or None if missing."""
    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata in the terms of Zarr version 3, whichever version is stored, as a new dict."""
    @property
    def path(self) -> str:
        """The path in the store, without a slash before it; "" is the root."""
    @property
    def name(self) -> str:
        """The path in the store, with a slash before it."""
    @property
    def store(self) -> str:
        """The store, as it calls itself."""
    @property
    def zarr_format(self) -> int:
        """The version of the Zarr format: 2 or 3."""
    def __len__(self) -> int: ...
    def __getitem__(self, index: _Index, /) -> Any:
        """Read a selection: integers, which drop their axis, slices with any step, and `...`.

        Returns
        -------
        Tensor, Variable, MaskedTensor or MaskedVariable
            In new memory; typed as `Any`, since the data type of the array decides.

        Raises
        ------
        IndexingError
            An integer lies outside its axis, or the index is of another kind (an `IndexError`).
        CodecError
            A chunk does not decode (a `ValueError`).
        OutOfMemoryError
            There is not enough memory (a `MemoryError`).
        StoreError
            The store could not be read (an `OSError`).
        KeyboardInterrupt
            Ctrl-C stops a long read.
        """
    def read(self, selection: _Index | None = None) -> Any:
        """Read a selection; all of the array where none is given.

        What `__getitem__` says holds here.
        """
    def retrieve_chunk(self, indices: SupportsIndex | Sequence[SupportsIndex]) -> Any:
        """Read one chunk by its place in the grid, cut to the array at its end.

        The result is as that of `__getitem__`; where the array is sharded, the chunk is a shard.

        Raises
        ------
        IndexingError
            The grid has no such chunk (an `IndexError`).
        """
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: reads all of the array.

        Raises
        ------
        ExchangeError
            `copy` is False (a `ValueError`), or elements may be missing.
        """

@final
class Group:
    """A group of arrays and groups in a store.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open("data.zarr")
    >>> "model/pressure" in root, list(root)
    (True, ['model', 'nickname', 'station', 'temperature', 'turbidity_on_land'])
    """

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, as a new dict."""
    @property
    def path(self) -> str:
        """The path in the store, without a slash before it; "" is the root."""
    @property
    def name(self) -> str:
        """The path in the store, with a slash before it."""
    @property
    def store(self) -> str:
        """The store, as it calls itself."""
    @property
    def zarr_format(self) -> int:
        """The version of the Zarr format: 2 or 3."""
    def __getitem__(self, path: str, /) -> Any:
        """Give the Array or Group at a path below, such as "model/pressure".

        Raises
        ------
        NotFoundError
            There is none (a `KeyError`).
        MetadataError
            Its metadata is malformed (a `ValueError`).
        """
    def __contains__(self, path: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> list[str]:
        """List the names of the members, sorted."""
    def values(self) -> list[Any]:
        """List the members, sorted by name."""
    def items(self) -> list[tuple[str, Any]]:
        """List the members with their names, sorted."""
    def arrays(self) -> list[tuple[str, Array]]:
        """List the arrays with their names, sorted."""
    def groups(self) -> list[tuple[str, Group]]:
        """List the groups with their names, sorted."""
    def tree(self, depth: int | None = None) -> Tree:
        """Draw what is below the group, as a tree to print; depth limits the levels."""

@final
class Tree:
    """The drawing of a hierarchy, which a prompt and a notebook show as it is."""
