"""`zarrow.torch`: loaders in this process and in workers, and data sets for PyTorch's loaders."""

from __future__ import annotations

import gc
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data

torch = pytest.importorskip("torch")
import zarrow.torch  # noqa: E402

pytestmark = pytest.mark.torch

VALUES = np.arange(150 * 6, dtype="f4").reshape(150, 6)
CONTEXTS = ["fork", "spawn", "forkserver"]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> data.Plan:
    root = zarrow.create_group(tmp_path_factory.mktemp("torch") / "data.zarr")
    root.create_array("x", data=VALUES, chunks=(8, 6))
    root.create_array("y", data=np.arange(150), chunks=150)
    return data.Plan(root, 16, window_nbytes=1000)


def doubled(batch: Any) -> Any:
    return {**batch, "x": batch["x"] * 2}


def numbers_of(batches: Any) -> list[list[int]]:
    return [batch["y"].tolist() for batch in batches]


def test_batches_are_tensors_of_the_same_memory(plan: data.Plan) -> None:
    loader = zarrow.torch.DataLoader(plan, numbers=True, memory_nbytes=1)
    kept = []
    for batch, numbers in loader:
        assert batch["x"].dtype == torch.float32 and batch["y"].dtype == torch.int64
        assert np.array_equal(batch["x"].numpy(), VALUES[numbers])
        kept.append((batch["x"][1:].reshape(-1), VALUES[numbers][1:].reshape(-1)))
        del batch
    gc.collect()
    assert all(np.array_equal(view.numpy(), expected) for view, expected in kept)
    assert numbers_of(zarrow.torch.DataLoader(plan)) == numbers_of(data.Loader(plan))


def test_memory_of_dropped_tensors_is_used_again(plan: data.Plan) -> None:
    addresses = [batch["x"].data_ptr() // 4096 for batch in zarrow.torch.DataLoader(plan, memory_nbytes=1)]
    assert len(set(addresses)) < len(addresses)


@pytest.mark.parametrize("context", CONTEXTS)
def test_workers_yield_the_same_batches(plan: data.Plan, context: str) -> None:
    expected = data.Loader(plan)
    loader = zarrow.torch.DataLoader(
        plan, num_workers=2, multiprocessing_context=context, transform=doubled, numbers=True
    )
    # Starting a process of the other kinds takes long.
    epochs = 2 if context == "fork" else 1
    for _ in range(epochs):
        whole = numbers_of(expected)
        seen = []
        for batch, numbers in loader:
            assert np.array_equal(batch["x"].numpy(), 2 * VALUES[np.asarray(numbers)])
            seen.append(batch["y"].tolist())
        assert seen == whole
    assert loader.state_dict()["epoch"] == epochs


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 1)])
def test_states_do_not_depend_on_workers(plan: data.Plan, before: int, after: int) -> None:
    whole = numbers_of(data.Loader(plan))
    loader = zarrow.torch.DataLoader(
        plan, num_workers=before, multiprocessing_context="fork" if before else None
    )
    iterator = iter(loader)
    assert numbers_of(next(iterator) for _ in range(3)) == whole[:3]
    state = loader.state_dict()
    loader.close()
    del iterator
    resumed = zarrow.torch.DataLoader(
        plan, num_workers=after, multiprocessing_context="fork" if after else None
    )
    resumed.load_state_dict(state)
    assert numbers_of(resumed) == whole[3:]
    assert resumed.state_dict()["epoch"] == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_pytorchs_loader_of_an_iterable_dataset(plan: data.Plan, workers: int) -> None:
    dataset = zarrow.torch.IterableDataset(plan)
    dataset.set_epoch(4)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    assert len(loader) == 10
    expected = data.Loader(plan)
    expected.set_epoch(4)
    assert numbers_of(loader) == numbers_of(expected)
    assert len(pickle.loads(pickle.dumps(dataset))) == 10


@pytest.mark.parametrize("workers", [0, 2])
def test_pytorchs_loader_of_a_dataset(plan: data.Plan, workers: int) -> None:
    dataset = zarrow.torch.Dataset(plan.split(0.2, 0.8)[1])
    assert len(dataset) == 120 and dataset[-1]["y"] == 149 and dataset[0]["x"].shape == (6,)
    for collate in (zarrow.torch.collate, None):
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=9, shuffle=True, num_workers=workers, collate_fn=collate
        )
        seen = []
        for batch in loader:
            assert np.array_equal(batch["x"].numpy(), VALUES[batch["y"].numpy()])
            seen += batch["y"].tolist()
        assert sorted(seen) == list(range(30, 150))
    samples = dataset.__getitems__([3, 1])
    assert zarrow.torch.collate(samples) is samples.batch
    assert zarrow.torch.collate([1, 2]).tolist() == [1, 2]
    with pytest.raises(IndexError, match="sample 120 is out of range"):
        dataset[120]


def test_crops_in_three_lines(tmp_path: Path) -> None:
    volume = zarrow.create_array(tmp_path / "volume.zarr", data=np.ones((40, 40), "u1"), chunks=(16, 16))
    crops = zarrow.torch.Crops(volume, (8, 8), 100)
    batches = list(zarrow.torch.DataLoader(zarrow.torch.Plan(crops, 16)))
    assert [tuple(batch.shape) for batch in batches] == [(16, 8, 8)] * 6 + [(4, 8, 8)]


def test_errors_of_workers_arrive(plan: data.Plan) -> None:
    loader = zarrow.torch.DataLoader(plan, num_workers=2, multiprocessing_context="fork", transform=failing)
    with pytest.raises(KeyError, match="in a worker"):
        list(loader)


def failing(batch: Any) -> Any:
    raise KeyError("in a worker")


def test_ranks_of_torch_distributed(plan: data.Plan, tmp_path: Path) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1
    )
    try:
        assert zarrow.torch.DataLoader(plan).world == 1
        assert zarrow.torch.DataLoader(plan, rank=1, world=3).rank == 1
    finally:
        torch.distributed.destroy_process_group()
    with pytest.raises(ValueError, match="rank and world together"):
        zarrow.torch.DataLoader(plan, rank=1)


@pytest.mark.parametrize("drops", [False, True])
def test_ranks_have_the_counts_of_distributed_sampler(drops: bool) -> None:
    """And the same samples repeat or are left out. Ranks of PyTorch take every n-th sample, ours blocks."""
    for total, world in itertools.product((9, 50), (1, 2, 3, 7, 8)):
        values = np.arange(total)
        array = zarrow.create_array({}, data=values, chunks=4)
        last: Any = "drop_ranks" if drops else "pad_ranks"
        plan = data.Plan(array, 3, order="sequential", last=last)
        found, wanted = [], []
        for rank in range(world):
            loader = zarrow.torch.DataLoader(plan, rank=rank, world=world)
            found.append([batch.tolist() for batch in loader])
            sampler = torch.utils.data.DistributedSampler(values, world, rank, shuffle=False, drop_last=drops)
            wanted.append(list(torch.utils.data.BatchSampler(sampler, 3, drop_last=False)))
            assert list(map(len, found[-1])) == list(map(len, wanted[-1])) and len(loader) == len(wanted[-1])
        samples, others = (sorted(itertools.chain(*itertools.chain(*ranks))) for ranks in (found, wanted))
        assert samples == others
