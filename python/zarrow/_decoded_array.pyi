"""The class DecodedArray."""

from typing import Any

import numpy as np
import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import disjoint_base

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
