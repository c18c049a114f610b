"""`read_many(progress=...)`, `write_many(progress=...)` and `to_pandas(progress=...)`: items in batches.

1. A batch has some 64 MiB of elements, or one larger item, which is read or written part by part. A chunk is
   decoded once for each batch that needs it.
2. Items of one shape and type are read into one memory. If these are text, or elements that may be missing,
   all are read at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import (
    Array,
    Indexer,
    _import,
    _read_masked,
    _RecycledMemory,
    _shapes_of,
    asarray,
)
from zarrow._zarrow import read_many as read_at_once
from zarrow._zarrow import write_many as write_at_once
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount, size_of
from zarrow.api.reported_reads import READ_NBYTES, divided, has_numbers, has_parts, read_block
from zarrow.api.reported_writes import parts_of_value
from zarrow.interchange.lazy_arrays import estimated_nbytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def read_many(items: Iterable[Any], out: Any, decode: Any, progress: Progress | bool) -> Any:
    """Read items of `zarrow.read_many`."""
    with reporting(progress, "read_many") as report:
        if report is None:
            return read_at_once(list(items), out=out, decode=decode)
        pairs = [item if isinstance(item, tuple) else (item, ...) for item in items]
        if decode is not None and pairs:
            from zarrow.arrays import cf

            def read(pairs: Any, masks: Sequence[Any]) -> list[Any]:
                return ReportedReads(pairs, report).read_each(masks)

            return cf.read_many(pairs, decode, {"out": out}, read)
        return ReportedReads(pairs, report).read_together(out)


class ReportedReads:
    """Pairs of an array, or one of its indexers, and a selection to read."""

    def __init__(self, pairs: Sequence[tuple[Any, Any]], report: Progress | None) -> None:
        self._pairs, self._shapes = pairs, _shapes_of(pairs)
        self._arrays: list[Array] = [item.array if isinstance(item, Indexer) else item for item, _ in pairs]
        self._sizes = [
            math.prod(shape) * (estimated_nbytes(array) // max(array.size, 1))
            for array, shape in zip(self._arrays, self._shapes, strict=True)
        ]
        self._amount = Amount(report, sum(self._sizes))

    def read_each(self, masks: Sequence[Any] | None = None) -> list[Any]:
        """Read each item, with its mask, into its own memory."""
        masks = masks or [None] * len(self._pairs)
        found: list[Any] = []
        for batch in _batches(self._sizes, self._amount):
            block = self._large_block(batch)
            if block is None:
                found += _read_masked(self._pairs[batch], masks[batch])
            else:
                array, mask = self._arrays[batch.start], masks[batch.start]
                found.append(read_block(array, block, self._amount, mask=mask))
        return found

    def read_together(self, out: Any) -> Any:
        """Read all items into `out`, or as `zarrow.read_many` returns them (step 2)."""
        kinds = {(shape, array.dtype) for shape, array in zip(self._shapes, self._arrays, strict=True)}
        if out is None and len(kinds) > 1:
            return self.read_each()
        is_divided = len(kinds) == 1 and all(map(has_numbers, self._arrays))
        shape = (len(self._pairs), *next(iter(self._shapes), ()))
        if not is_divided or (out is not None and not has_parts(out, shape)):
            self._amount.begin(sum(self._sizes))
            found = read_at_once(self._pairs, out=out)
            self._amount.finish_all()
            return found
        values = out
        if out is None:
            memory: Any = _RecycledMemory(sum(self._sizes))
            values = _import("numpy").ndarray(shape, self._arrays[0].dtype, memory)
        for batch in _batches(self._sizes, self._amount):
            block = self._large_block(batch)
            if block is None:
                read_at_once(self._pairs[batch], out=values[batch])
            else:
                read_block(self._arrays[batch.start], block, self._amount, out=values[batch.start])
        return asarray(values) if out is None else out

    def _large_block(self, batch: slice) -> list[range | int] | None:
        """Return the block of a batch with one item that is read part by part."""
        item, selection = self._pairs[batch.start]
        is_large = self._sizes[batch.start] > READ_NBYTES and isinstance(item, Array)
        return divided(item, selection) if is_large else None


def write_many(
    items: Iterable[Any], casting: Any, durability: Any, write_empty_chunks: bool, progress: Progress | bool
) -> None:
    """Write items of `zarrow.write_many`."""
    options: dict[str, Any] = {
        "casting": casting,
        "durability": durability,
        "write_empty_chunks": write_empty_chunks,
    }
    with reporting(progress, "write_many") as report:
        if report is None:
            write_at_once(list(items), **options)
            return
        parts = [part for item in items for part in _parts(item)]
        sizes = [nbytes for *_, nbytes in parts]
        for batch in _batches(sizes, Amount(report, sum(sizes))):
            write_at_once([_item(item, source) for item, source, _ in parts[batch]], **options)


def _parts(item: Any) -> Iterator[tuple[Any, tuple[slice, ...] | None, int]]:
    """Yield items with the places of their values, if a value is divided, and their sizes."""
    value: Any = item[2] if isinstance(item, tuple) and len(item) == 3 else None
    found = parts_of_value(item[0], item[1], value) if value is not None else None
    if found is None:
        yield item, None, size_of(value)
        return
    for target, source in found:
        nbytes = value.dtype.itemsize * math.prod(part.stop - part.start for part in source)
        yield (item[0], target, value), source, nbytes


def _item(item: Any, source: tuple[slice, ...] | None) -> Any:
    return item if source is None else (item[0], item[1], item[2][source])


def _batches(sizes: Sequence[int], amount: Amount) -> Iterator[slice]:
    """Yield the places of the items in each batch (step 1), and report it when the next one begins."""
    start = 0
    while start < len(sizes):
        stop, nbytes = start + 1, sizes[start]
        while stop < len(sizes) and nbytes + sizes[stop] <= READ_NBYTES:
            stop, nbytes = stop + 1, nbytes + sizes[stop]
        amount.begin(nbytes)
        yield slice(start, stop)
        amount.finish()
        start = stop
    amount.finish_all()
