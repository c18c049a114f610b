"""Processes write chunks whole, in part, and to zero: no returned write is undone.

1. Each element of an array is written by writers of whole chunks, and by one writer of parts. It holds the
   last writer and the number of the write.
2. In shared memory each writer counts, by chunk, its started and its returned writes, and the last one that
   wrote zeros: a chunk of zeros is not stored.
3. After a write, the writer reads the chunk. Each element has the value of its write, or of another writer's
   write that had not returned when this one began. Anything else is a lost write.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import zarrow

CHUNKS, ELEMENTS = 4, 4
# The elements of each writer.
WRITERS = [slice(0, 4), slice(0, 4), slice(0, 2), slice(2, 4)]
BEGUN, RETURNED, ZEROED = range(3)


def counters(folder: Path, mode: str) -> np.memmap:
    """By writer and chunk: the numbers of step 2."""
    return np.memmap(folder / "counters", np.int64, mode, shape=(len(WRITERS), CHUNKS, 3))


def write(folder: Path, writer: int, seconds: float, seed: int) -> None:
    """Run a writer; leave its counts in a file."""
    choose = random.Random(seed)
    shared = counters(folder, "r+")
    counts: Counter[str] = Counter()
    array = zarrow.open(folder / "array")
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        chunk = choose.randrange(CHUNKS)
        region = WRITERS[writer]
        is_zero = choose.random() < 0.3
        value = 0 if is_zero else number << 8 | writer + 1
        before = shared[:, chunk, RETURNED].copy()
        if is_zero:
            shared[writer, chunk, ZEROED] = number
        shared[writer, chunk, BEGUN] = number
        array[chunk * ELEMENTS + region.start : chunk * ELEMENTS + region.stop] = np.uint64(value)
        found = array[chunk * ELEMENTS : (chunk + 1) * ELEMENTS].tolist()
        # Only now: others compare with the writes that had returned before they began.
        shared[writer, chunk, RETURNED] = number
        zeroed = shared[:, chunk, ZEROED].copy()
        for place in range(region.start, region.stop):
            others = [
                w for w in range(len(WRITERS)) if w != writer and place in range(*WRITERS[w].indices(4))
            ]
            if found[place] == value:
                continue
            if found[place] == 0:
                is_new = any(zeroed[other] > before[other] for other in others)
            else:
                by, which = (found[place] & 0xFF) - 1, found[place] >> 8
                is_new = by in others and which > before[by]
            assert is_new, (
                f"seed {seed}, writer {writer}, write {number} of {value:#x} to chunk {chunk}: "
                f"{[hex(v) for v in found]}, returned before {before.tolist()}"
            )
            counts["overtaken"] += 1
        counts["zeros" if is_zero else "writes"] += 1
        counts["parts" if writer >= 2 else "whole"] += 1
    (folder / f"counts-{writer}").write_text(json.dumps(counts), encoding="utf-8")


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Write in four processes at once; count the writes, and check that none is lost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counters(folder, "w+").flush()
        settings = {"shape": CHUNKS * ELEMENTS, "chunks": ELEMENTS, "dtype": "u8", "compressors": None}
        zarrow.create_array(folder / "array", **settings)
        processes = multiprocessing.get_context("spawn")
        writers = [
            processes.Process(target=write, args=(folder, writer, seconds, seed * 10 + writer))
            for writer in range(len(WRITERS))
        ]
        for process in writers:
            process.start()
        for process in writers:
            process.join()
        assert all(process.exitcode == 0 for process in writers), f"a write was lost, seed {seed}"
        counts: Counter[str] = Counter({"lost": 0})
        for writer in range(len(WRITERS)):
            text = (folder / f"counts-{writer}").read_text(encoding="utf-8")
            counts.update(json.loads(text))
        left = [path.name for path in (folder / "array").rglob(".zarrow-*")]
        assert left == [], f"left behind: {left}, seed {seed}"
    return dict(counts)
