"""The class Variable."""

from typing import Any, final

import numpy.typing as npt

from zarrow.arrays._decoded_array import DecodedArray
from zarrow.arrays._tensor import Tensor

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
    def __getitem__(self, index: Any, /) -> Any:
        """One element by an integer for each axis, or a Variable by any other index of NumPy.

        A run of elements shares their bytes; others are copied.

        Raises
        ------
        IndexingError
            The index lies outside (an `IndexError`).
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
