"""Small inputs that decompress to many bytes, or claim to."""

import bz2
import gzip
import lzma
import struct
import zlib

MIB = 1 << 20
GIB = 1 << 30


def zstd_claim(nbytes: int) -> bytes:
    """Return a frame of 16 bytes with any claimed size: one segment, its size, one empty last block."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", nbytes) + b"\x01\x00\x00"


def zstd_zeros(nbytes: int) -> bytes:
    """Return a frame without a size, with blocks of 4 bytes that each repeat a zero 128 Ki times."""
    block = 128 << 10
    count = nbytes // block
    headers = b"".join(
        ((block << 3 | 0b010 | (number == count - 1)).to_bytes(3, "little") + b"\0")
        for number in range(count)
    )
    # No checksum, no size; a window of 128 KiB, the size of a block.
    return b"\x28\xb5\x2f\xfd\x00" + bytes([7 << 3]) + headers


def gzip_zeros(nbytes: int) -> bytes:
    """Members of 16 MiB of zeros each."""
    return gzip.compress(bytes(16 * MIB), 9, mtime=0) * (nbytes // (16 * MIB))


def zlib_zeros(nbytes: int) -> bytes:
    return zlib.compress(bytes(nbytes), 9)


def bz2_zeros(nbytes: int) -> bytes:
    """Streams of 16 MiB of zeros each."""
    return bz2.compress(bytes(16 * MIB), 9) * (nbytes // (16 * MIB))


def lzma_zeros(nbytes: int, format: int) -> bytes:
    return lzma.compress(bytes(nbytes), format=format, preset=0)


def blosc_claim(nbytes: int, block: int, compressor: int = 1, type_size: int = 4, length: int = 32) -> bytes:
    """Return a Blosc buffer of correct length with any claimed size."""
    header = struct.pack("<BBBBIII", 2, 1, compressor << 5, type_size, nbytes, block, length)
    return header.ljust(length, b"\0")


def lz4_claim(nbytes: int) -> bytes:
    """Return a block of one literal after a size."""
    return struct.pack("<i", nbytes) + b"\x10\0"


def lz4_zeros(nbytes: int) -> bytes:
    """Return a block with the maximum repetition of a zero in its length."""
    match = nbytes - 1 - 5
    rest = match - 4 - 15
    block = b"\x1f\0\x01\0" + b"\xff" * (rest // 255) + bytes([rest % 255])
    return struct.pack("<i", nbytes) + block + b"\x50" + bytes(5)


def blosclz_matches(length: int) -> bytes:
    """Return a BloscLZ block of 16 KiB with an endless match length."""
    header = struct.pack("<BBBBIII", 2, 1, 0, 1, 16384, 16384, 16 + 4 + 4 + length)
    return header + struct.pack("<II", 20, length) + b"\xff" * length
