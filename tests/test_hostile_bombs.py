"""Small inputs that decompress to many bytes, or claim to: no read allocates more than its result."""

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from hostile import bombs
from hostile.checks import GROWTH, array_of, check
from hostile.encoders import ENCODERS
from hostile.process import attempt
from hostile.stores import BYTES, document, write

BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "zstd claims 1 TiB": ("zstd", lambda: bombs.zstd_claim(1 << 40)),
    "zstd claims 2^64 - 1": ("zstd", lambda: bombs.zstd_claim(2**64 - 1)),
    "zstd claims 2^64 - 2": ("zstd", lambda: bombs.zstd_claim(2**64 - 2)),
    "zstd of 2 GiB": ("zstd", lambda: bombs.zstd_zeros(2 * bombs.GIB)),
    "zstd in frames": ("zstd", lambda: bombs.zstd_zeros(bombs.MIB) * 2000),
    "gzip of 1 GiB": ("gzip", lambda: bombs.gzip_zeros(bombs.GIB)),
    "zlib of 64 MiB": ("zlib", lambda: bombs.zlib_zeros(64 * bombs.MIB)),
    "bz2 of 2 GiB": ("bz2", lambda: bombs.bz2_zeros(2 * bombs.GIB)),
    "lz4 of 256 MiB": ("lz4", lambda: bombs.lz4_zeros(bombs.GIB // 4)),
    "lz4 claims 2 GiB": ("lz4", lambda: bombs.lz4_claim(2**31 - 1)),
    "lz4 claims less than nothing": ("lz4", lambda: bombs.lz4_claim(-1)),
    "blosc claims 2 GiB": ("blosc-lz4", lambda: bombs.blosc_claim(2**31 - 17, 1 << 20)),
    "blosc claims 4 GiB": ("blosc-lz4", lambda: bombs.blosc_claim(2**32 - 1, 1 << 20)),
    "blosc claims blocks of 4 GiB": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 2**32 - 1)),
    "blosc claims blocks of nothing": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 0)),
    "blosc of no type": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 16384, type_size=0)),
    "blosc of no compressor": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 16384, compressor=7)),
    "blosc of zeros": ("blosc-lz4", lambda: bytes(64)),
    "blosc of nothing": ("blosc-lz4", lambda: bombs.blosc_claim(0, 0, length=16)),
    "lzma of zeros": ("lzma", lambda: bombs.lzma_zeros(64 * bombs.MIB, lzma.FORMAT_XZ)),
    "old lzma of zeros": ("lzma-alone", lambda: bombs.lzma_zeros(64 * bombs.MIB, lzma.FORMAT_ALONE)),
    "lzma of a large dictionary": ("lzma-alone", lambda: b"\x5d" + b"\xff" * 12 + bytes(100)),
    "base64 of nothing": ("base64", lambda: b"=" * bombs.MIB),
    "blosclz of 0xff": ("blosc-blosclz", lambda: bombs.blosclz_matches(9000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, tmp_path: Path) -> None:
    codec_name, make = BOMBS[name]
    encoder, chunk = ENCODERS[codec_name], make()
    # Otherwise its size would be refused.
    assert len(chunk) < bombs.MIB + bombs.MIB // 8
    # 16 KiB of numbers are expected.
    store = write(tmp_path / "numbers", array_of(encoder), {"c/0": chunk})
    outcome = attempt(store, "a")
    check(outcome, store, "CodecError", "wrong_size", "corrupt", codec=encoder.name, chunk=[0])
    assert outcome.grown < GROWTH, outcome
    # The metadata give the number of strings, but not their lengths.
    metadata = document((4,), (4,), "string", codecs=[{"name": "vlen-utf8"}, encoder.metadata])
    store = write(tmp_path / "strings", metadata, {"c/0": chunk})
    outcome = attempt(store, "a")
    assert outcome.error in ("CodecError", "LimitError", "OutOfMemoryError"), outcome
    assert outcome.kind in ("corrupt", "limit", "out_of_memory"), outcome
    assert (outcome.store, outcome.path, outcome.chunk) == (str(store), "a", [0]), outcome
    assert outcome.codec in (encoder.name, "vlen-utf8"), outcome


@pytest.mark.parametrize("outer", ["gzip", "zstd", "bz2", "blosc-zstd", "crc32c"])
def test_bombs_in_a_chain(outer: str, tmp_path: Path) -> None:
    """The output between two compressors is no larger than for valid chunks."""
    encoder = ENCODERS[outer]
    bomb = {"gzip": bombs.gzip_zeros, "zstd": bombs.zstd_zeros, "bz2": bombs.bz2_zeros}
    chunk = bomb[outer](bombs.GIB) if outer in bomb else encoder.encode(bombs.zstd_zeros(bombs.GIB))
    metadata = document((4096,), (4096,), codecs=[BYTES, ENCODERS["zstd"].metadata, encoder.metadata])
    store = write(tmp_path / "store", metadata, {"c/0": chunk})
    outcome = attempt(store, "a")
    codec_name = encoder.name if outer in bomb else "zstd"
    assert outcome.error in ("CodecError", "LimitError"), outcome
    assert outcome.kind in ("wrong_size", "corrupt", "limit"), outcome
    assert (outcome.path, outcome.chunk, outcome.codec) == ("a", [0], codec_name), outcome
    assert outcome.grown < GROWTH, outcome
