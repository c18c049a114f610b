"""Regions and keys of chunks, and the places of stored chunks.

For a sharded array, these are the shards: each has a key.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Indexer, _StoredValues
from zarrow.arrays.methods import add_method
from zarrow.errors import UnsupportedError

if TYPE_CHECKING:
    from zarrow.api.typed import AnyElements


def add_to_classes() -> None:
    """Give the classes Array and Indexer these methods."""
    add_method(Array, iter_chunks.__name__, iter_chunks)
    add_method(Array, "stored_chunks", stored_chunks_of)
    add_method(Indexer, "__len__", count_blocks)


def iter_chunks(self: Array) -> Iterator[tuple[tuple[slice, ...], AnyElements]]:
    """Iterate over the shards, or the chunks of an unsharded array: yields slices and elements.

    Chunks are read one by one, in C order. A missing chunk has fill values; `stored_chunks` yields
    only those that are stored. Chunks may differ in shape. `iter_chunks_async` reads ahead.

    Raises
    ------
    CodecError, StoreError, OutOfMemoryError
        As `read`.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr", "temperature")
    >>> for region, chunk in temperature.iter_chunks():
    ...     print(region[0], chunk.shape)
    slice(0, 24, None) (24, 6, 8)
    slice(24, 48, None) (24, 6, 8)
    """
    for region in regions(self):
        yield region, self.read(region)


def stored_chunks_of(self: Array) -> Iterator[tuple[int, ...]]:
    """Iterate over the places of stored chunks in the grid, in C order; for a sharded array, of shards.

    The keys are listed, and nothing is read. `array.blocks[place]` reads the chunk. Folders are
    listed one by one, during the iteration.

    Raises
    ------
    UnsupportedError
        The store cannot list its keys, or the encoding of chunk keys is unknown.
    StoreError
        The store cannot be read.

    Examples
    --------
    >>> import zarrow
    >>> days = zarrow.create_array("days.zarr", shape=(6, 2), chunks=(2, 2), dtype="i4")
    >>> days[3] = 7
    >>> list(days.stored_chunks())
    [(1, 0)]
    """
    location, path = self.__reduce__()[1][:2]
    found = stored_chunks(_StoredValues(location, create=False), path, self)
    if found is None:
        name = self.metadata["chunk_key_encoding"]["name"]
        raise UnsupportedError(
            f"the keys of its chunks have the encoding {name!r}, which cannot be listed", node=self
        )
    return (place for _, place in found if place is not None)


def count_blocks(self: Indexer) -> int:
    """Return the number of parts in an iteration over `array.blocks`. Other indexers have no length."""
    if self.__reduce__()[1][1] != "blocks":
        raise TypeError("only array.blocks has a length: type len(array) for that of the array")
    grid = grid_of(self.array)
    if not grid:
        raise TypeError("len() of an array without axes")
    return grid[0]


def grid_of(array: Array) -> tuple[int, ...]:
    """Return the number of chunks, or of shards, along each axis."""
    return tuple(
        -(-extent // each) if isinstance(each, int) else len(each)
        for extent, each in zip(array.shape, _extents(array), strict=True)
    )


def regions(array: Array) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of each chunk or shard, in C order."""

    def along(axis: int) -> Iterator[slice]:
        extent, each = array.shape[axis], extents[axis]
        if isinstance(each, int):
            return (slice(at, min(at + each, extent)) for at in range(0, extent, each))
        ends = [min(end, extent) for end in itertools.accumulate(each)]
        return (slice(start, end) for start, end in zip([0, *ends], ends, strict=False))

    def below(axis: int) -> Iterator[tuple[slice, ...]]:
        if axis == array.ndim:
            yield ()
            return
        for part in along(axis):
            for rest in below(axis + 1):
                yield (part, *rest)

    extents = _extents(array)
    return below(0)


def _extents(array: Array) -> Sequence[int | list[int]]:
    """Return the extent of chunks along each axis, or a list of all extents if they differ."""
    unit = array.write_unit
    if unit is not None:
        return unit
    shapes = array.metadata["chunk_grid"]["configuration"]["chunk_shapes"]
    return [
        each if isinstance(each, int) else _counted(each, extent)
        for each, extent in zip(shapes, array.shape, strict=True)
    ]


def _counted(runs: Sequence[Any], extent: int) -> list[int]:
    """Expand pairs of extent and count, up to the end of the array."""
    found: list[int] = []
    end = 0
    for run in runs:
        each, count = run if isinstance(run, list | tuple) else (run, 1)
        count = min(count, -(-(extent - end) // each))
        found += [each] * count
        end += each * count
    return found


def key_encoding(array: Array) -> tuple[list[str], str] | None:
    """Return what the keys of chunks begin with, and the separator; None for an encoding of another kind."""
    encoding = array.metadata["chunk_key_encoding"]
    kind = encoding["name"]
    if kind not in ("default", "v2"):
        return None
    separator = encoding.get("configuration", {}).get("separator", "/" if kind == "default" else ".")
    return ["c"] * (kind == "default"), separator


def stored_chunks(
    values: _StoredValues, path: str, array: Array
) -> Iterator[tuple[str, tuple[int, ...] | None]] | None:
    """Return the keys below an array with the places of their chunks, None for other keys.

    Returns None if the metadata have another encoding of keys: only the engine knows it.
    """
    encoding = key_encoding(array)
    if encoding is None:
        return None
    first, separator = encoding
    grid = grid_of(array)
    names = first + ["(0|[1-9][0-9]*)"] * len(grid) or ["0"]
    import re

    levels = names if separator == "/" else [re.escape(separator).join(names)]
    chunk = re.compile("/".join(levels))

    def found() -> Iterator[tuple[str, tuple[int, ...] | None]]:
        for key in _keys(values, path, "", levels):
            match = chunk.fullmatch(key)
            at = None if match is None else tuple(map(int, match.groups()))
            inside = at is not None and all(one < extent for one, extent in zip(at, grid, strict=True))
            yield key, at if inside else None

    return found()


def _keys(values: _StoredValues, path: str, prefix: str, levels: list[str]) -> Iterator[str]:
    """Yield the keys below an array's path, and folders that lead to no chunk as a whole."""
    import re

    # A store of another library may list a key twice.
    names = set(values.list("/".join(part for part in (path, prefix) if part)))
    # Numbers in their order.
    for name in sorted(names, key=lambda name: [(len(part), part) for part in re.split("[./]", name)]):
        key = f"{prefix}/{name}" if prefix else name
        if len(levels) > 1 and re.fullmatch(levels[0], name):
            yield from _keys(values, path, key, levels[1:])
        else:
            yield key
