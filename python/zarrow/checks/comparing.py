"""Compares two arrays, or two groups with everything below them.

1. Nodes are compared by their paths. Stores may differ in format version, chunks and codecs: a reader does
   not see these.
2. Shapes, data types, names of dimensions and attributes are compared, then elements in parts of whole chunks
   of the first array. NaN equals NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zarrow._zarrow import Array, Group
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress, reporting
from zarrow.checks.canonical_json import canonical_json
from zarrow.checks.chunk_regions import parts
from zarrow.checks.nodes import attributes_of, below, names_of, nbytes_of, one_line, opened, widened

Kind = Literal["node", "shape", "data type", "dimension names", "attributes", "elements"]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two nodes.

    Attributes
    ----------
    path : str
        The path of both nodes, below the nodes given to `diff`.
    what : str
        `"node"`, `"shape"`, `"data type"`, `"dimension names"`, `"attributes"` or `"elements"`.
    left, right : object
        What each has; of elements the first that differ.
    index : tuple of int or None
        Place of the first element that differs.
    count : int
        How many elements differ; 1 for anything else.
    """

    path: str
    what: Kind
    left: object
    right: object
    index: tuple[int, ...] | None = None
    count: int = 1

    def __str__(self) -> str:
        path = one_line(self.path) or "/"
        if self.index is None:
            return f"{path}: {self.what} {self.left!r} and {self.right!r}"
        place = ", ".join(map(str, self.index))
        return f"{path}: {self.count} elements, first [{place}]: {self.left!r} and {self.right!r}"


def diff(
    left: Array | Group | Store,
    right: Array | Group | Store,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    progress: Progress | bool | None = None,
) -> Iterator[Difference]:
    """Compare two nodes, and yield each difference when it is found.

    Parameters
    ----------
    left, right
        Opened arrays or groups, or stores as `open` takes them.
    rtol, atol
        Numbers are equal if `abs(left - right) <= atol + rtol * abs(right)`.
    progress
        Called with the bytes of elements that were compared, and of all; or True for a bar in a terminal or
        a notebook.

    Raises
    ------
    NotFoundError, CodecError, StoreError
        A node or a chunk cannot be read.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks import diff
    >>> zarrow.save("one.zarr", [1, 2, 3])
    >>> zarrow.save("two.zarr", [1, 2, 4])
    >>> print(*diff("one.zarr", "two.zarr"))
    /: 1 elements, first [2]: 3 and 4
    """
    with reporting(progress, "diff") as report:
        yield from _differences(opened(left), opened(right), rtol, atol, report)


def _differences(
    left: Array | Group, right: Array | Group, rtol: float, atol: float, progress: Progress | None
) -> Iterator[Difference]:
    nodes, others = below(left), below(right)
    pairs = [(path, nodes.get(path), others.get(path)) for path in sorted({*nodes, *others})]
    total = sum(
        nbytes_of(one) for _, one, other in pairs if isinstance(one, Array) and isinstance(other, Array)
    )
    done = 0
    for path, one, other in pairs:
        if type(one) is not type(other) or one is None or other is None:
            yield Difference(path, "node", _kind(one), _kind(other))
            continue
        attributes = attributes_of(one), attributes_of(other)
        if canonical_json(attributes[0]) != canonical_json(attributes[1]):
            yield Difference(path, "attributes", attributes[0], attributes[1])
        if not isinstance(one, Array) or not isinstance(other, Array):
            continue
        described = list(_described(path, one, other))
        yield from described
        if not any(each.what == "shape" for each in described):
            yield from _elements(path, one, other, rtol, atol)
        done += nbytes_of(one)
        if progress is not None:
            progress(done, total)


def _kind(node: Array | Group | None) -> str:
    return "nothing" if node is None else "array" if isinstance(node, Array) else "group"


def _described(path: str, one: Array, other: Array) -> Iterator[Difference]:
    if one.shape != other.shape:
        yield Difference(path, "shape", one.shape, other.shape)
    if _native(one.dtype) != _native(other.dtype):
        yield Difference(path, "data type", str(one.dtype), str(other.dtype))
    names = [names_of(node) for node in (one, other)]
    if names[0] != names[1]:
        yield Difference(path, "dimension names", names[0], names[1])


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a data type without its byte order, which readers do not see."""
    # Text of variable length has no byte order, and no method for it.
    return dtype if isinstance(dtype, np.dtypes.StringDType) else dtype.newbyteorder("=")


def _elements(path: str, one: Array, other: Array, rtol: float, atol: float) -> Iterator[Difference]:
    """Yield the elements that differ, counted over the whole array."""
    count, first = 0, None
    for region in parts(one):
        left, right = np.asanyarray(one.read(region).numpy()), np.asanyarray(other.read(region).numpy())
        unequal = differs(left, right, rtol, atol)
        found = int(np.count_nonzero(unequal))
        if found and first is None:
            at = tuple(int(place) for place in np.argwhere(unequal)[0])
            index = tuple(part.start + place for part, place in zip(region, at, strict=True))
            first = (index, left[at], right[at])
        count += found
    if first is not None:
        index, *values = first
        shown = [_shown(value) for value in values]
        yield Difference(path, "elements", shown[0], shown[1], index, count)


def _shown(value: Any) -> Any:
    """Return an element as a message shows it: times as text, because Python has no nanoseconds."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _missing(mask: Any) -> Any:
    """Return which elements a mask leaves out; structured elements are missing if all fields are."""
    if mask.dtype.names is None:
        return mask
    fields = [_missing(mask[name]) for name in mask.dtype.names]
    # A field may be an array in each element.
    return np.all([each.all(axis=tuple(range(mask.ndim, each.ndim))) for each in fields], axis=0)


def differs(left: Any, right: Any, rtol: float = 0.0, atol: float = 0.0) -> Any:
    """Return a mask of the elements that differ: NaN equals NaN."""
    masks = [_missing(np.ma.getmaskarray(each)) for each in (left, right)]
    left, right = (widened(np.ma.getdata(each)) for each in (left, right))
    if left.dtype.names and left.dtype.names == right.dtype.names:
        fields = [np.asarray(differs(left[name], right[name], rtol, atol)) for name in left.dtype.names]
        unequal = [each.any(axis=tuple(range(left.ndim, each.ndim))) for each in fields]
        return (masks[0] != masks[1]) | (np.any(unequal, axis=0) & ~masks[0])
    if left.dtype.kind in "mM" and right.dtype.kind in "mM":
        same = (left == right) | (np.isnat(left) & np.isnat(right))
    elif left.dtype.kind in "fc" or right.dtype.kind in "fc" or rtol or atol:
        try:
            same = np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
        except TypeError:
            same = left == right
    else:
        same = left == right
    # Missing elements have no value to compare.
    return (masks[0] != masks[1]) | (~np.asarray(same) & ~masks[0])
