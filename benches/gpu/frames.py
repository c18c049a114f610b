"""The compressed frames of an array's chunks: the input of a decompressor alone.

Sources: Zarr 3, "sharding codec"; c-blosc's `README_CHUNK_FORMAT`; numcodecs' lz4.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import zarrow

# Index entry of a missing chunk.
MISSING = 2**64 - 1


class Frame(NamedTuple):
    """A frame, and its decompressed size."""

    content: bytes
    nbytes: int


def frames(path: Path, row: str) -> list[Frame]:
    """Return all frames of a row's array, in any order."""
    array = zarrow.open_array(path)
    nbytes = array.dtype.itemsize * math.prod(array.chunks or ())
    found: list[Frame] = []
    for file in sorted((path / "c").rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            parts = [content] if array.shards is None else _chunks_of_shard(content, array)
            for part in parts:
                found.extend(_frames_of_chunk(part, row.removeprefix("sharded-"), nbytes))
    return found


def _chunks_of_shard(content: bytes, array: zarrow.Array) -> Iterator[bytes]:
    count = math.prod(array.shards or ()) // math.prod(array.chunks or ())
    index = content[-16 * count - 4 : -4]
    for offset, nbytes in struct.iter_unpack("<QQ", index):
        if offset != MISSING:
            yield content[offset : offset + nbytes]


def _frames_of_chunk(content: bytes, codec: str, nbytes: int) -> Iterator[Frame]:
    if codec.startswith("blosc"):
        yield from _frames_of_blosc(content)
    else:
        # numcodecs writes the decompressed size in front of LZ4.
        yield Frame(content[4:] if codec == "lz4" else content, nbytes)


def _frames_of_blosc(content: bytes) -> Iterator[Frame]:
    _, _, flags, type_size, nbytes, block_nbytes, _ = struct.unpack_from("<BBBBIII", content)
    if flags & 0x2:  # copied
        return
    count = -(-nbytes // block_nbytes)
    starts = struct.unpack_from(f"<{count}I", content, 16)
    for number, start in enumerate(starts):
        here = min(block_nbytes, nbytes - number * block_nbytes)
        # A block of whole elements may be split into one stream for each of their bytes.
        is_split = not flags & 0x10 and here == block_nbytes
        streams = type_size if is_split else 1
        for _ in range(streams):
            (length,) = struct.unpack_from("<i", content, start)
            # Incompressible streams are stored.
            if length < here // streams:
                yield Frame(content[start + 4 : start + 4 + length], here // streams)
            start += 4 + length
