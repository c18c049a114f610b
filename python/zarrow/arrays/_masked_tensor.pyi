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

        Missing elements are zero if decoded from an optional type, else the source's values: with
        `Array.read(mask=...)` the value that marks them as missing.
        """
    @property
    def mask(self) -> Tensor:
        """Which elements are missing: a read-only Tensor of bool."""
    def __getitem__(self, index: Any, /) -> MaskedTensor:
        """Return the part that any index of NumPy takes. A basic index shares the values.

        Raises
        ------
        IndexingError
            The index lies outside (an `IndexError`).
        """
    def __array_ufunc__(self, ufunc: Any, how: str, /, *inputs: Any, **options: Any) -> Any:
        """Return the result of a NumPy function for `numpy.ma`."""
    def compressed(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.compressed`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def count(self, *arguments: Any, **options: Any) -> Any:
        """As `numpy.ndarray.count`, or as that of `numpy.ma` if elements may be missing.

        The result is NumPy's. It shares memory if NumPy's would.
        """
    def __float__(self) -> float:
        """As NumPy does it."""
    def __int__(self) -> int:
        """As NumPy does it."""
    def __format__(self, specification: str, /) -> str:
        """Format the one element, as in `f"{masked:.2f}"`; without a specification, all as `str` does."""
    def filled(self, value: Any) -> Tensor:
        """Make a Tensor with a value for missing elements.

        Raises
        ------
        TypeError
            The value does not cast to the type without loss of its kind, such as 1.5 to an integer.
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
