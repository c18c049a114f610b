"""`zarrow.torch` with several arrays by name: tuples of tensors, in this process and in workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data

torch = pytest.importorskip("torch")
import zarrow.torch  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")]

COUNT = 70
X = np.arange(COUNT * 6, dtype="f4").reshape(COUNT, 6)
LABELS = np.arange(COUNT)
FIELDS = ["x", "label", "name"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("fields") / "train.zarr"
    root = zarrow.create_group(path)
    root.create_array("x", data=X, chunks=(8, 6), shards=(16, 6))
    root.create_array("label", data=LABELS, chunks=10)
    root.create_array("name", data=[f"item {number}" for number in LABELS], chunks=9)
    root.create_array("count", data=np.ma.MaskedArray(LABELS, LABELS % 3 == 0), missing="optional")
    return path


def check(batches: Any) -> list[list[int]]:
    """Compare batches with the arrays, and return their labels."""
    found = []
    for x, labels, names in batches:
        assert torch.equal(x, torch.from_numpy(X[labels.numpy()]))
        assert list(names) == [f"item {number}" for number in labels.tolist()]
        found.append(labels.tolist())
    return found


def halved(batch: Any) -> Any:
    x, labels, names = batch
    return x / 2, labels, names


@pytest.mark.parametrize("context", ["", "fork", "spawn"])
def test_loaders_yield_the_same_tuples_with_and_without_workers(path: Path, context: str) -> None:
    options: Any = {"num_workers": 2, "multiprocessing_context": context} if context else {}
    loader = zarrow.torch.DataLoader(path, fields=FIELDS, batch_size=16, **options)
    expected = data.Loader(path, fields=FIELDS, batch_size=16)
    assert check(loader) == [labels.tolist() for _, labels, _ in expected]
    assert type(next(iter(loader))) is tuple and loader.stats().batches == 1


def test_states_resume_with_workers(path: Path) -> None:
    whole = check(zarrow.torch.DataLoader(path, fields=FIELDS, batch_size=16))
    loader = zarrow.torch.DataLoader(path, fields=FIELDS, batch_size=16, num_workers=2)
    batches = iter(loader)
    next(batches)
    resumed = zarrow.torch.DataLoader(path, fields=FIELDS, batch_size=16)
    resumed.load_state_dict(loader.state_dict())
    loader.close()
    assert check(resumed) == whole[1:]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("pin_memory", [False, True])
@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_data_sets_unpack_in_loaders_of_pytorch(path: Path, workers: int, pin_memory: bool) -> None:
    options: Any = {"num_workers": workers, "pin_memory": pin_memory}
    dataset = zarrow.torch.Dataset(path, fields=FIELDS)
    x, label, name = dataset[5]
    assert x.shape == (6,) and (int(label), name) == (5, "item 5")
    for collate in (None, zarrow.torch.collate):
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=16, shuffle=True, collate_fn=collate, **options
        )
        assert sorted(label for labels in check(loader) for label in labels) == list(range(COUNT))
    batches = zarrow.torch.IterableDataset(path, fields=FIELDS, batch_size=16, last="drop")
    seen = check(torch.utils.data.DataLoader(batches, batch_size=None, **options))
    assert [len(labels) for labels in seen] == [16] * 4


@pytest.mark.parametrize("workers", [0, 2])
def test_transforms_and_numbers_of_tuples(path: Path, workers: int) -> None:
    loader = zarrow.torch.DataLoader(
        path, fields=FIELDS, batch_size=16, transform=halved, numbers=True, num_workers=workers
    )
    for (x, labels, _), numbers in loader:
        assert labels.tolist() == numbers.tolist()
        assert torch.equal(x * 2, torch.from_numpy(X[numbers]))
    dataset = zarrow.torch.Dataset(path, fields=FIELDS, transform=halved)
    assert torch.equal(dataset[3][0], torch.from_numpy(X[3] / 2))


def test_masked_fields_are_pairs_in_the_tuple(path: Path) -> None:
    loader = zarrow.torch.DataLoader(path, fields=("count", "label"), batch_size=COUNT)
    ((counts, labels),) = loader
    assert isinstance(counts, zarrow.torch.Masked)
    assert torch.equal(counts.mask, labels % 3 == 0)
    dataset = zarrow.torch.Dataset(path, fields=("count", "label"))
    assert [bool(counts.mask) for counts, _ in (dataset[0], dataset[1])] == [True, False]


def test_crops_of_a_path(path: Path) -> None:
    crops = [zarrow.torch.Crops(path / "x", (4, 6), 20), zarrow.torch.Crops(path / "x", (4, 6), 20)]
    for first, second in zarrow.torch.DataLoader(crops, batch_size=8):
        assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Dataset(path, x='x', y='label')", "type fields={'x': 'x', 'y': 'label'}"),
        ("Dataset(path, fields=['x'], batch_size=8)", r"DataLoader\(dataset, batch_size=8\)"),
        ("IterableDataset(path, num_workers=2)", r"DataLoader\(dataset, batch_size=None, num_workers=2\)"),
        ("DataLoader(path, fields=['x'], shuffle=True)", 'type order="shuffle"'),
        ("DataLoader(zarrow.torch.Dataset(path, fields=['x']))", r"torch\.utils\.data\.DataLoader\(dataset"),
        ("TensorDataset(path)", r"zarrow\.torch\.Dataset\(\[array, other\]\)"),
    ],
)
def test_habits_of_pytorch_name_what_to_type(path: Path, call: str, message: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=message):
        eval(f"zarrow.torch.{call}", {"zarrow": zarrow, "path": path})


def test_dicts_of_fields_become_tensordicts(path: Path) -> None:
    with pytest.raises(TypeError, match=r"a batch of tuple: pass a dict of sources, or fields=\{"):
        next(iter(zarrow.torch.DataLoader(path, fields=FIELDS, transform=zarrow.torch.tensordict)))
    pytest.importorskip("tensordict")
    loader = zarrow.torch.DataLoader(path, fields={"a": "x", "b": "label"}, transform=zarrow.torch.tensordict)
    assert set(next(iter(loader)).keys()) == {"a", "b"}
