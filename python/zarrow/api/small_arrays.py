"""Small arrays are read many at a time, and added to a batch to be created together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from zarrow._zarrow import Array, _read_each
from zarrow.api.creation import _create
from zarrow.api.node_batch import SMALL_NBYTES, NodeBatch, NotInBatchError
from zarrow.interchange.lazy_arrays import estimated_nbytes

# Elements that are read together.
_READ_NBYTES = 64 << 20


def is_added(batch: NodeBatch, path: str, **options: Any) -> bool:
    """Add an array, from options of `create_array`; return False for one that is stored in another way."""
    try:
        _create(batch, path, "none", {"zarr_format": batch.zarr_format}, **options)
    except NotInBatchError:
        return False
    return True


def read_small(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Array, Any]]:
    """Read the small ones among arrays of a store; yield each with its name and its elements."""
    batch: dict[str, Array] = {}
    waiting = 0

    def read() -> Iterator[tuple[str, Array, Any]]:
        yield from zip(batch, batch.values(), _read_each(list(batch.values())), strict=True)
        batch.clear()

    for name, array in named:
        if isinstance(array, Array) and (nbytes := estimated_nbytes(array)) <= SMALL_NBYTES:
            if waiting + nbytes > _READ_NBYTES:
                yield from read()
                waiting = 0
            batch[name] = array
            waiting += nbytes
    yield from read()
