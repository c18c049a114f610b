"""Shuffles in NumPy: c-blosc's before compression, and the inverse for a frame."""

from __future__ import annotations

import numcodecs
import numpy as np

from .driver import Bytes
from .structs import BITS, BYTES


def shuffled(content: Bytes, kind: int, element_nbytes: int, block_nbytes: int) -> Bytes:
    """Shuffle each block of the buffer."""
    blocks = [
        shuffled_block(content[start : start + block_nbytes], kind, element_nbytes)
        for start in range(0, len(content), block_nbytes)
    ]
    return np.concatenate([content[:0], *blocks])


def shuffled_block(block: Bytes, kind: int, element_nbytes: int) -> Bytes:
    """Shuffle one block: the planes of its elements, and the remainder."""
    count = len(block) // element_nbytes
    if kind not in (BYTES, BITS) or (kind == BITS and count % 8):
        return block
    whole = count * element_nbytes
    planes = block[:whole].reshape(count, element_nbytes).T
    if kind == BITS:
        bits = np.unpackbits(planes, axis=1, bitorder="little").reshape(element_nbytes, count, 8)
        planes = np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little")
    return np.concatenate([planes.reshape(-1), block[whole:]])


def decompressed_blosc(frame: bytes) -> tuple[Bytes, int]:
    """Return the shuffled contents of a zstd frame, and the bytes of a block."""
    nbytes, block_nbytes = np.frombuffer(frame, "<u4", 2, 4).tolist()
    if frame[2] & 2:
        raise ValueError("the frame is a copy")
    blocks = []
    for number, start in enumerate(np.frombuffer(frame, "<u4", -(-nbytes // block_nbytes), 16).tolist()):
        size = int(np.frombuffer(frame, "<u4", 1, start)[0])
        stored = frame[start + 4 : start + 4 + size]
        length = min(block_nbytes, nbytes - number * block_nbytes)
        raw = stored if size == length else numcodecs.Zstd().decode(stored)
        blocks.append(np.frombuffer(raw, np.uint8))
    return np.concatenate(blocks), block_nbytes
