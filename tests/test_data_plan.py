"""The plan of an epoch: samples, order, splits, ranks and interruptions."""

from __future__ import annotations

import itertools
import pickle
import random
import tracemalloc
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import zarrow
from zarrow import data
from zarrow.data.order import Order
from zarrow.data.permutation import Permutation
from zarrow.data.rank_schedule import Last, Ranges, Schedule
from zarrow.data.subset import Subset

ORDERS = ("sequential", "shuffle", "window")


def array(shape: tuple[int, ...], chunks: tuple[int, ...], **options: Any) -> zarrow.Array:
    values = np.arange(np.prod(shape, dtype=int), dtype="i4").reshape(shape)
    return zarrow.create_array(zarrow.MemoryStore(), data=values, chunks=chunks, **options)


def positions(ranges: Ranges) -> list[int]:
    return [position for start, stop in ranges for position in range(start, stop)]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000, 65_536, 65_537, 100_000])
def test_permutations_have_each_number_once(count: int) -> None:
    numbers = np.arange(count)
    permutation = Permutation(count, 7)
    permuted = permutation(numbers)
    assert np.array_equal(np.sort(permuted), numbers)
    assert np.array_equal(permutation.inverse(permuted), numbers)
    if count > 100:
        assert not np.array_equal(permuted, Permutation(count, 8)(numbers))
        # A uniform one has one fixed point on average, and no correlation.
        assert (permuted == numbers).sum() < 10
        assert abs(np.corrcoef(permuted, numbers)[0, 1]) < 4 / np.sqrt(count)


def test_orders_are_the_same_on_every_machine() -> None:
    order = Order(Subset.whole(20), "window", 4, 0, 2, seed=1, epoch=0)
    assert order.places(0, 20).tolist() == [
        10,
        8,
        12,
        11,
        14,
        9,
        13,
        15,
        3,
        4,
        7,
        0,
        1,
        6,
        2,
        5,
        16,
        17,
        19,
        18,
    ]
    assert Permutation(100_000, 1)(np.arange(4)).tolist() == [23401, 13108, 79840, 22966]


@pytest.mark.parametrize("seed", range(150))
def test_orders_have_each_place_once(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 300)
    mask = np.array([rng.random() < rng.choice((0.1, 0.5, 0.95)) for _ in range(count)])
    subset = Subset.from_mask(mask) if rng.random() < 0.6 else Subset.whole(count)
    places = subset.places().tolist()
    size, slots = rng.randint(1, 20), rng.randint(1, 9)
    order = Order(subset, rng.choice(ORDERS), size, rng.randrange(size), slots, seed, rng.randrange(3))
    whole = order.places(0, len(order)).tolist()
    assert sorted(whole) == places
    for _ in range(10):
        start = rng.randint(0, len(order))
        stop = rng.randint(start, len(order))
        assert order.places(start, stop).tolist() == whole[start:stop]
    # Cuts proceed, and any range up to a cut is within one window.
    position = 0
    while position < len(order):
        cut = order.cut_after(position)
        assert position < cut <= len(order)
        if order._kind != "shuffle":
            blocks = {(place - order._phase) // size for place in whole[position:cut]}
            pieces = len(blocks) if order._kind == "sequential" else 0
            assert pieces <= slots
        position = cut


@pytest.mark.parametrize("seed", range(20))
def test_windows_read_each_block_once(seed: int) -> None:
    rng = random.Random(seed)
    count, size, slots = rng.randint(10, 400), rng.randint(2, 16), rng.randint(1, 6)
    order = Order(Subset.whole(count), "window", size, rng.randrange(size), slots, seed, 0)
    seen: set[int] = set()
    position = 0
    while position < count:
        cut = order.cut_after(position)
        blocks = {(place - order._phase) // size for place in order.places(position, cut).tolist()}
        assert len(blocks) <= slots and not blocks & seen
        seen |= blocks
        position = cut


@pytest.mark.parametrize("order", ORDERS)
def test_samples_that_share_elements_are_read_in_parts(order: Any) -> None:
    """Reads stay within the window, or the elements of a chunk, if a chunk has far more bytes of samples."""
    values = array((64, 64), (64, 64))
    for source, most in ((data.Crops(values, (16, 16), 3000), 25), (data.Windows(values, 32), 3)):
        plan = data.Plan(source, 10, order=order, window_nbytes=5000, last="pad")
        reads = list(plan.loads(0, ((0, len(plan)),)))
        assert max(map(len, reads)) <= max(most, 10)
        assert np.array_equal(np.concatenate(reads), plan.ordered(0).places(0, len(plan)))
        batches = list(data.Loader(plan))
        assert {len(batch) for batch in batches} == {10} and len(batches) == -(-len(plan) // 10)
        assert plan.describe().read_nbytes <= max(most, 10) * plan.sample_nbytes
    # Crops that fill no memory are drawn one by one.
    plan = data.Plan(data.Crops(values, (4, 4), 10**12), 4, order=order)
    assert next(iter(data.Loader(plan))).shape == (4, 4, 4)


def test_numbers_out_of_range_are_refused() -> None:
    values = array((9, 3), (3, 3))
    for name in ("batch_size", "window_nbytes"):
        with pytest.raises(ValueError, match=f"{name}.* found -1"):
            data.Plan(values, **{name: -1})
    with pytest.raises(ValueError, match="memory_nbytes must not be negative, found -1"):
        data.Loader(values, memory_nbytes=-1)
    for count in (0, 10**30):
        with pytest.raises(ValueError, match=f"count is a number of crops, 1 or more, found {count}"):
            data.Crops(values, (2, 2), count)
    with pytest.raises(ValueError, match="would repeat 9 samples too often"):
        data.Plan(values, 1 << 40, last="pad").describe()
    assert len(list(data.Loader(values, batch_size=3, window_nbytes=10**30, memory_nbytes=10**30))) == 3


def test_a_large_order_takes_no_memory() -> None:
    tracemalloc.start()
    order = Order(Subset.whole(10**12), "window", 16, 3, 8, seed=0, epoch=0)
    places = order.places(5 * 10**11, 5 * 10**11 + 1000)
    shuffled = Order(Subset.whole(10**12), "shuffle", 16, 0, 8, seed=0, epoch=0).places(7, 1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(np.unique(places)) == 1000 and places.max() < 10**12 and shuffled.max() > 10**11
    assert peak < 4 << 20


@pytest.mark.parametrize("seed", range(300))
def test_interrupted_epochs_have_each_sample_once(seed: int) -> None:
    """Ranks, interruptions and other worlds: all samples, none twice, equally many steps."""
    rng = random.Random(seed)
    total = rng.randint(40, 400)
    ranges: Ranges = ((0, total),)
    seen: list[int] = []
    while ranges:
        left = sum(stop - start for start, stop in ranges)
        world = rng.randint(1, min(8, left))
        # One sample a batch cannot always be shared.
        batch_size = rng.randint(2, 9) if world > 1 else rng.randint(1, 9)
        schedule = Schedule(ranges, world, batch_size, "share")
        assert schedule.steps == -(-left // (world * batch_size))
        for rank in range(world):
            sizes = [schedule.size(rank, step) for step in range(schedule.steps)]
            assert min(sizes) > 0 and max(sizes) <= batch_size
            batches = [schedule.batch(rank, step) for step in range(schedule.steps)]
            assert [len(positions(batch)) for batch in batches] == sizes
            rest = rng.randint(0, schedule.steps)
            assert positions(schedule.rest(rank, rest)) == [p for b in batches[rest:] for p in positions(b)]
        # Ranks may be interrupted at different steps.
        at = rng.randint(0, schedule.steps)
        steps = [at if rng.random() < 0.8 else rng.randint(0, schedule.steps) for _ in range(world)]
        if rng.random() < 0.2:
            steps = [schedule.steps] * world
        for rank, step in enumerate(steps):
            for number in range(step):
                seen += positions(schedule.batch(rank, number))
        ranges = schedule.remaining(steps)
        assert len(ranges) <= 1 + 8 * 60
    assert sorted(seen) == list(range(total))


@pytest.mark.parametrize("seed", range(60))
def test_full_batches_pad_or_drop(seed: int) -> None:
    rng = random.Random(seed)
    total, world, batch_size = rng.randint(1, 200), rng.randint(1, 8), rng.randint(1, 9)
    padded = Schedule(((5, 5 + total),), world, batch_size, "pad")
    each = [positions(padded.batch(rank, step)) for rank in range(world) for step in range(padded.steps)]
    assert {len(batch) for batch in each} == {batch_size}
    found = list(itertools.chain(*each))
    assert found[:total] == list(range(5, 5 + total))
    assert found == [5 + number % total for number in range(len(found))]
    at = rng.randint(0, padded.steps)
    done = {p for rank in range(world) for step in range(at) for p in positions(padded.batch(rank, step))}
    assert set(range(5, 5 + total)) - done <= set(positions(padded.remaining([at] * world)))
    dropping = Schedule(((0, total),), world, batch_size, "drop")
    assert dropping.steps == total // (world * batch_size)
    kept = [positions(dropping.batch(rank, step)) for rank in range(world) for step in range(dropping.steps)]
    assert sorted(itertools.chain(*kept)) == list(range(dropping.steps * world * batch_size))
    at = rng.randint(0, dropping.steps)
    done = {p for rank in range(world) for step in range(at) for p in positions(dropping.batch(rank, step))}
    left = positions(dropping.remaining([at] * world))
    assert not done & set(left) and sorted([*done, *left]) == list(range(total))


@pytest.mark.parametrize("world", range(1, 10))
def test_ranks_get_equally_many_samples_as_by_distributed_sampler(world: int) -> None:
    """The rules of PyTorch's sampler: pad to a multiple of the ranks, again and again, or cut to one."""
    for total, batch_size in itertools.product(range(1, 30), (1, 2, 5, 40)):
        order = list(range(total))
        for last, wanted in (
            ("pad_ranks", (order * world)[: -(-total // world) * world]),
            ("drop_ranks", order[: total // world * world]),
        ):
            schedule = Schedule(((0, total),), world, batch_size, cast(Last, last))
            ranks = [
                [positions(schedule.batch(rank, step)) for step in range(schedule.steps)]
                for rank in range(world)
            ]
            assert list(itertools.chain(*itertools.chain(*ranks))) == wanted
            each = len(wanted) // world
            sizes = [min(batch_size, each - start) for start in range(0, each, batch_size)]
            assert all([len(batch) for batch in rank] == sizes for rank in ranks)
            left = positions(schedule.remaining([1] * world)) if schedule.steps else order
            done = {place for rank in ranks for batch in rank[:1] for place in batch}
            assert sorted({*done, *left}) == order and len(set(left)) == len(left)


def test_samples_that_cannot_be_shared_are_refused() -> None:
    for total, world, batch_size in ((3, 8, 4), (9, 8, 1)):
        with pytest.raises(ValueError, match='pass last="pad" or last="drop"'):
            Schedule(((0, total),), world, batch_size, "share")
    with pytest.raises(ValueError, match="fill no batch"):
        data.Plan(array((9,), (3,)), 4, last="drop").schedule(3)
    with pytest.raises(ValueError, match="fill no batch"):
        data.Plan(array((9,), (3,)), 4, last="drop_ranks").schedule(10)
    with pytest.raises(ValueError, match="one of share, pad, drop, pad_ranks, drop_ranks"):
        data.Plan(array((9,), (3,)), 4, last=cast(Last, "even"))


def test_plans_are_small_pickles() -> None:
    plan = data.Plan(array((1000, 2), (10, 2)), 8, seed=3)
    other = pickle.loads(pickle.dumps(plan))
    assert other.numbers(4).tolist() == plan.numbers(4).tolist() and other.fingerprint == plan.fingerprint
    assert plan.numbers(4).tolist() != plan.numbers(5).tolist()
    assert data.Plan(array((1000, 2), (10, 2)), 8, seed=4).fingerprint != plan.fingerprint


@pytest.mark.parametrize("chunk", [1, 4, 7, 40])
@pytest.mark.parametrize("order", ORDERS)
def test_chunks_are_decoded_once(chunk: int, order: Any) -> None:
    """The prediction, which the loader's test compares with real reads."""
    plan = data.Plan(array((40, 6), (chunk, 6)), 4, order=order, window_nbytes=24 * chunk * 3)
    description = plan.describe()
    assert (description.samples, description.steps, description.nbytes_used) == (40, 10, 960)
    if order != "shuffle" or chunk == 1:
        # The first batch is read alone, and ends in a chunk of 7.
        assert description.chunks == -(-40 // chunk) + (order == "sequential" and chunk == 7)
        assert description.nbytes_decoded == description.chunks * chunk * 24
    else:
        assert description.chunks > 40 // chunk or chunk == 40


def test_shards_are_requests_too(tmp_path: Path) -> None:
    values = np.zeros((40, 6, 2), "f4")
    sharded = zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 3, 2), shards=(10, 6, 2))
    # Each of 4 shards has two windows of 5 rows.
    windows = data.Plan(data.Windows(sharded, 5, step=5), 8, order="sequential").describe()
    assert (windows.chunks, windows.shards, windows.requests) == (40, 4, 44)
    crops = data.Plan(data.Crops(sharded, (10, 6, 2), corners=[(0, 0, 0), (10, 0, 0)]), 2).describe()
    assert (crops.chunks, crops.shards, crops.requests) == (20, 2, 22)
    rows = data.Plan(sharded, 4, order="sequential")
    found = rows.describe()
    # The first batch is read alone.
    assert (found.chunks, found.shards) == (40, 5)
    assert "40 chunks of 5 shards\nat most 45 requests, 1.9 KiB of memory" in str(found)
    assert found.memory_nbytes == values.nbytes, "one read has all samples"
    small = data.Plan(sharded, 2, window_nbytes=2 * 48)
    assert small.describe(memory_nbytes=0).memory_nbytes == 2 * (2 + 2) * 48


def test_quality_tells_orders_apart() -> None:
    rows = array((4000, 1), (10, 1))
    quality = {
        blocks: data.Plan(rows, 8, window_nbytes=40 * blocks).describe().shuffle_quality
        for blocks in (1, 4, 20, 100)
    }
    assert quality[1] < quality[4] < quality[20] < quality[100] < 1.0
    assert data.Plan(rows, 8, order="sequential").describe().shuffle_quality < 0.01
    full = data.Plan(rows, 8, order="shuffle").describe().shuffle_quality
    assert full > 0.97 and quality[100] > 0.95 and abs(quality[4] - 0.75) < 0.1


def test_windows_and_offsets() -> None:
    hours = array((50, 2), (8, 2))
    plan = data.Plan({"x": data.Windows(hours, 6, step=2), "y": data.Windows(hours, 2, step=2, offset=6)}, 4)
    assert len(plan) == min((50 - 6) // 2 + 1, (50 - 8) // 2 + 1) == 22
    places, out = np.array([0, 21, 5]), np.empty((3, 6, 2), "i4")
    plan.sources["x"]._read(places, out, (0, 0))
    values = hours[...].numpy()
    assert all(np.array_equal(out[k], values[2 * i : 2 * i + 6]) for k, i in enumerate(places))
    strided = data.Windows(array((2, 30), (2, 7)), 3, stride=4, step=5, axis=1)
    assert strided.count == 5 and strided.sample_shape == (2, 3)
    out = np.empty((5, 2, 3), "i4")
    strided._read(np.arange(5), out, (0, 0))
    assert out[4].tolist() == [[20, 24, 28], [50, 54, 58]]
    with pytest.raises(ValueError, match="does not fit"):
        data.Windows(hours, 51)
    with pytest.raises(ValueError, match="different numbers"):
        data.Plan({"x": data.Windows(hours, 6), "y": hours})


@pytest.mark.parametrize(
    ("chunk", "step", "offset"), list(itertools.product((4, 6, 24), (1, 2, 3, 6, 10), (0, 5)))
)
def test_blocks_of_windows_begin_with_chunks(chunk: int, step: int, offset: int) -> None:
    source = data.Windows(array((400,), (chunk,)), 1, step=step, offset=offset)
    size, phase = source._blocks()
    starts = offset + np.arange(source.count) * step
    blocks = (np.arange(source.count) - phase) // size
    for cell in np.unique(starts // chunk):
        assert len(set(blocks[starts // chunk == cell])) == 1


@pytest.mark.parametrize("split", ["split_at", "split_by"])
@pytest.mark.parametrize(
    "values",
    [
        np.ma.MaskedArray(np.arange(6), np.arange(6) == 2),
        np.array([0, 1, np.nan, 3, 4, 5]),
        np.array(["2026", "NaT", "2027", "2027", "2028", "2029"], "M8[Y]"),
    ],
    ids=["masked", "NaN", "NaT"],
)
def test_a_split_needs_all_values(split: str, values: Any) -> None:
    plan = data.Plan(array((6,), (2,)), 2)
    bounds = (values[4],) if split == "split_at" else (0.5, 0.5)
    with pytest.raises(ValueError, match=r"1 (values|labels) are missing or NaN"):
        getattr(plan, split)(values, *bounds)


def test_splits_share_no_element_and_are_never_empty() -> None:
    plan = data.Plan(data.Windows(array((100,), (8,)), 10, step=2), 4)
    assert len(plan) == 46
    training, validation = plan.split(0.5, 0.5)
    assert max(training.numbers()) * 2 + 9 < min(validation.numbers()) * 2
    assert (len(training), len(validation)) == (19, 23)
    assert [len(part) for part in plan.split(0.5, 0.5, gap=0)] == [23, 23]
    early, late = plan.split_at(np.arange(46), 10)
    assert max(early.numbers()) == 5 and min(late.numbers()) == 10 and len(late) == 36
    nested = late.split(0.5, 0.5)
    assert [len(part) for part in nested] == [14, 18] and min(nested[0].numbers()) == 10
    for empty in (
        lambda: plan.split(0.999, 0.001),
        lambda: plan.split_at(np.arange(46), 0),
        lambda: plan.split_by(np.zeros(46), 0.5, 0.5),
        lambda: plan.where(np.zeros(46, bool)),
    ):
        with pytest.raises(ValueError, match="has no samples, of 46"):
            empty()
    with pytest.raises(ValueError, match="within="):
        data.Plan(data.Crops(array((30,), (10,)), (3,), 9)).split(0.5)


def elements_of(plan: data.Plan) -> set[int]:
    """Return all elements of a plan."""
    found: set[int] = set()
    for batch in data.Loader(plan):
        for values in batch.values() if isinstance(batch, dict) else [batch]:
            found |= set(np.asarray(values).ravel().tolist())
    return found


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_any_windows_share_no_element(seed: int) -> None:
    random = np.random.default_rng(seed)
    series = array((200,), (7,))
    sources: Any = {
        name: data.Windows(
            series,
            int(random.integers(1, 5)),
            step=int(random.integers(1, 5)),
            stride=int(random.integers(1, 3)),
            offset=int(random.integers(0, 12)),
        )
        for name in "xy"
    }
    plan = data.Plan(sources, 16)
    labels = np.sort(random.integers(0, 3, len(plan)))
    for parts in (
        lambda: plan.split(0.5, 0.3, 0.2),
        lambda: plan.split_at(np.arange(len(plan)), len(plan) // 3),
        lambda: plan.split_by(labels, 0.5, 0.5),
        lambda: plan.split_at(random.permutation(len(plan)), len(plan) // 2),
    ):
        try:
            found = [elements_of(part) for part in parts()]
        except ValueError as error:
            assert "has no samples" in str(error)
            continue
        for one, other in itertools.combinations(found, 2):
            assert not one & other


def test_a_split_of_many_windows_takes_little_memory() -> None:
    long = zarrow.create_array(zarrow.MemoryStore(), shape=10**9, dtype="u1", chunks=10**6)
    plan = data.Plan(data.Windows(long, 4), 16)
    tracemalloc.start()
    try:
        parts = plan.split(0.5, 0.5)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert sum(map(len, parts)) == len(plan) - 3


def test_arguments_are_refused_in_our_words() -> None:
    plan, image = data.Plan(array((100,), (8,)), 4), array((30, 20), (8, 8))
    half = np.ma.array([True] * 100, mask=[True] * 50 + [False] * 50)
    for call, error, words in (
        (lambda: plan.split(float("nan")), ValueError, "fractions must be positive"),
        (lambda: plan.split_by([None, "a"] * 50, 0.5), TypeError, "labels are numbers or strings"),
        (lambda: plan.where(half), ValueError, "missing elements: type mask.filled"),
        (lambda: data.Crops(image, (2, 2), corners=[[1.5, 1]]), TypeError, "corners are integers"),
        (lambda: data.Crops(image, (2, 2), corners=[[float("nan"), 1]]), TypeError, "corners are integers"),
        (lambda: data.Windows(image, 2, step=2**63), ValueError, "is too large"),
        (lambda: data.Plan(image, 2**63), ValueError, "batch_size is a number of samples"),
        (lambda: data.Loader(plan).load_state_dict("x"), TypeError, "a state is the dict"),  # type: ignore[arg-type]
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_batch_larger_than_all_samples_takes_the_memory_of_these() -> None:
    (batch,) = data.Loader(data.Plan(array((100,), (8,)), 1 << 40, order="sequential"))
    assert batch.tolist() == list(range(100))


def test_a_negative_gap_is_refused() -> None:
    plan = data.Plan(array((100,), (8,)), 4)
    for split in (
        lambda: plan.split(0.5, 0.5, gap=-1),
        lambda: plan.split_at(np.arange(100), 50, gap=-1),
        lambda: plan.split_by(np.arange(100), 0.5, gap=-1),
    ):
        with pytest.raises(ValueError, match="gap is a number of samples"):
            split()


@pytest.mark.parametrize("seed", range(10))
def test_groups_are_not_divided(seed: int) -> None:
    labels = np.random.default_rng(seed).integers(0, 25, 300).astype(str)
    plan = data.Plan(array((300,), (7,)), 8, seed=seed)
    parts = plan.split_by(labels, 0.6, 0.2)
    groups = [set(labels[part.numbers()]) for part in parts]
    assert not groups[0] & groups[1]
    assert abs(len(parts[0]) - 180) < 25 and abs(len(parts[1]) - 60) < 25
    assert sorted(parts[0].numbers(3)) == sorted(parts[0].numbers(0))


def test_unfit_sources_are_refused() -> None:
    with pytest.raises(ValueError, match=r"different numbers of samples: \{'x': 5, 'y': 6\}"):
        data.Plan({"x": array((5,), (2,)), "y": array((6,), (2,))})
    with pytest.raises(ValueError, match="no samples"):
        data.Plan(array((0, 3), (1, 3)))
    with pytest.raises(TypeError, match="found ndarray"):
        data.Plan(np.arange(3))  # type: ignore[arg-type]


def test_a_small_window_of_which_the_first_batch_needs_most_chunks_is_read_whole() -> None:
    def first_read(shape: tuple[int, ...], chunks: tuple[int, ...], batch_size: int, window: int) -> int:
        plan = data.Plan(array(shape, chunks), batch_size, window_nbytes=window)
        ranges = plan.schedule(1).rest(0, 0)
        return len(next(plan.loads(0, ranges, first=plan._early(0, ranges, batch_size))))

    # 16 blocks of 4 samples: 32 random ones are of nearly all blocks, and 4 of few.
    assert first_read((256, 4), (4, 4), 32, 64 * 16) == 64
    assert first_read((256, 4), (4, 4), 4, 64 * 16) == 4
    # Each sample is a chunk: the first batch needs its own alone.
    assert first_read((256, 4), (1, 4), 8, 64 * 16) == 8
    # A large window takes long; one of 64 MiB is small.
    assert first_read((4096, 1 << 14), (512, 1 << 14), 32, 128 << 20) == 32
    assert first_read((4096, 1 << 14), (512, 1 << 14), 32, 64 << 20) == 1024


def test_many_chunks_of_a_sample_are_counted_in_little_time() -> None:
    crops = data.Crops(array((1024, 1024), (1, 1)), (512, 512), 20)
    found = data.Plan(crops, 4).describe()
    assert 512**2 < found.chunks <= 20 * 512**2
    long = data.Windows(array((300_000, 1), (1, 1)), 100_000)
    assert data.Plan(long, 4, window_nbytes=1 << 30).describe().chunks >= 300_000


@pytest.mark.parametrize("step", [1, 7, 40])
def test_long_windows_are_counted_as_short_ones(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = data.Windows(array((1000, 2), (6, 1)), 25, step=step)
    places = np.random.default_rng(step).permutation(windows.count)[: windows.count // 2]
    counted = windows._cost(places, (0, 0))
    monkeypatch.setattr("zarrow.data.windows._MOST_COUNTED", 0)
    assert windows._cost(places, (0, 0)) == counted
    crops = data.Crops(array((40, 40), (4, 8)), (9, 9), 12)
    counted = crops._cost(np.arange(12), (0, 0))
    monkeypatch.setattr("zarrow.data.crops._MOST_STEPS", 0)
    assert counted.chunks <= crops._cost(np.arange(12), (0, 0)).chunks <= 50


def test_a_rank_outside_the_world_is_refused() -> None:
    for rank in (-1, 2):
        with pytest.raises(ValueError, match=f"rank {rank} is not one of 2 ranks"):
            data.Plan(array((40, 6), (4, 6))).describe(rank, 2)
