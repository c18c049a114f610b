"""Chunks that are replaced during reads: every chunk, or shard, of a read is of one version.

1. Writers, in threads or in a separate process, alternately fill each chunk with one number and another;
   some versions are the fill value, so that chunks appear and vanish.
2. Readers use every entry point, in several threads, and check that each chunk holds one number.
"""

from __future__ import annotations

import multiprocessing
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np

import zarrow

SIDE = 1024
RECORD = np.dtype([("a", "i4"), ("b", "i4")])
WORDS = ["", "old", "newer words"]


@dataclass(frozen=True)
class Layout:
    """Encoding of an array with chunks of whole rows."""

    rows: int
    options: dict[str, Any]
    dtype: Any = "i4"
    width: int = SIDE
    doors: list[str] = field(default_factory=lambda: ["read", "out", "batch", "map", "parts"])


LAYOUTS = {
    "raw": Layout(SIDE, {"compressors": None}),
    "raw chunks": Layout(SIDE // 4, {"compressors": None}),
    "big-endian": Layout(SIDE, {"compressors": None, "dtype": ">i4"}),
    "blosc": Layout(SIDE, {"compressors": "blosc"}),
    "zstd": Layout(SIDE // 4, {"compressors": "zstd"}),
    "raw shards": Layout(SIDE, {"compressors": None, "inner": (128, SIDE)}),
    "zstd shards": Layout(SIDE // 2, {"compressors": "zstd", "inner": (64, 64)}),
    "optional": Layout(SIDE, {"compressors": None}, "optional[int32]", doors=["masked", "batch masked"]),
    "optional shards": Layout(SIDE, {"inner": (128, 128)}, "optional[int32]", doors=["masked"]),
    "records": Layout(SIDE, {"compressors": None}, RECORD, doors=["fields", "field", "records"]),
    "record shards": Layout(SIDE, {"inner": (128, 128)}, RECORD, doors=["fields", "field"]),
    "strings": Layout(64, {"compressors": None}, str, 64, doors=["words"]),
    "string shards": Layout(64, {"inner": (8, 64)}, str, 64, doors=["words"]),
}


def create(store: Any, layout: Layout) -> zarrow.Array:
    """Return the array, of 1024 rows or one chunk's rows, in version 3."""
    options = {"dtype": layout.dtype, "fill_value": None, **layout.options}
    chunk = (layout.rows, layout.width)
    if inner := options.pop("inner", None):
        options |= {"chunks": inner, "shards": chunk}
    else:
        options["chunks"] = chunk
    if options["fill_value"] is None:
        del options["fill_value"]
    rows = SIDE if layout.width == SIDE else layout.rows
    return zarrow.create_array(store, shape=(rows, layout.width), overwrite=True, **options)


def version(layout: Layout, number: int) -> Any:
    """Return equal elements of a chunk: sometimes the fill value, and missing ones if the type allows."""
    if layout.dtype is str:
        return WORDS[number % 3]
    if layout.dtype is RECORD:
        return np.array((number % 3, number % 3), RECORD)
    if layout.dtype == "optional[int32]":
        values = np.full((layout.rows, layout.width), number % 3 + 1, "i4")
        return np.ma.masked_array(values, mask=number % 3 == 0)
    return number % 3


def write(array: zarrow.Array, layout: Layout, number: int) -> None:
    """Replace every chunk."""
    value = version(layout, number)
    for start in range(0, array.shape[0], layout.rows):
        array[start : start + layout.rows] = value


def one_number(values: Any, layout: Layout, what: str) -> None:
    """Check that each chunk holds one number."""
    values = np.asarray(values)
    for start in range(0, len(values), layout.rows):
        part = values[start : start + layout.rows]
        assert (part == part.flat[0]).all(), f"{what}: a chunk of two versions"


def masked(array: Any, layout: Layout, what: str) -> None:
    """Check mask and elements: both are of one version."""
    mask = np.ma.getmaskarray(array)
    one_number(mask, layout, what)
    if not mask.any():
        one_number(array.data, layout, what)


def by_read(array: zarrow.Array, layout: Layout) -> None:
    one_number(array[...].numpy(), layout, "read")


def by_out(array: zarrow.Array, layout: Layout) -> None:
    out = np.empty(array.shape, "i4")
    array.read(..., out=out)
    one_number(out, layout, "out")


def by_batch(array: zarrow.Array, layout: Layout) -> None:
    """Read two halves of each chunk, and the same half twice."""
    half = layout.rows // 2
    items = [(array, np.s_[:half]), (array, np.s_[half : 2 * half]), (array, np.s_[:half])]
    upper, lower, again = zarrow.read_many(items).numpy()
    one_number(np.concatenate([upper, lower]), layout, "batch")
    assert np.array_equal(upper, again), "batch: items of one chunk see two versions"


def by_map(array: zarrow.Array, layout: Layout) -> None:
    one_number(array.read(..., mmap=True).numpy(), layout, "map")


def by_parts(array: zarrow.Array, layout: Layout) -> None:
    one_number(array[:, 1::2].numpy(), layout, "parts")
    one_number(array[:, [3, 700, 701]].numpy(), layout, "lists")


def by_masked(array: zarrow.Array, layout: Layout) -> None:
    masked(array[...].to_numpy(), layout, "masked")


def by_batch_masked(array: zarrow.Array, layout: Layout) -> None:
    half = layout.rows // 2
    halves = zarrow.read_many([(array, np.s_[:half]), (array, np.s_[half:])]).to_numpy()
    masked(halves.reshape(array.shape), layout, "batch masked")


def by_fields(array: zarrow.Array, layout: Layout) -> None:
    values = array[["a", "b"]].numpy()
    assert np.array_equal(values["a"], values["b"]), "fields: an element of two versions"
    one_number(values["a"], layout, "fields")


def by_field(array: zarrow.Array, layout: Layout) -> None:
    one_number(array["b"].numpy(), layout, "field")


def by_records(array: zarrow.Array, layout: Layout) -> None:
    one_number(array[...].numpy()["a"], layout, "records")


def by_words(array: zarrow.Array, layout: Layout) -> None:
    words = array[...].numpy().ravel().tolist()
    assert set(words) in [{word} for word in WORDS], "strings of two versions"


DOORS: dict[str, Callable[[zarrow.Array, Layout], None]] = {
    name.removeprefix("by_").replace("_", " "): door
    for name, door in list(globals().items())
    if name.startswith("by_")
}


def write_on(folder: str, name: str, seed: int) -> None:
    """Run a process that writes until it is terminated."""
    array, number = zarrow.open(folder), seed
    while True:
        number += 1
        write(array, LAYOUTS[name], number)


@contextmanager
def writers(store: Any, name: str, seed: int, processes: int = 1) -> Iterator[None]:
    """Two writer threads; for a folder also two processes."""
    stop, array, layout = threading.Event(), zarrow.open(store), LAYOUTS[name]

    def write_until_stopped(number: int) -> None:
        while not stop.is_set():
            number += 1
            write(array, layout, number)

    threads = [threading.Thread(target=write_until_stopped, args=(seed + at,)) for at in range(2)]
    others = [
        multiprocessing.get_context("spawn").Process(target=write_on, args=(store, name, seed + 2 + at))
        for at in range(processes if isinstance(store, str) else 0)
    ]
    for one in [*threads, *others]:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for process in others:
            process.terminate()
        for one in [*threads, *others]:
            one.join()


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Read each layout by its entry points, in a folder or in memory, with and without a cache."""
    choose = random.Random(seed)
    counts = {"reads": 0, "layouts": 0}
    end = monotonic() + seconds
    while monotonic() < end:
        name = choose.choice(list(LAYOUTS))
        layout = LAYOUTS[name]
        zarrow.set_num_threads(choose.choice([2, 4]))
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            store: Any = folder if choose.random() < 0.7 else zarrow.MemoryStore()
            write(create(store, layout), layout, 1)
            array = zarrow.open(store, cache_bytes=choose.choice([0, 64 << 20]))
            until = min(end, monotonic() + 3)
            with writers(store, name, seed):
                while monotonic() < until:
                    for door in layout.doors:
                        try:
                            DOORS[door](array, layout)
                        except AssertionError as fault:
                            raise AssertionError(f"{name}, {store}, seed {seed}: {fault}") from fault
                        counts["reads"] += 1
        counts["layouts"] += 1
    return counts
