"""Chunks and shards at the array's edge that cannot be decoded.

A write of everything inside the array replaces them, and they do not prevent changes of the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec, ZstdCodec

import handwritten
import zarrow
from oracle.libraries import unspecified

SHAPE = (7, 5)
OLD = np.arange(1, 36, dtype="i4").reshape(SHAPE)
NEW = OLD[::-1] * 100

# Options for zarr-python; with each, the array's edge is inside of some chunks.
LAYOUTS: dict[str, dict[str, Any]] = {
    "raw": {"chunks": (4, 3), "compressors": None},
    "zstd": {"chunks": (4, 3), "compressors": ZstdCodec(checksum=True)},
    "crc32c": {"chunks": (4, 3), "compressors": [BloscCodec(), Crc32cCodec()]},
    "transposed": {"chunks": (4, 3), "filters": TransposeCodec(order=(1, 0)), "compressors": Crc32cCodec()},
    "one chunk": {"chunks": (8, 8), "compressors": Crc32cCodec()},
    "version 2": {"chunks": (4, 3), "zarr_format": 2},
    "shards": {"shards": (4, 6), "chunks": (2, 3), "compressors": None},
    "checked shards": {"shards": (8, 6), "chunks": (2, 3), "compressors": [ZstdCodec(), Crc32cCodec()]},
    "shards of shards": {
        "chunks": (8, 8),
        "compressors": None,
        "serializer": ShardingCodec(
            chunk_shape=(4, 4),
            codecs=[ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec(), Crc32cCodec()])],
        ),
    },
    "compressed shards": {
        "chunks": (8, 8),
        "compressors": ZstdCodec(checksum=True),
        "serializer": ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec()]),
    },
}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "cut": lambda old: old[: len(old) // 2],
    "flipped": lambda old: bytes(byte ^ 0x55 for byte in old),
    "longer": lambda old: old + bytes(1 << 22),
    "end flipped": lambda old: old[:-3] + bytes(byte ^ 0x55 for byte in old[-3:]),
    "start flipped": lambda old: bytes(byte ^ 0x55 for byte in old[:3]) + old[3:],
}


def chunks(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] not in ".z")


def damaged(folder: Path, layout: str, damage: str) -> zarrow.Array:
    """Write an array with only damaged chunks."""
    with unspecified():
        zarr.create_array(folder, shape=SHAPE, dtype="i4", **LAYOUTS[layout])[:] = OLD
    for chunk in chunks(folder):
        chunk.write_bytes(DAMAGES[damage](chunk.read_bytes()))
    return zarrow.open(folder)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_whole_write_replaces_undecodable_chunks(layout: str, damage: str, tmp_path: Path) -> None:
    array = damaged(tmp_path, layout, damage)
    array[:] = NEW
    assert np.array_equal(array[...].numpy(), NEW)
    with unspecified():
        assert np.array_equal(zarr.open_array(tmp_path, mode="r")[...], NEW)
    array.append(OLD)
    assert np.array_equal(array[...].numpy(), np.concatenate([NEW, OLD]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_of_a_part_refuses_it_and_leaves_it(layout: str, tmp_path: Path) -> None:
    array = damaged(tmp_path, layout, "cut")
    before = [chunk.read_bytes() for chunk in chunks(tmp_path)]
    for part in [np.s_[-2:, -2:], np.s_[-1]]:
        with pytest.raises(zarrow.CodecError):
            array[part] = 1
    assert [chunk.read_bytes() for chunk in chunks(tmp_path)] == before


@pytest.mark.parametrize("dtype", ["optional[int32]", "string", "optional[string]"])
@pytest.mark.parametrize("shards", [None, (4, 6)])
def test_other_layouts_are_replaced_too(dtype: str, shards: tuple[int, int] | None, tmp_path: Path) -> None:
    values: Any = OLD if "int" in dtype else OLD.astype(str).astype(object)
    options: dict[str, Any] = {"chunks": (4, 3) if shards is None else (2, 3), "shards": shards}
    array = zarrow.create_array(tmp_path, shape=SHAPE, dtype=dtype, compressors=["zstd", "crc32c"], **options)
    array[:] = values
    for chunk in chunks(tmp_path):
        chunk.write_bytes(chunk.read_bytes()[:-1])
    array[:] = values
    assert array[...].tolist() == values.tolist()


def test_decodable_chunks_of_another_append_are_kept(tmp_path: Path) -> None:
    """One inner chunk has wrong bytes; the others beyond the edge are copied."""
    options = {"shards": (8,), "chunks": (2,), "dtype": "i4", "compressors": ["crc32c"], "fill_value": 0}
    array, other = zarrow.create_array(tmp_path, shape=(3,), **options), zarrow.open(tmp_path)
    array[:] = [1, 2, 3]
    array.append([4, 5, 6])
    [shard] = chunks(tmp_path)
    stored = bytearray(shard.read_bytes())
    at = stored.index(np.array([3, 4], "i4").tobytes())
    stored[at] ^= 1
    shard.write_bytes(stored)
    other[:] = [7, 8, 9]
    other.refresh()
    assert other[...].tolist() == [7, 8, 9, 0, 5, 6]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_resize_over_it_leaves_store_and_handle_in_agreement(
    layout: str, damage: str, tmp_path: Path
) -> None:
    array = damaged(tmp_path, layout, damage)
    for shape in [(6, 4), (5, 5), (9, 9), (2, 2)]:
        array.resize(shape)
        assert array.shape == zarrow.open(tmp_path).shape == shape
    array[:] = NEW[:2, :2]
    assert np.array_equal(array[...].numpy(), NEW[:2, :2])


def test_resize_over_it_clears_the_others(tmp_path: Path) -> None:
    options = {"shards": (1, 8), "chunks": (1, 4), "dtype": "i4", "compressors": ["crc32c"]}
    array = zarrow.create_array(tmp_path, shape=(2, 8), **options)
    array[:] = np.arange(1, 17, dtype="i4").reshape(2, 8)
    first, _ = chunks(tmp_path)
    stored = bytearray(first.read_bytes())
    stored[0] ^= 1
    first.write_bytes(stored)
    array.resize((2, 3))
    array.resize((2, 8))
    with pytest.raises(zarrow.CodecError):
        array[0, :4]
    assert array[0, 4:].tolist() == [0] * 4
    assert array[1].tolist() == [9, 10, 11, 0, 0, 0, 0, 0]


def test_a_resize_that_fails_leaves_store_and_handle_in_agreement(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path, data=OLD, chunks=(4, 3))
    chunk = tmp_path / "c" / "1" / "1"
    chunk.unlink()
    chunk.mkdir()
    with pytest.raises(zarrow.StoreError):
        array.resize((6, 4))
    assert array.shape == zarrow.open(tmp_path).shape


def test_optional_elements_of_another_writer(tmp_path: Path) -> None:
    handwritten.masked_tensor(tmp_path, np.arange(5, dtype=np.int16), np.array([False, True] * 2 + [False]))
    array = zarrow.open(tmp_path)
    for chunk in chunks(tmp_path):
        chunk.write_bytes(b"\xff" * 9)
    array[:] = np.arange(5, dtype=np.int16)
    assert array[...].tolist() == [0, 1, 2, 3, 4]
