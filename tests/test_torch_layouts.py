"""Batches of masked elements, text and sparse rows for PyTorch, beside those for NumPy; `TensorDict`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anndata
import ml_dtypes
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import zarrow
from zarrow import data

torch = pytest.importorskip("torch")
import zarrow.torch  # noqa: E402
from zarrow.torch.tensors import tensors  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta"),
    # PyTorch rebuilds the sparse tensors of workers without its checks.
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]

COUNT = 61


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> data.Plan:
    """Return a plan of sources of every layout."""
    folder = tmp_path_factory.mktemp("layouts")
    numbers = np.arange(COUNT)
    words = [f"wörd{number}" for number in numbers]
    is_missing = numbers % 3 == 0
    values: dict[str, Any] = {
        "numbers": numbers,
        "masked": np.ma.MaskedArray(np.arange(COUNT * 4.0).reshape(COUNT, 4), np.arange(COUNT * 4) % 5 == 0),
        "text": np.array(words, np.dtypes.StringDType()),
        "pairs": np.array([[word, "x"] for word in words], np.dtypes.StringDType()),
        "bytes": np.array([word.encode() for word in words], object),
        "codes": np.array([word[4:] for word in words], "U3"),
        "optional": np.where(is_missing, None, np.array(words, object)),
        "short": np.ma.MaskedArray(np.array([word[4:] for word in words], "S3"), is_missing),
    }
    root = zarrow.create_group(folder / "arrays.zarr")
    for name, each in values.items():
        missing = {"missing": "optional"} if name in ("masked", "optional", "short") else {}
        root.create_array(name, data=each, chunks=(7, *each.shape[1:]), **missing)
    rng = np.random.default_rng(0)
    x = sp.random(COUNT, 9, 0.2, format="csr", dtype="f4", rng=rng)
    counts = pd.DataFrame({"count": pd.array(np.where(is_missing, None, numbers), "Int32")}, index=words)
    zarrow.save(folder / "cells.zarr", anndata.AnnData(x, obs=counts))
    cells = zarrow.open_group(folder / "cells.zarr")
    sources = {**dict(root.arrays()), "x": cells["X"], "count": cells["obs/count"]}
    return data.Plan(sources, 8, window_nbytes=5000)


def plain(member: Any) -> Any:
    """Return lists, with None for a missing element."""
    if isinstance(member, dict):
        return {name: plain(each) for name, each in member.items()}
    if isinstance(member, zarrow.torch.Masked):
        return np.ma.MaskedArray(member.values.numpy(), member.mask.numpy()).tolist()
    if isinstance(member, torch.Tensor):
        return member.to_dense().tolist()
    if isinstance(member, list):
        return member
    return (member.toarray() if sp.issparse(member) else member).tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_every_layout_equal_those_of_numpy(plan: data.Plan, workers: int) -> None:
    expected = [plain(batch) for batch in data.Loader(plan)]
    context = "fork" if workers else None
    loader = zarrow.torch.DataLoader(plan, num_workers=workers, multiprocessing_context=context)
    batches = list(loader)
    assert [plain(batch) for batch in batches] == expected
    assert batches[0]["x"].layout is torch.sparse_csr and batches[0]["x"].dtype is torch.float32
    assert type(batches[0]["masked"]) is zarrow.torch.Masked and batches[0]["masked"].mask.dtype is torch.bool
    assert all(
        type(batches[0][name]) is list for name in ("text", "pairs", "bytes", "codes", "optional", "short")
    )
    stock = torch.utils.data.DataLoader(
        zarrow.torch.IterableDataset(plan),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=context,
    )
    assert [plain(batch) for batch in stock] == expected


def test_samples_of_every_layout_are_rows_of_batches(plan: data.Plan) -> None:
    dataset = zarrow.torch.Dataset(plan)
    whole = plain(tensors(data.RandomAccess(plan).batch(range(COUNT))))
    loader = torch.utils.data.DataLoader(dataset, batch_size=COUNT, collate_fn=zarrow.torch.collate)
    assert plain(next(iter(loader))) == whole
    samples = dataset.__getitems__([60, 0, 5])
    for sample, number in zip(samples, (60, 0, 5), strict=True):
        for name, rows in whole.items():
            member = sample[name]
            found = member if isinstance(member, str | bytes | None) else plain(member)
            assert found == rows[number], name


def test_tensors_share_the_memory_of_masked_and_sparse_batches() -> None:
    masked = np.ma.MaskedArray(np.arange(6.0), np.arange(6) % 2 == 0)
    found = tensors(masked)
    assert found.values.data_ptr() == masked.data.ctypes.data
    assert found.mask.data_ptr() == masked.mask.ctypes.data  # type: ignore[union-attr]
    matrix = sp.random(5, 7, 0.5, format="csr", rng=np.random.default_rng(0))
    rows = tensors(matrix)
    shared = rows.crow_indices(), rows.col_indices(), rows.values()
    pieces = matrix.indptr, matrix.indices, matrix.data
    assert [each.data_ptr() for each in shared] == [each.ctypes.data for each in pieces]


def test_rows_with_unsorted_and_repeated_columns_are_put_in_order() -> None:
    """PyTorch's kernels trust that columns of a row rise."""
    pointers, columns = np.array([0, 3, 3, 5]), np.array([4, 0, 4, 2, 1])
    group = zarrow.create_group({}, attributes={"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
    group.attrs["shape"] = [3, 6]
    for name, values in {"data": np.arange(1.0, 6), "indices": columns, "indptr": pointers}.items():
        group.create_array(name, data=values)
    (rows,) = zarrow.torch.DataLoader(data.Plan(group, 3, order="sequential"))
    torch.sparse_csr_tensor(*(rows.crow_indices(), rows.col_indices(), rows.values()), check_invariants=True)
    assert rows.to_dense().tolist() == [[2, 0, 0, 0, 4, 0], [0] * 6, [0, 5, 4, 0, 0, 0]]


@pytest.mark.parametrize(
    "values",
    [
        np.ma.MaskedArray(np.arange(6).astype("M8[s]"), [True] * 6),
        np.arange(6).astype("m8[s]"),
        np.zeros(6, [("a", "i4"), ("b", "f8")]),
        np.zeros(6, ml_dtypes.float8_e3m4),
    ],
    ids=["masked dates", "durations", "structures", "float8"],
)
def test_sources_without_tensors_are_refused_by_name(values: Any) -> None:
    missing: dict[str, Any] = {"missing": "optional"} if np.ma.isMaskedArray(values) else {}
    root = zarrow.create_group({})
    root.create_array("fine", data=np.arange(6))
    root.create_array("when", data=values, **missing)
    for kind in (zarrow.torch.DataLoader, zarrow.torch.IterableDataset, zarrow.torch.Dataset):
        with pytest.raises(zarrow.ExchangeError, match=r"'when' has .* PyTorch lacks: type zarrow") as error:
            kind(data.Plan(root, 2))
        assert error.value.kind == "no_such_type"


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_as_tensordicts(plan: data.Plan, workers: int) -> None:
    library = pytest.importorskip("tensordict")
    expected = [plain(batch) for batch in data.Loader(plan)]
    loader = zarrow.torch.DataLoader(
        plan,
        transform=zarrow.torch.tensordict,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
    for batch, rows in zip(loader, expected, strict=True):
        assert isinstance(batch, library.TensorDict) and batch.batch_size == (len(rows["numbers"]),)
        for name in ("numbers", "x"):
            assert batch[name].to_dense().tolist() == rows[name]
        for name in ("masked", "count"):
            found = zarrow.torch.Masked(batch[name, "values"], batch[name, "mask"])
            assert plain(found) == rows[name]
        for name in ("text", "pairs", "bytes", "optional", "short"):
            assert batch[name] == rows[name]
    assert batch[0]["text"] == rows["text"][0] and batch[0]["numbers"] == rows["numbers"][0]


def test_tensordicts_share_the_memory_of_batches(plan: data.Plan) -> None:
    pytest.importorskip("tensordict")
    batch = next(iter(zarrow.torch.DataLoader(plan)))
    made = zarrow.torch.tensordict(batch)
    assert made["numbers"].data_ptr() == batch["numbers"].data_ptr()
    assert made["masked", "values"].data_ptr() == batch["masked"].values.data_ptr()
    assert made["x"].values().data_ptr() == batch["x"].values().data_ptr()
    sample = zarrow.torch.Dataset(plan, transform=zarrow.torch.tensordict)[4]
    assert sample["numbers"] == 4 and sample.batch_size == ()
    with pytest.raises(TypeError, match="found a batch of Tensor: pass a dict of sources, or fields="):
        zarrow.torch.tensordict(batch["numbers"])


def test_tensordict_is_not_imported_unasked(tmp_path: Path) -> None:
    zarrow.create_array(tmp_path / "a.zarr", data=np.arange(9))
    program = (
        "import sys, zarrow, zarrow.torch\n"
        "list(zarrow.torch.DataLoader(zarrow.torch.Plan(zarrow.open_array(sys.argv[1]), 4)))\n"
        "assert not {'tensordict', 'scipy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.zarr")], check=True)


@pytest.mark.parametrize("name", ["masked", "text", "x"])
def test_damaged_chunks_are_filled_and_skipped(tmp_path: Path, name: str) -> None:
    values: Any = {
        "masked": np.ma.MaskedArray(np.arange(60), np.arange(60) % 3 == 0),
        "text": np.arange(60).astype(np.dtypes.StringDType()),
    }
    if name == "x":
        ones = anndata.AnnData(sp.csr_matrix(np.eye(60)))
        zarrow.save(tmp_path / "a", ones)
        source = zarrow.open_group(tmp_path / "a")["X"]
        source["data"] = zarrow.create_array({}, data=np.ones(60), chunks=10, compressors={"id": "zstd"})
        source, file = zarrow.open_group(tmp_path / "a")["X"], tmp_path / "a" / "X" / "data" / "c" / "2"
    else:
        missing: dict[str, Any] = {"missing": "optional"} if name == "masked" else {}
        options: dict[str, Any] = {"chunks": 10, "compressors": {"id": "zstd"}, **missing}
        source = zarrow.create_array(tmp_path / "a", data=values[name], **options)
        file = tmp_path / "a" / "c" / "2"
    file.write_bytes(b"damaged")
    plan = data.Plan(source, 7)
    bad = {"masked": None, "text": "", "x": [0.0] * 60}[name]
    for batch, numbers in zarrow.torch.DataLoader(plan, on_bad="fill", numbers=True):
        rows = plain(batch)
        assert all(rows[at] == bad for at, number in enumerate(numbers.tolist()) if 20 <= number < 30)
    skipped = [numbers for _, numbers in zarrow.torch.DataLoader(plan, on_bad="skip", numbers=True)]
    assert sorted(np.concatenate(skipped)) == [*range(20), *range(30, 60)]


@pytest.mark.parametrize("on_bad", ["fill", "skip"])
def test_workers_warn_of_damaged_chunks(tmp_path: Path, on_bad: str) -> None:
    zarrow.create_array(tmp_path, data=np.arange(40), chunks=10, compressors={"id": "zstd"})
    (tmp_path / "c/2").write_bytes(b"damaged")
    program = (
        "import sys, torch, zarrow.data, zarrow.torch\n"
        "plan = zarrow.data.Plan(sys.argv[1], 15, order='sequential')\n"
        "dataset = zarrow.torch.IterableDataset(plan, on_bad=sys.argv[2])\n"
        "loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)\n"
        "print(sum(len(batch) for batch in loader))\n"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, str(tmp_path), on_bad]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == [{"fill": "40", "skip": "30"}[on_bad]], done.stderr
    assert "worker 0 of 1 found damaged chunks, with the samples 20, 21, 22" in done.stderr


@pytest.mark.parametrize("name", ["float32", "int64", "bool", "bfloat16"])
def test_astype_takes_types_of_pytorch(name: str) -> None:
    tensor = zarrow.asarray(np.array([0, 1, 2]))
    dtype = getattr(torch, name)
    assert tensor.astype(dtype).dtype.name == tensor.astype(dtype=dtype).dtype.name == name
    assert tensor.astype(dtype).tolist() == torch.arange(3).to(dtype).tolist()
