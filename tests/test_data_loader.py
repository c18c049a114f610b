"""The loader: batches, resuming, memory, damaged chunks, and the end of its threads."""

from __future__ import annotations

import gc
import itertools
import json
import os
import pickle
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import zarrow
from zarrow import data
from zarrow.data.rank_schedule import LASTS

SHAPE = (331, 4, 3)
VALUES = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)
ORDERS = ("sequential", "shuffle", "window")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> zarrow.Group:
    folder = tmp_path_factory.mktemp("loader") / "data.zarr"
    group = zarrow.create_group(folder)
    group.create_array("x", data=VALUES, chunks=(10, 4, 3), compressors={"id": "zstd"})
    group.create_array("y", data=np.arange(331) * 2, chunks=331)
    return group


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    yield
    until = time.monotonic() + 10
    while any(thread.name == "zarrow-data" for thread in threading.enumerate()):
        assert time.monotonic() < until, "a thread of a loader goes on"
        gc.collect()
        time.sleep(0.01)


def plan(root: zarrow.Group, batch_size: int = 16, **options: Any) -> data.Plan:
    return data.Plan({"x": root["x"], "y": root["y"]}, batch_size, **{"window_nbytes": 4000, **options})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("batch_size", [1, 7, 16, 400])
def test_batches_have_the_samples_of_the_plan(root: zarrow.Group, order: Any, batch_size: int) -> None:
    chosen = plan(root, batch_size, order=order)
    loader = data.Loader(chosen, numbers=True)
    for epoch in range(2):
        seen = []
        for batch, numbers in loader:
            assert np.array_equal(batch["x"], VALUES[numbers]) and np.array_equal(batch["y"], numbers * 2)
            assert batch["x"].flags.writeable and batch["x"].flags.c_contiguous
            seen += numbers.tolist()
        assert seen == chosen.numbers(epoch).tolist()
    assert loader.stats().samples == 331 and loader.stats().batches == len(loader) == -(-331 // batch_size)


def test_all_kinds_of_samples(root: zarrow.Group) -> None:
    windows = {"in": data.Windows(root["x"], 5, step=3), "out": data.Windows(root["x"], 2, step=3, offset=5)}
    for batch, numbers in data.Loader(data.Plan(windows, 8, window_nbytes=3000), numbers=True):
        for row, number in enumerate(numbers.tolist()):
            assert np.array_equal(batch["in"][row], VALUES[3 * number : 3 * number + 5])
            assert np.array_equal(batch["out"][row], VALUES[3 * number + 5 : 3 * number + 7])
    corners = [(number, number % 3, 0) for number in range(300)]
    crops = data.Crops(root["x"], (4, 2, None), corners=corners)
    for batch, numbers in data.Loader(data.Plan(crops, 32), numbers=True):
        for row, number in enumerate(numbers.tolist()):
            assert np.array_equal(batch[row], VALUES[number : number + 4, number % 3 : number % 3 + 2])
    first, second = (
        list(data.Loader(data.Plan(data.Crops(root["x"], (9, 2, 2), 50), seed=seed))) for seed in (1, 2)
    )
    assert sum(map(len, first)) == 50 and not np.array_equal(first[0], second[0])


@pytest.mark.parametrize("seed", range(40))
def test_epochs_resume_on_other_numbers_of_ranks(root: zarrow.Group, seed: int) -> None:
    """Each rank by a separate loader; the state goes through JSON."""
    rng = random.Random(seed)
    seen: Counter[int] = Counter()
    state: Any = None
    order = rng.choice(ORDERS)
    while state is None or state_epoch(state) == 0:
        world, batch_size = rng.randint(1, 8), rng.randint(2, 30)
        chosen = plan(root, batch_size, order=order)
        loaders = [data.Loader(chosen, rank=rank, world=world, numbers=True) for rank in range(world)]
        if state is not None:
            left = 331 - sum(seen.values())
            if left < world:
                with pytest.raises(ValueError, match="cannot be shared"):
                    loaders[0].load_state_dict(state)
                continue
            for loader in loaders:
                loader.load_state_dict(state)
        iterators = [iter(loader) for loader in loaders]
        steps = rng.randint(0, 8)
        ended = set()
        for _ in range(steps):
            taken = [next(iterator, None) for iterator in iterators]
            ended = {batch is None for batch in taken}
            assert len(ended) == 1, "ranks have different numbers of batches"
            for batch in taken:
                if batch is not None:
                    seen.update(batch[1].tolist())
                    assert np.array_equal(batch[0]["x"], VALUES[batch[1]])
        states = [json.loads(json.dumps(loader.state_dict())) for loader in loaders]
        state = states if rng.random() < 0.3 else rng.choice(states)
        for loader in loaders:
            loader.close()
    assert seen == Counter(range(331))


def test_a_rank_that_has_ended_the_epoch_resumes_with_the_others(root: zarrow.Group) -> None:
    chosen = plan(root)
    loaders = [data.Loader(chosen, rank=rank, world=3) for rank in range(3)]
    seen = numbers_of(loaders[1])
    for loader, steps in ((loaders[0], 1), (loaders[2], 2)):
        seen += [(batch["y"] // 2).tolist() for batch in itertools.islice(loader, steps)]
    states = [loader.state_dict() for loader in loaders]
    assert [state["epoch"] for state in states] == [0, 1, 0]
    for rank in range(2):
        resumed = data.Loader(chosen, rank=rank, world=2)
        resumed.load_state_dict(states)
        seen += numbers_of(resumed)
        assert resumed.state_dict()["epoch"] == 1
    assert sorted(number for batch in seen for number in batch) == list(range(331))


@pytest.mark.parametrize("last", LASTS)
def test_crops_that_are_read_in_parts_resume_with_every_end(root: zarrow.Group, last: Any) -> None:
    corners = [(number, number % 3, 0) for number in range(101)]
    crops = data.Crops(root["x"], (4, 2, None), corners=corners)
    chosen = data.Plan(crops, 4, window_nbytes=1, last=last)
    assert chosen.load_samples < 20
    seen, state = Counter[int](), None
    for world, steps in ((3, 2), (5, 1), (2, 50)):
        loaders = [data.Loader(chosen, rank=rank, world=world, numbers=True) for rank in range(world)]
        taken = []
        for loader in loaders:
            loader.load_state_dict(loader.state_dict() if state is None else state)
            batches = list(itertools.islice(loader, steps))
            for batch, numbers in batches:
                first = np.array([VALUES[number, number % 3] for number in numbers])
                assert np.array_equal(batch[:, 0, 0], first)
                seen.update(numbers.tolist())
            taken.append([len(numbers) for _, numbers in batches])
        # Samples that are shared may differ by one on the last steps.
        assert all(len(sizes) == len(taken[0]) for sizes in taken)
        assert last == "share" or all(sizes == taken[0] for sizes in taken)
        state = loaders[0].state_dict()
    assert state is not None and state["epoch"] == 1
    if last.startswith("drop"):
        assert set(seen.values()) == {1} and sum(seen.values()) >= 101 - 2 * 4
    else:
        assert set(seen) == set(range(101)) and (last != "share" or set(seen.values()) == {1})


def state_epoch(state: Any) -> int:
    return (state[0] if isinstance(state, list) else state)["epoch"]


def test_an_iteration_without_a_batch_loses_nothing(root: zarrow.Group) -> None:
    chosen = plan(root)
    first, second = numbers_of(data.Loader(chosen)), numbers_of(at_epoch(chosen, 1))
    loader = data.Loader(chosen)
    iter(loader), iter(loader)
    assert numbers_of(loader) == first
    iter(loader), iter(loader)
    assert numbers_of(loader) == second
    resumed = data.Loader(chosen)
    resumed.load_state_dict({**loader.state_dict(), "epoch": 1, "step": 5})
    for _ in range(3):
        batches = iter(resumed)
    assert resumed.state_dict()["step"] == 5
    resumed.close()
    with pytest.raises(RuntimeError, match="was ended before its last batch"):
        next(batches)
    assert numbers_of(resumed) == second[5:]
    state = resumed.state_dict()
    assert (state["epoch"], state["step"]) == (2, 0)
    iter(resumed)
    assert resumed.state_dict() == state


def at_epoch(plan: data.Plan, epoch: int) -> data.Loader:
    loader = data.Loader(plan)
    loader.set_epoch(epoch)
    return loader


def numbers_of(loader: data.Loader) -> list[list[int]]:
    return [(batch["y"] // 2).tolist() for batch in loader]


@pytest.mark.parametrize("last", ["share", "pad", "drop"])
def test_resuming_on_the_same_ranks_changes_nothing(root: zarrow.Group, last: Any) -> None:
    chosen = plan(root, 7, last=last)
    for rank in range(3):
        whole = [numbers.tolist() for _, numbers in data.Loader(chosen, rank=rank, world=3, numbers=True)]
        for at in (0, 1, 5, len(whole)):
            loader = data.Loader(chosen, rank=rank, world=3, numbers=True)
            iterator = iter(loader)
            for _ in range(at):
                next(iterator)
            other = data.Loader(chosen, rank=rank, world=3, numbers=True)
            other.load_state_dict(loader.state_dict())
            loader.close()
            rest = [numbers.tolist() for _, numbers in other]
            if at < len(whole):
                assert rest == whole[at:]
            else:
                assert other.state_dict()["epoch"] == 2 and len(rest) == len(whole)


@pytest.mark.parametrize("order", ["sequential", "shuffle", "window"])
@pytest.mark.parametrize("chunk", [1, 4])
def test_a_state_resumes_with_any_batch_size(tmp_path: Path, order: Any, chunk: int) -> None:
    """Windows of 10 samples are smaller than some batches."""
    array = zarrow.create_array(tmp_path, data=np.arange(200.0), chunks=chunk)

    def loader(batch_size: int) -> data.Loader:
        return data.Loader(data.Plan(array, batch_size, order=order, window_nbytes=80))

    for before in (3, 16, 64):
        first = loader(before)
        seen = next(iter(first)).tolist()
        state = first.state_dict()
        for after in (1, 5, 16, 64, 150):
            resumed = loader(after)
            resumed.load_state_dict(state)
            rest = [value for batch in resumed for value in batch.tolist()]
            assert sorted(seen + rest) == list(range(200))


def test_states_of_other_plans_are_refused(root: zarrow.Group) -> None:
    loader = data.Loader(plan(root))
    for other in (plan(root, seed=1), plan(root, order="shuffle"), plan(root).split(0.5)[0]):
        with pytest.raises(ValueError, match="another plan"):
            loader.load_state_dict(data.Loader(other).state_dict())
    ranks = [data.Loader(plan(root), rank=rank, world=2) for rank in range(2)]
    ranks[1].set_epoch(3)
    with pytest.raises(ValueError, match="one epoch"):
        loader.load_state_dict([rank.state_dict() for rank in ranks])
    with pytest.raises(ValueError, match="the states of all 2"):
        loader.load_state_dict([ranks[0].state_dict()] * 2)
    for damaged in ({"step": 99}, {"step": -1}, {"ranges": [[0, 400]]}, {"ranges": [[-5, 3]]}):
        with pytest.raises(ValueError, match="is damaged"):
            loader.load_state_dict({**loader.state_dict(), **damaged})


def test_memory_is_used_again_only_without_views(root: zarrow.Group) -> None:
    """Views of every kind keep the elements; without them, few pieces of memory are enough."""
    chosen = plan(root, 5)
    kept: list[tuple[Any, Any]] = []
    keep = [
        lambda x: x[1:, ::2],
        lambda x: x.reshape(-1)[3:],
        lambda x: memoryview(x),
        lambda x: zarrow.asarray(x)[0],
        lambda x: np.from_dlpack(x)[:1],
        lambda x: x.T.view("u4"),
        lambda x: jnp.from_dlpack(x),
        lambda x: x[0].ctypes,
    ]
    loader = data.Loader(chosen, numbers=True, memory_nbytes=1)
    addresses = set()
    for number, (batch, numbers) in enumerate(loader):
        view = keep[number % len(keep)](batch["x"])
        expected = keep[number % len(keep)](VALUES[numbers].copy())
        kept.append((view, expected))
        addresses.add(batch["x"].ctypes.data)
        del batch, view
    for view, expected in kept:
        if not hasattr(view, "shape_as"):
            assert np.array_equal(np.asarray(view), np.asarray(expected))
        else:
            assert bytes(np.ctypeslib.as_array(view.data_as(pointer()), (4, 3))) == bytes(expected._arr)
    kept.clear()
    del view, expected
    gc.collect()
    allocated = []

    def allocate(nbytes: int) -> Any:
        allocated.append(nbytes)
        return bytearray(nbytes)

    for batch in data.Loader(chosen, memory_nbytes=1, allocate=allocate):
        batch["x"][:] = -1
        del batch
    assert 2 <= len(allocated) <= 2 * 4


def pointer() -> Any:
    import ctypes

    return ctypes.POINTER(ctypes.c_int32)


def test_a_consumer_may_keep_every_batch(root: zarrow.Group) -> None:
    batches = list(data.Loader(plan(root), numbers=True, memory_nbytes=1))
    assert all(np.array_equal(batch["x"], VALUES[numbers]) for batch, numbers in batches)


def test_reads_pause_within_the_budget(root: zarrow.Group) -> None:
    chosen = plan(root, 5)
    iterator = iter(data.Loader(chosen, memory_nbytes=1))
    next(iterator)
    prefetch = iterator._prefetch  # type: ignore[attr-defined]
    until = time.monotonic() + 10
    while prefetch._unfinished_reads < 2 and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(0.05)
    assert prefetch._unfinished_reads == 2


def test_two_reads_run_at_the_same_time_after_the_first_batch(root: zarrow.Group) -> None:
    together, allocated = threading.Barrier(2, timeout=30), list[int]()

    def allocate(nbytes: int) -> Any:
        allocated.append(nbytes)
        if len(allocated) in (2, 3):
            together.wait()
        return np.empty(nbytes, np.uint8)

    chosen = data.Plan(root["x"], 16, window_nbytes=4000, order="sequential")
    batches = list(data.Loader(chosen, allocate=allocate))
    assert len(allocated) > 3 and np.array_equal(np.concatenate(batches), VALUES)


def test_small_reads_from_a_remote_store_begin_in_pairs(web: str, tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "web" / "x.zarr", data=VALUES, chunks=(10, *VALUES.shape[1:]))
    together, allocated = threading.Barrier(2, timeout=30), list[int]()

    def allocate(nbytes: int) -> Any:
        allocated.append(nbytes)
        if len(allocated) <= 2:
            together.wait()
        return np.empty(nbytes, np.uint8)

    plan = data.Plan(f"{web}/x.zarr", 16, window_nbytes=4000, order="sequential")
    batches = list(data.Loader(plan, allocate=allocate))
    assert len(allocated) > 2 and np.array_equal(np.concatenate(batches), VALUES)


def bytes_read() -> int:
    """Return the number of bytes that this process has read from files."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def aged(folder: Path) -> None:
    """Set the times of all files back, and wait: chunks that were just written or changed are not cached."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 60,) * 2)
    time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes by /proc")
def test_a_cache_saves_later_epochs_from_decoding_and_sees_changes(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 16, (200, 1000)).astype("u2")
    group = zarrow.create_group(tmp_path / "a")
    stored = group.create_array("x", data=values, chunks=(10, 1000))
    group.create_array("y", data=np.arange(200), chunks=50)
    aged(tmp_path)
    chosen = data.Plan({"x": stored, "y": group["y"]}, 16, window_nbytes=100_000)
    loader = data.Loader(chosen, cache_nbytes=1 << 20, numbers=True)
    assert loader.plan.fingerprint == chosen.fingerprint
    for epoch in range(3):
        before = bytes_read()
        for batch, numbers in loader:
            assert np.array_equal(batch["x"], values[numbers]) and np.array_equal(batch["y"], numbers)
            batch["x"][:] = 0  # is no memory of the cache
        assert (bytes_read() - before < values.nbytes // 10) == (epoch > 0)
        stats = loader.stats()
        # Two windows may decode one chunk at the same time.
        assert (stats.cache_hit_rate > 0.9) == (epoch > 0) and "of chunks from the cache" in str(stats)
        assert stats.cache_hits + stats.cache_misses >= 24
    stored[35:47] = values[35:47] = 7
    for batch, numbers in pickle.loads(pickle.dumps(loader)):
        assert np.array_equal(batch["x"], values[numbers])
    for batch, numbers in loader:
        assert np.array_equal(batch["x"], values[numbers])


@pytest.mark.parametrize("batches", [0, 1, None])
def test_a_pickled_loader_goes_on_as_its_original(root: zarrow.Group, batches: int | None) -> None:
    loader = data.Loader(plan(root), numbers=True)
    iterator = iter(loader)
    for _ in itertools.islice(iterator, batches):
        pass
    copy = pickle.loads(pickle.dumps(loader))
    numbers = [[list(numbers) for _, numbers in each] for each in (copy, copy, loader, loader)]
    assert numbers[:2] == numbers[2:] and sorted(itertools.chain(*numbers[0])) == list(range(331))


def test_a_loader_gives_no_cache_to_an_array_that_was_changed(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a", data=np.arange(20), chunks=5)
    chosen = data.Plan(array)
    zarrow.open_array(tmp_path / "a").attrs["unit"] = "m"
    assert sorted(np.concatenate(list(data.Loader(chosen, cache_nbytes=1 << 20)))) == list(range(20))
    zarrow.open_array(tmp_path / "a").resize(10)
    with pytest.raises(
        zarrow.StaleHandleError, match=r"made smaller, from \(20,\) to \(10,\), since it was opened"
    ):
        data.Loader(chosen, cache_nbytes=1 << 20)
    with pytest.raises(ValueError, match="cache_nbytes must not be negative, found -1"):
        data.Loader(chosen, cache_nbytes=-1)


def damaged(folder: Path, *chunks: int) -> zarrow.Array:
    array = zarrow.create_array(
        folder, data=VALUES, chunks=(10, 4, 3), compressors={"id": "zstd"}, fill_value=-5
    )
    for number in chunks:
        (folder / "c" / str(number) / "0" / "0").write_bytes(b"damaged")
    return array


def test_damaged_chunks(tmp_path: Path) -> None:
    array = damaged(tmp_path / "a", 3, 17)
    bad = {*range(30, 40), *range(170, 180)}
    with pytest.raises(zarrow.CodecError, match=r"chunk \[(3|17), 0, 0\]"):
        list(data.Loader(data.Plan(array, 16)))
    for on_bad in ("skip", "fill"):
        loader = data.Loader(data.Plan(array, 16, window_nbytes=5000), on_bad=on_bad, numbers=True)
        seen = []
        for batch, numbers in loader:
            for row, number in zip(batch, numbers.tolist(), strict=True):
                assert np.array_equal(row, np.full((4, 3), -5) if number in bad else VALUES[number])
            seen += numbers.tolist()
        assert set(loader.stats().bad) == bad
        assert sorted(seen) == (sorted(set(range(331)) - bad) if on_bad == "skip" else list(range(331)))
        assert loader.stats().batches == len(loader) == 21
    hopeless = data.Loader(data.Plan(array, 5, order="sequential"), on_bad="skip")
    iterator = iter(hopeless)
    assert [len(next(iterator)) for _ in range(6)] == [5] * 6
    with pytest.raises(zarrow.CodecError, match=r"chunk \[3, 0, 0\]"):
        next(iterator)


def test_transforms_run_in_order_off_the_main_thread(root: zarrow.Group) -> None:
    names = set()

    def transform(batch: Any) -> Any:
        names.add(threading.current_thread().name)
        return batch["x"].sum(axis=(1, 2)), len(batch["y"])

    loader = data.Loader(plan(root, 10), transform=transform, numbers=True)
    for (sums, count), numbers in loader:
        assert count == len(numbers) and np.array_equal(sums, VALUES[numbers].sum(axis=(1, 2)))
    assert names == {"zarrow-data"}

    def failing(batch: Any) -> Any:
        if len(names) == 4:
            raise KeyError("the fourth")
        names.add(len(names))
        return batch

    iterator = iter(data.Loader(plan(root, 10), transform=failing))
    assert sum(1 for _ in zip(range(3), iterator, strict=False)) == 3
    with pytest.raises(KeyError, match="the fourth"):
        next(iterator)
    assert next(iterator, "ended") == "ended"


def test_iterations_end_in_every_way(root: zarrow.Group) -> None:
    """The fixture checks that no thread is left."""
    loader = data.Loader(plan(root, 2))
    for _ in loader:
        break
    dropped = iter(loader)
    next(dropped)
    del dropped
    closed = iter(loader)
    loader.close()
    with pytest.raises(RuntimeError, match="was ended before its last batch"):
        next(closed)
    with loader:
        next(iter(loader))
    replaced = iter(loader)
    again = iter(loader)
    with pytest.raises(RuntimeError, match="a newer iteration of the same loader"):
        next(replaced)
    assert len(next(again)["x"]) == 2
    iter(data.Loader(plan(root, 2), transform=lambda batch: batch))


def test_chunks_are_read_as_often_as_predicted(tmp_path: Path) -> None:
    """The prediction against a store that counts."""
    reads: Counter[str] = Counter()

    class Counting(dict[str, bytes]):
        def __getitem__(self, key: str) -> bytes:
            reads[key] += key.startswith("c/")
            return super().__getitem__(key)

    store = Counting()
    zarrow.create_array(store, data=VALUES, chunks=(10, 4, 3), compressors={"id": "zstd"})
    array = zarrow.open(store)
    for order, batch_size in (("window", 16), ("window", 330), ("sequential", 7), ("shuffle", 16)):
        chosen = data.Plan(array, batch_size, order=order, window_nbytes=48 * 50)
        description = chosen.describe()
        reads.clear()
        for _ in data.Loader(chosen):
            pass
        found = sum(reads.values())
        # Few reads are counted exactly, with the first batch, which may be read alone.
        assert found == description.chunks, (order, batch_size)
        if order != "shuffle":
            assert 34 <= found <= 34 + batch_size


def test_stats_name_the_limiting_stage(root: zarrow.Group) -> None:
    loader = data.Loader(plan(root, 10), transform=lambda batch: time.sleep(0.01))
    assert loader.stats().limiting_stage == "unknown"
    list(loader)
    assert loader.stats().limiting_stage == "transform" and loader.stats().stalls > 10
    loader = data.Loader(plan(root, 10))
    for _ in loader:
        time.sleep(0.02)
    stats = loader.stats()
    assert stats.limiting_stage == "consumer" and stats.nbytes == 331 * 56
    assert "limited by consumer" in str(stats)


def limit_of(array: zarrow.Array) -> data.Stats:
    """Return the statistics of an epoch of small batches, for a consumer that only waits."""
    loader = data.Loader(data.Plan(array, 64, order="sequential", window_nbytes=1 << 17))
    for _ in loader:
        pass
    return loader.stats()


class SlowStore(dict[str, bytes]):
    """A mapping that takes its time for each chunk."""

    def __getitem__(self, key: str) -> bytes:
        if "c/" in key:
            time.sleep(0.01)
        return super().__getitem__(key)


def test_stats_divide_reads_between_store_decoding_and_placement(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 1 << 12, (2048, 256), np.uint16)
    slow = SlowStore()
    zarrow.create_array(slow, data=noise, chunks=(64, 256), compressors=None)
    stats = limit_of(zarrow.open_array(slow))
    # Eight reads, and the store sleeps this long for a chunk of each.
    assert stats.store_s >= 8 * 0.01
    # Elements that are stored in Fortran order are decoded, and then moved one by one.
    turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
    array = zarrow.create_array(tmp_path / "a.zarr", data=noise, chunks=(64, 256), filters=[turned])
    stats = limit_of(array)
    assert min(stats.store_s, stats.decode_s, stats.placement_s) > 0
    assert data.Loader(data.Plan(array, 64)).stats().store_s == 0


@pytest.mark.parametrize("stage", ["store", "decode", "placement", "transform"])
def test_the_longest_stage_limits_a_consumer_that_waits(stage: str) -> None:
    stats = data.Stats(batches=9, seconds=1.0, waited_s=0.5, read_s=0.3, store_s=0.1, decode_s=0.1)
    setattr(stats, f"{stage}_s", 0.8)
    assert stats.limiting_stage == stage and f"limited by {stage}" in str(stats)
    stats.waited_s = 0.0
    assert stats.limiting_stage == "consumer"


def test_debug_info_names_everything(root: zarrow.Group, capsys: pytest.CaptureFixture[str]) -> None:
    loader = data.Loader(plan(root))
    list(loader)
    loader.print_debug_info()
    text = capsys.readouterr().out
    for part in (
        zarrow.__version__,
        "x: Rows (4, 3) of int32 (331, 4, 3), chunks (10, 4, 3)",
        "shuffle",
        "331 samples",
    ):
        assert part in text
