"""The class DecodedArray."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, SupportsIndex

import numpy as np
import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import CapsuleType, disjoint_base

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
        """The bytes of all buffers: elements, and offsets and mask where there are any."""
    @property
    def device(self) -> str:
        """Where the memory is: "cpu"."""
    def __len__(self) -> int: ...
    def __eq__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does.

        A bool for each element comes back as a NumPy array, or as one of `numpy.ma` where a mask says that
        elements are missing. Whoever has NumPy's arrays or PyTorch's tensors expects that of `==`, and one of
        them on the other side makes it so anyway. As in NumPy, there is therefore no hash; `equals` tells
        whether two arrays are the same.
        """
    def __ne__(self, other: Any, /) -> Any:
        """Compare element by element, as NumPy does."""
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def equals(self, other: object) -> bool:
        """Tell whether both have one layout, type and shape, and the same elements; NaN is like NaN.

        What lies in memory where an element is missing does not count.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature[0].equals(temperature[0]), temperature[0].equals(temperature[1])
        (True, False)
        """
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        """Pickle: protocol 5 carries the buffers out of band, where they are; others in the stream.

        Loading shares the buffers that it is given, and is read-only where they are.
        """
    def __copy__(self) -> Self:
        """Copy what can be written to; strings and masks cannot, and are shared."""
    def __deepcopy__(self, memo: Any, /) -> Self:
        """Copy what can be written to; strings and masks cannot, and are shared."""
    def tolist(self) -> Any:
        """Give the elements as nested lists of Python objects, None where one is missing."""
    def arrow(
        self,
        *,
        layout: Literal["tensor", "nested", "flat"] = "tensor",
        bools: Literal["bytes", "bits"] = "bytes",
        strings: Literal["large", "small", "views"] = "large",
        dimension_names: Sequence[str | None] | None = None,
    ) -> _pyarrow.Array:
        """Give a pyarrow.Array of the same memory.

        One axis gives an array of elements; of more axes, axis 0 is the array, and a row is one of its
        elements. bool is `arrow.bool8`, complex a list of two floats, times are timestamps and durations
        (NaT is null), raw bytes and `S` are fixed-size binary. bfloat16 and the 8-bit floats, which Arrow
        does not have, are `arrow.opaque` under their names, so that nobody takes them for integers. A mask
        becomes a bitmap of the elements, which is new memory, as is `U` text, which Arrow holds as UTF-8.

        Parameters
        ----------
        layout
            What rows of several axes are: `arrow.fixed_shape_tensor` (strings, which it cannot hold: nested),
            nested fixed-size lists (DuckDB then knows their shape), or no rows but all elements in C order.
        bools
            One byte an element, shared; or eight elements a byte, as Arrow's own bool has them, copied.
        strings
            With offsets of 64 bits, shared; with offsets of 32 bits, which are new (but large ones where the
            text has 2 GiB); or as views of 16 bytes, which are new, over the shared text.
        dimension_names
            A name for each axis, which `fixed_shape_tensor` keeps of all but the first if all have one.

        Raises
        ------
        ExchangeError
            Arrow has no such type (times in units that it does not have), the array has no axis, or rows
            with gaps (a `BufferError`).

        Notes
        -----
        The object also has `__arrow_c_array__`, which gives what a consumer asks for by its schema, where
        that is one of these forms: `pyarrow.array(tensor, type=pyarrow.bool_())` gives packed bools.

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
        bools: Literal["bytes", "bits"] = "bytes",
        strings: Literal["large", "small", "views"] = "large",
    ) -> _polars.Series:
        """Give a polars.Series of the same memory.

        It goes by way of Arrow: what `arrow` says holds here, errors too. With `layout="nested"` rows are of
        polars' type `Array`, and with `bools="bits"` bools are of its type `Boolean`.
        """
    to_polars = polars
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each, in the requested form where that can be had."""
