"""The loader under faults: errors of transforms, threads and memory, and states of other plans."""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import signal
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data
from zarrow.data import buffers, prefetch

VALUES = np.arange(400 * 6, dtype="i4").reshape(400, 6)


@pytest.fixture
def array() -> zarrow.Array:
    return zarrow.create_array(zarrow.MemoryStore(), data=VALUES, chunks=(10, 6))


class Memory:
    """Counts the living pieces of memory that it allocates."""

    def __init__(self) -> None:
        self._pieces: list[weakref.ref[Any]] = []

    def __call__(self, nbytes: int) -> Any:
        piece = np.empty(nbytes, np.uint8)
        self._pieces.append(weakref.ref(piece))
        return piece

    def living(self) -> int:
        return sum(piece() is not None for piece in self._pieces)


def test_an_error_that_ends_iterations_is_not_taken_for_the_end(array: zarrow.Array) -> None:
    def exhausted(batch: Any) -> Any:
        return next(iter([]))

    plan = data.Plan(array, 8)
    for loader in (data.Loader(plan, transform=exhausted), data.Loader(plan, allocate=exhausted)):
        with pytest.raises(RuntimeError, match="raised StopIteration") as raised:
            list(loader)
        assert isinstance(raised.value.__cause__, StopIteration)


def test_memory_of_damaged_reads_is_freed(tmp_path: Path) -> None:
    damaged = zarrow.create_array(tmp_path / "a", data=VALUES, chunks=(10, 6), compressors={"id": "zstd"})
    for number in range(0, 40, 2):
        (tmp_path / "a" / "c" / str(number) / "0").write_bytes(b"damaged")
    memory = Memory()
    plan = data.Plan(damaged, 20, window_nbytes=20 * 24, order="sequential")
    gc.disable()
    try:
        loader = data.Loader(plan, on_bad="skip", memory_nbytes=1, allocate=memory)
        for batch in loader:
            del batch
            assert memory.living() <= 6
        with pytest.raises(zarrow.CodecError) as raised:
            list(data.Loader(plan, memory_nbytes=1, allocate=memory))
        assert raised.value.kind
        assert memory.living() <= 1
        del raised
        assert memory.living() == 0
    finally:
        gc.enable()


def test_a_kept_batch_keeps_only_its_own_memory(array: zarrow.Array) -> None:
    memory = Memory()
    iterator = iter(data.Loader(data.Plan(array, 10, window_nbytes=240), allocate=memory))
    for number, batch in enumerate(iterator):
        if number == 3:
            kept = batch
    del batch
    gc.collect()
    assert memory.living() == 1
    assert kept.shape == (10, 6)


def test_a_thread_that_does_not_start_skips_no_epoch(
    array: zarrow.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = data.Loader(data.Plan(array, 10), numbers=True, transform=lambda batch: batch)
    expected = [loader.plan.numbers(epoch).tolist() for epoch in range(2)]
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if allowed.pop() == 0:
            raise RuntimeError("can't start new thread")
        start(thread)

    for epoch in range(2):
        for number in range(2):
            allowed = [0] + [1] * number
            monkeypatch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start"):
                iter(loader)
            monkeypatch.setattr(threading.Thread, "start", start)
        assert [number for _, numbers in loader for number in numbers.tolist()] == expected[epoch]


def test_close_waits_for_the_threads_of_a_dropped_iterator(array: zarrow.Array) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(batch: Any) -> Any:
        entered.set()
        leave.wait(30)
        return batch

    loader = data.Loader(data.Plan(array, 10), transform=slow)
    iterator = iter(loader)
    assert entered.wait(30)
    del iterator
    threading.Timer(0.2, leave.set).start()
    loader.close()
    assert not any(thread.name == "zarrow-data" for thread in threading.enumerate())


def test_close_waits_for_threads_that_have_left_the_iteration(
    array: zarrow.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave, run = threading.Event(), threading.Thread.run

    def run_long(thread: threading.Thread) -> None:
        run(thread)
        leave.wait(30)

    monkeypatch.setattr(threading.Thread, "run", run_long)
    loader = data.Loader(data.Plan(array, 10), transform=lambda batch: batch)
    assert len(list(loader)) == 40
    monkeypatch.undo()
    assert in_time(lambda: loader._running is not None and loader._running() is None)
    threading.Timer(0.2, leave.set).start()
    loader.close()
    assert not any(thread.name == "zarrow-data" for thread in threading.enumerate())


@pytest.mark.parametrize("closes", [True, False])
def test_memory_is_freed_while_a_transform_hangs(
    array: zarrow.Array, monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    """Only the transform keeps its batch, which no later read overwrites."""
    monkeypatch.setattr(prefetch, "CLOSE_SECONDS", 0.0)
    entered, leave, kept, memory = threading.Event(), threading.Event(), list[Any](), Memory()

    def hang(batch: Any) -> Any:
        kept.append(batch.copy())
        entered.set()
        assert leave.wait(30)
        kept.append(batch)
        return batch

    loader = data.Loader(data.Plan(array, 10, window_nbytes=400, seed=1), transform=hang, allocate=memory)
    iterator = iter(loader)
    assert entered.wait(30) and in_time(lambda: memory.living() > 3)
    if closes:
        loader.close()
    else:
        del iterator
    # The readers end, and their memory is freed.
    assert in_time(lambda: memory.living() == 1)
    leave.set()
    assert in_time(lambda: len(kept) == 2) and np.array_equal(*kept)
    kept.clear()
    assert in_time(lambda: not memory.living())


def in_time(holds: Callable[[], bool]) -> bool:
    """Wait until a condition holds."""
    for _ in range(3000):
        if holds():
            return True
        time.sleep(0.01)
    return False


def test_ctrl_c_ends_the_wait_for_a_batch(array: zarrow.Array) -> None:
    leave, has_left, in_time = threading.Event(), threading.Event(), []

    def slow(batch: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        in_time.append(leave.wait(60))
        has_left.set()
        return batch

    loader = data.Loader(data.Plan(array, 400), transform=slow)
    # As handlers of other libraries do, such as that of polars: the system then resumes a wait.
    signal.siginterrupt(signal.SIGINT, False)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(loader)
    finally:
        signal.siginterrupt(signal.SIGINT, True)
    leave.set()
    assert has_left.wait(60) and in_time == [True]
    loader.close()
    assert not any(thread.name == "zarrow-data" for thread in threading.enumerate())


def test_an_interrupt_between_take_and_return_loses_no_batch(
    array: zarrow.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = data.Loader(data.Plan(array, 10), numbers=True)
    iterator = iter(loader)
    seen = [next(iterator)[1].tolist() for _ in range(3)]
    take = iterator._prefetch.take  # type: ignore[attr-defined]

    def interrupted() -> Any:
        take()
        raise KeyboardInterrupt

    monkeypatch.setattr(iterator._prefetch, "take", interrupted)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    monkeypatch.undo()
    assert next(iterator, "ended") == "ended"
    other = data.Loader(loader.plan, numbers=True)
    other.load_state_dict(loader.state_dict())
    seen += [numbers.tolist() for _, numbers in other]
    assert [number for part in seen for number in part] == loader.plan.numbers(0).tolist()


def test_a_replaced_iterator_does_not_move_the_state(array: zarrow.Array) -> None:
    loader = data.Loader(data.Plan(array, 10))
    first = iter(loader)
    next(first)
    old = first._prefetch  # type: ignore[attr-defined]
    taken = old.take()
    second = iter(loader)
    old.take = lambda: taken
    next(first)
    assert loader.state_dict()["step"] == 0 and loader.stats().batches == 0
    next(second)
    assert (loader.state_dict()["epoch"], loader.state_dict()["step"]) == (1, 1)


def test_two_threads_share_an_iterator(array: zarrow.Array) -> None:
    loader = data.Loader(data.Plan(array, 3), numbers=True)
    for _ in range(5):
        iterator, seen = iter(loader), []

        def work(iterator: Any = iterator, seen: list[Any] = seen) -> None:
            for batch, numbers in iterator:
                assert np.array_equal(batch, VALUES[numbers])
                seen.append(numbers)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(np.concatenate(seen).tolist()) == list(range(400))
        assert loader.stats().batches == len(seen) == len(loader)


def test_states_tell_plans_of_other_samples_apart(array: zarrow.Array) -> None:
    corners = [(0, 0), (50, 0), (300, 1)]
    plans = [
        data.Plan(source, 2)
        for source in (
            data.Windows(array, 3),
            data.Windows(array, 3, stride=2),
            data.Windows(array, 3, offset=2),
            data.Windows(array, 3, offset=4),
            data.Crops(array, (4, 2), corners=corners),
            data.Crops(array, (4, 2), corners=[(1, 1), (51, 0), (301, 1)]),
            data.Crops(array, (4, 2), 3),
            data.Crops(array, (4, 2), 3, within=np.s_[100:]),
            data.Crops(array, (4, 2), 3, within=np.s_[:300]),
        )
    ]
    squares = zarrow.create_array(zarrow.MemoryStore(), data=np.zeros((9, 9)), chunks=(3, 3))
    plans += [data.Plan(data.Rows(squares, axis=axis), 2) for axis in range(2)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)


@pytest.mark.parametrize(
    "allocate",
    [
        lambda nbytes: None,
        lambda nbytes: np.empty(nbytes - 1, "u1"),
        lambda nbytes: np.frombuffer(bytes(nbytes), "u1"),
    ],
)
def test_memory_that_cannot_be_written_is_refused(array: zarrow.Array, allocate: Any) -> None:
    with pytest.raises(ValueError, match=r"allocate\(\d+\) must return as many writable bytes, found"):
        list(data.Loader(array, allocate=allocate))


def test_numbers_of_numpy_are_numbers(array: zarrow.Array) -> None:
    count: Any = np.int64
    plain = data.Loader(data.Plan(data.Windows(array, 4, step=2, offset=4), 8, window_nbytes=2000, seed=3))
    loader = data.Loader(
        data.Plan(
            data.Windows(array, count(4), step=count(2), offset=count(4), stride=count(1), axis=count(0)),
            count(8),
            window_nbytes=count(2000),
            seed=count(3),
        ),
        rank=count(0),
        world=count(1),
        memory_nbytes=count(1 << 20),
    )
    loader.set_epoch(count(2))
    plain.set_epoch(2)
    state = json.loads(json.dumps(loader.state_dict()))
    assert state == plain.state_dict()
    assert loader.plan.numbers(count(2)).tolist() == plain.plan.numbers(2).tolist()
    for wrong in (
        lambda: data.Plan(array, 8, window_nbytes=1e6),  # type: ignore[arg-type]
        lambda: data.Plan(array, 8.0),  # type: ignore[arg-type]
        lambda: data.Loader(data.Plan(array, 8), memory_nbytes=1e6),  # type: ignore[arg-type]
        lambda: loader.set_epoch(0.5),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=r"'float' object cannot be interpreted as an integer"):
            wrong()


def test_damaged_states_are_refused(array: zarrow.Array) -> None:
    loader = data.Loader(data.Plan(array, 8))
    state = loader.state_dict()
    damages: list[Any] = [{name: value} for name in state for value in (None, "x", [], 0.5) if name != "rank"]
    damages += [{"world": -1}, {"batch_size": -1}, {"step": -1}, {"version": 2}]
    damages += [{"world": 0}, {"batch_size": 0}, {"last": "never"}, {"world": 1 << 60}, {"ranges": [[1]]}]
    for damage in damages:
        with pytest.raises(ValueError, match=r"state|ranks"):
            loader.load_state_dict({**state, **damage})
    for name in state:
        if name != "rank":
            with pytest.raises(ValueError, match="state"):
                loader.load_state_dict({key: value for key, value in state.items() if key != name})
    with pytest.raises(ValueError, match="state"):
        loader.load_state_dict([])
    assert sum(map(len, loader)) == 400


def test_a_batch_larger_than_the_window_is_read_at_once(array: zarrow.Array) -> None:
    """Joining many reads copies the first samples each time."""
    plan = data.Plan(array, 300, window_nbytes=240)
    assert plan.describe().reads == 2 and plan.load_samples == 300
    assert sorted(len(batch) for batch in data.Loader(plan)) == [100, 300]
    assert max(len(places) for places in plan.loads(0, ((0, 400),))) <= 300


def test_memory_is_lent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random views in random order: living ones never share memory with a new array."""
    rng = np.random.default_rng(0)
    ring = buffers.Ring(64, 3)
    views: list[tuple[Any, int]] = []
    for number in range(3000):
        # Less than half of a piece comes from elsewhere.
        array = ring.array((4 if rng.integers(3) else 1, 4), np.dtype("i4"))
        array[...] = number
        kind = rng.integers(6)
        view: Any = (
            array[1:],
            memoryview(array),
            array.T,
            np.lib.stride_tricks.as_strided(array, (2, 2), (4, 4)),
            np.frombuffer(array, "i4"),
            np.from_dlpack(array),
        )[kind]
        del array
        views.append((view, number))
        while len(views) > rng.integers(1, 12):
            views.pop(rng.integers(len(views)))
        del view
        assert all((np.asarray(view) == number).all() for view, number in views)


def test_a_short_read_leaves_the_pieces_to_others() -> None:
    ring = buffers.Ring(1000, 3)
    whole = ring.array((250,), np.dtype("i4"))
    address = whole.ctypes.data
    del whole
    short = ring.array((100,), np.dtype("i4"))
    assert ring.array((250,), np.dtype("i4")).ctypes.data == address
    assert short.ctypes.data != address
    own: list[int] = []
    chosen = buffers.Ring(1000, 3, lambda nbytes: own.append(nbytes) or np.empty(nbytes, "u1"))
    chosen.array((100,), np.dtype("i4"))
    assert own == [1000], "memory that the user allocates has one size"


def rectilinear(values: Any, edges: list[list[int]]) -> zarrow.Array:
    store: dict[str, bytes] = {}
    zarrow.create_array(store, shape=values.shape, dtype=values.dtype, chunks=1)
    metadata = json.loads(store["zarr.json"])
    configuration = {"kind": "inline", "chunk_shapes": edges}
    metadata["chunk_grid"] = {"name": "rectilinear", "configuration": configuration}
    store["zarr.json"] = json.dumps(metadata).encode()
    made = zarrow.open_array(store)
    made[...] = values
    return made


def test_chunks_of_different_sizes_are_shuffled_in_windows() -> None:
    values = np.arange(128 * 96, dtype="i4").reshape(128, 96)
    array = rectilinear(values, [[10, 20, 30, 40, 28], [48, 48]])
    plan = data.Plan(array, 16, window_nbytes=60 * 96 * 4)
    description = plan.describe()
    assert description.chunks <= 30 and description.decoded_per_used < 3
    for batch, numbers in data.Loader(plan, numbers=True):
        assert np.array_equal(batch, values[numbers])
    # The cost of a large crop is found from its chunks, not from its elements.
    assert data.Plan(data.Crops(array, (100, 90), 500), 50).describe().chunks < 100_000


TYPES = ("i1", ">i4", "f2", "c8", "bool", "M8[s]", "S5", "U3", [("a", "i4"), ("b", "f2")], "V6")


@pytest.mark.parametrize("seed", range(40))
def test_random_samples_equal_slices_of_numpy(seed: int) -> None:
    """Types, formats, shards, grids and missing chunks; windows along any axis, and crops at the borders."""
    rng = random.Random(seed)
    shape = tuple(rng.randint(12, 20) for _ in range(rng.randint(1, 3)))
    dtype = np.dtype(TYPES[seed % len(TYPES)])
    values = np.frombuffer(rng.randbytes(int(np.prod(shape)) * 8), "u8").reshape(shape) % 90
    if dtype.kind == "V":
        values = np.repeat(values.astype("u1")[..., None], dtype.itemsize, -1).view(dtype)[..., 0]
    values = values.astype("U3").astype(dtype) if dtype.kind in "SU" else values.astype(dtype)
    chunks = tuple(rng.randint(1, extent + 2) for extent in shape)
    zarr_format = rng.choice((2, 3))
    options: dict[str, Any] = {"chunks": chunks, "zarr_format": zarr_format}
    if zarr_format == 3 and rng.random() < 0.5:
        options["shards"] = tuple(chunk * rng.randint(1, 3) for chunk in chunks)
    array = zarrow.create_array({}, shape=shape, dtype=dtype, **options)
    written = tuple(slice(rng.randint(0, extent)) for extent in shape)
    array[written] = values[written]
    stored, values = values, np.full(shape, array.fill_value, dtype)
    values[written] = stored[written]
    axis = rng.randrange(len(shape))
    length, step, stride, offset = (rng.randint(1, 4) for _ in range(4))
    crop = tuple(rng.randint(1, extent) for extent in shape)
    corners = [
        [
            rng.choice((0, rng.randint(0, extent - part), extent - part))
            for extent, part in zip(shape, crop, strict=True)
        ]
        for _ in range(9)
    ]

    def window(number: int) -> Any:
        return np.take(values, offset + number * step + np.arange(length) * stride, axis)

    def cropped(number: int) -> Any:
        return values[tuple(slice(at, at + part) for at, part in zip(corners[number], crop, strict=True))]

    windows = data.Windows(array, length, step=step, stride=stride, offset=offset, axis=axis)
    kinds: list[tuple[Any, Any]] = [
        (data.Rows(array, axis), lambda number: np.take(values, number, axis)),
        (windows, window),
        (data.Crops(array, crop, corners=corners), cropped),
    ]
    for source, expected in kinds:
        options = {
            "order": rng.choice(("sequential", "shuffle", "window")),
            "window_nbytes": rng.choice((1, 500)),
        }
        for batch, numbers in data.Loader(data.Plan(source, rng.randint(1, 30), **options), numbers=True):
            assert batch.dtype == array.dtype
            for row, number in zip(batch, numbers.tolist(), strict=True):
                assert row.tobytes() == expected(number).astype(row.dtype).tobytes()


@pytest.mark.parametrize("missing", [None, "optional"])
def test_a_damaged_size_beyond_a_limit_is_skipped(tmp_path: Path, missing: Any) -> None:
    """One flipped bit at any place of a chunk of text, or of elements that may be missing."""
    values: Any = [f"x{number}" for number in range(20)]
    if missing:
        values = np.ma.MaskedArray(np.arange(20), np.arange(20) % 3 == 0)
    array = zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=10, missing=missing)
    chunk = tmp_path / "a.zarr/c/1"
    stored, kinds = chunk.read_bytes(), set()
    for at, bit in itertools.product(range(len(stored)), range(8)):
        chunk.write_bytes(stored[:at] + bytes([stored[at] ^ 1 << bit]) + stored[at + 1 :])
        batches = list(data.Loader(array, batch_size=20, on_bad="skip"))
        assert sum(map(len, batches)) >= 10
        try:
            array[...]
        except zarrow.ZarrowError as error:
            kinds.add(type(error))
    assert kinds == {zarrow.CodecError, zarrow.LimitError}


@pytest.mark.parametrize("given", [bytes, lambda nbytes: np.empty((), f"V{nbytes}")])
def test_memory_without_an_axis_is_refused(given: Any) -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(20))
    with pytest.raises(ValueError, match="must return as many writable bytes"):
        list(data.Loader(array, batch_size=10, allocate=given))


def test_an_iteration_that_is_ended_early_says_so() -> None:
    """It does not look like the end of an epoch."""
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(100), chunks=10)
    loader = data.Loader(array, batch_size=10)
    ends = {
        "close": loader.close,
        "newer": lambda: next(iter(loader)),
        "set_epoch": lambda: loader.set_epoch(3),
        "load_state_dict": lambda: loader.load_state_dict(loader.state_dict()),
    }
    for end in ends.values():
        iterator = iter(loader)
        next(iterator)
        end()
        with pytest.raises(RuntimeError, match="was ended before its last batch"):
            next(iterator)
        # As after any error.
        assert next(iterator, None) is None
    loader.set_epoch(0)
    batches = iter(loader)
    assert len(list(batches)) == len(loader)
    loader.close()
    assert next(batches, None) is None
