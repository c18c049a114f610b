"""Reads with decompression on a device, compared with the same reads to the host.

`ZARROW_NVCOMP` names nvCOMP in software, or nvCOMP's wheel is in the environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow
from zarrow.gpu import nvcomp_libraries

from .conftest import DRIVER, Border

Route = Literal["host", "device", "auto"]


@pytest.fixture(scope="module", autouse=True)
def nvcomp() -> None:
    """Skip all tests without nvCOMP."""
    if "ZARROW_NVCOMP" not in os.environ and nvcomp_libraries.found_in_wheels() == []:
        pytest.skip("nvidia-libnvcomp is not installed, and ZARROW_NVCOMP names no library")


def blosc(cname: str, shuffle: str, blocksize: int = 0) -> dict[str, Any]:
    settings = {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": blocksize}
    return {"name": "blosc", "configuration": settings}


ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
COMPRESSORS: dict[str, list[dict[str, Any]]] = {
    "zstd": [ZSTD],
    "zstd and crc32c": [ZSTD, {"name": "crc32c"}],
    "lz4": [{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}],
    "blosc lz4": [blosc("lz4", "shuffle")],
    "blosc lz4 in small blocks": [blosc("lz4", "bitshuffle", 512)],
    "blosc zstd": [blosc("zstd", "bitshuffle")],
    "blosc zstd in small blocks": [blosc("zstd", "shuffle", 256)],
    "blosc blosclz, which the host decodes": [blosc("blosclz", "shuffle")],
}


def a_slice(extent: int) -> st.SearchStrategy[slice]:
    bound = st.one_of(st.none(), st.integers(-extent, extent))
    step = st.sampled_from([None, 1, 2, 3, -1, -4])
    return st.builds(slice, bound, bound, step)


@pytest.mark.parametrize("compressor", COMPRESSORS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_elements_are_those_of_the_host(compressor: str, data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 40)), "shape")
    chunks = data.draw(st.tuples(st.integers(1, 16), st.integers(1, 16)), "chunks")
    sharding = {"shards": (2 * chunks[0], 3 * chunks[1])} if data.draw(st.booleans(), "sharded") else {}
    dtype = data.draw(st.sampled_from(["<u4", ">f4", "i2", "u1", "c16", "M8[s]"]), "dtype")
    values = np.random.default_rng(3).integers(0, 9, shape).astype(np.int64).astype(dtype)
    array = zarrow.create_array(
        zarrow.MemoryStore(), data=values, chunks=chunks, compressors=COMPRESSORS[compressor], **sharding
    )
    parts = st.tuples(*(st.one_of(a_slice(n), st.integers(-n, n - 1)) for n in shape))
    selection = data.draw(parts, "selection")
    for route in ("device", "auto"):
        tensor = array.read(selection, device="cuda:0", decompress=route)
        np.testing.assert_array_equal(np.asarray(tensor.cpu()), np.asarray(array[selection]))
        slices = tuple(part if isinstance(part, slice) else slice(None) for part in selection)
        by_axis = array.oindex.read(slices, device="cuda:0", decompress=route)
        np.testing.assert_array_equal(np.asarray(by_axis.cpu()), values[slices])


@pytest.mark.parametrize("decompress", ["host", "device", "auto"])
def test_indexers_and_batches(tmp_path: Path, decompress: Route) -> None:
    values = np.arange(96 * 80, dtype=np.int32).reshape(96, 80) // 5
    array = zarrow.create_array(tmp_path / "x", data=values, chunks=(16, 16), compressors=[ZSTD])
    where: dict[str, Any] = {"device": "cuda:0", "decompress": decompress}
    np.testing.assert_array_equal(array.oindex.read(np.s_[3:70:2, ::-3], **where).cpu(), values[3:70:2, ::-3])
    np.testing.assert_array_equal(array.vindex.read(np.s_[5:9], **where).cpu(), values[5:9])
    np.testing.assert_array_equal(array.blocks.read((1, slice(2, 4)), **where).cpu(), values[16:32, 32:64])
    crops = [(array, np.s_[at : at + 20, 4 * at : 4 * at + 12]) for at in range(7)]
    expected = np.stack([values[crop] for _, crop in crops])
    np.testing.assert_array_equal(zarrow.read_many(crops, **where).cpu(), expected)
    out = zarrow.gpu.asarray(np.zeros(expected.shape, np.int32))
    assert zarrow.read_many(crops, out=out, decompress=decompress) is out
    np.testing.assert_array_equal(out.cpu(), expected)
    ragged = zarrow.read_many([(array, 3), (array, np.s_[:2, 1])], **where)
    assert [tensor.cpu().tolist() for tensor in ragged] == [values[3].tolist(), values[:2, 1].tolist()]
    positions: Any = ([3, 1, 2], [0, 5, 5])
    if decompress == "device":
        with pytest.raises(zarrow.UnsupportedError, match="positions without"):
            array.vindex.read(positions, **where)
    else:
        np.testing.assert_array_equal(array.vindex.read(positions, **where).cpu(), values[positions])


def test_stored_bytes_cross_once(tmp_path: Path, border: Border) -> None:
    values = np.arange(1 << 18, dtype=np.uint32) // 9
    array = zarrow.create_array(tmp_path / "x", data=values, chunks=1 << 12, compressors=[ZSTD])
    tensor = array.read(device="cuda:0", decompress="device")
    # Each chunk takes 32 bytes in the list of frames and 256 in the list of boxes, and is aligned to 256.
    assert array.nbytes_stored() <= border.to_device <= array.nbytes_stored() + 64 * 640
    assert border.to_device < values.nbytes / 2
    np.testing.assert_array_equal(tensor.cpu(), values)


def test_corrupt_frames_give_the_error_of_the_host(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 30, 1 << 16).astype(np.uint32)
    array = zarrow.create_array(tmp_path / "x", data=values, chunks=1 << 12, compressors=[ZSTD])
    path = tmp_path / "x" / "c" / "7"
    stored = bytearray(path.read_bytes())
    stored[len(stored) // 2 : len(stored) // 2 + 40] = b"\xee" * 40
    path.write_bytes(stored)
    with pytest.raises(zarrow.CodecError) as host:
        array[:]
    with pytest.raises(zarrow.CodecError) as device:
        array.read(device="cuda:0", decompress="device")
    assert str(device.value) == str(host.value)
    whole = np.s_[: 7 << 12]
    np.testing.assert_array_equal(
        array.read(whole, device="cuda:0", decompress="device").cpu(), values[whole]
    )


def test_a_route_is_explained(tmp_path: Path) -> None:
    if DRIVER is None or zarrow.gpu.device_count() < 2:
        pytest.skip("no second device, without measured rates")
    few = zarrow.create_array(tmp_path / "few", data=np.arange(1000), compressors=[ZSTD])
    told = zarrow.gpu.explain(few, device="cuda:1")
    assert (told["decompress"], told["chunks"], told["frames"]) == ("host", 1, 1)
    assert "the host decompresses all" in told["why"] and told["measured"] == []
    assert told["why"].startswith("1 chunk with about 1 frame of 8000 bytes would take the device ")
    assert told["seconds"] == told["seconds_on_host"] < told["seconds_on_device"]
    many = zarrow.create_array(
        tmp_path / "many", shape=1 << 40, chunks=1 << 13, dtype="u8", compressors=[ZSTD]
    )
    told = zarrow.gpu.explain(many, device="cuda:1")
    assert told["decompress"] in ("device", "both") and told["chunks_on_device"] > told["chunks"] // 2
    assert told["chunks_on_device"] + told["chunks_on_host"] == told["chunks"] == 1 << 27
    assert told["seconds"] <= min(told["seconds_on_device"], told["seconds_on_host"])
    assert set(told["rates"]) == {"device", "device_frame", "link", "host_thread", "ratio"}
    zarrow.gpu.explain(many, np.s_[::2])


def test_reads_measure(tmp_path: Path) -> None:
    values = np.arange(1 << 20, dtype=np.uint32)
    lz4 = COMPRESSORS["lz4"]
    array = zarrow.create_array(tmp_path / "x", data=values, chunks=1 << 12, compressors=lz4)
    array.read(device="cuda:0", decompress="device")
    assert {"link", "ratio"} <= set(zarrow.gpu.explain(array, device="cuda:0")["measured"])


def test_of_several_corrupt_chunks_the_host_names_one(tmp_path: Path) -> None:
    """The device reports a wrong checksum late; the header of another chunk is checked before."""
    values = np.random.default_rng(1).integers(0, 40, 4096 * 8).astype("i4")
    zstd = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
    array = zarrow.create_array(tmp_path / "array", data=values, chunks=4096, compressors=[zstd])
    for chunk, place in ((0, -1), (5, 0)):
        path = tmp_path / "array" / "c" / str(chunk)
        stored = bytearray(path.read_bytes())
        stored[place] ^= 1
        path.write_bytes(stored)
    threads = zarrow.num_threads()
    zarrow.set_num_threads(1)
    try:
        for options in ({}, {"device": "cuda:0"}, {"device": "cuda:0", "decompress": "device"}):
            with pytest.raises(zarrow.ZarrowError, match="checksum") as caught:
                array.read(**options)
            assert caught.value.chunk == (0,)
    finally:
        zarrow.set_num_threads(threads)
