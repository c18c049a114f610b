"""Every codec from bytes to bytes: its metadata, an encoder, and its error messages."""

import bz2
import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numcodecs

from hostile.stores import CRC32C, codec, sealed


@dataclass(frozen=True)
class Encoder:
    """A codec with its name in errors."""

    name: str
    metadata: dict[str, Any]
    encode: Callable[[bytes], bytes]
    is_guarded: bool
    # Ignored trailing bytes: b"" for none, zeros, or None for any bytes.
    behind: bytes | None = b""


def blosc(name: str, shuffle: int) -> Encoder:
    shuffles = ("noshuffle", "shuffle", "bitshuffle")
    metadata = codec("blosc", cname=name, clevel=5, shuffle=shuffles[shuffle], typesize=4, blocksize=0)
    return Encoder("blosc", metadata, numcodecs.Blosc(name, 5, shuffle).encode, is_guarded=False, behind=None)


def other(id: str, is_guarded: bool, **settings: Any) -> Encoder:
    name = f"numcodecs.{id}"
    encode = numcodecs.get_codec({"id": id, **settings}).encode
    return Encoder(name, codec(name, **settings), lambda data: bytes(encode(data)), is_guarded)


def lzma(behind: bytes, is_guarded: bool, **settings: Any) -> Encoder:
    return replace(other("lzma", is_guarded, **settings), behind=behind)


ZEROS = bytes(1)
ENCODERS = {
    "zstd": Encoder("zstd", codec("zstd", level=3, checksum=False), numcodecs.Zstd(3).encode, False),
    "zstd-checksum": Encoder(
        "zstd", codec("zstd", level=3, checksum=True), numcodecs.Zstd(3, checksum=True).encode, True
    ),
    "gzip": Encoder(
        "gzip", codec("gzip", level=5), lambda data: gzip.compress(data, 5, mtime=0), True, ZEROS
    ),
    "zlib": Encoder("zlib", codec("numcodecs.zlib", level=5), zlib.compress, True, ZEROS),
    "lz4": Encoder("lz4", codec("numcodecs.lz4", acceleration=1), numcodecs.LZ4().encode, False),
    "bz2": Encoder("bz2", codec("numcodecs.bz2", level=5), bz2.compress, True, ZEROS),
    "lzma": lzma(b"", True, preset=1),
    "lzma-alone": lzma(ZEROS, False, format=2, preset=1),
    "lzma-raw": lzma(ZEROS, False, format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]),
    "base64": other("base64", False),
    "crc32": other("crc32", True, location="end"),
    "adler32": other("adler32", True),
    "jenkins_lookup3": other("jenkins_lookup3", True, initval=7),
    "blosc-lz4": blosc("lz4", 1),
    "blosc-zstd": blosc("zstd", 2),
    "blosc-blosclz": blosc("blosclz", 0),
    "crc32c": Encoder("crc32c", CRC32C, sealed, True),
}
