"""Memory of a write: chunks of the values, and never a copy of all values."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

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
