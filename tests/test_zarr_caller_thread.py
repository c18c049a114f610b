"""Reads and writes of zarr-python in the thread that asks for them."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core import sync as syncing
from zarr.storage import MemoryStore

import zarrow
from stores_of_others import run_in_child
from zarr_versions import needs_new_zarr

VALUES = np.arange(48, dtype="i4").reshape(8, 6)


pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    # zarr-python drops the coroutine that it refuses.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count the coroutines that are handed over to the event loop."""
    calls: list[str] = []
    original = asyncio.run_coroutine_threadsafe

    def counted(coroutine: Any, loop: Any) -> Any:
        calls.append(coroutine.__name__)
        return original(coroutine, loop)

    monkeypatch.setattr(syncing.asyncio, "run_coroutine_threadsafe", counted)
    return calls


def created(store: Any, **options: Any) -> Any:
    with zarrow.zarr_python.enable():
        return zarr.create_array(store, data=VALUES, chunks=(3, 4), **options)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_elements_are_read_and_written_without_the_event_loop(
    tmp_path: Path, handed_over: list[str], zarr_format: Any
) -> None:
    array = created(tmp_path / "a", zarr_format=zarr_format)
    handed_over.clear()
    assert array[2:5, 1].tolist() == VALUES[2:5, 1].tolist()
    assert array.oindex[[0, 7], 2:4].tolist() == VALUES[[0, 7], 2:4].tolist()
    assert array.vindex[[1, 2], [3, 4]].tolist() == VALUES[[1, 2], [3, 4]].tolist()
    assert array.blocks[1, 0].tolist() == VALUES[3:6, :4].tolist()
    assert array.get_mask_selection(VALUES > 40).tolist() == VALUES[VALUES > 40].tolist()
    array[1:3] = 7
    array.oindex[[0], [5]] = 9
    assert array[0, 5] == 9 and (array[1:3] == 7).all()
    assert handed_over == []


def test_what_the_engine_does_not_read_moves_to_the_event_loop(
    tmp_path: Path, handed_over: list[str]
) -> None:
    array = created(tmp_path / "a")
    chunks = array.async_array.codec_pipeline._state
    chunks.why = "a reason"
    handed_over.clear()
    assert array[...].tolist() == VALUES.tolist() and len(handed_over) == 1
    array[2] = 5
    assert (array[2] == 5).all() and len(handed_over) == 3
    chunks.why = None
    (tmp_path / "a/c/0/0").write_bytes(b"torn")
    stock = zarr.open_array(tmp_path / "a", mode="r")
    with pytest.raises(Exception) as expected:
        stock[...]
    with pytest.raises(type(expected.value)) as found:
        array[...]
    assert str(found.value) == str(expected.value)


def test_a_thread_that_runs_an_event_loop_is_as_in_zarr_python(
    tmp_path: Path, handed_over: list[str]
) -> None:
    array = created(tmp_path / "a")
    handed_over.clear()

    async def within() -> Any:
        return array[1]

    async def is_refused() -> bool:
        # Caught here, where its coroutine is dropped at once: a later test would get the warning.
        try:
            array[1]
        except syncing.SyncError:
            return True
        return False

    assert asyncio.run(within()).tolist() == VALUES[1].tolist() and len(handed_over) == 1
    assert syncing.sync(is_refused())


class Awaiting:
    """A value that runs an event loop to read an array that zarr-python reads."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(asyncio.run(self.array.async_array.getitem(...)), dtype)


def test_a_value_runs_an_event_loop(tmp_path: Path) -> None:
    array, other = created(tmp_path / "a"), created(MemoryStore())
    other[...] = -VALUES
    array[...] = Awaiting(other)
    assert array[...].tolist() == (-VALUES).tolist()


@needs_new_zarr
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_repaired_document_is_stored_before_the_first_write(tmp_path: Path, zarr_format: Any) -> None:
    zarr.create_array(tmp_path / "a", shape=(8,), chunks=(1,), dtype="i4", zarr_format=zarr_format)
    document = tmp_path / "a" / {2: ".zarray", 3: "zarr.json"}[zarr_format]
    stored = json.loads(document.read_text())
    if zarr_format == 2:
        stored["chunks"] = [0]
    else:
        stored["chunk_grid"]["configuration"]["chunk_shape"] = [0]
    document.write_text(json.dumps(stored))
    with zarrow.zarr_python.enable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.open_array(tmp_path / "a", mode="r+")
        array[0:4] = [1, 2, 3, 4]
        array[4:6] = [5, 6]
        assert array[...].tolist() == [1, 2, 3, 4, 5, 6, 0, 0]


class Nested(MemoryStore):
    """A store that reads another array for each value."""

    other: Any = None

    async def get(self, *arguments: Any, **options: Any) -> Any:
        if self.other is not None:
            assert (await self.other.async_array.getitem(0)).tolist() == VALUES[0].tolist()
        return await super().get(*arguments, **options)


def test_a_store_reads_an_array_for_its_values(tmp_path: Path) -> None:
    store = Nested()
    array = created(store)
    store.other = created(tmp_path / "other")
    assert array[...].tolist() == VALUES.tolist()


def test_other_pipelines_stay_on_the_event_loop(tmp_path: Path, handed_over: list[str]) -> None:
    created(tmp_path / "a")
    stock = zarr.open_array(tmp_path / "a", mode="r+")
    handed_over.clear()
    assert stock[1].tolist() == VALUES[1].tolist() and len(handed_over) == 1


def test_threads_and_children_read_and_write(tmp_path: Path) -> None:
    array = created(tmp_path / "a")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: array.__setitem__((number // 6, number % 6), -number), range(48)))
    assert array[...].tolist() == (-VALUES).tolist()
    release = threading.Event()
    busy = threading.Thread(target=lambda: [array[...] for _ in iter(release.is_set, True)])
    busy.start()

    def read() -> None:
        assert array[3, 0] == -18
        array[3, 0] = -18

    try:
        for _ in range(10):
            assert run_in_child("fork", read) is None
    finally:
        release.set()
        busy.join()
