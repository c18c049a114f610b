"""The class MaskedTensor."""

from typing import Any, NoReturn, final

import numpy as np
import numpy.typing as npt

from zarrow.arrays._decoded_array import DecodedArray
from zarrow.arrays._tensor import Tensor

@final
class MaskedTensor(DecodedArray):
    """A tensor and a mask that is True where a value is missing, as in numpy.ma.

    Examples
    --------
    >>> import zarrow
    >>> masked = zarrow.open("data.zarr")["turbidity_on_land"][...]
    >>> masked.tolist(), masked.filled(-1).tolist()
    ([1, None, 3, 4], [1, -1, 3, 4])
    """

    @property
    def data(self) -> Tensor:
        """The elements: a Tensor of the same memory.

        Missing elements of an optional type are zero. Others keep the source's values: with
        `Array.read(mask=...)`, the value that marks them as missing.
        """
    @property
    def mask(self) -> Tensor:
        """Which elements are missing: a read-only Tensor of bool."""
    def __getitem__(self, index: Any, /) -> MaskedTensor:
        """Return a part, by any NumPy index. A basic index shares the values.

        Raises
        ------
        IndexingError
            The index is out of bounds (an `IndexError`).
        """
    def __array_ufunc__(self, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
        """Return the result of a NumPy function for `numpy.ma`."""
    def compressed(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.compressed`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def count(self, *arguments: Any, **options: Any) -> Any:
        """Work like `numpy.ndarray.count`, or like the `numpy.ma` method if elements may be missing.

        The result is a NumPy object, which shares memory if NumPy's method does.
        """
    def __float__(self) -> float: ...
    def __int__(self) -> int: ...
    def __format__(self, specification: str, /) -> str:
        """Format the only element, as in `f"{masked:.2f}"`; without a specification, same as `str`."""
    def filled(self, value: Any) -> Tensor:
        """Return a Tensor with `value` in place of missing elements.

        Raises
        ------
        TypeError
            The value cannot be cast to the type by NumPy's rule "same_kind", such as 1.5 to an integer.
        """
    def numpy(self) -> np.ma.MaskedArray[Any, Any]:
        """Return a numpy.ma.MaskedArray of the same data and mask memory; the mask is read-only."""
    to_numpy = numpy
    def torch(self) -> NoReturn:
        """Refuse, with an ExchangeError: PyTorch has no masks."""
    to_torch = torch
    def jax(self) -> NoReturn:
        """Refuse, with an ExchangeError: JAX has no masks."""
    to_jax = jax
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        """Refuse, with an ExchangeError: a plain array has no mask."""
    def __dlpack__(self, **arguments: Any) -> NoReturn:
        """Refuse, with an ExchangeError: DLPack has no masks."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack: the device as (type, number); (1, 0) is the CPU."""
