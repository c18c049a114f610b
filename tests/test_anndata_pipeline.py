"""anndata, unchanged, on the codec pipeline of `zarrow.zarr_python`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr

import zarrow

pytestmark = [pytest.mark.small_files, pytest.mark.filterwarnings("ignore")]

CELLS, GENES = 120, 30
COUNTS = scipy.sparse.random_array((CELLS, GENES), density=0.2, format="csr", dtype="f4", rng=7)
DENSE = np.arange(CELLS * GENES, dtype="f4").reshape(CELLS, GENES)
ROWS: dict[str, Any] = {
    "list": [5, 3, 90],
    "slice": slice(10, 80, 3),
    "mask": np.arange(CELLS) % 7 == 0,
    "one": slice(4, 5),
}


def cells() -> anndata.AnnData:
    obs = pd.DataFrame(
        {"kind": pd.Categorical(list("abcd") * 30), "count": pd.array([1, None] * 60, dtype="Int64")},
        index=[f"cell {number}" for number in range(CELLS)],
    )
    layers = {"dense": DENSE, "columns": COUNTS.tocsc()}
    return anndata.AnnData(COUNTS, obs, layers=layers, uns={"made": {"by": "me", "at": [1, 2]}})


@pytest.fixture(params=[False, True], ids=["unsharded", "automatic shards"])
def stored(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    with anndata.settings.override(auto_shard_zarr_v3=request.param), zarrow.zarr_python.enable():
        cells().write_zarr(tmp_path / "a.zarr")
    return tmp_path / "a.zarr"


def equal(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    dense = [
        each.toarray() if scipy.sparse.issparse(each) else np.asarray(each) for each in (found, expected)
    ]
    np.testing.assert_array_equal(*dense)


def test_an_anndata_is_stored_and_read(stored: Path) -> None:
    expected = cells()
    for context in (zarrow.zarr_python.enable(), zarr.config.set({})):
        with context:
            found = anndata.read_zarr(stored)
        equal(found.X, COUNTS)
        equal(found.layers["dense"], DENSE)
        equal(found.layers["columns"], COUNTS)
        pd.testing.assert_frame_equal(found.obs, expected.obs)
        assert found.uns["made"]["by"] == "me"


@pytest.mark.parametrize("rows", ROWS)
def test_rows_and_columns_of_backed_matrices(stored: Path, rows: str) -> None:
    with zarrow.zarr_python.enable():
        group: Any = zarr.open_group(stored, mode="r")
        matrix, columns = (anndata.io.sparse_dataset(group[path]) for path in ("X", "layers/columns"))
        assert zarrow.zarr_python.explain(group["X/data"]).read == "zarrow"
        equal(matrix[ROWS[rows]], COUNTS[ROWS[rows]])
        equal(columns[:, [5, 1, 29]], COUNTS[:, [5, 1, 29]])


@pytest.mark.parametrize(
    "read",
    [
        lambda group: anndata.experimental.read_elem_lazy(group["X"])[20:90].compute(scheduler="threads"),
        lambda group: anndata.experimental.read_lazy(group)[20:90].to_memory().X,
    ],
    ids=["element", "whole"],
)
def test_lazy_matrices(stored: Path, read: Callable[[Any], Any]) -> None:
    with zarrow.zarr_python.enable():
        equal(read(zarr.open_group(stored, mode="r")), COUNTS[20:90])


def test_rows_are_appended(stored: Path) -> None:
    with zarrow.zarr_python.enable():
        group: Any = zarr.open_group(stored, mode="r+", use_consolidated=False)
        anndata.io.sparse_dataset(group["X"]).append(scipy.sparse.csr_matrix(COUNTS[:10]))
        again: Any = zarr.open_group(stored, mode="r", use_consolidated=False)
        found = anndata.io.sparse_dataset(again["X"]).to_memory()
    equal(found, scipy.sparse.vstack([COUNTS, COUNTS[:10]], format="csr"))
