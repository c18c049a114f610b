"""Arrays of zarr-python and numcodecs, in every format that a device decompresses, compared with the host."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import numpy.typing as npt
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import zarrow
from zarrow.gpu import nvcomp_libraries

SHAPE, CHUNKS = (61, 47), (16, 20)


@pytest.fixture(scope="module", autouse=True)
def nvcomp() -> None:
    """Skip all tests without nvCOMP."""
    if "ZARROW_NVCOMP" not in os.environ and nvcomp_libraries.found_in_wheels() == []:
        pytest.skip("nvidia-libnvcomp is not installed, and ZARROW_NVCOMP names no library")


def blosc(cname: str, shuffle: int, blocksize: int = 0) -> numcodecs.Blosc:
    return numcodecs.Blosc(cname, 5, shuffle, blocksize)


VERSION_2: dict[str, Any] = {
    "zstd": numcodecs.Zstd(level=3),
    "zstd with a checksum": numcodecs.Zstd(level=3, checksum=True),
    "lz4": numcodecs.LZ4(),
    "gzip": numcodecs.GZip(level=5),
    "zlib": numcodecs.Zlib(level=9),
    **{
        f"blosc {cname}, shuffle {shuffle}": blosc(cname, shuffle, blocksize)
        for cname in ("lz4", "lz4hc", "zstd", "zlib", "blosclz")
        for shuffle, blocksize in ((0, 0), (1, 256), (2, 512))
    },
}
VERSION_3: dict[str, Any] = {
    "zstd": ZstdCodec(level=3, checksum=False),
    "zstd with a checksum": ZstdCodec(level=3, checksum=True),
    "gzip": GzipCodec(level=5),
    "blosc zlib": BloscCodec(cname="zlib", typesize=4, shuffle="bitshuffle"),
    "blosc zstd": BloscCodec(cname="zstd", typesize=4, shuffle="shuffle"),
}
STORED = [(2, name) for name in VERSION_2] + [(3, name) for name in VERSION_3]
# Formats with a checksum, and its offset from the end of a chunk.
GUARDED = [
    (2, "zstd with a checksum", 4),
    (2, "gzip", 8),
    (2, "zlib", 4),
    (3, "zstd with a checksum", 4),
    (3, "gzip", 8),
]


def values() -> npt.NDArray[np.int32]:
    """Return numbers that compress somewhat."""
    return np.random.default_rng(5).integers(0, 50, SHAPE).astype(np.int32)


def made(folder: Path, version: int, name: str) -> zarrow.Array:
    """Return an array written by zarr-python."""
    codec = VERSION_2[name] if version == 2 else VERSION_3[name]
    array = zarr.create_array(
        folder / "x.zarr", shape=SHAPE, chunks=CHUNKS, dtype="i4", zarr_format=version, compressors=codec
    )
    array[...] = values()
    return zarrow.open_array(folder / "x.zarr")


def chunk_of(folder: Path, version: int) -> Path:
    """Return the file of one chunk."""
    return folder / "x.zarr" / ("1.1" if version == 2 else "c/1/1")


def outcome(array: zarrow.Array, **where: Any) -> Any:
    """Return the elements, or the text of the error."""
    try:
        return np.asarray(array.read(**where).cpu() if where else array.read()).tolist()
    except zarrow.CodecError as error:
        return (error.kind, error.chunk, str(error))


@pytest.mark.parametrize(("version", "name"), STORED)
def test_elements_are_those_of_the_host(tmp_path: Path, version: int, name: str) -> None:
    array = made(tmp_path, version, name)
    random = np.random.default_rng(version)
    for _ in range(12):
        bounds = [np.sort(random.integers(0, extent + 1, 2)) for extent in SHAPE]
        steps = random.choice([-3, -1, 1, 2], 2)
        part = tuple(
            slice(start, stop, step) if step > 0 else slice(stop, start, step)
            for (start, stop), step in zip(np.array(bounds).tolist(), steps.tolist(), strict=True)
        )
        tensor = array.read(part, device="cuda:0", decompress="device")
        np.testing.assert_array_equal(np.asarray(tensor.cpu()), values()[part])


@pytest.mark.parametrize(("version", "name", "from_end"), GUARDED)
def test_every_bit_of_a_checksum_counts(tmp_path: Path, version: int, name: str, from_end: int) -> None:
    array, chunk = made(tmp_path, version, name), chunk_of(tmp_path, version)
    whole = chunk.read_bytes()
    for bit in range(32):
        changed = bytearray(whole)
        changed[len(whole) - from_end + bit // 8] ^= 1 << bit % 8
        chunk.write_bytes(changed)
        on_device = outcome(array, device="cuda:0", decompress="device")
        assert on_device == outcome(array) and on_device[1] == (1, 1)
    chunk.write_bytes(whole)
    assert outcome(array, device="cuda:0", decompress="device") == values().tolist()


def test_gzip_and_zlib_of_other_writers(tmp_path: Path) -> None:
    """Names in headers, several members, each level, small windows, padding: the same as on the host."""
    block = np.zeros(CHUNKS, np.int32)
    block[...] = values()[16:32, 20:40]
    raw = block.tobytes()
    named = bytearray(gzip.compress(raw))
    named[3], named[10:10] = 0b11100, b"\2\0exname\0comment\0"
    small = zlib.compressobj(6, wbits=9)
    stored = {
        "gzip": [
            bytes(named),
            gzip.compress(raw[:500]) + gzip.compress(raw[500:]),
            gzip.compress(raw) + bytes(7),
            *(gzip.compress(raw, level) for level in range(10)),
        ],
        "zlib": [
            small.compress(raw) + small.flush(),
            zlib.compress(raw) + bytes(5),
            *(zlib.compress(raw, level) for level in range(10)),
        ],
    }
    for name, chunks in stored.items():
        (tmp_path / name).mkdir()
        array = made(tmp_path / name, 2, name)
        for chunk in chunks:
            chunk_of(tmp_path / name, 2).write_bytes(chunk)
            assert outcome(array, device="cuda:0", decompress="device") == outcome(array) == values().tolist()
