"""Chunks that are replaced during a read, through every entry point: each is of one version.

The Rust tests (`versions.rs`) check that a read opens each chunk once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zarrow
from soak.torn_reads import DOORS, LAYOUTS, create, write, writers

READS = 8


@pytest.fixture(autouse=True)
def several_threads() -> Iterator[None]:
    before = zarrow.num_threads()
    zarrow.set_num_threads(4)
    yield
    zarrow.set_num_threads(before)


@pytest.mark.parametrize("place", ["folder", "memory"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_chunk_of_a_read_is_one_version(name: str, place: str, tmp_path: Path) -> None:
    store: Any = str(tmp_path) if place == "folder" else zarrow.MemoryStore()
    layout = LAYOUTS[name]
    write(create(store, layout), layout, 1)
    array = zarrow.open(store, cache_bytes=0 if place == "folder" else 64 << 20)
    with writers(store, name, seed=0, processes=0):
        for _ in range(READS):
            for door in layout.doors:
                DOORS[door](array, layout)
