"""Functions that convert arrays of one library to another's, without a copy if possible.

Data are shared if possible: the result uses the source's memory, so that a write through one is visible in
the other, and the source stays alive as long as the result. Each function lists the cases in which it copies.
With `copy=False` it raises an `ExchangeError` instead (a `BufferError` and a `ValueError`); `copy=True`
always copies.

The time of a call does not depend on the size of the shared data.

>>> import numpy as np
>>> from zarrow import io
>>> array = np.arange(6).reshape(2, 3)
>>> rows = io.numpy_to_arrow_zero_copy(array)
>>> array[0, 0] = 9
>>> io.arrow_to_numpy_zero_copy(rows)
array([[9, 1, 2],
       [3, 4, 5]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import zarrow
from zarrow._zarrow import BufferProducer, _import
from zarrow.errors import ExchangeError
from zarrow.hints.module_names import getattr_of as _getattr_of

if TYPE_CHECKING:
    import cupy as _cupy
    import jax as _jax
    import numpy as np
    import numpy.typing as npt
    import polars
    import pyarrow as _pyarrow
    import torch as _torch
    from typing_extensions import CapsuleType

__all__ = [
    "ZeroCopyArray",
    "arrow_to_numpy_zero_copy",
    "from_dlpack",
    "numpy_to_arrow_zero_copy",
    "numpy_to_torch_zero_copy",
    "table_to_numpy_zero_copy",
    "to_dlpack",
    "torch_to_numpy_zero_copy",
    "wrap_for_zero_copy",
]

if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)

_T = TypeVar("_T")
# The integers that a float64 has all of.
_EXACT = 2**53


def to_dlpack(
    array: Any, *, copy: bool | None = None, max_version: tuple[int, int] | None = (1, 3)
) -> CapsuleType:
    """Return a DLPack capsule of an array, for consumers that take capsules. Needs only NumPy.

    Data that DLPack cannot describe are copied: non-native byte order, strides that are not multiples of the
    element size, unaligned elements, and Python sequences. All other strides are exported unchanged.

    Parameters
    ----------
    array
        Any array that `zarrow.asarray` takes; a tensor on another device exports its own capsule.
    copy
        None: copy if sharing is impossible. False: raise an error instead. True: always copy.
    max_version
        The newest version of DLPack that the consumer supports. None gives a capsule from before 1.0, which
        cannot mark memory as read-only, so read-only memory is refused.

    Raises
    ------
    ExchangeError
        DLPack has no such type (times, text, masks), or `copy=False` and a copy is needed (a `BufferError`).

    Examples
    --------
    >>> import numpy as np
    >>> from zarrow import io
    >>> capsule = io.to_dlpack(np.arange(3))
    >>> io.from_dlpack(capsule)
    array([0, 1, 2])
    """

    def capsule(lender: Any) -> CapsuleType:
        capsule: CapsuleType = lender.__dlpack__(max_version=max_version)
        return capsule

    if _is_elsewhere(array):
        return capsule(array)
    return _shared(zarrow.asarray(array, copy=copy), copy, capsule)


def from_dlpack(x: Any, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return a NumPy array of a DLPack capsule or producer. Needs only NumPy.

    Nothing is copied. Read-only memory gives a read-only array. Capsules from before DLPack 1.0 cannot mark
    memory as writable, and count as read-only, as in NumPy.

    Parameters
    ----------
    x
        A capsule, which is consumed, or an object with `__dlpack__`.
    copy
        True: copy. False: refuse data that the producer copied. None: accept both.

    Raises
    ------
    ExchangeError
        The memory is not on the CPU, NumPy lacks the type, or the capsule was already consumed (a
        `BufferError`).
    TypeError
        `x` is neither a capsule nor a producer.

    Examples
    --------
    >>> import numpy as np
    >>> from zarrow import io
    >>> array = np.arange(3)
    >>> io.from_dlpack(array)[0] = 7
    >>> array
    array([7, 1, 2])
    """
    return zarrow.from_dlpack(x, copy=copy).numpy()


def numpy_to_torch_zero_copy(array: Any, *, copy: bool | None = None) -> _torch.Tensor:
    """Return a torch.Tensor of an array's memory.

    Data that PyTorch does not support are copied: negative strides, non-native byte order, strides that are
    not multiples of the element size, and read-only memory, because PyTorch would write to it.

    Parameters
    ----------
    array
        A NumPy array, including `ml_dtypes` arrays, or any other that `zarrow.asarray` takes.
    copy
        None: copy if sharing is impossible. False: raise an error instead. True: always copy.

    Raises
    ------
    ImportError
        PyTorch is not installed: install the extra `torch`.
    ExchangeError
        PyTorch has no such type (times, text, masks), or `copy=False` and a copy is needed (a `BufferError`).
    """
    _needed("torch", "PyTorch", "torch")
    return _shared(zarrow.asarray(array, copy=copy), copy, lambda tensor: tensor.torch())


def torch_to_numpy_zero_copy(tensor: _torch.Tensor, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return a NumPy array of a torch.Tensor's memory, of any strides.

    bfloat16 and float8 are types of `ml_dtypes`.

    A tensor that tracks gradients is detached, as by `tensor.detach().numpy()`. Tensors on a GPU, sparse
    tensors, and lazy conjugates and negatives are copied.

    Parameters
    ----------
    tensor
        The tensor.
    copy
        None: copy if sharing is impossible. False: raise an error instead. True: always copy.

    Raises
    ------
    ImportError
        PyTorch is not installed: install the extra `torch`.
    TypeError
        `tensor` is not a tensor.
    ExchangeError
        NumPy has no such type, or `copy=False` and a copy is needed (a `BufferError`).
    """
    torch = _needed("torch", "PyTorch", "torch")
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a torch.Tensor, got {type(tensor)}")
    dense = tensor.detach()
    if copy is not False:
        dense = dense.cpu().to_dense() if dense.layout is not torch.strided else dense.cpu()
        dense = dense.resolve_conj().resolve_neg()
    elif dense.layout is not torch.strided:
        raise ExchangeError("a sparse tensor can only be copied", kind="needs_copy")
    return zarrow.from_dlpack(dense, copy=copy).numpy()


def numpy_to_arrow_zero_copy(
    array: Any, *, copy: bool | None = None, bools: Literal["bytes", "bits"] = "bytes"
) -> _pyarrow.Array:
    """Return a pyarrow.Array of an array's memory.

    A 1-D array gives a primitive array. With more axes, the elements are the rows along axis 0, of the type
    `fixed_shape_tensor`: an array of shape (10000, 256) has the length 10000 and fits into a table.

    Non-contiguous data (except rows with swapped axes), non-native byte order, and text, which Arrow stores
    in UTF-8, are copied. NaT becomes null.

    Parameters
    ----------
    array
        A NumPy array, or any other that `zarrow.asarray` takes; a `numpy.ma` array gives nulls.
    copy
        None: copy if sharing is impossible. False: raise an error instead. True: always copy.
    bools
        `"bytes"`: bools become `arrow.bool8`, which shares the bytes. `"bits"`: bools become Arrow's packed
        bools, which are always a copy.

    Raises
    ------
    ImportError
        pyarrow is not installed: install the extra `arrow`.
    ExchangeError
        Arrow has no such type, the array has no axis, or `copy=False` and a copy is needed (a `BufferError`).

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from zarrow import io
    >>> vectors = io.numpy_to_arrow_zero_copy(np.zeros((10000, 256), dtype="f4"))
    >>> pa.table({"id": np.arange(10000), "vector": vectors}).shape
    (10000, 2)
    """
    _needed("pyarrow", "pyarrow", "arrow")
    tensor = zarrow.asarray(array, copy=copy)
    if copy is False and (tensor.dtype.kind == "U" or (bools == "bits" and tensor.dtype.kind == "b")):
        raise ExchangeError("Arrow's text and packed bools can only be copied", kind="needs_copy")
    return _shared(tensor, copy, lambda tensor: tensor.arrow(bools=bools))


def arrow_to_numpy_zero_copy(arrow_array: Any, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return a read-only NumPy array of an Arrow array's memory: Arrow's data are immutable.

    `fixed_shape_tensor` and fixed-size lists give arrays with several axes. Arrays of several chunks, packed
    bools, 32-bit dates and times, dictionaries, text and arrays with nulls are copied. Nulls become NaN in
    floats and integers (which become float64, as in pyarrow), NaT in times, and None in objects.

    Parameters
    ----------
    arrow_array
        A pyarrow.Array or ChunkedArray, a polars.Series, or anything else that `zarrow.from_arrow` takes.
    copy
        None: copy if sharing is impossible. False: raise an error instead. True: always copy, to writable
        memory.

    Raises
    ------
    ExchangeError
        NumPy has no such type (lists of any length, structs, decimals); float64 cannot represent integers of
        an array with nulls; or `copy=False` and a copy is needed (a `BufferError`).
    TypeError
        It is not an Arrow array.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from zarrow import io
    >>> io.arrow_to_numpy_zero_copy(pa.array([1.5, None]))
    array([1.5, nan])
    """
    taken = zarrow.from_arrow(arrow_array) if copy is not False else _borrowed(arrow_array)
    if isinstance(taken, zarrow.MaskedTensor):
        if copy is False:
            raise ExchangeError("an array with nulls can only be copied", kind="needs_copy")
        return _without_mask(taken)
    array: npt.NDArray[Any] = taken.numpy()
    return array.copy() if copy and isinstance(taken, zarrow.Tensor) else array


def table_to_numpy_zero_copy(table: Any, column: str, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return a NumPy array of a column of a table. A single chunk is shared, several are copied.

    Data that `arrow_to_numpy_zero_copy` copies is also copied here.

    Parameters
    ----------
    table
        A pyarrow.Table or RecordBatch.
    column
        The name of the column.
    copy
        None: copy if sharing is impossible. False: raise an error instead. True: always copy, to writable
        memory.

    Raises
    ------
    KeyError
        The table has no such column, or several of the same name.
    ExchangeError
        As `arrow_to_numpy_zero_copy`.
    """
    if table.column_names.count(column) != 1:
        raise KeyError(column)
    return arrow_to_numpy_zero_copy(table.column(column), copy=copy)


class ZeroCopyArray(BufferProducer):
    """An array for any library: it exports DLPack, the buffer protocol and Arrow.

    It shares the memory of the given array, as `zarrow.asarray` does.

    Parameters
    ----------
    array
        A NumPy array, or any array of fixed-size elements that `zarrow.asarray` takes.

    Attributes
    ----------
    tensor : zarrow.Tensor
        The tensor that owns the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from zarrow import io
    >>> shared = io.ZeroCopyArray(np.arange(6).reshape(2, 3))
    >>> np.from_dlpack(shared).ctypes.data == memoryview(shared).obj.array.ctypes.data
    True
    >>> len(shared.to_arrow()), shared.to_numpy().shape
    (2, (2, 3))
    """

    def __new__(cls, array: Any) -> Self:  # noqa: D102
        tensor = zarrow.asarray(array)
        if not isinstance(tensor, zarrow.Tensor):
            raise TypeError(
                f"expected an array of elements of a fixed size without a mask, got {type(array)}"
            )
        return super().__new__(cls, tensor)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The NumPy array of the memory."""
        return self.tensor.numpy()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis, outermost first."""
        return self.tensor.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self.tensor.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.tensor.ndim

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.tensor.nbytes

    def __len__(self) -> int:
        return len(self.tensor)

    def __repr__(self) -> str:
        return f"ZeroCopyArray(shape={self.shape}, dtype={self.dtype})"

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the NumPy array of the memory. Nothing is copied."""
        return self.tensor.numpy()

    def to_torch(self, *, copy: bool | None = None) -> _torch.Tensor:
        """Return a torch.Tensor; `numpy_to_torch_zero_copy` lists when it copies."""
        return numpy_to_torch_zero_copy(self.tensor, copy=copy)

    def to_arrow(
        self, *, copy: bool | None = None, bools: Literal["bytes", "bits"] = "bytes"
    ) -> _pyarrow.Array:
        """Return a pyarrow.Array; `numpy_to_arrow_zero_copy` lists when it copies."""
        return numpy_to_arrow_zero_copy(self.tensor, copy=copy, bools=bools)

    def to_dlpack(self, *, copy: bool | None = None) -> CapsuleType:
        """Return a DLPack capsule; `to_dlpack` lists when it copies."""
        return to_dlpack(self.tensor, copy=copy)

    def to_jax(self, *, copy: bool | None = None) -> _jax.Array:
        """Return a jax.Array, which JAX assumes to be immutable.

        Data that is not aligned to 64 bytes, or has gaps, is copied.

        Raises
        ------
        ImportError
            JAX is not installed: install the extra `jax`.
        ExchangeError
            JAX has no such type, or would narrow 64-bit numbers because `jax_enable_x64` is off (a
            `BufferError`).
        """
        _needed("jax", "JAX", "jax")
        return _shared(_copied(self.tensor, copy), copy, lambda tensor: tensor.jax())

    def to_cupy(self, *, copy: bool | None = None) -> _cupy.ndarray:
        """Return a cupy.ndarray, which is always a copy on the GPU.

        Raises
        ------
        ImportError
            CuPy is not installed.
        ExchangeError
            `copy=False` (a `BufferError`).
        """
        cupy = _needed("cupy", "CuPy", None)
        if copy is False:
            raise ExchangeError("CuPy's memory is on a GPU: the array can only be copied", kind="needs_copy")
        return cupy.asarray(self.to_numpy())

    def to_polars(self, *, copy: bool | None = None) -> polars.Series:
        """Return a polars.Series, through Arrow; `numpy_to_arrow_zero_copy` lists when it copies.

        Rows with several axes have polars' type `Array`. Bools are copied, because polars packs them into
        bits.

        Raises
        ------
        ImportError
            polars is not installed: install the extra `polars`.
        ExchangeError
            Arrow has no such type, or `copy=False` and a copy is needed (a `BufferError`).
        """
        _needed("polars", "polars", "polars")
        if copy is False and self.dtype.kind in "bU":
            raise ExchangeError("text and bools can only be copied to polars", kind="needs_copy")

        def series(tensor: zarrow.Tensor) -> polars.Series:
            return tensor.polars(layout="nested", bools="bits")

        return _shared(_copied(self.tensor, copy), copy, series)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.tensor.__array__(dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __arrow_c_schema__(self) -> CapsuleType:
        return self.tensor.__arrow_c_schema__()

    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        return self.tensor.__arrow_c_array__(requested_schema)


def wrap_for_zero_copy(array: Any) -> ZeroCopyArray:
    """Return the `ZeroCopyArray` of an array. It copies only if `zarrow.asarray` does."""
    return ZeroCopyArray(array)


def _shared(tensor: Any, copy: bool | None, hand_over: Callable[[Any], _T]) -> _T:
    """Export a tensor; copy it if its memory does not fit and copying is allowed."""
    try:
        return hand_over(tensor)
    except ExchangeError as error:
        if copy is False or error.kind not in ("needs_copy", "read_only"):
            raise
        return hand_over(tensor.copy())


def _copied(tensor: zarrow.Tensor, copy: bool | None) -> zarrow.Tensor:
    return tensor.copy() if copy else tensor


def _is_elsewhere(array: Any) -> bool:
    """Return whether the memory is on a device; pinned CPU memory is not."""
    tell = getattr(array, "__dlpack_device__", None)
    return tell is not None and tell()[0] not in (1, 3, 11)


def _borrowed(arrow_array: Any) -> Any:
    """Take an Arrow array, without a copy."""
    if not any(hasattr(arrow_array, name) for name in ("__arrow_c_array__", "__arrow_c_stream__")):
        raise TypeError(f"expected an Arrow array, got {type(arrow_array)}")
    taken = zarrow.asarray(arrow_array, copy=False)
    if isinstance(taken, zarrow.Variable | zarrow.MaskedVariable):
        raise ExchangeError("text can only be copied to NumPy", kind="needs_copy")
    return taken


def _without_mask(masked: zarrow.MaskedTensor) -> npt.NDArray[Any]:
    """Return the elements in an array with NaN, NaT or None for missing ones."""
    data, missing = masked.data.numpy(), masked.mask.numpy()
    kind = data.dtype.kind
    there = data[~missing]
    if kind in "iu" and not ((there >= -_EXACT) & (there <= _EXACT)).all():
        raise ExchangeError(
            "integers with nulls become float64, which cannot represent more than 53 bits: type "
            "zarrow.from_arrow(x)"
        )
    if kind in "iu":
        filled = data.astype("f8")
    elif kind in "fmM":
        filled = data.copy()
    else:
        filled = data.astype(object)
    filled[missing] = None if filled.dtype.kind == "O" else "NaT" if kind in "mM" else float("nan")
    return filled


def _needed(module: str, name: str, extra: str | None) -> Any:
    """Import a library, or say how to get it."""
    try:
        return _import(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        how = f"pip install 'zarrow[{extra}]'" if extra else "see https://docs.cupy.dev"
        raise ImportError(f"this needs {name}, which is not installed: {how}", name=module) from error
