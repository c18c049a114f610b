"""Arrays from one library to another by function, each saying when it copies.

Data is shared where possible: the result has the source's memory, so that a write through one shows in the
other, and the source stays alive as long as the result. Otherwise it is copied, in the cases that each
function lists. `copy=False` refuses instead, with an `ExchangeError` (a `BufferError` and a `ValueError`);
`copy=True` always copies.

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

_T = TypeVar("_T")
# The integers that a float64 has all of.
_EXACT = 2**53


def to_dlpack(
    array: Any, *, copy: bool | None = None, max_version: tuple[int, int] | None = (1, 3)
) -> CapsuleType:
    """Return the DLPack capsule of an array, for a consumer that takes capsules. It needs NumPy alone.

    Data that DLPack cannot describe is copied: non-native byte order, elements that are not a whole number of
    elements apart or not aligned, and Python sequences. Any strides are exported unchanged.

    Parameters
    ----------
    array
        Any array that `zarrow.asarray` takes; a tensor on another device gives its own capsule.
    copy
        None: copy if sharing is impossible. False: refuse it. True: always copy.
    max_version
        The newest version of DLPack that the consumer takes; None for a capsule of before 1.0, which cannot
        say that memory is read-only, so that such memory is refused.

    Raises
    ------
    ExchangeError
        DLPack has no such type (times, text, masks), or what `copy=False` refuses (a `BufferError`).

    Examples
    --------
    >>> import numpy as np
    >>> from zarrow import io
    >>> capsule = io.to_dlpack(np.arange(3))
    >>> io.from_dlpack(capsule)
    array([0, 1, 2])
    """

    def capsule(lender: Any) -> CapsuleType:
        lent: CapsuleType = lender.__dlpack__(max_version=max_version)
        return lent

    if _is_elsewhere(array):
        return capsule(array)
    return _shared(zarrow.asarray(array, copy=copy), copy, capsule)


def from_dlpack(x: Any, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return a NumPy array of the memory that a capsule or a producer lends. It needs NumPy alone.

    Nothing is copied. Memory that must not be written to gives an array that is not writable; a capsule of
    before DLPack 1.0 cannot say so, and counts as such, as in NumPy.

    Parameters
    ----------
    x
        A capsule, which is used up, or an object with `__dlpack__`.
    copy
        True: copy. False: refuse data that the producer copied. None: accept both.

    Raises
    ------
    ExchangeError
        The memory is not on the CPU, NumPy does not have the type, or the capsule was used before (a
        `BufferError`).
    TypeError
        `x` is neither.

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

    Data that PyTorch does not support is copied: negative strides, non-native byte order, elements that are
    not a whole number of elements apart, and read-only memory, because PyTorch would write to it.

    Parameters
    ----------
    array
        A NumPy array, including `ml_dtypes` arrays, or any other that `zarrow.asarray` takes.
    copy
        None: copy if sharing is impossible. False: refuse it. True: always copy.

    Raises
    ------
    ImportError
        PyTorch is not there: the extra `torch` brings it.
    ExchangeError
        PyTorch has no such type (times, text, masks), or what `copy=False` refuses (a `BufferError`).
    """
    _needed("torch", "PyTorch", "torch")
    return _shared(zarrow.asarray(array, copy=copy), copy, lambda tensor: tensor.torch())


def torch_to_numpy_zero_copy(tensor: _torch.Tensor, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return a NumPy array of a torch.Tensor's memory, of any strides.

    bfloat16 and float8 are types of `ml_dtypes`.

    A tensor that tracks gradients is detached, as `tensor.detach().numpy()` is. Copied are tensors of a GPU,
    sparse tensors, and lazy conjugates and negatives.

    Parameters
    ----------
    tensor
        The tensor.
    copy
        None: copy if sharing is impossible. False: refuse it. True: always copy.

    Raises
    ------
    ImportError
        PyTorch is not there: the extra `torch` brings it.
    TypeError
        `tensor` is not a tensor.
    ExchangeError
        NumPy has no such type, or what `copy=False` refuses (a `BufferError`).
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

    One axis gives a primitive array; of more, axis 0 is the array, and its rows are elements of the type
    `fixed_shape_tensor`: an array of 10000 x 256 has the length 10000, and goes into a table beside others.

    Data that is not contiguous is copied (except rows with swapped axes), and so are non-native byte order
    and text, which Arrow stores in UTF-8. NaT is null.

    Parameters
    ----------
    array
        A NumPy array, or any other that `zarrow.asarray` takes; a `numpy.ma` array gives nulls.
    copy
        None: copy if sharing is impossible. False: refuse it. True: always copy.
    bools
        `"bytes"`: bool is the type `arrow.bool8`, which shares its bytes. `"bits"`: it is Arrow's own bool,
        with eight elements a byte, which is always a copy.

    Raises
    ------
    ImportError
        pyarrow is not there: the extra `arrow` brings it.
    ExchangeError
        Arrow has no such type, the array has no axis, or what `copy=False` refuses (a `BufferError`).

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
    """Return a NumPy array of an Arrow array's memory, which is not writable: Arrow's data is immutable.

    A `fixed_shape_tensor`, and fixed-size lists, give an array of as many axes. Copied are several chunks,
    bools of one bit, dates and times of 32 bits, dictionaries, text, and whatever has nulls: these become NaN
    among floats and integers (which become float64, as in pyarrow), NaT among times, and None among objects.

    Parameters
    ----------
    arrow_array
        A pyarrow.Array or ChunkedArray, a polars.Series, or anything else that `zarrow.from_arrow` takes.
    copy
        None: copy if sharing is impossible. False: refuse it. True: always copy, and be writable.

    Raises
    ------
    ExchangeError
        NumPy has no such type (lists of any length, structs, decimals); integers with nulls that float64
        cannot hold; or what `copy=False` refuses (a `BufferError`).
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
    """Return a NumPy array of a column of a table: one chunk is shared, several are joined by one copy.

    Data that `arrow_to_numpy_zero_copy` copies is also copied here.

    Parameters
    ----------
    table
        A pyarrow.Table or RecordBatch.
    column
        The name of the column.
    copy
        None: copy if sharing is impossible. False: refuse it. True: always copy, and be writable.

    Raises
    ------
    KeyError
        The table has no such column, or several.
    ExchangeError
        As `arrow_to_numpy_zero_copy`.
    """
    if table.column_names.count(column) != 1:
        raise KeyError(column)
    return arrow_to_numpy_zero_copy(table.column(column), copy=copy)


class ZeroCopyArray(BufferProducer):
    """An array that any library takes: a producer of DLPack, of the buffer protocol and of Arrow.

    Its memory is that of the array it is made of, shared as `zarrow.asarray` does.

    Parameters
    ----------
    array
        A NumPy array, or any other of elements of a fixed size that `zarrow.asarray` takes.

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
        """Return a torch.Tensor; `numpy_to_torch_zero_copy` says when it copies."""
        return numpy_to_torch_zero_copy(self.tensor, copy=copy)

    def to_arrow(
        self, *, copy: bool | None = None, bools: Literal["bytes", "bits"] = "bytes"
    ) -> _pyarrow.Array:
        """Return a pyarrow.Array; `numpy_to_arrow_zero_copy` says when it copies."""
        return numpy_to_arrow_zero_copy(self.tensor, copy=copy, bools=bools)

    def to_dlpack(self, *, copy: bool | None = None) -> CapsuleType:
        """Return a DLPack capsule; `to_dlpack` says when it copies."""
        return to_dlpack(self.tensor, copy=copy)

    def to_jax(self, *, copy: bool | None = None) -> _jax.Array:
        """Return a jax.Array, which JAX takes to be immutable.

        Data that is not aligned to 64 bytes, or has gaps, is copied.

        Raises
        ------
        ImportError
            JAX is not there: the extra `jax` brings it.
        ExchangeError
            JAX has no such type, or would narrow it: 64-bit numbers while `jax_enable_x64` is off (a
            `BufferError`).
        """
        _needed("jax", "JAX", "jax")
        return _shared(_copied(self.tensor, copy), copy, lambda tensor: tensor.jax())

    def to_cupy(self, *, copy: bool | None = None) -> _cupy.ndarray:
        """Return a cupy.ndarray, which is always a copy: its memory is the GPU's.

        Raises
        ------
        ImportError
            CuPy is not there.
        ExchangeError
            `copy=False` (a `BufferError`).
        """
        cupy = _needed("cupy", "CuPy", None)
        if copy is False:
            raise ExchangeError("CuPy's memory is on a GPU: the array can only be copied", kind="needs_copy")
        return cupy.asarray(self.to_numpy())

    def to_polars(self, *, copy: bool | None = None) -> polars.Series:
        """Return a polars.Series, by way of Arrow; `numpy_to_arrow_zero_copy` says when it copies.

        Rows of several axes are of polars' type `Array`, and bools, which polars has as bits, are copied.

        Raises
        ------
        ImportError
            polars is not there: the extra `polars` brings it.
        ExchangeError
            Arrow has no such type, or what `copy=False` refuses (a `BufferError`).
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
    """Return the `ZeroCopyArray` of an array; nothing is copied if `zarrow.asarray` does not."""
    return ZeroCopyArray(array)


def _shared(tensor: Any, copy: bool | None, hand_over: Callable[[Any], _T]) -> _T:
    """Hand a tensor over, copied if its memory does not suit and copying is allowed."""
    try:
        return hand_over(tensor)
    except ExchangeError as error:
        if copy is False or error.kind not in ("needs_copy", "read_only"):
            raise
        return hand_over(tensor.copy())


def _copied(tensor: zarrow.Tensor, copy: bool | None) -> zarrow.Tensor:
    return tensor.copy() if copy else tensor


def _is_elsewhere(array: Any) -> bool:
    """Return whether the memory is of a device that is not the CPU, nor memory that is pinned for one."""
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
            "zarrow.from_arrow(x)",
            kind="no_such_type",
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
