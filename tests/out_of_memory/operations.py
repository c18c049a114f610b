"""Operations that run out of memory, each in a process with the allocator of `failing.c`.

1. An operation is prepared, and run once with enough memory.
2. It is prepared again and run with its first large allocation failing, then with its second, until none is
   left. Each time it raises a MemoryError or has the result of step 1.
3. After an error it is run again, and then has the result of step 1.
4. Each attempt is printed before it starts, so that the last line of a killed process identifies it.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import zarrow

#: Smaller allocations do not grow with data.
LEAST = 1 << 16
#: Allocations for Blosc's blocks and tables may be smaller.
LEAST_OF_BLOSC = 1 << 12
#: More than one operation can fail; without this limit a fault would look like a slow test.
MOST = 500

COUNT = 20_000
CHUNK = COUNT // 2
NUMBERS = np.arange(COUNT, dtype="i8") * 7919 % 65_521
MASKED = np.ma.array(NUMBERS, mask=NUMBERS % 3 == 0)
TEXTS = np.array([f"text {number}" * (number % 5) for number in range(COUNT)], "T")
POSITIONS = np.arange(COUNT)[::-1] ^ 1
CHOSEN = NUMBERS % 5 == 1
NOTE = {"text": "a note " * 20_000, "numbers": list(range(5_000))}

Act = Callable[[], Any]
Operation = Callable[[], Act]


def codec(name: str, **configuration: Any) -> list[dict[str, Any]]:
    """A list of one codec."""
    return [{"name": name, "configuration": configuration}]


def blosc(cname: str, shuffle: str, level: int = 5) -> dict[str, Any]:
    """Return options of an array with this compressor inside Blosc, in several blocks."""
    options = {"cname": cname, "clevel": level, "shuffle": shuffle, "typesize": 8, "blocksize": 4096}
    return {"dtype": "i8", "compressors": codec("blosc", **options)}


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "raw": (NUMBERS, {"dtype": "i8", "compressors": []}),
    "zstd": (NUMBERS, {"dtype": "i8", "compressors": codec("zstd", level=3, checksum=True)}),
    "gzip": (NUMBERS, {"dtype": "i8", "compressors": codec("gzip", level=5)}),
    "bz2": (NUMBERS, {"dtype": "i8", "compressors": codec("numcodecs.bz2", level=1)}),
    "blosc": (NUMBERS, blosc("lz4", "shuffle")),
    "blosc, lz4hc": (NUMBERS, blosc("lz4hc", "bitshuffle")),
    "blosc, zlib": (NUMBERS, blosc("zlib", "shuffle")),
    "blosc, zstd": (NUMBERS, blosc("zstd", "bitshuffle", 9)),
    "blosc, blosclz": (NUMBERS, blosc("blosclz", "noshuffle")),
    "shards": (NUMBERS, {"dtype": "i8", "chunks": (CHUNK // 2,), "shards": (CHUNK,)}),
    "strings": (TEXTS, {"dtype": "string"}),
    "optional": (MASKED, {"dtype": "optional[int64]"}),
}


def made(kind: str, store: Any = None) -> tuple[zarrow.Array, Any]:
    """Return a filled array in memory, and its elements."""
    values, options = KINDS[kind]
    options = {"chunks": (CHUNK,), **options}
    array = zarrow.create_array(store or zarrow.MemoryStore(), shape=(COUNT,), **options)
    array[:] = values
    return array, values


def table(attributes: dict[str, Any] | None = None) -> zarrow.Group:
    """Return a group of columns."""
    group = zarrow.create_group(zarrow.MemoryStore(), attributes=attributes)
    for kind in ("raw", "strings", "optional"):
        values, options = KINDS[kind]
        group.create_array(kind, shape=(COUNT,), chunks=(CHUNK,), **options)[:] = values
    return group


def reading(kind: str, act: Callable[[zarrow.Array], Any]) -> Operation:
    """Operations that read an array of this kind."""

    def prepare() -> Act:
        array, _ = made(kind)
        return lambda: act(array)

    return prepare


def writing(kind: str, act: Callable[[zarrow.Array, Any], Any]) -> Operation:
    """Operations that change an array of this kind, and return its contents."""

    def prepare() -> Act:
        array, values = made(kind)
        values = values[::-1].copy()

        def change() -> Any:
            act(array, values)
            return array

        return change

    return prepare


def write(key: Any) -> Callable[[zarrow.Array, Any], None]:
    """Write some of the values, in reverse."""
    return lambda array, values: array.__setitem__(key, values[key])


def write_many(array: zarrow.Array, values: Any) -> None:
    """Write to a list of positions."""
    array.oindex[POSITIONS] = values


def operations() -> dict[str, Operation]:
    """Return all operations by their names."""
    part = slice(7, COUNT - 9)
    found: dict[str, Operation] = {}
    for kind in KINDS:
        found[f"{kind}: read"] = reading(kind, lambda array: array[:])
        found[f"{kind}: read a part"] = reading(kind, lambda array: array[5:-9:3])
        found[f"{kind}: read a list"] = reading(kind, lambda array: array.oindex[POSITIONS])
        found[f"{kind}: write"] = writing(kind, write(slice(None)))
        found[f"{kind}: write a part"] = writing(kind, write(part))
    for kind in ("raw", "strings", "optional"):
        found[f"{kind}: read a mask"] = reading(kind, lambda array: array[CHOSEN])
        found[f"{kind}: read points"] = reading(kind, lambda array: array.vindex[POSITIONS.reshape(2, -1)])
        found[f"{kind}: write a list"] = writing(kind, write_many)
        found[f"{kind}: NumPy"] = reading(kind, lambda array: array[:].numpy())
        found[f"{kind}: a list"] = reading(kind, lambda array: array[:].tolist())
        found[f"{kind}: Arrow"] = reading(kind, lambda array: pa.chunked_array(array.to_arrow()))
        found[f"{kind}: pickle"] = reading(
            kind, lambda array: pickle.loads(pickle.dumps(array[:], protocol=5))
        )
        found[f"{kind}: resize"] = writing(kind, lambda array, _: array.resize((CHUNK + 5,)))
        found[f"{kind}: append"] = writing(kind, lambda array, values: array.append(values))
        found[f"{kind}: save"] = saving(KINDS[kind][0])
        found[f"{kind}: from Arrow"] = from_arrow(kind)
        found[f"{kind}: from Python"] = from_python(kind)
    found["attributes"] = writing("raw", lambda array, _: array.attrs.update(NOTE))
    found["one attribute"] = writing("raw", lambda array, _: array.attrs.__setitem__("note", NOTE["text"]))
    return {**found, **of_groups(), **others()}


def saving(values: Any) -> Operation:
    """Save into a new store."""

    def prepare() -> Act:
        store = zarrow.MemoryStore()

        def act() -> Any:
            zarrow.create_array(store, data=values, overwrite=True)
            return zarrow.open(store)

        return act

    return prepare


def from_arrow(kind: str) -> Operation:
    """Import an Arrow array, and a stream of Arrow arrays."""

    def prepare() -> Act:
        array = pa.array(KINDS[kind][0].tolist())
        return lambda: [zarrow.from_arrow(array), zarrow.asarray(array, copy=True)]

    return prepare


def from_python(kind: str) -> Operation:
    """Import a list of Python objects."""

    def prepare() -> Act:
        values = KINDS[kind][0].tolist()
        dtype = KINDS[kind][1]["dtype"] if kind != "optional" else None
        values = [0 if value is None else value for value in values] if kind == "optional" else values
        return lambda: zarrow.asarray(values, dtype=dtype)

    return prepare


def of_groups() -> dict[str, Operation]:
    """Operations on a group."""

    def of_table(act: Callable[[zarrow.Group], Any], attributes: dict[str, Any] | None = None) -> Operation:
        def prepare() -> Act:
            group = table(attributes)
            return lambda: act(group)

        return prepare

    def of_many(act: Callable[[zarrow.Group], Any]) -> Operation:
        document = b'{"zarr_format": 3, "node_type": "group"}'
        values = {"zarr.json": document, **{f"member {number}/zarr.json": document for number in range(9000)}}

        def prepare() -> Act:
            group = zarrow.open(zarrow.MemoryStore(values))
            return lambda: act(group)

        return prepare

    def consolidate(group: zarrow.Group) -> Any:
        group.consolidate_metadata()
        return dict(group.attrs)

    def opened() -> Act:
        store = zarrow.MemoryStore()
        zarrow.create_group(store, attributes=NOTE)
        return lambda: dict(zarrow.open(store).attrs)

    return {
        "consolidate": of_table(consolidate, NOTE),
        "table": of_table(lambda group: pa.table(group.to_arrow())),
        "attributes of a group": of_table(lambda group: dict(group.attrs), NOTE),
        "open": opened,
        "names of members": of_many(lambda group: group.keys()),
        "members": of_many(lambda group: len(group.items())),
        "tree": of_many(lambda group: str(group.tree(1))),
    }


def others() -> dict[str, Operation]:
    """Operations on other objects."""

    def many(count: int, of_shape: Callable[[int], slice]) -> Operation:
        def prepare() -> Act:
            array, _ = made("zstd")
            items = [(array, of_shape(number)) for number in range(count)]
            return lambda: zarrow.read_many(items)

        return prepare

    def cached() -> Act:
        store = zarrow.MemoryStore()
        made("zstd", store)
        array = zarrow.open(store, cache_bytes=8 << 20)
        return lambda: [array[:], array[5:-5], array[:]]

    def into() -> Act:
        array, _ = made("zstd")
        out = np.zeros(COUNT, "i8")
        return lambda: array.read(out=out).copy()

    def store_of_values() -> Act:
        store = zarrow.MemoryStore()
        made("raw", store)
        return lambda: zarrow.MemoryStore(store.to_dict()).to_dict()

    return {
        "read many": many(300, lambda number: slice(number, number + 500)),
        "read many of their own lengths": many(4500, lambda number: slice(number, number + number % 3)),
        "cache": cached,
        "out": into,
        "values of a store": store_of_values,
    }


def plain(result: Any) -> Any:
    """Convert a result for comparison by ==."""
    match result:
        case zarrow.Array():
            return [plain(result[:]), dict(result.attrs)]
        case list():
            return [plain(item) for item in result]
        case pa.ChunkedArray() | pa.Table():
            # Not part of the operation: pyarrow's lists do not survive a lack of memory.
            return result.to_pylist()
        case None | str() | bytes() | int() | float() | dict():
            return result
        case _:
            return result.tolist()


def attack(name: str, prepare: Operation, shim: ctypes.CDLL) -> int:
    """Run steps 1 to 4; return the number of failed allocations."""
    expected = plain(prepare()())
    refused = 0
    least = LEAST_OF_BLOSC if name.startswith("blosc") else LEAST
    for number in range(1, MOST):
        act = prepare()
        zarrow.release_memory()
        print(name, number, flush=True)
        shim.failing_arm(ctypes.c_size_t(number), ctypes.c_size_t(least))
        try:
            result = act()
        except MemoryError:
            result = None
        finally:
            count = shim.failing_disarm()
        if result is None:
            refused += 1
            result = act()
        assert plain(result) == expected, "the result after an error differs"
        if count < number:
            return refused
    raise AssertionError("there is no end to its allocations")


def main(wanted: str) -> None:
    """Run every operation with the given text in its name."""
    unraisable: list[Any] = []
    sys.unraisablehook = unraisable.append
    shim = ctypes.CDLL(None)
    shim.failing_disarm.restype = ctypes.c_size_t
    zarrow.set_num_threads(1)
    refused = {name: attack(name, act, shim) for name, act in operations().items() if wanted in name}
    assert not unraisable, unraisable
    print("never out of memory:", [name for name, count in refused.items() if not count])
    print("done", sum(refused.values()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
