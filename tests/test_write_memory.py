"""Memory of a write: chunks of the values, and never a copy of all values, nor of a shard."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

import zarrow

MIB = 1 << 20
CODECS = {
    "raw": None,
    "zstd": ZstdCodec(),
    "gzip": GzipCodec(level=1),
    "blosc": BloscCodec(),
    "checksum": [ZstdCodec(), Crc32cCodec()],
}
PROGRAM = """
    import sys
    import numpy as np
    import zarrow
    def status(name):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))
    zarrow.set_num_threads(2)
    array = zarrow.open(sys.argv[1])
    values = np.arange(array.size // 2, dtype="f4").reshape(192, 256, 256, copy=False)
    values = {values}
    # The first write loads code; the peak is measured after it.
    array[0, 0, :2] = values[0, 0, :2]
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    array[{selection}] = values
    print(status("VmHWM") - before)
"""


VALUES = {
    "straight": ("values", "..., :256"),
    "backwards": ("values[::-1, :, ::-1]", "..., ::2"),
    "swapped": ("values.astype('>f4')", "..., 3:259"),
}
CASES = [(codec, sharded, way) for codec in ("raw", "zstd") for sharded in (False, True) for way in VALUES]
CASES += [(codec, False, "straight") for codec in ("gzip", "blosc", "checksum")]


@pytest.mark.parametrize(("codec", "sharded", "way"), CASES)
def test_a_write_takes_chunks_and_no_copy(codec, sharded, way, tmp_path):
    """Peak of a process with a single write: an encoded and a decoded chunk per thread, and 24 MiB.

    The values have 48 MiB. The old shard is also read in parts.
    """
    shape, chunk = (192, 256, 512), (32, 64, 128)
    shards = {"shards": (192, 256, 512)} if sharded else {}
    zarr.create_array(tmp_path, shape=shape, chunks=chunk, dtype="f4", compressors=CODECS[codec], **shards)
    values, selection = VALUES[way]
    program = textwrap.dedent(PROGRAM).format(values=values, selection=selection)
    run = [sys.executable, "-c", program, str(tmp_path)]
    peak = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert peak <= 2 * 3 * MIB + 24 * MIB
    assert np.count_nonzero(zarr.open_array(tmp_path)[5]) > 256 * 250


def test_threads_wait_for_a_slow_share_of_a_shard():
    """Without that, the others would encode the whole shard into memory while one thread is slow."""
    values = np.ones((1024, 4096), "u1")
    values[0] = 0
    # A shard has four shares for each thread. Two of them may be encoded before they are written.
    most = len(values) // 2
    encoded, beside_the_first, changed = [], [], threading.Condition()

    def encode(chunk):
        with changed:
            encoded.append(None)
            changed.notify_all()
            if bytes(chunk[:1]) == b"\0":
                changed.wait_for(lambda: len(encoded) > most, timeout=1)
                beside_the_first.append(len(encoded))
        return bytes(chunk)

    zarrow.codecs.register("slow-first", encode=encode, decode=bytes)
    options = {"chunks": (1, 4096), "shards": values.shape, "compressors": "slow-first", "fill_value": 9}
    array = zarrow.create_array(zarrow.MemoryStore(), data=values, zarr_format=3, **options)
    assert len(beside_the_first) == 1 and beside_the_first[0] <= most
    assert np.array_equal(array[:].numpy(), values)


@pytest.mark.parametrize("number", [0, 1, 500, 1023])
def test_threads_that_wait_see_that_another_failed(number):
    values = np.ones((1024, 4096), "u1")
    values[number] = 0

    def encode(chunk):
        if bytes(chunk[:1]) == b"\0":
            time.sleep(0.2)
            raise ValueError("not this one")
        return bytes(chunk)

    zarrow.codecs.register("failing-one", encode=encode, decode=bytes)
    options = {"chunks": (1, 4096), "shards": values.shape, "compressors": "failing-one", "fill_value": 9}
    with pytest.raises(ValueError, match="not this one"):
        zarrow.create_array(zarrow.MemoryStore(), data=values, zarr_format=3, **options)


@pytest.mark.parametrize("threads", [1, 2, 4, 16])
def test_threads_do_not_wait_for_a_missing_shard_that_is_cleared(threads):
    """Its shares have nothing to write."""
    before = zarrow.num_threads()
    zarrow.set_num_threads(threads)
    try:
        options = {"chunks": (1, 256), "shards": (1024, 256), "dtype": "u1", "fill_value": 9}
        array = zarrow.create_array(zarrow.MemoryStore(), shape=(1024, 256), zarr_format=3, **options)
        array.resize((700, 200))
        array.resize((1024, 256))
        array[5] = 1
        array[1:1000, 3:200] = 9
        array.resize((700, 100))
    finally:
        zarrow.set_num_threads(before)
    assert array[:].numpy().sum() == 699 * 100 * 9 + 3 * 1 + 97 * 9


def test_threads_that_wait_leave_one_for_an_awaited_read():
    """The codec of the share that writes next awaits a read, which needs a thread of the pool."""
    program = """
        import asyncio, threading, time
        import numpy as np
        import zarrow
        zarrow.set_num_threads(4)
        elements = np.arange(4000).reshape(400, 10)
        other = zarrow.create_array(zarrow.MemoryStore(), data=elements, chunks=(10, 10))
        async def read():
            return await other.read_async()
        def encode(chunk):
            if bytes(chunk[:1]) == b"\\0":
                for _ in range(3):
                    time.sleep(0.2)
                    asyncio.run(read())
            return bytes(chunk)
        zarrow.codecs.register("awaits", encode=encode, decode=bytes)
        values = np.ones((1024, 4096), "u1")
        values[0] = 0
        options = {"chunks": (1, 4096), "shards": values.shape, "compressors": "awaits", "fill_value": 9}
        def write():
            array = zarrow.create_array(zarrow.MemoryStore(), data=values, zarr_format=3, **options)
            assert (array[:].numpy() == values).all()
        threads = [threading.Thread(target=write) for _ in range(4)]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        for thread in threads:
            thread.join()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=60, check=True)
