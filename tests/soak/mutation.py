"""Values that another thread changes during the write, through every codec and entry point.

The stored values of such a write are undefined: a compressor may encode a repetition of bytes that have
changed. But it writes nowhere else, the process survives, and each chunk can be read, with a checksum
too.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import zarrow

CODECS: list[Any] = [
    None,
    "zstd",
    "blosc",
    *({"id": "gzip", "level": level} for level in (0, 1, 2, 5, 6, 9)),
    {"id": "zlib", "level": 6},
    {"id": "lz4"},
    {"id": "bz2", "level": 1},
    *(
        {"id": "blosc", "cname": name, "clevel": 5, "shuffle": 1}
        for name in ("lz4hc", "zlib", "zstd", "blosclz")
    ),
    ["zstd", "crc32c"],
    ["crc32c"],
]
SIDE = 256


def skewed(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return bytes with one dominant value."""
    return np.where(rng.random((4, SIDE, SIDE)) < 0.03, rng.integers(0, 256, (4, SIDE, SIDE)), 0).astype("u1")


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Write while a thread alternates the values; read each result."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    end = time.monotonic() + seconds
    counts = {"writes": 0, "checks": 0}
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            images = [skewed(rng), skewed(rng)]
            values = images[0].copy()
            stop = threading.Event()
            thread = threading.Thread(target=turn_over, args=(values, images, stop))
            thread.start()
            try:
                store: Any = folder if choose.random() < 0.7 else zarrow.MemoryStore()
                doors(store, choose, values, counts)
            finally:
                stop.set()
                thread.join()
    return counts


def turn_over(
    values: np.ndarray[Any, Any], images: list[np.ndarray[Any, Any]], stop: threading.Event
) -> None:
    """Alternate the values between two images, without the GIL."""
    turn = 0
    while not stop.is_set():
        turn ^= 1
        np.copyto(values, images[turn])


def doors(store: Any, choose: random.Random, values: np.ndarray[Any, Any], counts: dict[str, int]) -> None:
    """Write through one codec and every entry point."""
    codec = choose.choice(CODECS)
    options: dict[str, Any] = {"shape": values.shape, "dtype": "u1", "compressors": codec, "overwrite": True}
    layouts: list[dict[str, Any]] = [
        {"chunks": (4, SIDE, SIDE)},
        {"chunks": (1, SIDE, SIDE)},
        {"chunks": (3, 100, 100)},
        {"chunks": (1, 64, 64), "shards": (2, 256, 256)},
    ]
    for layout in layouts:
        array = zarrow.create_array(store, **options, **layout)
        writes: list[Callable[[], None]] = [
            lambda array=array: array.__setitem__(..., values),  # type: ignore[misc]
            lambda array=array: array.__setitem__((slice(1, 4), slice(5, 200)), values[1:4, 5:200]),  # type: ignore[misc]
            lambda array=array: array.__setitem__(..., values.transpose(0, 2, 1)),  # type: ignore[misc]
        ]
        for write in writes:
            for _ in range(8):
                write()
                counts["writes"] += 1
            assert array[...].shape == array.shape, (codec, layout)
            counts["checks"] += 1
