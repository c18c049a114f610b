"""`verify` beside processes that erase, replace and create nodes, and stores that list a key twice."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr.storage

import zarrow
from zarrow.checks import verify


def made(store: object) -> zarrow.Group:
    root = zarrow.create_group(store)
    for name in "abc":
        root.create_array(name, data=np.arange(1.0, 17), chunks=2, compressors=["zstd", "crc32c"])
    root.create_array("d", data=np.arange(1, 17), chunks=2, shards=4)
    return root


def test_nodes_that_others_change_are_not_corrupt(tmp_path: Path) -> None:
    """While array `a` is read, all others are."""
    path = tmp_path / "a.zarr"
    root = made(path)
    root.create_array("sub/e", data=[1])
    root.consolidate_metadata()
    (path / "broken").mkdir()
    (path / "broken/zarr.json").write_text("{")
    (path / "new/c").mkdir(parents=True)
    changes = []

    def change(done: int, total: int) -> None:
        if changes:
            return
        changes.append(done)
        (path / "broken/zarr.json").unlink()
        shutil.copy(path / "a/zarr.json", path / "new/zarr.json")
        shutil.rmtree(path / "b")
        root.create_array("c", data=[1, 2, 3], chunks=1, compressors="gzip", overwrite=True)
        del root["d"], root["sub"]
        root.consolidate_metadata()

    found = verify(path, deep=True, progress=change)
    assert found.is_sound
    # Array `c` is checked again.
    assert (found.arrays, found.stored, found.missing) == (2, 8 + 3, 0)
    assert sorted(found.changed) == ["b", "broken", "d", "sub/e"]
    assert found.foreign == []
    assert "4 changed during the check" in str(found) and "  changed  sub/e" in str(found).splitlines()


def test_an_older_or_erased_root_is_no_fault(tmp_path: Path) -> None:
    root = made(tmp_path / "a.zarr")
    root.consolidate_metadata()
    array, old = zarrow.open(tmp_path / "a.zarr", "a"), zarrow.open(tmp_path / "a.zarr")
    root.create_array("new", data=[1])
    root.consolidate_metadata()
    found = verify(old)  # with the consolidated metadata of before
    assert found.is_sound and found.arrays == 5

    def erase(done: int, total: int) -> None:
        shutil.rmtree(tmp_path / "a.zarr", ignore_errors=True)

    found = verify(tmp_path / "a.zarr", progress=erase)
    assert found.is_sound and set(found.changed) >= {"b", "c"}
    made(tmp_path / "a.zarr")
    found = verify(array, progress=erase)
    assert found.is_sound


@pytest.mark.parametrize("is_shorter", [False, True])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_of_an_array_that_grows_or_shrinks_are_not_foreign(
    tmp_path: Path, zarr_format: Any, is_shorter: bool
) -> None:
    """Chunks are behind its end for a moment: before it is longer, or after it is shorter."""
    root = zarrow.create_group(tmp_path / "a.zarr", zarr_format=zarr_format)
    array = root.create_array("a", data=np.arange(1, 9), chunks=2)
    root.create_array("b", data=np.arange(1, 9), chunks=2)
    document = tmp_path / "a.zarr/a" / ("zarr.json" if zarr_format == 3 else ".zarray")
    long, chunk = document.read_bytes(), "c/3" if zarr_format == 3 else "3"
    stored = (tmp_path / "a.zarr/a" / chunk).read_bytes()
    array.resize((6,))
    (tmp_path / "a.zarr/a" / chunk).write_bytes(stored)
    (tmp_path / "a.zarr/b/junk").write_bytes(b"")

    def change(done: int, total: int) -> None:
        """Continue the writer while the other array is read, which comes later."""
        if done < total:
            return
        if is_shorter:
            (tmp_path / "a.zarr/a" / chunk).unlink(missing_ok=True)
        else:
            document.write_bytes(long)

    assert verify(tmp_path / "a.zarr", deep=True).foreign == [f"a/{chunk}", "b/junk"]
    found = verify(tmp_path / "a.zarr", deep=True, progress=change)
    assert found.is_sound and found.foreign == ["b/junk"]


class Repeating(zarr.storage.MemoryStore):
    """A store that lists each name twice."""

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        async for name in super().list_dir(prefix):
            yield name
            yield name


def test_keys_that_are_listed_twice_count_once() -> None:
    store = Repeating()
    made(store)
    before = verify(store)
    assert (before.is_sound, before.arrays, before.stored, before.missing) == (True, 4, 8 * 3 + 4, 0)
    assert before.inner_stored == 8
    for key in ("a/c/99", "junk"):
        zarrow._zarrow._StoredValues(store, create=False).set(key, b"")
    assert verify(store).foreign == ["junk", "a/c/99"]
