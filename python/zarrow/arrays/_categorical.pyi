"""The class Categorical."""

from collections.abc import Iterator
from typing import Any, ClassVar, SupportsIndex, final, overload

import numpy as np
import numpy.typing as npt
import polars as _polars
import pyarrow as _pyarrow
from typing_extensions import CapsuleType

from zarrow.arrays._tensor import Tensor
from zarrow.arrays._variable import Variable

@final
class Categorical:
    """Values from a small set of categories: an index into the categories for each value, and the categories.

    `Group.read` returns it for a group that AnnData wrote as `categorical`, and `group[name] = categorical`
    stores such a group. It compares, indexes and iterates like pandas' Categorical, which
    `.arrow().to_pandas()` returns.

    Examples
    --------
    >>> import zarrow
    >>> kind = zarrow.open("cells.zarr")["kind"].read()
    >>> kind.tolist(), kind.codes.tolist(), kind.categories.tolist(), kind.ordered
    (['T', None, 'B', 'T'], [1, -1, 0, 1], ['B', 'T'], False)
    >>> (kind == "T").tolist(), kind[0], kind[2:].tolist()
    ([True, False, False, True], 'T', ['B', 'T'])
    """

    @property
    def codes(self) -> Tensor:
        """Each element's index into the categories, negative if it is missing: a Tensor of integers."""
    @property
    def categories(self) -> Tensor | Variable:
        """The categories: a Variable of strings, or a Tensor."""
    @property
    def ordered(self) -> bool:
        """Whether the categories have an order."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of the one axis."""
    @property
    def ndim(self) -> int:
        """The number of axes: 1."""
    @property
    def size(self) -> int:
        """The number of values."""
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, value: Any) -> bool: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice | npt.ArrayLike) -> Categorical: ...
    def __eq__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        """Compare with a value, or element by element; missing values equal nothing."""
    def __ne__(self, other: object) -> npt.NDArray[np.bool_]:  # type: ignore[override]
        """Compare with a value, or element by element; missing values differ from everything."""
    def __lt__(self, other: Any) -> npt.NDArray[np.bool_]:
        """Compare by the order of the categories."""
    def __le__(self, other: Any) -> npt.NDArray[np.bool_]:
        """Compare by the order of the categories."""
    def __gt__(self, other: Any) -> npt.NDArray[np.bool_]:
        """Compare by the order of the categories."""
    def __ge__(self, other: Any) -> npt.NDArray[np.bool_]:
        """Compare by the order of the categories."""
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """NumPy's protocol: the values, with NaN, NaT or None for missing ones."""
    def __reduce__(self) -> tuple[Any, ...]: ...
    def tolist(self) -> list[Any]:
        """Return the values as a list of Python objects, None for missing ones."""
    def numpy(self) -> npt.NDArray[Any]:
        """Make an array of the values.

        With missing values, strings give an array of objects with None, and other types a
        numpy.ma.MaskedArray.

        Raises
        ------
        IndexError
            A code has no category.
        """
    to_numpy = numpy
    def arrow(self) -> _pyarrow.DictionaryArray:
        """Return a pyarrow.DictionaryArray of the same memory, null where an element has no category.

        Raises
        ------
        ShapeError
            A code has no category (a `ValueError`).
        """
    def polars(self) -> _polars.Series:
        """Return a polars.Series of type Categorical."""
    def __arrow_c_schema__(self) -> CapsuleType:
        """Arrow: the type in a capsule."""
    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Arrow: a capsule of the type and one of the memory; the requested type is ignored."""
