"""The class Categorical."""

from typing import Any, final

import numpy.typing as npt
import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import CapsuleType

from zarrow._tensor import Tensor
from zarrow._variable import Variable

@final
class Categorical:
    """Values drawn from a small set of categories: the number of each value's category, and the categories.

    `Group.read` gives it for a group that AnnData wrote as `categorical`.

    Examples
    --------
    >>> import zarrow
    >>> kind = zarrow.open("cells.zarr")["kind"].read()
    >>> kind.tolist(), kind.codes.tolist(), kind.categories.tolist(), kind.ordered
    (['T', None, 'B', 'T'], [1, -1, 0, 1], ['B', 'T'], False)
    """

    @property
    def codes(self) -> Tensor:
        """The number of each element's category, negative if it has none: a Tensor of integers."""
    @property
    def categories(self) -> Tensor | Variable:
        """The categories: a Variable of strings, or a Tensor."""
    @property
    def ordered(self) -> bool:
        """Whether the categories have an order."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of the one axis."""
    def __len__(self) -> int: ...
    def tolist(self) -> list[Any]:
        """Give the values as a list of Python objects, None where one is missing."""
    def numpy(self) -> npt.NDArray[Any]:
        """Make an array of the values.

        If one is missing it is an array of objects with None for strings, else a numpy.ma.MaskedArray.

        Raises
        ------
        IndexError
            A code has no category.
        """
    def arrow(self) -> _pyarrow.DictionaryArray:
        """Give a pyarrow.DictionaryArray of the same memory, null where an element has no category.

        Raises
        ------
        ShapeError
            A code has no category (a `ValueError`).
        """
    def polars(self) -> _polars.Series:
        """Give a polars.Series of type Categorical."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: type and memory in a capsule each; the requested type is not looked at."""
