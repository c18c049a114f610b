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

    Every array in Zarr decodes to one of these four classes; `isinstance` tells which. They compute with
    NumPy: operators, comparisons and methods such as `sum` and `astype` give arrays of NumPy. `str` gives
    the values as NumPy writes them.

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

        The result is a NumPy array of bools, or a `numpy.ma` array if a mask says that elements are missing.
        NumPy's arrays and PyTorch's tensors compare in the same way, on either side of the operator. As in
        NumPy, an array with axes therefore has no hash;
        `equals` tells whether two arrays are the same.
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
    def __add__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __radd__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __sub__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rsub__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __mul__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rmul__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __matmul__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rmatmul__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __truediv__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rtruediv__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __floordiv__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rfloordiv__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __mod__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rmod__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __pow__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rpow__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __lshift__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rlshift__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rshift__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rrshift__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __and__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rand__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __or__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __ror__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __xor__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rxor__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __divmod__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __rdivmod__(self, other: Any, /) -> Any:
        """As NumPy does it, element by element; gives a NumPy array, masked if elements are missing."""
    def __neg__(self) -> Any:
        """As NumPy does it."""
    def __pos__(self) -> Any:
        """As NumPy does it."""
    def __abs__(self) -> Any:
        """As NumPy does it."""
    def __invert__(self) -> Any:
        """As NumPy does it."""
    def __setitem__(self, index: Any, value: Any, /) -> None:
        """Refuse, with a TypeError that says what can be written to."""
    def __delitem__(self, index: Any, /) -> NoReturn:
        """Refuse, with a ValueError that says what to type."""
    def cpu(self) -> Self:
        """Return the array itself: its memory is the CPU's. For a tensor on a GPU, `cpu` is a copy.

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
        """As `numpy.ndarray.copy`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def reshape(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.reshape`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def transpose(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.transpose`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    @property
    def T(self) -> Any:  # noqa: N802
        """As `numpy.ndarray.T`; NumPy's, and a view if NumPy's is one."""
    def __bool__(self) -> bool:
        """As NumPy does it."""
    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items of the first axis, as indexing with an integer returns them."""
    def __reversed__(self) -> Iterator[Any]:
        """Iterate over the items of the first axis, from last to first."""
    def __hash__(self) -> int:
        """Return the hash of the one element of an array without axes, as a scalar of NumPy has it.

        Raises
        ------
        TypeError
            The array has axes: it is no value that could be looked up.
        """
    def __round__(self, digits: int | None = None, /) -> Any:
        """Round as `round` does: one element without axes to a Python number, others by NumPy."""
    def __trunc__(self) -> int:
        """As `math.trunc` of the one element."""
    def __floor__(self) -> int:
        """As `math.floor` of the one element."""
    def __ceil__(self) -> int:
        """As `math.ceil` of the one element."""
    def __jax_array__(self) -> Any:
        """Return a jax.Array, which shares the memory if JAX can."""
    def item(self, *index: Any) -> Any:
        """Return an element as a Python object, None if it is missing: the only one, or that at a position.

        Raises
        ------
        ValueError
            There is not exactly one element, and no position was given.
        """
    @property
    def flat(self) -> Any:
        """As `numpy.ndarray.flat`; NumPy's, and a view if NumPy's is one."""
    @property
    def imag(self) -> Any:
        """As `numpy.ndarray.imag`; NumPy's, and a view if NumPy's is one."""
    @property
    def real(self) -> Any:
        """As `numpy.ndarray.real`; NumPy's, and a view if NumPy's is one."""
    def all(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.all`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def any(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.any`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def argmax(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.argmax`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def argmin(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.argmin`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def argsort(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.argsort`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def astype(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.astype`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def choose(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.choose`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def clip(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.clip`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def compress(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.compress`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def conj(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.conj`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def conjugate(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.conjugate`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def cumprod(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.cumprod`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def cumsum(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.cumsum`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def diagonal(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.diagonal`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def dot(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.dot`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def flatten(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.flatten`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def max(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.max`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def mean(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.mean`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def min(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.min`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def nonzero(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.nonzero`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def prod(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.prod`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def ravel(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.ravel`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def repeat(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.repeat`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def round(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.round`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def searchsorted(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.searchsorted`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def squeeze(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.squeeze`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def std(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.std`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def sum(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.sum`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def swapaxes(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.swapaxes`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def take(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.take`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def tobytes(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.tobytes`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def tofile(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.tofile`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def trace(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.trace`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def var(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.var`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def equals(self, other: object) -> bool:
        """Return whether both have one layout, type and shape, and the same elements; NaN is like NaN.

        Values in memory under missing elements do not count.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature[0].equals(temperature[0]), temperature[0].equals(temperature[1])
        (True, False)
        """
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """Pickle: protocol 5 carries the buffers out of band, without a copy; older ones in the stream.

        Loading shares the buffers that it is given, and is read-only if they are.
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

        One axis gives an array of elements; of more axes, axis 0 is the array, and a row is one of its
        elements. bool is `arrow.bool8`, complex a list of two floats, times are timestamps and durations
        (NaT is null), raw bytes and `S` are fixed-size binary. bfloat16 and the 8-bit floats, which Arrow
        does not have, are `arrow.opaque` under their names, so that they are not taken for integers. A mask
        becomes a bitmap of the elements, which is new memory, as is `U` text, which Arrow holds as UTF-8.

        Parameters
        ----------
        layout
            Form of rows with several axes: `arrow.fixed_shape_tensor` (strings have no such type: nested),
            nested fixed-size lists (DuckDB then knows their shape), or no rows but all elements in C order.
        bools
            One byte an element, shared; or eight elements a byte, as Arrow's own bool has them, copied.
        strings
            With 64-bit offsets, shared; with 32-bit offsets, which are new (but large ones where the text has
            2 GiB); or as views of 16 bytes, which are new, over the shared text.
        dimension_names
            A name for each axis. If all axes have one, `fixed_shape_tensor` keeps all but the first.

        Raises
        ------
        ExchangeError
            Arrow has no such type (times in units that it does not have), the array has no axis, or rows
            with gaps (a `BufferError`).

        Notes
        -----
        The object also has `__arrow_c_array__`, which returns the form that a consumer's schema asks for, if
        it is one of these: `pyarrow.array(tensor, type=pyarrow.bool_())` gives packed bools.

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

        It goes by way of Arrow: what `arrow` says holds here, including errors. With `layout="nested"` rows
        are of polars' type `Array`. Bools are packed to its type `Boolean`, which it filters by; with
        `bools="bytes"` they are not copied.
        """
    to_polars = polars
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each, in the requested form if that is possible."""
