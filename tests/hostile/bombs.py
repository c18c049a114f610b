"""Few bytes that decompress to many, or claim that they do."""

import bz2
import gzip
import lzma
import struct
import zlib

MIB = 1 << 20
GIB = 1 << 30


def zstd_claim(nbytes: int) -> bytes:
    """A frame of 16 bytes whose header claims any size: one segment, its size, one empty last block."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", nbytes) + b"\x01\x00\x00"


def zstd_zeros(nbytes: int) -> bytes:
    """A frame of no claimed size, of blocks of 4 bytes that each repeat a zero 128 Ki times."""
    block = 128 << 10
    count = nbytes // block
    headers = b"".join(
        ((block << 3 | 0b010 | (number == count - 1)).to_bytes(3, "little") + b"\0")
        for number in range(count)
    )
    # No checksum, no size; a window of 128 KiB, which is a block.
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
    """A Blosc buffer of a right length that claims any size."""
    header = struct.pack("<BBBBIII", 2, 1, compressor << 5, type_size, nbytes, block, length)
    return header.ljust(length, b"\0")


def lz4_claim(nbytes: int) -> bytes:
    """A block of one literal behind a size."""
    return struct.pack("<i", nbytes) + b"\x10\0"


def lz4_zeros(nbytes: int) -> bytes:
    """A block that repeats a zero as often as LZ4 can say with its bytes."""
    match = nbytes - 1 - 5
    rest = match - 4 - 15
    block = b"\x1f\0\x01\0" + b"\xff" * (rest // 255) + bytes([rest % 255])
    return struct.pack("<i", nbytes) + block + b"\x50" + bytes(5)


def blosclz_matches(length: int) -> bytes:
    """A BloscLZ block of 16 KiB that begins a match whose length goes on and on."""
    header = struct.pack("<BBBBIII", 2, 1, 0, 1, 16384, 16384, 16 + 4 + 4 + length)
    return header + struct.pack("<II", 20, length) + b"\xff" * length
