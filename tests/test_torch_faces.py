"""`zarrow.torch` under programs that drive it: persistent workers, torchdata's and Lightning's loops."""

from __future__ import annotations

import importlib.util
import itertools
import multiprocessing
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import zarrow
from zarrow import data

torch = pytest.importorskip("torch")
import zarrow.torch  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")]

VALUES = np.arange(150 * 6, dtype="f4").reshape(150, 6)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> zarrow.Group:
    root = zarrow.create_group(tmp_path_factory.mktemp("torch") / "data.zarr")
    root.create_array("x", data=VALUES, chunks=(8, 6))
    root.create_array("y", data=np.arange(150), chunks=150)
    return root


@pytest.fixture(scope="module")
def plan(root: zarrow.Group) -> data.Plan:
    return data.Plan(root, 16, window_nbytes=1000)


def numbers_of(batches: Any) -> list[list[int]]:
    return [batch["y"].tolist() for batch in batches]


def epoch(plan: data.Plan, number: int) -> list[list[int]]:
    loader = data.Loader(plan)
    loader.set_epoch(number)
    return numbers_of(loader)


def test_persistent_workers_follow_the_epoch(plan: data.Plan) -> None:
    dataset = pickle.loads(pickle.dumps(zarrow.torch.IterableDataset(plan)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    for number in (3, 3, 7):
        dataset.set_epoch(number)
        assert numbers_of(loader) == epoch(plan, number)
    next(iter(loader))
    assert numbers_of(loader) == epoch(plan, 9)


@pytest.mark.parametrize("batches", [0, 1, None])
def test_spawned_workers_begin_where_forked_ones_do(plan: data.Plan, batches: int | None) -> None:
    """PyTorch pickles the data set for each spawned worker, and anew for each epoch."""
    dataset = zarrow.torch.IterableDataset(plan)
    for _ in itertools.islice(dataset, batches):
        pass
    expected = epoch(plan, 0 if batches == 0 else 1)
    for _ in range(2):
        assert numbers_of(pickle.loads(pickle.dumps(dataset))) == expected
    assert numbers_of(dataset) == expected


def test_persistent_workers_draw_the_crops_of_the_epoch(root: zarrow.Group) -> None:
    dataset = zarrow.torch.Dataset(data.Plan(data.Crops(root["x"], (2, 3), 40)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, num_workers=2, persistent_workers=True)
    for number in (0, 5):
        dataset.set_epoch(number)
        assert torch.equal(torch.cat(list(loader)), torch.stack(list(dataset)))
    before = torch.cat(list(loader))
    dataset.set_epoch(6)
    assert not torch.equal(torch.cat(list(loader)), before)


def test_an_earlier_iterator_of_workers_changes_no_place(plan: data.Plan) -> None:
    loader = zarrow.torch.DataLoader(plan, num_workers=2, multiprocessing_context="fork")
    whole = epoch(plan, 0)
    earlier = iter(loader)
    assert numbers_of([next(earlier), next(earlier)]) == whole[:2]
    state = loader.state_dict()
    next(earlier)
    loader.load_state_dict(state)
    assert next(earlier, None) is None
    assert loader.state_dict() == state
    assert numbers_of(loader) == whole[2:]


def test_closing_a_loader_ends_its_workers(plan: data.Plan) -> None:
    before = set(multiprocessing.active_children())
    with zarrow.torch.DataLoader(plan, num_workers=2, multiprocessing_context="fork") as loader:
        batches = iter(loader)
        next(batches)
        workers = set(multiprocessing.active_children()) - before
        assert len(workers) == 2
    assert not any(worker.is_alive() for worker in workers)
    assert next(batches, None) is None


@pytest.mark.parametrize("workers", [0, 1])
def test_types_of_batches_do_not_depend_on_workers(plan: data.Plan, workers: int) -> None:
    loader = zarrow.torch.DataLoader(plan, numbers=True, num_workers=workers, transform=as_pair)
    found = next(iter(loader))
    assert type(found) is tuple and type(found[0]) is Pair and type(found[1]) is np.ndarray


class Pair(NamedTuple):
    """Tensors as many transforms return them."""

    x: Any
    y: Any


def as_pair(batch: Any) -> Pair:
    return Pair(batch["x"], batch["y"])


def test_samples_are_rows_of_all_that_a_transform_returns(plan: data.Plan) -> None:
    pairs = zarrow.torch.Dataset(plan, transform=as_pair)
    sample = pairs[149]
    assert type(sample) is Pair and sample.x.tolist() == VALUES[149].tolist() and sample.y == 149
    nested = zarrow.torch.Dataset(plan, transform=lambda batch: [batch["y"], {"x": (batch["x"],)}])
    assert nested[3][0] == 3 and nested[3][1]["x"][0].tolist() == VALUES[3].tolist()
    for dataset, key in ((pairs, 1), (nested, 0)):
        loader = torch.utils.data.DataLoader(dataset, batch_size=50)
        assert [number for batch in loader for number in batch[key].tolist()] == list(range(150))
    for transform in (lambda batch: batch["x"].sum(), lambda batch: batch["x"][:1], lambda batch: None):
        with pytest.raises(ValueError, match="must return a row for each"):
            zarrow.torch.Dataset(plan, transform=transform).__getitems__([3, 1])
    with pytest.raises(TypeError):
        pairs[1.5]  # type: ignore[index]


@pytest.mark.parametrize("dtype", ["bool", "uint16", "uint32", "complex64", ml_dtypes.bfloat16])
def test_data_types_of_batches(tmp_path: Path, dtype: Any) -> None:
    values = (np.arange(24).reshape(12, 2) % 5).astype(dtype)
    plan = data.Plan(zarrow.create_array(tmp_path / "a.zarr", data=values, chunks=(5, 2)), 4)
    rows = torch.cat(list(torch.utils.data.DataLoader(zarrow.torch.Dataset(plan), batch_size=5)))
    (batch, numbers), *_ = zarrow.torch.DataLoader(plan, numbers=True)
    assert rows.dtype == batch.dtype and str(rows.dtype).endswith(np.dtype(dtype).name)
    assert torch.equal(batch, rows[torch.as_tensor(numbers)])
    batch.zero_()


def test_data_types_without_tensors_are_refused_at_once(tmp_path: Path) -> None:
    days = np.arange(12).astype("M8[D]")
    plan = data.Plan(zarrow.create_array(tmp_path / "days.zarr", data=days, chunks=5), 4)
    for kind in (zarrow.torch.DataLoader, zarrow.torch.IterableDataset, zarrow.torch.Dataset):
        with pytest.raises(zarrow.errors.ExchangeError, match="datetime64"):
            kind(plan)
    with pytest.raises(ValueError, match="num_workers must be at least 0, found -1"):
        zarrow.torch.DataLoader(plan, num_workers=-1)


def test_samples_by_number_of_given_crops(root: zarrow.Group) -> None:
    corners = [(140, 0), (0, 3), (70, 2), (9, 1)]
    dataset = zarrow.torch.Dataset(data.Plan(data.Crops(root["x"], (2, 3), corners=corners), 2))
    assert [sample[0, 0].item() for sample in dataset] == [VALUES[corner].item() for corner in corners]


def test_states_of_a_dataset_resume_in_workers(plan: data.Plan) -> None:
    dataset = zarrow.torch.IterableDataset(plan)
    dataset.set_epoch(2)
    batches = iter(dataset)
    whole = epoch(plan, 2)
    assert numbers_of(next(batches) for _ in range(3)) == whole[:3]
    state = dataset.state_dict()
    for workers in (0, 2):
        resumed = zarrow.torch.IterableDataset(plan)
        resumed.load_state_dict(state)
        assert resumed.state_dict() == state
        loader = torch.utils.data.DataLoader(resumed, batch_size=None, num_workers=workers)
        assert numbers_of(loader) == whole[3:]
    resumed.load_state_dict({**state, "turn": [0, 2]})
    with pytest.raises(ValueError, match="worker 0 of 2: pass as many workers"):
        next(iter(resumed))


@pytest.mark.parametrize("seed", range(30))
def test_states_of_data_sets_resume_on_other_numbers_of_ranks(root: zarrow.Group, seed: int) -> None:
    """Each sample of the epoch comes once, with other batch sizes, too."""
    random = np.random.default_rng(seed)
    order: Any = random.choice(["sequential", "shuffle", "window"])
    seen: list[int] = []
    state: Any = None
    for is_last in (False, False, True):
        world, batch_size = int(random.integers(1, 5)), int(random.integers(2, 12))
        part = data.Plan(root, batch_size, window_nbytes=1000, order=order)
        sets = [zarrow.torch.IterableDataset(part, rank=rank, world=world) for rank in range(world)]
        for dataset in sets:
            if state is not None:
                dataset.load_state_dict(state)
        steps = 1000 if is_last else int(random.integers(1, 4))
        for dataset in sets:
            for batch in itertools.islice(iter(dataset), steps):
                seen += batch["y"].tolist()
        states = [pickle.loads(pickle.dumps(dataset.state_dict())) for dataset in sets]
        state = states if random.random() < 0.5 else states[0]
    assert sorted(seen) == list(range(150))


def test_statistics_of_workers_claim_no_stage(plan: data.Plan) -> None:
    loader = zarrow.torch.DataLoader(plan, num_workers=2, multiprocessing_context="fork")
    count = len(list(loader))
    assert str(loader.stats()) == f"{count} batches of worker processes, which are only counted"
    assert loader.stats().limiting_stage == "unknown"


def test_states_that_fit_no_data_set_are_refused(plan: data.Plan, root: zarrow.Group) -> None:
    dataset = zarrow.torch.IterableDataset(plan)
    for damaged in ({}, {"begin": {}}, [], [{}], {**dataset.state_dict(), "turn": [0]}):
        with pytest.raises(ValueError, match="state"):
            dataset.load_state_dict(damaged)  # type: ignore[arg-type]
    for odd in ("state", 5):
        with pytest.raises(TypeError, match="a state is the dict"):
            dataset.load_state_dict(odd)  # type: ignore[arg-type]
    of_worker = {**dataset.state_dict(), "turn": [1, 2]}
    with pytest.raises(ValueError, match=r"one of 2 workers, with another batch_size"):
        zarrow.torch.IterableDataset(data.Plan(root, 8, window_nbytes=1000)).load_state_dict(of_worker)
    with pytest.raises(ValueError, match=r"one of 2 workers, with another world"):
        zarrow.torch.IterableDataset(plan, rank=0, world=2).load_state_dict(of_worker)
    # The state of the loader of PyTorch.
    loader = zarrow.torch.DataLoader(plan)
    assert numbers_of(itertools.islice(loader, 2)) == epoch(plan, 0)[:2]
    dataset.load_state_dict(loader.state_dict())
    assert numbers_of(dataset) == epoch(plan, 0)[2:]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("taken", [1, 5, 9, 10])
def test_torchdatas_loader_resumes_exactly(plan: data.Plan, workers: int, taken: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def loader(number: int) -> Any:
        dataset = zarrow.torch.IterableDataset(plan)
        dataset.set_epoch(number)
        context = "fork" if workers else None
        return stateful(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)

    whole = epoch(plan, 4)
    first = loader(4)
    batches = iter(first)
    assert numbers_of(next(batches) for _ in range(taken)) == whole[:taken]
    state = pickle.loads(pickle.dumps(first.state_dict()))
    del batches
    resumed = loader(0)
    resumed.load_state_dict(state)
    assert numbers_of(resumed) == whole[taken:]
    if not workers:
        assert numbers_of(resumed) == epoch(plan, 5)
    resumed.dataset.set_epoch(8)
    assert numbers_of(resumed) == epoch(plan, 8)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iteration_without_a_batch_loses_nothing(plan: data.Plan, workers: int) -> None:
    loader = zarrow.torch.DataLoader(plan, num_workers=workers, multiprocessing_context="fork")
    iter(loader), iter(loader)
    assert numbers_of(loader) == epoch(plan, 0)
    loader.load_state_dict({**loader.state_dict(), "step": 4})
    iter(loader), iter(loader)
    assert numbers_of(loader) == epoch(plan, 1)[4:]


def test_a_resumed_data_set_begins_twice_without_a_batch(plan: data.Plan) -> None:
    dataset = zarrow.torch.IterableDataset(plan)
    batches = iter(dataset)
    assert numbers_of(next(batches) for _ in range(3)) == epoch(plan, 0)[:3]
    state = dataset.state_dict()
    dataset.load_state_dict(state)
    iter(dataset), iter(dataset)
    assert dataset.state_dict() == state
    assert numbers_of(dataset) == epoch(plan, 0)[3:]
    assert numbers_of(dataset) == epoch(plan, 1)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_epochs_follow_each_other_in_workers_without_a_turn(root: zarrow.Group) -> None:
    plan = data.Plan(root, 80)
    loader = torch.utils.data.DataLoader(
        zarrow.torch.IterableDataset(plan),
        batch_size=None,
        num_workers=3,
        persistent_workers=True,
        multiprocessing_context="fork",
    )
    assert len(loader) == 2
    for number in range(3):
        assert numbers_of(loader) == epoch(plan, number)


@pytest.mark.filterwarnings("ignore")
def test_lightning_trains_and_resumes(plan: data.Plan, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning.pytorch")
    seen: list[list[int]] = []

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        """A model that records its samples."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            seen.append(batch["y"].tolist())
            return self.layer(batch["x"]).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-9)

    def fit(steps: int, path: Path | None = None) -> Any:
        trainer = lightning.Trainer(
            max_steps=steps,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(Model(), zarrow.torch.DataLoader(plan), ckpt_path=path)
        return trainer

    fit(13).save_checkpoint(tmp_path / "place.ckpt")
    assert seen == epoch(plan, 0) + epoch(plan, 1)[:3]
    seen.clear()
    fit(20, tmp_path / "place.ckpt")
    assert seen == epoch(plan, 1)[3:]


def test_the_training_program_lowers_its_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parent.parent / "examples" / "train.py"
    specification = importlib.util.spec_from_file_location("train", path)
    assert specification is not None and specification.loader is not None
    program = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(program)
    month, row, column = np.ogrid[:12, :96, :96]
    maps = (60 + 30 * np.sin(row / 9 + column / 15 + month / 2)).astype("u1")
    losses = program.train(zarrow.create_array(tmp_path / "maps.zarr", data=maps, chunks=(12, 32, 32)), 2, 64)
    assert losses[1] < losses[0]
    assert "0: loss" in (printed := capsys.readouterr().out) and "stalls" in printed
