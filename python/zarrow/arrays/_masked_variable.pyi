"""The class MaskedVariable."""

from typing import Any, final

import numpy as np
import numpy.typing as npt

from zarrow.arrays._decoded_array import DecodedArray
from zarrow.arrays._tensor import Tensor
from zarrow.arrays._variable import Variable

@final
class MaskedVariable(DecodedArray):
    """An array of strings or bytes and a mask that is True for missing ones.

    Examples
    --------
    >>> import zarrow
    >>> names = zarrow.open("data.zarr")["nickname"][...]
    >>> names.tolist()
    ['Tigerstaden', None, 'Luz de América']
    """

    @property
    def data(self) -> Variable:
        """The elements: a Variable of the same memory, empty for missing ones."""
    @property
    def mask(self) -> Tensor:
        """Which elements are missing: a read-only Tensor of bool."""
    def filled(self, value: str | bytes) -> Variable:
        """Return a Variable with `value` in place of missing elements.

        Raises
        ------
        TypeError
            The value is not a str (for strings) or not bytes (for bytes).
        """
    def __getitem__(self, index: Any, /) -> Any:
        """Return one element (None if missing) by an integer for each axis, or a part by any NumPy index.

        A contiguous part shares the memory; others are copied.

        Raises
        ------
        IndexingError
            The index is out of bounds (an `IndexError`).
        """
    def __array_ufunc__(self, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
        """Return the result of a NumPy function for `numpy.ma`."""
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __format__(self, specification: str, /) -> str:
        """Format the only element, as in `f"{masked:.2f}"`; without a specification, same as `str`."""
    def numpy(self) -> npt.NDArray[np.object_]:
        """Return a new numpy.ndarray of objects, with None for missing elements."""
    to_numpy = numpy
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: always a copy, of objects, None for missing ones."""
