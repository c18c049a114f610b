"""Finds the rows of a sorted column that a filter may match, by few of its elements.

1. A range of rows has a bound at each end: its first element, and the first element of the range behind it.
2. pyarrow says whether a condition contradicts these bounds, as it does for the files of a dataset. The
   range is then left out.
3. Other ranges are divided at borders of chunks, until they are single chunks. The elements at new borders
   are read in one batch: a local column is halved each time, and a remote one divided into more parts, since
   a round trip takes longer than a chunk.
4. A range with a missing element or NaN at an end is kept, because its other elements are unknown.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs

from zarrow._zarrow import Array
from zarrow.errors import MetadataError

# Into how many parts a range is divided.
_LOCAL_PARTS, _REMOTE_PARTS = 2, 4

# Filters of many separate values end the search with this many ranges.
_MOST_RANGES = 1024


def narrowed(
    array: Array,
    rows: range,
    name: str,
    schema: pa.Schema,
    condition: pc.Expression,
    *,
    is_remote: bool,
) -> list[range]:
    """Return the ranges of rows that may fulfil a condition, ascending.

    Raises
    ------
    MetadataError
        The elements that were read are not in order.
    """
    if not rows or array.chunks is None:
        return [rows] if rows else []
    chunk = array.chunks[0]
    parts = _REMOTE_PARTS if is_remote else _LOCAL_PARTS
    bounds: dict[int, pa.Scalar] = {}
    _read(array, sorted({rows.start, rows.stop - 1}), bounds)
    last = bounds.pop(rows.stop - 1) if len(rows) > 1 else bounds[rows.start]
    bounds[rows.stop] = last
    kept: list[range] = []
    open_ranges = [rows]
    while open_ranges:
        open_ranges = _possible(open_ranges, bounds, name, schema, condition)
        divided = [_divided(part, chunk, parts) for part in open_ranges]
        if len(kept) + sum(map(len, divided)) > _MOST_RANGES:
            kept += open_ranges
            break
        kept += [part for part, pieces in zip(open_ranges, divided, strict=True) if len(pieces) == 1]
        open_ranges = [piece for pieces in divided if len(pieces) > 1 for piece in pieces]
        _read(array, [piece.start for piece in open_ranges if piece.start not in bounds], bounds)
        _check_order(bounds, name)
    return _joined(kept)


def has_order(kind: pa.DataType) -> bool:
    """Return whether elements of a type are compared by a search."""
    if pa.types.is_boolean(kind):  # Read as bytes.
        return False
    none = without_nan(pa.array([], kind))
    try:
        pc.less_equal(none, none)
    except pa.ArrowNotImplementedError:
        return False
    return True


def not_sorted(name: str) -> MetadataError:
    """Return the error of a column with elements out of order."""
    text = f"column {name!r} is not sorted: scan the table without sorted_by"
    return MetadataError(text)


def without_nan(elements: Any) -> Any:
    """Return elements with null for NaN."""
    if not pa.types.is_floating(elements.type):
        return elements
    if elements.type == pa.float16():
        elements = elements.cast(pa.float32())
    return pc.if_else(pc.is_nan(elements), pa.scalar(None, elements.type), elements)


def _read(array: Array, rows: Sequence[int], bounds: dict[int, pa.Scalar]) -> None:
    """Read single elements in one batch."""
    if rows:
        elements: Any = array.oindex[list(rows)]
        bounds.update(zip(rows, without_nan(elements.arrow()), strict=True))


def _divided(rows: range, chunk: int, parts: int) -> list[range]:
    """Divide a range at borders of chunks; a range of one chunk stays whole (step 3)."""
    first, end = rows.start // chunk, -(-rows.stop // chunk)
    parts = min(parts, end - first)
    borders = [(first + (end - first) * part // parts) * chunk for part in range(1, parts)]
    starts = [rows.start, *borders]
    return [range(start, stop) for start, stop in zip(starts, [*borders, rows.stop], strict=True)]


def _possible(
    ranges: Sequence[range],
    bounds: dict[int, pa.Scalar],
    name: str,
    schema: pa.Schema,
    condition: pc.Expression,
) -> list[range]:
    """Return the ranges with bounds that do not contradict a condition (step 2)."""
    files = pyarrow.dataset.ParquetFileFormat()
    folder = pyarrow.fs.LocalFileSystem()
    # No file is opened: a fragment has the bounds of a range, and the number of the range for a name.
    fragments = [
        files.make_fragment(
            str(number),
            filesystem=folder,
            partition_expression=_guarantee(name, bounds[part.start], bounds[part.stop]),
        )
        for number, part in enumerate(ranges)
    ]
    found = pyarrow.dataset.FileSystemDataset(fragments, schema, files, folder)
    try:
        return [ranges[int(fragment.path)] for fragment in found.get_fragments(filter=condition)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return list(ranges)


def _guarantee(name: str, one: pa.Scalar, other: pa.Scalar) -> pc.Expression:
    """Return what all elements between two others fulfil (steps 1 and 4)."""
    if not one.is_valid or not other.is_valid:
        return pc.scalar(True)
    lower, upper = (one, other) if _not_after(one, other) else (other, one)
    return (pc.field(name) >= lower) & (pc.field(name) <= upper)


def _not_after(one: pa.Scalar, other: pa.Scalar) -> bool:
    return bool(pc.less_equal(one, other).as_py())


def _check_order(bounds: dict[int, pa.Scalar], name: str) -> None:
    known = [bounds[row] for row in sorted(bounds) if bounds[row].is_valid]
    steps = list(itertools.pairwise(known))
    if not all(_not_after(one, other) for one, other in steps) and not all(
        _not_after(other, one) for one, other in steps
    ):
        raise not_sorted(name)


def _joined(ranges: Sequence[range]) -> list[range]:
    """Return ranges in order, with adjacent ones joined."""
    joined: list[range] = []
    for part in sorted(ranges, key=lambda part: part.start):
        if joined and joined[-1].stop == part.start:
            joined[-1] = range(joined[-1].start, part.stop)
        else:
            joined.append(part)
    return joined
