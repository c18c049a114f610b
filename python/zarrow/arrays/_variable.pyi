"""The class Variable."""

from typing import Any, final

import numpy.typing as npt

from zarrow.arrays._decoded_array import DecodedArray
from zarrow.arrays._tensor import Tensor

@final
class Variable(DecodedArray):
    """An array of strings or bytes, stored like Arrow's: offsets and the bytes of all elements.

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
        """The start of each element in the data, and the end of the last one: a read-only Tensor of int64."""
    @property
    def data(self) -> Tensor:
        """The bytes of all elements: a read-only Tensor of uint8."""
    def __getitem__(self, index: Any, /) -> Any:
        """Return one element by an integer for each axis, or a Variable by any other NumPy index.

        A contiguous part shares the memory; others are copied.

        Raises
        ------
        IndexingError
            The index is out of bounds (an `IndexError`).
        """
    def numpy(self) -> npt.NDArray[Any]:
        """Return a new numpy.ndarray: of StringDType for strings, of objects for bytes."""
    to_numpy = numpy
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: always a copy.

        Raises
        ------
        ExchangeError
            `copy` is False (a `ValueError`).
        """
