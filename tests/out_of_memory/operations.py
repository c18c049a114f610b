"""Operations that run out of memory: each is done again and again, in a process of its own, while another allocation fails.

1. The process is started with the allocator of `failing.c` loaded before the C library's.
2. An operation is prepared, and done with its first large allocation failing, then with its second, until all of them
   succeed. It may raise a MemoryError or succeed.
3. Each line that is printed has the operation and the number of the allocation, so that the last one of a process that was
   killed says where.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import zarrow

LEAST = 4096
COUNT = 20_000
NUMBERS = (np.arange(COUNT, dtype="i8") * 7919 % 1009).astype("i8")
MASKED = np.ma.array(NUMBERS, mask=NUMBERS % 3 == 0)
TEXTS = [f"text {number}" * (number % 5) for number in range(COUNT)]
POSITIONS = np.arange(COUNT)[::-1] ^ 1
CHOSEN = NUMBERS % 5 == 1

COMPRESSORS: dict[str, object] = {
    "raw": [],
    "zstd": [{"name": "zstd", "configuration": {"level": 3, "checksum": True}}],
    "gzip": [{"name": "gzip", "configuration": {"level": 5}}],
    "bz2": [{"name": "numcodecs.bz2", "configuration": {"level": 1}}],
    "lz4": [{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}],
}


def made(dtype: object, values: object, **options: object) -> zarrow.Array:
    """Make an array in memory, filled."""
    array = zarrow.create_array(
        zarrow.MemoryStore(), shape=(COUNT,), dtype=dtype, chunks=(COUNT // 3,), **options
    )
    array[:] = values
    return array


def arrays() -> dict[str, Callable[[], zarrow.Array]]:
    """What makes one array of each kind."""
    numbers = {
        name: (lambda compressors=compressors: made("i8", NUMBERS, compressors=compressors))
        for name, compressors in COMPRESSORS.items()
    }
    return {
        **numbers,
        "shards": lambda: made("i8", NUMBERS, shards=(COUNT // 3 * 2,)),
        "strings": lambda: made("string", TEXTS),
        "optional": lambda: made("optional[int64]", MASKED),
    }


def values_of(name: str) -> object:
    """The values that an array of this kind is filled with."""
    return {"strings": TEXTS, "optional": MASKED}.get(name, NUMBERS)


def write(array: zarrow.Array, key: object, values: object) -> None:
    """Write to an array."""
    array[key] = values


OPERATIONS: dict[str, Callable[[zarrow.Array, object], object]] = {
    "read": lambda array, _: array[:],
    "read a part": lambda array, _: array[5:-9:3],
    "read a list": lambda array, _: array.oindex[POSITIONS],
    "read a mask": lambda array, _: array[CHOSEN],
    "write": lambda array, values: write(array, slice(None), values),
    "write a part": lambda array, values: write(array, slice(3, COUNT - 10), values[3 : COUNT - 10]),  # type: ignore[index]
    "append": lambda array, values: array.append(values),
    "resize": lambda array, _: array.resize((COUNT // 2,)),
    "attributes": lambda array, _: array.attrs.update({"text": "x" * 3000}),
    "numpy": lambda array, _: array[:].to_numpy() if hasattr(array[:], "to_numpy") else np.asarray(array[:]),
}


def attack(kind: str, operation: str, shim: ctypes.CDLL) -> None:
    """Steps 2 and 3."""
    make, act = arrays()[kind], OPERATIONS[operation]
    number = 0
    while True:
        number += 1
        array = make()
        zarrow.release_memory()
        print(kind, operation, number, flush=True)
        shim.failing_arm(ctypes.c_size_t(number), ctypes.c_size_t(LEAST))
        try:
            act(array, values_of(kind))
        except MemoryError:
            pass
        finally:
            count = shim.failing_disarm()
        if count < number:
            return
        # It can be done again.
        act(array, values_of(kind))


def single() -> None:
    """Every operation with every kind of array."""
    shim = ctypes.CDLL(None)
    shim.failing_disarm.restype = ctypes.c_size_t
    zarrow.set_num_threads(1)
    for kind in arrays():
        for operation in OPERATIONS:
            attack(kind, operation, shim)


def address_space(kind: str, folder: Path) -> None:
    """Write parts of an array with less and less room to grow."""
    count = 1 << 20
    options = {"compressors": [{"name": "blosc", "configuration": BLOSC}]} if kind == "blosc" else {}
    dtype = "i8" if kind == "blosc" else "optional[int64]"
    numbers = np.arange(count, dtype="i8")
    values = numbers if kind == "blosc" else np.ma.array(numbers, mask=numbers % 3 == 0)
    array = zarrow.create_array(folder, shape=(count,), dtype=dtype, chunks=(count // 2,), **options)
    array[:] = values
    zarrow.set_num_threads(1)
    refused = 0
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    for room in range(64, -1, -1):
        zarrow.release_memory()
        limit = pages * resource.getpagesize() + (room << 20) // 2
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        print(kind, room, flush=True)
        try:
            array[3 : count - 5] = values[3 : count - 5]
        except MemoryError:
            refused += 1
        try:
            array[5 : count - 7]
        except MemoryError:
            refused += 1
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    array[:] = values
    assert refused, "there was memory for all"


BLOSC = {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}

if __name__ == "__main__":
    if sys.argv[1] == "single":
        single()
    else:
        address_space(sys.argv[1], Path(sys.argv[2]))
    print("done")
