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
        """Make a Variable with a value for missing elements.

        Raises
        ------
        TypeError
            The value is not a str for elements that are strings, or not bytes for bytes.
        """
    def __getitem__(self, index: Any, /) -> Any:
        """One element by an integer for each axis, None if it is missing; or a part by any index of NumPy.

        A run of elements shares their bytes; others are copied.

        Raises
        ------
        IndexingError
            The index lies outside (an `IndexError`).
        """
    def __array_ufunc__(self, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
        """Return the result of a NumPy function for `numpy.ma`."""
    def __float__(self) -> float:
        """As NumPy does it."""
    def __int__(self) -> int:
        """As NumPy does it."""
    def __format__(self, specification: str, /) -> str:
        """Format the one element, as in `f"{masked:.2f}"`; without a specification, all as `str` does."""
    def numpy(self) -> npt.NDArray[np.object_]:
        """Make a numpy.ndarray of objects, None for missing ones."""
    to_numpy = numpy
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: always a copy, of objects, None for missing ones."""
