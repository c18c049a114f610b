"""The class DecodedArray."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NoReturn, Self, SupportsIndex

import numpy as np
import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import CapsuleType, disjoint_base

@disjoint_base
class DecodedArray:
    """A decoded array: the base class of Tensor, Variable, MaskedTensor and MaskedVariable.

    Every array in Zarr decodes to one of these four classes. They compute with NumPy: operators, comparisons
    and methods such as `sum` and `astype` return NumPy arrays. `str` prints the values like NumPy.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"][0]
    >>> (temperature - temperature.mean()).max()
    np.float32(23.5)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis, outermost first."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements.

        `numpy.dtypes.StringDType()` for strings, `object` for bytes of any length, and the types of
        `ml_dtypes` for bfloat16, floats of 8 bits and fewer, integers of 2 and 4 bits and complex numbers
        of 16-bit floats; other complex numbers are structures of `real` and `imag`.

        Raises
        ------
        ImportError
            `ml_dtypes` is needed and not installed: `pip install 'zarrow[ml-dtypes]'`.
        """
    @property
    def ndim(self) -> int:
        """The number of axes."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int:
        """The bytes of all buffers: elements, and offsets and mask if there are any."""
    @property
    def device(self) -> str:
        """Where the memory is: "cpu"."""
    def __len__(self) -> int: ...
    def __eq__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does.

        The result is a NumPy array of bools, or a `numpy.ma` array if elements are missing. Arrays of NumPy
        and PyTorch compare in the same way, on either side of the operator. As in NumPy, an array with axes
        therefore has no hash; `equals` compares whole arrays.
        """
    def __ne__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does."""
    def __lt__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does."""
    def __le__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does."""
    def __gt__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does."""
    def __ge__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does."""
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __rmatmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __floordiv__(self, other: Any, /) -> Any: ...
    def __rfloordiv__(self, other: Any, /) -> Any: ...
    def __mod__(self, other: Any, /) -> Any: ...
    def __rmod__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __rpow__(self, other: Any, /) -> Any: ...
    def __lshift__(self, other: Any, /) -> Any: ...
    def __rlshift__(self, other: Any, /) -> Any: ...
    def __rshift__(self, other: Any, /) -> Any: ...
    def __rrshift__(self, other: Any, /) -> Any: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __rand__(self, other: Any, /) -> Any: ...
    def __or__(self, other: Any, /) -> Any: ...
    def __ror__(self, other: Any, /) -> Any: ...
    def __xor__(self, other: Any, /) -> Any: ...
    def __rxor__(self, other: Any, /) -> Any: ...
    def __divmod__(self, other: Any, /) -> Any: ...
    def __rdivmod__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __pos__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __invert__(self) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None:
        """Refuse, with a TypeError that says what can be written to."""
    def __delitem__(self, index: Any, /) -> NoReturn:
        """Refuse, with a ValueError that says what to type."""
    def cpu(self) -> Self:
        """Return the array itself, which is on the CPU. For a tensor on a GPU, `cpu` returns a copy.

        Returns
        -------
        DecodedArray
            This array. Nothing is copied.

        Examples
        --------
        >>> import zarrow
        >>> tensor = zarrow.open("data.zarr")["temperature"][0]
        >>> tensor.cpu() is tensor
        True
        """
    def copy(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.copy`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def reshape(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.reshape`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def transpose(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.transpose`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    @property
    def T(self) -> Any:  # noqa: N802
        """Same as `numpy.ndarray.T`: a NumPy object, and a view if NumPy's is one."""
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items of the first axis, as indexing with an integer returns them."""
    def __reversed__(self) -> Iterator[Any]:
        """Iterate over the items of the first axis, from last to first."""
    def __hash__(self) -> int:
        """Return the hash of a 0-d array's element, like that of a NumPy scalar.

        Raises
        ------
        TypeError
            The array has axes, and so no hash.
        """
    def __round__(self, digits: int | None = None, /) -> Any:
        """Round a 0-d array to a Python number, and any other array by NumPy."""
    def __trunc__(self) -> int:
        """As `math.trunc` of the one element."""
    def __floor__(self) -> int:
        """As `math.floor` of the one element."""
    def __ceil__(self) -> int:
        """As `math.ceil` of the one element."""
    def __jax_array__(self) -> Any:
        """Return a jax.Array, which shares the memory if JAX can."""
    def item(self, *index: Any) -> Any:
        """Return the only element, or the one at a position, as a Python object; None if it is missing.

        Raises
        ------
        ValueError
            No position was given, and the array does not have exactly one element.
        """
    @property
    def flags(self) -> Any:
        """Same as `numpy.ndarray.flags`, of the array that `numpy` returns."""
    @property
    def flat(self) -> Any:
        """Same as `numpy.ndarray.flat`: a NumPy object, and a view if NumPy's is one."""
    @property
    def imag(self) -> Any:
        """Same as `numpy.ndarray.imag`: a NumPy object, and a view if NumPy's is one."""
    @property
    def real(self) -> Any:
        """Same as `numpy.ndarray.real`: a NumPy object, and a view if NumPy's is one."""
    def all(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.all`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def any(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.any`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def argmax(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.argmax`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def argmin(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.argmin`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def argsort(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.argsort`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def astype(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.astype`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def choose(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.choose`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def clip(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.clip`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def compress(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.compress`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def conj(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.conj`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def conjugate(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.conjugate`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def cumprod(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.cumprod`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def cumsum(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.cumsum`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def diagonal(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.diagonal`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def dot(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.dot`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def flatten(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.flatten`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def max(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.max`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def mean(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.mean`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def min(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.min`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def nonzero(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.nonzero`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def prod(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.prod`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def ravel(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.ravel`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def repeat(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.repeat`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def round(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.round`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def searchsorted(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.searchsorted`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def squeeze(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.squeeze`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def std(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.std`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def sum(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.sum`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def swapaxes(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.swapaxes`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def take(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.take`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def tobytes(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.tobytes`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def tofile(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.tofile`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def trace(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.trace`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def var(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.var`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def equals(self, other: object) -> bool:
        """Return whether both have the same layout, type, shape and elements; NaN equals NaN.

        Values of missing elements are ignored.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature[0].equals(temperature[0]), temperature[0].equals(temperature[1])
        (True, False)
        """
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """Pickle the array: protocol 5 passes the buffers out of band, without a copy.

        Loading shares the given buffers, and is read-only if they are.
        """
    def __copy__(self) -> Self:
        """Copy writable memory; strings and masks are read-only, and are shared."""
    def __deepcopy__(self, memo: Any, /) -> Self:
        """Copy writable memory; strings and masks are read-only, and are shared."""
    def tolist(self) -> Any:
        """Return the elements as nested lists of Python objects, None for missing ones."""
    def arrow(
        self,
        *,
        layout: Literal["tensor", "nested", "flat"] = "tensor",
        bools: Literal["bytes", "bits"] = "bytes",
        strings: Literal["large", "small", "views"] = "large",
        dimension_names: Sequence[str | None] | None = None,
    ) -> _pyarrow.Array:
        """Return a pyarrow.Array of the same memory.

        A 1-D array gives an array of elements. With more axes, the elements of the Arrow array are the rows
        along axis 0. bool is `arrow.bool8`, complex a list of two floats, times are timestamps and durations
        (NaT is null), raw bytes and `S` are fixed-size binary. bfloat16 and the 8-bit floats, which Arrow
        lacks, are `arrow.opaque` under their names, so that no one reads them as integers. A mask becomes a
        bitmap, in new memory. `U` text is converted to UTF-8, in new memory.

        Parameters
        ----------
        layout
            Form of rows with several axes: `"tensor"`, `arrow.fixed_shape_tensor` (nested lists for strings);
            `"nested"`, nested fixed-size lists (DuckDB then knows their shape); `"flat"`, all elements in C
            order instead of rows.
        bools
            `"bytes"`: one byte per element, shared. `"bits"`: Arrow's packed bools, copied.
        strings
            `"large"`: 64-bit offsets, shared. `"small"`: new 32-bit offsets (64-bit ones for 2 GiB of text or
            more). `"views"`: new views of 16 bytes over the shared text.
        dimension_names
            A name for each axis. If all axes have one, `fixed_shape_tensor` keeps all but the first.

        Raises
        ------
        ExchangeError
            Arrow has no such type (times in units that it lacks), the array has no axis, or its rows have
            gaps (a `BufferError`).

        Notes
        -----
        `__arrow_c_array__` returns the form that a consumer's schema requests, if it is one of these:
        `pyarrow.array(tensor, type=pyarrow.bool_())` gives packed bools.

        Examples
        --------
        >>> import zarrow
        >>> tensor = zarrow.open("data.zarr")["temperature"][:, 0, 0]
        >>> tensor.arrow().buffers()[1].address == tensor.numpy().ctypes.data
        True
        >>> rows = zarrow.open("data.zarr")["temperature"][...]
        >>> print(rows.arrow(dimension_names=["day", "y", "x"]).type.dim_names)
        ['y', 'x']
        >>> print(rows.arrow(layout="nested").type)
        fixed_size_list<item: fixed_size_list<item: float>[8]>[6]
        """
    to_arrow = arrow
    def polars(
        self,
        *,
        layout: Literal["tensor", "nested", "flat"] = "tensor",
        bools: Literal["bytes", "bits"] = "bits",
        strings: Literal["large", "small", "views"] = "large",
    ) -> _polars.Series:
        """Return a polars.Series of the same memory.

        The conversion goes through Arrow, with the rules and errors of `arrow`. With `layout="nested"` rows
        have polars' type `Array`. Bools are packed to polars' type `Boolean`, which it can filter by;
        `bools="bytes"` avoids the copy.
        """
    to_polars = polars
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: a capsule of the type and one of the memory, in the requested form if possible."""
