"""A writer of frames stores each frame once and in order, and does not keep the producer waiting."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from kill_counts import kills
from zarrow.stream import FullError, Writer, follow


def created(path: Any, unit: int = 4, **options: Any) -> zarrow.Array:
    return zarrow.create_array(path, shape=(0, 3), chunks=(unit, 3), dtype="i4", **options)


def frames(start: int, stop: int) -> np.ndarray[Any, Any]:
    return np.repeat(np.arange(start, stop, dtype="i4"), 3).reshape(-1, 3)


def threads_end() -> None:
    """Wait until collected writers have stored their frames."""
    for thread in threading.enumerate():
        if thread.name == "zarrow-stream":
            thread.join(60)


@pytest.mark.parametrize("seed", range(60))
def test_arrays_have_all_frames_in_order(seed: int) -> None:
    """Any chunks, shards, axis, length before, memory, number of frames in a call, and flushes in between."""
    chance = random.Random(seed)
    axis = chance.randrange(3)
    unit = chance.choice([1, 2, 3, 5, 8])
    before = chance.choice([0, 0, 1, 7, 2 * unit])
    chunks = [2, 3, 2]
    chunks[axis] = unit
    shards = None
    if chance.random() < 0.3:
        shards = [2 * chunk for chunk in chunks]
    shape = [4, 3, 5]
    shape[axis] = before
    array = zarrow.create_array(
        zarrow.MemoryStore(),
        shape=shape,
        chunks=chunks,
        shards=shards,
        dtype=chance.choice(["f4", ">i2", "c8"]),
    )
    shape[axis] = 200
    values = np.random.default_rng(seed).integers(0, 1000, shape).astype(array.dtype)
    along = np.moveaxis(values, axis, 0)
    if before:
        array[...] = np.moveaxis(along[:before], 0, axis)
    frame_nbytes = along[0].nbytes
    memory = frame_nbytes * (4 * unit + chance.randrange(60))
    with Writer(array, axis, memory_nbytes=memory, interval=chance.choice([0, 0.01, 10])) as writer:
        done = before
        while done < 200:
            step = min(chance.choice([1, 1, 2, 30, 90]), 200 - done)
            part = np.moveaxis(along[done : done + step], 0, axis).copy()
            writer.append(along[done].copy() if step == 1 else part)
            part[...] = 0
            done += step
            if chance.random() < 0.1:
                assert writer.flush() == done - before == writer.accepted == writer.stored
                np.testing.assert_array_equal(array[...], np.moveaxis(along[:done], 0, axis))
    np.testing.assert_array_equal(array[...], values)
    assert (writer.stored, writer.dropped) == (200 - before, 0)


def test_several_arrays_grow_together() -> None:
    group = zarrow.create_group(zarrow.MemoryStore())
    image = group.create_array("image", shape=(0, 4, 4), chunks=(2, 4, 4), dtype="u2")
    at = group.create_array("at", shape=(0,), chunks=(100,), dtype="f8")
    with Writer({"image": image, "at": at}, memory_nbytes=20_000) as writer:
        for number in range(333):
            writer.append({"image": np.full((4, 4), number, "u2"), "at": number / 2})
        with pytest.raises(TypeError, match="a mapping with frames for image, at"):
            writer.append({"image": np.zeros((4, 4))})
        with pytest.raises(ValueError, match="an equal number of frames"):
            writer.append({"image": np.zeros((2, 4, 4), "u2"), "at": 0.5})
        with pytest.raises(zarrow.ShapeError):
            writer.append({"image": np.zeros((4, 4), "u2"), "at": [[1.0]]})
        assert writer.accepted == 333
    assert image[:, 0, 0].tolist() == list(range(333))
    assert at[...].tolist() == [number / 2 for number in range(333)]


def test_arrays_of_different_lengths_are_refused() -> None:
    """As a killed writer leaves them: a frame would have another index in each."""
    store = zarrow.MemoryStore()
    group = zarrow.create_group(store)
    image = zarrow.ome.create(store, "image", shape=(5, 8, 8), axes="zyx", dtype="u2", levels=2)
    at = group.create_array("at", shape=(3,), chunks=(100,), dtype="f8")
    with pytest.raises(zarrow.ShapeError, match="5 in 'image', 3 in 'at'") as raised:
        Writer({"image": image, "at": at})
    for level, shape in zip(image.multiscales, [(3, 8, 8), (2, 4, 4)], strict=True):
        assert f"{level.array.path!r} by .resize({shape})" in str(raised.value)
        level.array.resize(shape)
    with Writer({"image": image, "at": at}) as writer:
        writer.append({"image": np.ones((8, 8), "u2"), "at": 0.5})
    assert (image.multiscales[0].array.shape, at.shape) == ((4, 8, 8), (4,))


def test_two_writers_of_the_same_arrays_do_not_mix_their_frames() -> None:
    group = zarrow.create_group(zarrow.MemoryStore())
    for name in "ab":
        group.create_array(name, shape=(0,), chunks=(2,), dtype="i4")
    one, other = (Writer({name: group.get_array(name) for name in "ab"}, interval=0) for _ in range(2))
    one.append({"a": [1, 2], "b": [1, 2]})
    one.flush()
    other.append({"a": [3, 4], "b": [3, 4]})
    with pytest.raises(zarrow.StaleHandleError, match="have one writer at a time"):
        other.flush()
    with pytest.raises(zarrow.StaleHandleError):
        other.close()
    one.close()


def test_frames_that_do_not_fit_are_refused_before_any_is_taken(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr")
    with Writer(array) as writer:
        writer.append([1, 2, 3])
        for wrong in ([1, 2], np.zeros((2, 4), "i4"), 5, np.zeros((1, 1, 3), "i4")):
            with pytest.raises(zarrow.ShapeError, match=r"expected a frame of shape \(3,\)"):
                writer.append(wrong)
        with pytest.raises(zarrow.DataTypeError, match="cannot write float64 values to an array of int32"):
            writer.append([0.5, 1.5, 2.5])
        with pytest.raises(OverflowError):
            writer.append([0, 0, 1 << 40])
        writer.append(np.zeros((0, 3), "i4"))
    assert array[...].tolist() == [[1, 2, 3]]


def test_arrays_that_cannot_be_streamed_are_refused(tmp_path: Path) -> None:
    text = zarrow.create_array(tmp_path / "text.zarr", shape=(0,), dtype="string")
    missing = zarrow.create_array(tmp_path / "m.zarr", data=np.ma.masked_equal([1, 2], 2), missing="optional")
    for array in (text, missing):
        with pytest.raises(zarrow.DataTypeError, match="only elements of a fixed size"):
            Writer(array)
    array = created(tmp_path / "a.zarr")
    with pytest.raises(zarrow.ShapeError, match="axis 2 does not exist"):
        Writer(array, 2)
    with pytest.raises(ValueError, match="two write units of each array need 96 bytes"):
        Writer(array, memory_nbytes=95)
    for nbytes in (1 << 50, 1 << 63):
        with pytest.raises(zarrow.OutOfMemoryError, match=f"memory_nbytes is {nbytes}, more than"):
            Writer(array, memory_nbytes=nbytes)
    with pytest.raises(ValueError, match="on_full is 'wait'"):
        Writer(array, on_full="wait")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="interval is -1"):
        Writer(array, interval=-1)
    with pytest.raises(TypeError, match="expected an array of a store"):
        Writer({})


class Slow(dict[str, bytes]):
    """A mapping that stores a chunk only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.may.set()

    def __setitem__(self, key: str, value: bytes) -> None:
        if "c/" in key:
            assert self.may.wait(60)
        super().__setitem__(key, value)


def test_a_full_memory_drops_raises_or_blocks() -> None:
    store = Slow()
    array = created(zarrow.PythonStore(store, sole_writer=True))
    store.may.clear()
    with Writer(array, memory_nbytes=8 * 12, on_full="drop", interval=0) as writer:
        for number in range(8):
            writer.append(frames(number, number + 1))
        writer.append(frames(100, 101))
        writer.append(frames(100, 102))
        assert (writer.accepted, writer.dropped) == (8, 3)
        store.may.set()
    assert array[:, 0].tolist() == list(range(8))
    store.may.clear()
    with Writer(array, memory_nbytes=8 * 12, on_full="raise", interval=0) as writer:
        writer.append(frames(8, 15))
        with pytest.raises(
            FullError, match="2 frames do not fit into the memory of the writer, where 7"
        ) as full:
            writer.append(frames(100, 102))
        assert full.value.kind == "full"
        writer.append(frames(15, 16))
        store.may.set()
    assert array[:, 0].tolist() == list(range(16))
    store.may.clear()
    with Writer(array, memory_nbytes=8 * 12, interval=0) as writer:
        waiting = threading.Thread(target=writer.append, args=(frames(16, 50),))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        store.may.set()
        waiting.join(60)
    assert array[:, 0].tolist() == list(range(50))


def test_many_producers_lose_no_frame() -> None:
    array = created(zarrow.MemoryStore())
    with Writer(array, memory_nbytes=20 * 12, interval=0) as writer:
        threads = [
            threading.Thread(target=lambda first=first: [writer.append([first, n, -n]) for n in range(100)])
            for first in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    stored = np.asarray(array[...])
    assert (stored[:, 1] == -stored[:, 2]).all()
    for first in range(4):
        assert stored[stored[:, 0] == first, 1].tolist() == list(range(100))


def test_frames_of_another_writer_stay(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr")
    other = zarrow.open_array(tmp_path / "a.zarr", mode="r+")
    with Writer(array, memory_nbytes=8 * 12, interval=0) as writer:
        for number in range(0, 100, 5):
            writer.append(frames(number, number + 5))
            if number % 3 == 0:
                other.append([[-1, -1, -1]])
    stored = np.asarray(zarrow.open_array(tmp_path / "a.zarr")[...])
    assert (stored[:, 0] == -1).sum() == 7
    np.testing.assert_array_equal(stored[stored[:, 0] >= 0], frames(0, 100))


def test_an_error_of_the_store_ends_the_writer(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "group.zarr")
    array = group.create_array("a", shape=(0, 3), chunks=(4, 3), dtype="i4")
    writer = Writer(array, interval=10)
    writer.append(frames(0, 3))
    assert writer.flush() == 3
    del group["a"]
    writer.append(frames(3, 5))
    for call in (writer.flush, lambda: writer.append(frames(5, 6)), writer.close):
        with pytest.raises(zarrow.NotFoundError):
            call()
    assert (writer.stored, writer.accepted) == (3, 5)
    writer.close()


def test_a_closed_writer_takes_no_frames() -> None:
    array = created(zarrow.MemoryStore())
    with Writer(array) as writer:
        writer.append([1, 2, 3])
    writer.close()
    for call in (writer.flush, lambda: writer.append([1, 2, 3])):
        with pytest.raises(ValueError, match="the writer is closed"):
            call()
    with pytest.raises(RuntimeError, match="mine"), Writer(array) as writer:
        writer.append([4, 5, 6])
        raise RuntimeError("mine")
    assert array[...].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_writer_that_is_not_closed_stores_its_frames_and_warns(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr")
    writer = Writer(array, interval=10)
    writer.append([1, 2, 3])
    with pytest.warns(ResourceWarning, match="not closed"):
        del writer
        gc.collect()
    threads_end()
    assert zarrow.load(tmp_path / "a.zarr").tolist() == [[1, 2, 3]]
    program = (
        "import sys, zarrow\nfrom zarrow.stream import Writer\n"
        "writer = Writer(zarrow.open_array(sys.argv[1], mode='r+'), interval=10)\n"
        "writer.append([4, 5, 6])\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "a.zarr"], timeout=60, check=True)
    assert zarrow.open_array(tmp_path / "a.zarr")[...].tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_refuses_the_writer_and_ends(tmp_path: Path) -> None:
    program = """
import os, sys, zarrow
from zarrow.stream import Writer
array = zarrow.open_array(sys.argv[1], mode="r+")
writer = Writer(array, interval=10)
writer.append([1, 2, 3])
child = os.fork()
if child == 0:
    for call in (writer.flush, lambda: writer.append([7, 7, 7])):
        try:
            call()
        except ValueError as error:
            assert "another" in str(error) or "process" in str(error)
        else:
            os._exit(1)
    with Writer(array) as own:
        own.append([4, 5, 6])
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
writer.close()
"""
    created(tmp_path / "a.zarr")
    subprocess.run([sys.executable, "-c", program, tmp_path / "a.zarr"], timeout=60, check=True)
    assert sorted(zarrow.load(tmp_path / "a.zarr").tolist()) == [[1, 2, 3], [4, 5, 6]]


def test_flushed_frames_survive_a_kill(tmp_path: Path) -> None:
    program = """
import itertools, sys, zarrow
from zarrow.stream import Writer
writer = Writer(zarrow.open_array(sys.argv[1], mode="r+"), interval=0)
for number in itertools.count():
    writer.append([number] * 3)
    if number % 7 == 0:
        print(writer.flush(), flush=True)
"""
    chance = random.Random(5)
    for attempt in range(kills(5)):
        path = tmp_path / f"{attempt}.zarr"
        created(path)
        with subprocess.Popen(
            [sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 40)):
                flushed = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
        stored = zarrow.load(path)
        assert len(stored) >= flushed
        np.testing.assert_array_equal(stored, frames(0, len(stored)))


def test_a_reader_follows_the_writer(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr")
    found: list[list[int]] = []

    def read() -> None:
        for part in follow(zarrow.open_array(tmp_path / "a.zarr"), start=0, interval=0.001, idle=60):
            found.extend(part.tolist())
            if len(found) == 100:
                return

    reader = threading.Thread(target=read)
    reader.start()
    with Writer(array, memory_nbytes=20 * 12, interval=0) as writer:
        for number in range(100):
            writer.append(frames(number, number + 1))
    reader.join(60)
    assert found == frames(0, 100).tolist()


def test_a_reader_with_a_cache_sees_the_rest_of_a_chunk(tmp_path: Path) -> None:
    created(tmp_path / "a.zarr")
    parts = follow(zarrow.open_array(tmp_path / "a.zarr", cache_bytes=1 << 20), start=0, interval=0, idle=60)
    with Writer(zarrow.open_array(tmp_path / "a.zarr"), interval=10) as writer:
        for number in range(7):
            writer.append(frames(number, number + 1))
            writer.flush()
            assert next(parts).tolist() == frames(number, number + 1).tolist()


def test_a_reader_sees_that_the_array_was_made_smaller(tmp_path: Path) -> None:
    array = created(tmp_path / "a.zarr")
    array.append(frames(0, 9))
    parts = follow(zarrow.open_array(tmp_path / "a.zarr"), start=2)
    assert next(parts).shape == (7, 3)
    array.resize((4, 3))
    with pytest.raises(zarrow.StaleHandleError, match="was made smaller"):
        next(parts)
    assert list(follow(zarrow.open_array(tmp_path / "a.zarr"), idle=0)) == []


def test_writers_and_readers_take_paths(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", shape=(0, 3), chunks=(2, 3), dtype="i4")
    zarrow.create_array(tmp_path / "b.zarr", shape=(0,), chunks=2, dtype="M8[s]")
    with Writer(tmp_path / "a.zarr") as writer:
        writer.append(np.arange(12).reshape(4, 3))
    with Writer(tmp_path / "a.zarr", axis=np.int64(0)) as writer:
        assert writer.accepted == 0
    zarrow.open_array(tmp_path / "b.zarr", mode="r+").resize(4)
    with Writer({"a": str(tmp_path / "a.zarr"), "b": tmp_path / "b.zarr"}) as writer:
        writer.append({"a": np.zeros((2, 3), int), "b": np.array([1, 2], "M8[s]")})
    found = list(follow(tmp_path / "a.zarr", start=0, idle=0))
    assert np.concatenate([part.numpy() for part in found]).tolist() == [
        *np.arange(12).reshape(4, 3).tolist(),
        *[[0, 0, 0]] * 2,
    ]
    assert zarrow.open(tmp_path / "b.zarr")[4:].numpy().astype(int).tolist() == [1, 2]


def test_more_frames_than_the_memory_holds_are_refused_with_advice(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", shape=(0, 8), chunks=(2, 8), dtype="u1")
    refused = pytest.raises(FullError, match="where 0 frames wait: append fewer at once")
    with Writer(array, memory_nbytes=64, on_full="raise") as writer, refused:
        writer.append(np.zeros((200, 8), "u1"))


@pytest.mark.parametrize("seed", range(6))
def test_places_are_added_while_frames_wait(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store falls behind by random numbers of frames, and catches up."""
    from zarrow.stream import ring as rings

    monkeypatch.setattr(rings, "_LEAST_NBYTES", 1)
    random = np.random.default_rng(seed)
    before = int(random.integers(0, 9))
    array = zarrow.create_array(
        zarrow.MemoryStore(), data=np.zeros((before, 5), "i4"), chunks=(int(random.integers(1, 4)), 5)
    )
    ring = rings.Ring(array, 0)
    ring.allocate(ring.unit * 64)
    assert ring.capacity == 4 * ring.unit and ring._frames.shape[0] == 64 * ring.unit
    accepted, most = 0, 0
    for _ in range(400):
        count = int(random.integers(1, 3 * ring.unit))
        if ring.free(accepted, count) >= count:
            numbers = np.arange(accepted, accepted + count, dtype="i4")
            ring.put(accepted, np.repeat(numbers[:, None], 5, 1))
            accepted += count
        most = max(most, accepted - ring.stored)
        for _ in range(int(random.integers(0, 3))):
            if stored := ring.run(accepted, everything=False):
                ring.stored = ring.store(stored)
    assert most > 4 * ring.unit and ring.capacity > 4 * ring.unit
    while stored := ring.run(accepted, everything=True):
        ring.stored = ring.store(stored)
    expected = np.concatenate([np.zeros(before, "i4"), np.arange(accepted, dtype="i4")])
    assert np.array_equal(array[...], np.repeat(expected[:, None], 5, 1))


@pytest.mark.parametrize(
    ("compressors", "unit", "expected"), [(None, 2, 16), (None, 20, 20), ("zstd", 2, 32)]
)
def test_a_run_of_uncompressed_frames_is_short(compressors: str | None, unit: int, expected: int) -> None:
    """A producer that waits for a free place waits until a run ends."""
    from zarrow.stream.ring import Ring

    array = zarrow.create_array(
        zarrow.MemoryStore(), shape=(0, 1 << 20), dtype="u1", chunks=(unit, 1 << 20), compressors=compressors
    )
    ring = Ring(array, 0)
    ring.allocate(64, grows=False)
    assert ring.run(60, everything=False) == ring.run(60, everything=True) == expected


def test_a_store_that_keeps_pace_needs_few_places() -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), shape=(0, 1 << 18), dtype="u1", chunks=(4, 1 << 18))
    with Writer(array) as writer:
        frame = np.ones(1 << 18, "u1")
        for number in range(2000):
            writer.append(frame)
            if number % 64 == 63:
                writer.flush()
        assert writer._rings[""].capacity * writer._rings[""].frame_nbytes == 32 << 20
    assert array.shape[0] == 2000
