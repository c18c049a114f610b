"""Arrays and groups to check, in an order that does not depend on the store."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, _visible, open
from zarrow.api.array_options import Store
from zarrow.interchange import labels
from zarrow.jobs import blocks


def one_line(text: str) -> str:
    """Return a name from a store without line ends and other control characters, which could forge lines."""
    return _visible(text.encode("utf-8", "backslashreplace").decode())


def opened(node: Array | Group | Store) -> Array | Group:
    """Return a node, opened to be read if it is a store."""
    return node if isinstance(node, Array | Group) else open(node, mode="r")


def below(node: Array | Group) -> dict[str, Array | Group]:
    """Return a node and all nodes below it, by their paths below it."""
    found: dict[str, Array | Group] = {"": node}
    if isinstance(node, Group):
        found.update(sorted(node.members(max_depth=None)))
    return found


def names_of(array: Array) -> tuple[str | None, ...]:
    """Return a name or None for each dimension."""
    return array.dimension_names or (None,) * array.ndim


def attributes_of(node: Array | Group) -> dict[str, Any]:
    """Return the attributes as version 3 has them: version 2 also stores names of dimensions there."""
    if isinstance(node, Array) and node.zarr_format == 2:
        attributes: dict[str, Any] = labels.taken(node, 3, {})["attributes"]
        return attributes
    return dict(node.attrs)


def nbytes_of(array: Array) -> int:
    """Return the size of the elements; of text, an estimate."""
    return array.nbytes if array.nbytes is not None else array.size * blocks.item_nbytes(array)


def widened(values: Any) -> Any:
    """Return numbers of ml_dtypes as 64-bit integers or floats: NumPy does not know their NaN and zeros."""
    dtype = values.dtype
    is_of_ml_dtypes = dtype.kind == "V" and dtype.names is None and dtype.type is not np.void
    if not is_of_ml_dtypes:
        return values
    return values.astype("i8" if any(np.can_cast(dtype, kind) for kind in ("i1", "u1")) else "f8")
