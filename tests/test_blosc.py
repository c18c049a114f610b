"""Blosc compared with numcodecs: each reads the other's frames, and the sizes are equal."""

from __future__ import annotations

import itertools
import json
import random

import numcodecs
import numpy as np
import pytest

import zarrow

CNAMES = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
RANDOM = np.random.default_rng(7)


def elements(nbytes: int, item_size: int) -> np.ndarray:
    """Return bytes of slowly growing numbers with some noise."""
    count = -(-nbytes // item_size)
    numbers = np.zeros((count, item_size), "u1")
    low = min(item_size, 4)
    numbers[:, :low] = (np.arange(count, dtype="<u4") * 3).view("u1").reshape(count, 4)[:, :low]
    numbers[:, 0] += RANDOM.integers(0, 4, count, "u1")
    return numbers.reshape(-1)[:nbytes]


def store_of(nbytes: int, configuration: dict[str, object], **values: bytes) -> zarrow.MemoryStore:
    """Return a store with an array of one chunk of bytes."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [nbytes],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [nbytes]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}, {"name": "blosc", "configuration": configuration}],
    }
    return zarrow.MemoryStore({"zarr.json": json.dumps(document).encode(), **values})


@pytest.mark.parametrize(("cname", "shuffle"), [*itertools.product(CNAMES, SHUFFLES)])
def test_each_library_reads_the_others_frames(cname: str, shuffle: str) -> None:
    cases = random.Random(f"{cname} {shuffle}")
    sizes = []
    for item_size in (1, 2, 3, 4, 8, 12, 16, 17, 40, 255):
        nbytes = cases.choice([100, 130, 5000, 65536, 65536 + 9 * item_size, 262_144, 300_007])
        clevel, blocksize = cases.randrange(10), cases.choice([0, 0, 512, 1 << 16])
        if cname == "zstd" and clevel == 9:
            clevel = 8
        raw = elements(nbytes, item_size)
        configuration = {
            "cname": cname,
            "clevel": clevel,
            "shuffle": shuffle,
            "typesize": item_size,
            "blocksize": blocksize,
        }
        theirs = numcodecs.Blosc(cname, clevel, SHUFFLES[shuffle], blocksize, typesize=item_size).encode(raw)
        read = zarrow.open(store_of(nbytes, configuration, **{"c/0": bytes(theirs)}))
        assert (read[:].numpy() == raw).all(), configuration
        assert (read[7:-9].numpy() == raw[7:-9]).all(), configuration
        assert (read[nbytes // 2].numpy() == raw[nbytes // 2]).all(), configuration
        store = store_of(nbytes, configuration)
        zarrow.open(store, mode="r+")[:] = raw
        ours = store.to_dict()["c/0"]
        assert (np.frombuffer(numcodecs.Blosc().decode(ours), "u1") == raw).all(), configuration
        sizes.append((len(ours), len(theirs)))
    ours, theirs = (sum(side) for side in zip(*sizes, strict=True))
    assert ours <= theirs * 1.01, sizes
