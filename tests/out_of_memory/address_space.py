"""Partial writes and reads in a process with a full address space: `address_space.py KIND FOLDER`.

1. An array in a folder is filled, and read and written once more, so that all libraries are loaded.
2. The limit of the address space is set to the current size, plus more and more room. Each time the same
   calls are repeated: they raise a MemoryError or succeed, and never end the process.
3. Without a limit the data are unchanged.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np

import zarrow

COUNT = 1 << 20
NUMBERS = np.arange(COUNT, dtype="i8") * 7919 % 65_521
BLOSC = {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}
#: The steps of the room.
STEP = 256 << 10


def taken() -> int:
    """Return the used bytes of the address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def limit(nbytes: int) -> None:
    """Set the limit."""
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, resource.RLIM_INFINITY))


def main(kind: str, folder: str) -> None:
    """Run steps 1 to 3."""
    is_optional = kind == "optional"
    values = np.ma.array(NUMBERS, mask=NUMBERS % 3 == 0) if is_optional else NUMBERS
    array = zarrow.create_array(
        folder,
        shape=(COUNT,),
        dtype="optional[int64]" if is_optional else "i8",
        chunks=(COUNT // 2,),
        compressors=[{"name": "blosc", "configuration": BLOSC}] if kind == "blosc" else "auto",
    )
    array[:] = values
    inner = values[3:-5].copy()
    array[3:-5] = inner
    expected = array[:].tolist()
    refused = done = 0
    for room in range(96):
        zarrow.release_memory()
        limit(taken() + room * STEP)
        for act in (lambda: array.__setitem__(slice(3, -5), inner), lambda: array[5:-7]):
            try:
                act()
                done += 1
            except MemoryError:
                refused += 1
        limit(resource.RLIM_INFINITY)
        print(kind, room, refused, done, flush=True)
        if done >= 8:
            break
    assert array[:].tolist() == expected
    assert refused and done, (refused, done)
    print("done", refused)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
