"""Batches and sharded arrays of JAX, and samples for grain."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import zarrow
import zarrow.jax
from zarrow import data

VALUES = np.arange(150 * 8, dtype="f4").reshape(150, 8)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> zarrow.Group:
    group = zarrow.create_group(tmp_path_factory.mktemp("jax") / "data.zarr")
    group.create_array("x", data=VALUES, chunks=(10, 8), compressors={"id": "zstd"})
    group.create_array("y", data=np.arange(150), chunks=150)
    return group


def test_batches_are_arrays_of_jax_in_the_memory_of_the_loader(root: zarrow.Group) -> None:
    pieces: list[Any] = []

    def allocate(nbytes: int) -> Any:
        memory = np.empty(nbytes + 64, np.uint8)
        pieces.append(memory[-memory.ctypes.data % 64 :][:nbytes])
        return pieces[-1]

    loader = zarrow.jax.DataLoader(zarrow.jax.Plan(root, 16, window_nbytes=2000), numbers=True)
    loader._options.allocate = allocate
    kept = []
    for batch, numbers in loader:
        assert isinstance(batch["x"], jax.Array) and batch["y"].dtype == jax.numpy.arange(3).dtype
        address = batch["x"].unsafe_buffer_pointer()
        assert any(0 <= address - piece.ctypes.data < piece.nbytes for piece in pieces)
        kept.append((batch, numbers))
    for batch, numbers in kept:
        assert np.array_equal(batch["x"], VALUES[numbers]) and np.array_equal(batch["y"], numbers)
    assert sorted(np.concatenate([numbers for _, numbers in kept])) == list(range(150))


def test_fields_are_tuples_of_arrays_of_jax(root: zarrow.Group) -> None:
    mesh = jax.make_mesh((1,), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    for given in (None, sharding):
        loader = zarrow.jax.DataLoader(
            root, fields=["y", "x"], batch_size=16, last="pad", numbers=True, sharding=given
        )
        for batch, numbers in loader:
            y, x = jax.tree.map(np.asarray, batch)
            assert type(batch) is tuple and np.array_equal(x, VALUES[numbers]) and np.array_equal(y, numbers)
    text = zarrow.create_array({}, data=["a"] * 150)
    with pytest.raises(zarrow.ExchangeError, match=r"source 'z' has text.*type fields=\['x', 'y'\] without"):
        zarrow.jax.DataLoader({"x": root["x"], "z": text, "y": root["y"]})
    y, x = zarrow.jax.RandomAccess(root, fields=["y", "x"])[7]
    assert y == 7 and np.array_equal(x, VALUES[7])


def test_batches_that_are_not_aligned_are_copied(root: zarrow.Group) -> None:
    for batch, numbers in zarrow.jax.DataLoader(zarrow.jax.Plan(root, 7), numbers=True):
        assert np.array_equal(batch["x"], VALUES[numbers]) and np.array_equal(batch["y"], numbers)


def test_transforms_get_arrays_of_jax_and_states_resume(root: zarrow.Group) -> None:
    plan = zarrow.jax.Plan(root["x"], 16)
    double = jax.jit(lambda batch: batch * 2)
    whole = [np.asarray(batch) for batch in zarrow.jax.DataLoader(plan, transform=double)]
    loader = zarrow.jax.DataLoader(plan, transform=double)
    iterator = iter(loader)
    found = [np.asarray(next(iterator)) for _ in range(4)]
    resumed = zarrow.jax.DataLoader(plan, transform=double)
    resumed.load_state_dict(loader.state_dict())
    loader.close()
    found += [np.asarray(batch) for batch in resumed]
    assert all(map(np.array_equal, found, whole)) and len(found) == len(whole)
    assert loader.rank == 0 and loader.world == 1


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.array(["a", "b"], np.dtypes.StringDType()), "has text"),
        (np.ma.MaskedArray([1, 2], [True, False]), "may be missing"),
        (np.array(["2026-01-01"], "M8[D]"), "no type for datetime64"),
    ],
)
def test_types_that_jax_lacks_are_refused_before_anything_is_read(values: Any, text: str) -> None:
    options = {"missing": "optional"} if isinstance(values, np.ma.MaskedArray) else {}
    array = zarrow.create_array({}, data=values, **options)
    with pytest.raises(zarrow.ExchangeError, match=text):
        zarrow.jax.DataLoader(zarrow.jax.Plan(array))


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        (np.arange(4) + 2**33, False),
        (np.array([-(2**31), 2**31 - 1, 0, 1]), True),
        (np.array([2**32, 1, 2, 3], "u8"), False),
        (np.array([1e300, 1, 2, 3]), False),
        (np.array([np.inf, np.nan, -0.0, 0.1]), True),
        (np.array([1e300j, 1, 2, 3]), False),
    ],
)
def test_numbers_of_64_bits_are_narrowed_only_if_they_fit(values: Any, fits: bool) -> None:
    array = zarrow.create_array(zarrow.MemoryStore(), data=values)
    plan = zarrow.jax.Plan(array, batch_size=4, order="sequential", last="drop")
    mesh = jax.make_mesh((1,), ("b",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("b"))
    for read in (
        lambda: next(iter(zarrow.jax.DataLoader(plan))),
        lambda: next(iter(zarrow.jax.DataLoader(plan, sharding=sharding))),
        lambda: zarrow.jax.make_array(array, sharding),
    ):
        if fits:
            assert np.array_equal(read(), values.astype(read().dtype), equal_nan=True)
        else:
            with pytest.raises(zarrow.ExchangeError, match="does not fit"):
                read()


def test_arguments_that_do_not_fit_together_are_refused(root: zarrow.Group) -> None:
    plan = zarrow.jax.Plan(root["x"], 16)
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with pytest.raises(ValueError, match="pass rank and world together, found rank 0 and world None"):
        zarrow.jax.DataLoader(plan, rank=0)
    with pytest.raises(ValueError, match='pass last="drop" to the plan'):
        zarrow.jax.DataLoader(plan, sharding=sharding)
    with pytest.raises(ValueError, match='pass on_bad="fill"'):
        zarrow.jax.DataLoader(zarrow.jax.Plan(root["x"], last="drop"), sharding=sharding, on_bad="skip")


def run(program: str) -> None:
    head = """
        import numpy as np, random, warnings
        import jax, zarrow, zarrow.jax
        from collections import Counter
        from jax.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding

        reads = Counter()

        class Counting(dict):
            def __getitem__(self, key):
                reads[key] += key.startswith("c/")
                return super().__getitem__(key)

        assert len(jax.devices()) == 8
        mesh = jax.make_mesh((4, 2), ("x", "y"))
    """
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_shards_of_a_host_are_read_in_one_plan() -> None:
    """Each chunk is read once, although it has elements of several shards and replicas."""
    run("""
        values = np.arange(40 * 24, dtype="i4").reshape(40, 24)
        store = Counting()
        zarrow.create_array(store, data=values, chunks=(16, 10), compressors={"id": "zstd"})
        array = zarrow.open_array(store)
        for spec in (P("x", "y"), P("x"), P(None, "y"), P(("x", "y")), P()):
            reads.clear()
            made = zarrow.jax.make_array(array, NamedSharding(mesh, spec))
            assert made.sharding.spec == spec and len(made.addressable_shards) == 8
            assert np.array_equal(made, values)
            for shard in made.addressable_shards:
                assert np.array_equal(shard.data, values[shard.index])
            assert sorted(reads[key] for key in reads if key.startswith("c/")) == [1] * 9, reads
    """)


def test_sharded_selections_equal_those_of_numpy() -> None:
    run("""
        rng = random.Random(0)
        for number in range(60):
            shape = tuple(rng.randint(1, 12) * 8 for _ in range(rng.randint(1, 3)))
            dtype = rng.choice(("i1", "u2", "f4", "bool", "f8", "i8", ">f4"))
            values = (np.arange(np.prod(shape)) % 113).reshape(shape).astype(dtype)
            chunks = tuple(rng.randint(1, extent) for extent in shape)
            array = zarrow.create_array({}, data=values, chunks=chunks)
            selection, expected, left = [], values, 0
            for extent in shape:
                kind = rng.choice(("all", "slice", "step", "back", "list", "mask", "one"))
                item = {
                    "all": slice(None),
                    "slice": slice(extent // 8, extent),
                    "step": slice(None, None, 2),
                    "back": slice(None, None, -1),
                    "list": [rng.randrange(-extent, extent) for _ in range(8)],
                    "mask": np.arange(extent) % 8 < 4,
                    "one": rng.randrange(-extent, extent),
                }[kind]
                selection.append(item)
                expected = expected[(slice(None),) * left + (item,)]
                left += kind != "one"
            names = [name for name in ("x", "y")]
            spec = [None] * expected.ndim
            for axis, extent in enumerate(expected.shape):
                fit = [name for name in names if extent % mesh.shape[name] == 0]
                if fit and rng.random() < 0.8:
                    spec[axis] = rng.choice(fit)
                    names.remove(spec[axis])
            made = zarrow.jax.make_array(array, NamedSharding(mesh, P(*spec)), tuple(selection))
            assert made.dtype == jax.dtypes.canonicalize_dtype(values.dtype.newbyteorder("="))
            assert np.array_equal(made, expected), (shape, selection, spec)
        empty = zarrow.create_array({}, shape=(8, 0), dtype="f4", chunks=(2, 1))
        assert zarrow.jax.make_array(empty, NamedSharding(mesh, P("x"))).shape == (8, 0)
        scalar = zarrow.create_array({}, data=np.float32(4))
        assert zarrow.jax.make_array(scalar, NamedSharding(mesh, P())) == 4
        jax.config.update("jax_enable_x64", True)
        wide = zarrow.create_array({}, data=np.arange(8) << 40)
        assert np.array_equal(zarrow.jax.make_array(wide, NamedSharding(mesh, P("x"))), np.arange(8) << 40)
    """)


def test_batches_are_sharded() -> None:
    run("""
        values = np.arange(100 * 6, dtype="f4").reshape(100, 6)
        root = zarrow.create_group({})
        root.create_array("x", data=values, chunks=(7, 6))
        root.create_array("y", data=np.arange(100), chunks=9)
        plan = zarrow.jax.Plan(root, 16, last="pad")
        sharding = NamedSharding(mesh, P("x"))
        count = 0
        for batch, numbers in zarrow.jax.DataLoader(plan, sharding=sharding, numbers=True):
            assert batch["x"].sharding == sharding and batch["x"].shape == (16, 6)
            assert np.array_equal(batch["x"], values[numbers]) and np.array_equal(batch["y"], numbers)
            count += 1
        assert count == 7
        try:
            zarrow.jax.DataLoader(zarrow.jax.Plan(root, 6, last="drop"), sharding=sharding)
        except ValueError as error:
            assert "evenly divide" in str(error), error
        else:
            raise AssertionError("a batch of 6 samples has no 4 parts")
    """)


def test_unfit_selections_are_refused(root: zarrow.Group) -> None:
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for selection in ((0, 0, 0), (..., ...), 150, [[1, 2]], [0.5], np.ones(3, bool), "x"):
        with pytest.raises(zarrow.IndexingError, match=r"index|indices|axis"):
            zarrow.jax.make_array(root["x"], sharding, selection)
    with pytest.raises(zarrow.ExchangeError, match="has text or elements that may be missing"):
        zarrow.jax.make_array(
            zarrow.create_array({}, data=np.array(["a"], np.dtypes.StringDType())), sharding
        )


def test_a_damaged_chunk_of_a_shard_is_a_typed_error(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a", data=VALUES, chunks=(10, 8), compressors={"id": "zstd"})
    (tmp_path / "a" / "c" / "3" / "0").write_bytes(b"damaged")
    with pytest.raises(zarrow.CodecError, match=r"chunk \[3, 0\]"):
        zarrow.jax.make_array(array, jax.sharding.SingleDeviceSharding(jax.devices()[0]))


def test_samples_by_number_are_those_of_numpy(root: zarrow.Group) -> None:
    windows = data.Plan(data.Windows(root["x"], 3, step=2), 8)
    samples = data.RandomAccess(windows)
    assert len(samples) == 74 and np.array_equal(samples[-1], VALUES[146:149])
    assert np.array_equal(samples.batch([5, 0, 5]), np.stack([VALUES[10:13], VALUES[:3], VALUES[10:13]]))
    assert samples.batch([]).shape == (0, 3, 8) and samples.__getitems__([]) == []
    part = data.RandomAccess(data.Plan(root, 8).split(0.5, 0.5)[1])
    assert part[0]["y"] == 75 and np.array_equal(part[np.int64(3)]["x"], VALUES[78])
    corners = [(140, 0), (3, 1), (70, 0)]
    crops = data.RandomAccess(data.Plan(data.Crops(root["x"], (4, 2), corners=corners)))
    assert np.array_equal(crops[1], VALUES[3:7, 1:3]) and np.array_equal(crops[0], VALUES[140:144, :2])
    random = data.Plan(data.Crops(root["x"], (4, 2), 9))
    assert not np.array_equal(
        data.RandomAccess(random).batch(range(9)), data.RandomAccess(random, epoch=1).batch(range(9))
    )
    for wrong in (74, -75):
        with pytest.raises(IndexError, match=f"sample {wrong} is out of range for 74 samples"):
            samples[wrong]
    text = data.RandomAccess(data.Plan(zarrow.create_array({}, data=np.array(["a", "b"], "T"))))
    assert text[1] == "b" and text.batch([]).shape == (0,)
    copy = pickle.loads(pickle.dumps(part))
    assert repr(copy) == repr(part) and copy[1]["y"] == 76


def test_threads_share_samples(root: zarrow.Group) -> None:
    samples, wrong = data.RandomAccess(data.Plan(root, 8)), []

    def work(first: int) -> None:
        for number in range(first, 150, 4):
            sample = samples[number]
            if sample["y"] != number or not np.array_equal(sample["x"], VALUES[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_grain_takes_samples(root: zarrow.Group) -> None:
    grain: Any = pytest.importorskip("grain", reason="grain is not installed")
    samples = data.RandomAccess(data.Plan(root, 8))
    found = grain.MapDataset.source(samples).shuffle(seed=1).batch(10)
    assert len(found) == 15
    numbers = np.concatenate([batch["y"] for batch in found])
    assert sorted(numbers) == list(range(150))
    assert np.array_equal(np.concatenate([batch["x"] for batch in found]), VALUES[numbers])
    # It resumes.
    batches = iter(found.to_iter_dataset())
    for _ in range(4):
        next(batches)
    state, rest = batches.get_state(), [batch["y"].tolist() for batch in batches]
    resumed = iter(found.to_iter_dataset())
    resumed.set_state(state)
    assert [batch["y"].tolist() for batch in resumed] == rest == numbers.reshape(15, 10)[4:].tolist()
