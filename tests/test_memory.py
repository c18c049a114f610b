"""The cache of dropped results, the memory of failed reads, and the memory that a read takes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

import zarrow

MIB = 1 << 20
STALE = 0xA5


@pytest.fixture(autouse=True)
def empty_cache():
    zarrow.set_memory_cache(512 * MIB)
    zarrow.release_memory()
    yield
    zarrow.set_memory_cache(512 * MIB)
    zarrow.release_memory()


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    values = (np.arange(32 * MIB) % 113).astype(np.uint8).reshape(32, MIB)
    codecs = [ZstdCodec(), Crc32cCodec()]
    zarr.create_array(folder, shape=(32, MIB), chunks=(1, MIB // 2), dtype="u1", compressors=codecs)[:] = (
        values
    )
    return zarrow.open(folder), values


def dropped(array, megabytes):
    """Read and drop that many megabytes, and return the address."""
    return array[:megabytes].numpy().ctypes.data


def test_dropped_memory_serves_the_next_result(array):
    array, _ = array
    first = dropped(array, 16)
    assert dropped(array, 16) == first
    # A view keeps the whole buffer alive.
    view = array[:16].numpy()[3:4]
    assert view.ctypes.data - 3 * MIB == first
    assert dropped(array, 16) != first and zarrow.release_memory() >= 16 * MIB


def test_it_is_released_on_demand(array):
    array, values = array
    assert zarrow.release_memory() == 0
    kept = array[:4]
    dropped(array, 16)
    dropped(array, 3)
    assert 19 * MIB <= zarrow.release_memory() < 24 * MIB
    assert zarrow.release_memory() == 0
    np.testing.assert_array_equal(kept.numpy(), values[:4])


def test_no_more_is_kept_than_the_limit(array):
    array, _ = array
    zarrow.set_memory_cache(10 * MIB)
    held = [array[:4] for _ in range(5)]
    del held
    assert 4 * MIB <= zarrow.release_memory() <= 11 * MIB
    dropped(array, 16)
    assert zarrow.release_memory() < MIB, "more than the limit by itself"
    dropped(array, 8)
    zarrow.set_memory_cache(4 * MIB)
    assert zarrow.release_memory() < MIB, "the limit was lowered"
    zarrow.set_memory_cache(0)
    dropped(array, 4)
    assert zarrow.release_memory() < MIB
    with pytest.raises(ValueError):
        zarrow.set_memory_cache(-1)


def test_only_the_last_of_small_results_are_kept(array):
    array, _ = array
    held = [array[row] for row in range(20)]
    del held
    assert 7 * MIB < zarrow.release_memory() <= 9 * MIB
    dropped(array, 1)
    zarrow.set_memory_cache(0)
    assert zarrow.release_memory() < MIB
    dropped(array, 1)
    assert zarrow.release_memory() < MIB


def fill_the_cache(array):
    """Leave a buffer with a canary in the cache, and return its address."""
    view = array[:16].numpy()
    view[...] = STALE
    return view.ctypes.data


def test_recycled_memory_shows_no_old_contents(array):
    array, values = array
    for selection in [np.s_[:16], np.s_[5:20], np.s_[16:32, ::-1], np.s_[::2], np.s_[:12, 3:]]:
        address = fill_the_cache(array)
        tensor = array[selection]
        assert not (tensor.numpy() == STALE).any()
        np.testing.assert_array_equal(tensor.numpy(), values[selection])
        assert memoryview(tensor).nbytes == tensor.nbytes == values[selection].nbytes
        assert address == tensor.numpy().ctypes.data


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_failed_read_shows_nothing(damage, tmp_path):
    values = np.random.default_rng(1).integers(0, 128, (16, MIB), dtype=np.uint8)
    codecs = [ZstdCodec(), Crc32cCodec()]
    zarr.create_array(
        tmp_path, shape=(16, MIB), chunks=(1, MIB), dtype="u1", fill_value=7, compressors=codecs
    )[:] = values
    array = zarrow.open(tmp_path)
    address = fill_the_cache(array)
    chunk = tmp_path / "c/9/0"
    stored = bytearray(chunk.read_bytes())
    stored[1000] ^= 1
    if damage == "gone":
        chunk.unlink()
        values[9] = 7
        np.testing.assert_array_equal(array[...].numpy(), values)
        return
    chunk.write_bytes(stored if damage == "changed" else stored[:1000])
    for read in (lambda: array[...], lambda: zarrow.read_many([(array, slice(0, 8)), (array, slice(8, 16))])):
        with pytest.raises(zarrow.CodecError) as raised:
            read()
        assert raised.value.chunk == (9, 0)
    # The memory returned to the cache, where the next result finds it.
    tensor = array[:9]
    assert tensor.numpy().ctypes.data == address
    np.testing.assert_array_equal(tensor.numpy(), values[:9])


CODECS = {
    "raw": None,
    "zstd": ZstdCodec(),
    "gzip": GzipCodec(level=1),
    "blosc": BloscCodec(),
    "checksum": [ZstdCodec(), Crc32cCodec()],
}


@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_read_takes_little_more_memory_than_its_result(codec, sharded, tmp_path):
    """Peak of a process with a single read: result, an encoded and a decoded chunk per thread, 32 MiB."""
    shape, chunk, threads = (192, 256, 256), (64, 128, 128), 2
    values = np.random.default_rng(5).integers(0, 9, shape).astype(np.float32)
    shards = {"shards": (192, 256, 256)} if sharded else {}
    zarr.create_array(tmp_path, shape=shape, chunks=chunk, dtype="f4", compressors=CODECS[codec], **shards)[
        :
    ] = values
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    encoded = 4 * MIB if sharded else max(path.stat().st_size for path in files)
    for selection in ("...", "(slice(None, None, -1), slice(1, None), slice(None, None, 2))"):
        program = f"""
            import zarrow
            def status(name):
                with open("/proc/self/status") as file:
                    return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))
            zarrow.set_num_threads({threads})
            array = zarrow.open({str(tmp_path)!r})
            before = status("VmRSS")
            tensor = array[{selection}]
            print(status("VmHWM") - before, tensor.nbytes)
        """
        output = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
        ).stdout
        peak, result = map(int, output.split())
        assert result <= peak <= result + threads * (encoded + 4 * MIB) + 32 * MIB
