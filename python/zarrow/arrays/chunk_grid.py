"""Regions and keys of chunks, and the places of stored chunks.

For a sharded array, these are the shards: each has a key.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from zarrow._zarrow import Array, _StoredValues


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
    names = values.list("/".join(part for part in (path, prefix) if part))
    # Numbers in their order.
    for name in sorted(names, key=lambda name: [(len(part), part) for part in re.split("[./]", name)]):
        key = f"{prefix}/{name}" if prefix else name
        if len(levels) > 1 and re.fullmatch(levels[0], name):
            yield from _keys(values, path, key, levels[1:])
        else:
            yield key
