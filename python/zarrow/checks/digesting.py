"""Computes a digest of the data in a store, which does not depend on how they are stored.

1. Equal elements, shapes, data types, names of dimensions and attributes give equal digests, and `diff` finds
   nothing. Format version, chunks, codecs, byte order and fill value have no influence.
2. An array is divided into tiles. Their shape depends only on the array's shape and type, so that the digest
   does not depend on chunks. Blocks of tiles are read as in `zarrow.jobs`, within a limit of memory.
3. The digest of an array is SHA-256 of the description and of the digests of all tiles; that of a hierarchy
   is SHA-256 of all paths and digests. Any NaN is one value, and -0 is 0.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress, reporting
from zarrow.checks.canonical_json import canonical_json
from zarrow.checks.chunk_regions import chunks_in
from zarrow.checks.nodes import attributes_of, names_of, nbytes_of, opened, widened
from zarrow.checks.verified import Corrupt
from zarrow.checks.verifying import walk
from zarrow.errors import MetadataError
from zarrow.jobs import blocks
from zarrow.jobs.units import Grid

# Changed whenever the digest of the same data changes.
_VERSION = b"zarrow digest 1\n"

_TILE_NBYTES = 4 << 20
_MEMORY_NBYTES = 256 << 20


def digest(node: Array | Group | Store, *, progress: Progress | bool | None = None) -> str:
    """Return a digest of an array, or of a group with everything below it.

    Two nodes have the same digest if `diff` finds no difference: it depends on elements, shapes, data types,
    names of dimensions and attributes, and not on format version, chunks and codecs.

    Parameters
    ----------
    node
        An opened array or group, or a store as `open` takes it.
    progress
        Called with the bytes of elements that were read, and of all; or True for a bar in a terminal or a
        notebook.

    Returns
    -------
    str
        64 hexadecimal digits of SHA-256.

    Raises
    ------
    NotFoundError, MetadataError, CodecError, StoreError
        A node or a chunk cannot be read.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks import digest
    >>> _ = zarrow.create_array("one.zarr", data=[1, 2, 3], chunks=1)
    >>> _ = zarrow.create_array("two.zarr", data=[1, 2, 3], chunks=3, compressors="gzip", zarr_format=2)
    >>> digest("one.zarr") == digest("two.zarr")
    True
    """
    with reporting(progress, "digest") as report:
        return _digest_of(opened(node), report)


def _digest_of(node: Array | Group, progress: Progress | None) -> str:
    corrupt: list[Corrupt] = []
    nodes = dict(walk(node, corrupt))
    for broken in corrupt:
        raise MetadataError(broken.error, kind=broken.kind, path=broken.path)
    total = sum(nbytes_of(each) for each in nodes.values() if isinstance(each, Array))
    done = 0
    whole = hashlib.sha256(_VERSION)
    for path, each in sorted(nodes.items()):
        described = hashlib.sha256(canonical_json(_description(each)))
        if isinstance(each, Array):
            for part in _tile_digests(each, done, total, progress):
                described.update(part)
            done += nbytes_of(each)
        whole.update(canonical_json([path, described.hexdigest()]))
    return whole.hexdigest()


def _description(node: Array | Group) -> dict[str, Any]:
    if isinstance(node, Group):
        return {"kind": "group", "attributes": attributes_of(node)}
    return {
        "kind": "array",
        "shape": node.shape,
        "data_type": node.data_type,
        "dimension_names": names_of(node),
        "attributes": attributes_of(node),
    }


def _tile_digests(array: Array, before: int, total: int, progress: Progress | None) -> list[bytes]:
    """Return the digests of all tiles of an array, in order (step 2)."""
    item = max(1, blocks.item_nbytes(array))
    tile = tile_shape(array.shape, item)
    grid = Grid(array.shape, tile)
    found = [b""] * len(grid)
    # Chunks that are read, too, are in memory at the same time.
    block = blocks.choose(array.shape, tile, array.chunks, 2 * item, _MEMORY_NBYTES)
    read = Grid(array.shape, block)
    strides = [math.prod(grid.counts[axis + 1 :]) for axis in range(len(tile))]
    nbytes = nbytes_of(array)
    for number in range(len(read)):
        region = read.region(number)
        values = np.asanyarray(array.read(region).numpy())
        for place, part in chunks_in(region, tile):
            inside: tuple[Any, ...] = tuple(
                slice(one.start - start.start, one.stop - start.start)
                for one, start in zip(part, region, strict=True)
            )
            hashed = hashlib.sha256()
            for buffer in _canonical(values[*inside, ...]):
                hashed.update(buffer)
            at = sum(index * stride for index, stride in zip(place, strides, strict=True))
            found[at] = hashed.digest()
        if progress is not None:
            progress(before + nbytes * (number + 1) // len(read), total)
    return found


def tile_shape(shape: tuple[int, ...], item_nbytes: int) -> tuple[int, ...]:
    """Return the shape of a tile: the longest axis is halved until a tile is small."""
    tile = [max(1, extent) for extent in shape]
    while math.prod(tile) * item_nbytes > _TILE_NBYTES and max(tile, default=1) > 1:
        longest = tile.index(max(tile))
        tile[longest] = -(-tile[longest] // 2)
    return tuple(tile)


def _canonical(values: Any) -> Iterator[bytes | memoryview]:
    """Yield bytes that are equal for equal elements (step 3)."""
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        if mask.dtype.names is None:
            values = np.ma.getdata(values).copy()
            yield np.packbits(mask).tobytes()
            # Missing elements have no value.
            values[mask] = np.zeros((), values.dtype)[()]
        else:
            yield mask.tobytes()
            values = np.ma.getdata(values)
    dtype = values.dtype
    if dtype.names is not None:
        for name in dtype.names:
            yield from _canonical(values[name])
    elif dtype.kind in "TO":
        for element in values.ravel():
            encoded = element if isinstance(element, bytes) else str(element).encode("utf-8", "surrogatepass")
            yield len(encoded).to_bytes(8, "little")
            yield encoded
    elif dtype.kind == "c":
        yield from _canonical(values.real)
        yield from _canonical(values.imag)
    else:
        numbers = widened(values)
        if numbers.dtype.kind == "f":
            values = values.copy()
            values[np.isnan(numbers)] = np.nan
            # -0 equals 0.
            values[numbers == 0] = 0
        values = np.ascontiguousarray(values, dtype.newbyteorder("<"))
        yield values.tobytes()
