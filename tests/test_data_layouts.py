"""Batches of masked elements, text, sparse rows and columns of AnnData, beside NumPy, SciPy and pandas."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow
import zarrow.jax
from zarrow import data
from zarrow.data import prefetch
from zarrow.data.current_arrays import CurrentArrays

pytestmark = pytest.mark.small_files

CELLS, GENES = 97, 31
DTYPES = ("i1", "u4", "f2", "f8", "c8", "bool", "M8[s]", "m8[ms]", "S5", "U3")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def optional(draw: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """Return random elements with a random mask."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    values = rng.integers(0, 90, shape).astype("U3" if dtype[0] in "SU" else "i8").astype(dtype)
    share = draw(st.sampled_from((0.0, 0.3, 1.0)))
    return np.ma.MaskedArray(values, rng.random(shape) < share)


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected) and found.shape == expected.shape and found.dtype == expected.dtype
    if isinstance(expected, np.ma.MaskedArray):
        assert np.array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
        found, expected = found.compressed(), expected.compressed()
    assert np.array_equal(found, expected)


@settings(max_examples=60)
@given(st.data())
def test_samples_of_every_layout_equal_those_of_numpy(case: Any) -> None:
    draw = case.draw
    shape = tuple(draw(st.lists(st.integers(4, 15), min_size=1, max_size=3)))
    kind = draw(st.sampled_from(("text", "bytes", "optional text", *DTYPES)))
    if kind in DTYPES:
        values: Any = optional(draw, kind, shape)
    else:
        pieces = ["", "a", "naïve", "x" * 20, "zarr"]
        if kind != "text":
            pieces = [piece.encode() if kind == "bytes" else piece for piece in pieces]  # type: ignore[misc]
        indices = np.random.default_rng(draw(st.integers(0, 999))).integers(0, 5, shape)
        values = np.array(pieces, object)[indices]
        if kind == "optional text":
            values[indices == 1] = None
        else:
            values = values.astype(np.dtypes.StringDType()) if kind == "text" else values
    missing: dict[str, Any] = {} if kind in ("text", "bytes") else {"missing": "optional"}
    chunks = tuple(draw(st.integers(1, extent + 1)) for extent in shape)
    array = zarrow.create_array({}, data=values, chunks=chunks, **missing)
    axis = draw(st.integers(0, len(shape) - 1))
    length, step, stride, offset = (draw(st.integers(1, limit)) for limit in (2, 3, 2, 1))
    crop = tuple(draw(st.integers(1, extent)) for extent in shape)
    corner = [draw(st.integers(0, extent - part)) for extent, part in zip(shape, crop, strict=True)]

    def row(number: int) -> Any:
        return values.take(number, axis) if len(shape) > 1 else values[number : number + 1].reshape(())

    def window(number: int) -> Any:
        return values.take(offset + number * step + np.arange(length) * stride, axis)

    def cropped(number: int) -> Any:
        return values[tuple(slice(at, at + part) for at, part in zip(corner, crop, strict=True))]

    windows = data.Windows(array, length, step=step, stride=stride, offset=offset, axis=axis)
    source, sample = draw(
        st.sampled_from(
            [
                (data.Rows(array, axis), row),
                (windows, window),
                (data.Crops(array, crop, corners=[corner] * 7), cropped),
            ]
        )
    )
    order = draw(st.sampled_from(("sequential", "shuffle", "window")))
    plan = data.Plan(source, draw(st.integers(1, 9)), order=order, window_nbytes=draw(st.integers(1, 5000)))
    seen = []
    for batch, numbers in data.Loader(plan, numbers=True):
        expected = [sample(number) for number in numbers.tolist()]
        stack = np.ma.stack if isinstance(values, np.ma.MaskedArray) else np.stack
        assert_same(batch, stack(expected).astype(values.dtype))
        seen += numbers.tolist()
    assert sorted(seen) == list(range(len(plan)))


@pytest.fixture(scope="module")
def adata() -> anndata.AnnData:
    rng = np.random.default_rng(0)
    x = sp.random(CELLS, GENES, 0.2, format="csr", dtype="f4", rng=rng).tolil()
    x[20:40] = 0
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(rng.integers(-1, 3, CELLS), ["B", "NK", "T"]),
            "count": pd.array(np.where(rng.random(CELLS) < 0.3, None, rng.integers(0, 9, CELLS)), "Int32"),
            "weight": rng.random(CELLS),
        },
        index=[f"cell{number}" for number in range(CELLS)],
    )
    return anndata.AnnData(sp.csr_matrix(x), obs=obs, obsm={"pca": rng.random((CELLS, 3))})


def stored(adata: anndata.AnnData, folder: Path, chunk: int = 50) -> zarrow.Group:
    """Store an AnnData with small chunks."""
    adata.write_zarr(folder, chunks=None)
    group = zarrow.open_group(folder, mode="r+")
    for name in ("data", "indices", "indptr"):
        values, attributes = group["X"][name].read().numpy(), dict(group["X"][name].attrs)
        group["X"].create_array(
            name, data=values, chunks=chunk, compressors={"id": "zstd"}, attributes=attributes, overwrite=True
        )
    return zarrow.open_group(folder)


def parts(group: zarrow.Group) -> dict[str, Any]:
    obs = group["obs"]
    return {"x": group["X"], "pca": group["obsm/pca"], **{name: obs[name] for name in ("kind", "count")}}


def assert_batch(batch: Any, numbers: Any, adata: anndata.AnnData) -> None:
    expected = adata[numbers]
    assert type(batch["x"]) is sp.csr_matrix and batch["x"].dtype == "f4"
    assert np.array_equal(batch["x"].toarray(), expected.X.toarray())
    assert np.array_equal(batch["pca"], expected.obsm["pca"])
    assert np.array_equal(batch["kind"], adata.obs["kind"].cat.codes.iloc[numbers])
    assert batch["count"].tolist() == [None if pd.isna(each) else each for each in expected.obs["count"]]


@pytest.mark.parametrize("chunk", [7, 50, 5000])
@pytest.mark.parametrize("order", ["sequential", "shuffle", "window"])
def test_rows_of_anndata_with_columns(adata: anndata.AnnData, tmp_path: Path, order: Any, chunk: int) -> None:
    group = stored(adata, tmp_path / "a.zarr", chunk)
    for batch_size, window in ((3, 500), (16, 3000), (300, 1 << 20)):
        plan = data.Plan(parts(group), batch_size, order=order, window_nbytes=window, last="pad")
        assert plan.describe().samples == -(-CELLS // batch_size) * batch_size
        loader = data.Loader(plan, numbers=True)
        for batch, numbers in loader:
            assert_batch(batch, numbers, adata)
            batch["x"].data[:] = 0
            batch["count"][:] = np.ma.masked
        assert loader.stats().samples == plan.describe().samples


def test_sparse_rows_decode_few_chunks_in_windows(adata: anndata.AnnData, tmp_path: Path) -> None:
    group = stored(adata, tmp_path / "a.zarr", 50)
    elements = adata.X.nnz
    window = data.Plan(group["X"], 8, window_nbytes=4000)
    assert (
        window.describe().decoded_per_used
        < 3
        < data.Plan(group["X"], 8, order="shuffle", window_nbytes=400).describe().decoded_per_used
    )
    # Chunks of files that were written just now are not kept: another write may leave the same time.
    time.sleep(0.1)
    loader = data.Loader(window, cache_nbytes=1 << 20)
    for _ in range(2):
        assert sum(batch.nnz for batch in loader) == elements
    assert loader.stats().cache_hits + loader.stats().cache_misses > 0


def test_batches_of_sparse_rows_are_views_of_their_read(adata: anndata.AnnData, tmp_path: Path) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    loader = data.Loader(group["X"], batch_size=30, order="sequential")
    batches = list(loader)
    whole = sp.vstack(batches, format="csr")
    assert np.array_equal(whole.toarray(), adata.X.toarray())
    # The first batch is read alone, and the last batches in one read.
    _, *others = batches
    assert len({batch.data.base.ctypes.data for batch in others}) == 1
    for batch in batches:
        before = [other.toarray() for other in batches if other is not batch]
        batch.data[:] = -1
        batch.eliminate_zeros()
        after = [other.toarray() for other in batches if other is not batch]
        assert all(map(np.array_equal, before, after))


def test_sizes_of_sparse_rows_are_those_of_scipy(adata: anndata.AnnData, tmp_path: Path) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    plan = data.Plan(group["X"], 16)
    matrix = zarrow.open_group(tmp_path / "a.zarr", mode="r+")["X"]
    indices, attributes = matrix["indices"].read().numpy(), dict(matrix["indices"].attrs)
    matrix.create_array("indices", data=indices.astype("u2"), attributes=attributes, overwrite=True)
    small = data.Plan(zarrow.open_group(tmp_path / "a.zarr")["X"], 16)
    assert small.sample_nbytes == plan.sample_nbytes
    loader = data.Loader(small, numbers=True)
    for batch, numbers in loader:
        assert batch.indices.dtype == np.int32
        assert np.array_equal(batch.toarray(), adata.X[numbers].toarray())
    assert loader.stats().nbytes == pytest.approx(CELLS * small.sample_nbytes, rel=0.05)


@pytest.mark.parametrize("dtype", [">f8", "<u2", "<i8"])
def test_sparse_rows_of_every_number(dtype: str, tmp_path: Path) -> None:
    rows = sp.csr_matrix(np.random.default_rng(1).integers(0, 3, (40, 12)))
    group = zarrow.create_group(tmp_path / "a.zarr", zarr_format=2)
    attributes = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(rows.shape)}
    x = group.create_group("X", attributes=attributes)
    x.create_array("data", data=rows.data.astype(dtype), chunks=5)
    x.create_array("indices", data=rows.indices, chunks=7)
    x.create_array("indptr", data=rows.indptr, chunks=9)
    seen = []
    for batch, numbers in data.Loader(x, batch_size=7, order="shuffle", numbers=True):
        assert np.array_equal(batch.toarray(), rows[numbers].toarray())
        seen += numbers.tolist()
    assert sorted(seen) == list(range(40))


def test_messages_name_a_source_that_has_no_name(adata: anndata.AnnData, tmp_path: Path) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    make: Any
    for make in (data.Loader, zarrow.jax.DataLoader):
        options: Any = {"device": "cuda:0"} if make is data.Loader else {}
        with pytest.raises(zarrow.ExchangeError, match=r"^the source has text"):
            make(group["X"], **options)
        with pytest.raises(zarrow.ExchangeError, match=r"^source 'X' has text"):
            make(group, fields=["X"], **options)


def test_reads_of_sparse_rows_from_afar_count_their_copies(
    adata: anndata.AnnData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    monkeypatch.setattr(CurrentArrays, "is_local", lambda self: False)

    def readers(source: Any) -> int:
        plan = data.Plan(source, 1, window_nbytes=1)
        # As many bytes are requested at a time as six samples have.
        monkeypatch.setattr(prefetch, "_REQUESTED_NBYTES", 6 * plan.load_samples * plan.sample_nbytes)
        loader = data.Loader(plan)
        next(iter(loader))
        iterator = iter(loader)
        return len(iterator._prefetch.threads)

    assert readers(group["obsm/pca"]) == 2 * readers(group["X"])


def test_a_table_and_a_column_are_sources(adata: anndata.AnnData, tmp_path: Path) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    for batch, numbers in data.Loader(data.Plan(group["obs"], 10), numbers=True):
        assert batch["_index"].tolist() == adata.obs_names[numbers].tolist()
        assert np.array_equal(batch["weight"], adata.obs["weight"].iloc[numbers])
    codes = np.concatenate(list(data.Loader(data.Plan(group["obs/kind"], 10, order="sequential"))))
    assert np.array_equal(codes, adata.obs["kind"].cat.codes)


def test_epochs_of_sparse_rows_resume_on_other_ranks(adata: anndata.AnnData, tmp_path: Path) -> None:
    plan = data.Plan(parts(stored(adata, tmp_path / "a.zarr")), 8, window_nbytes=3000)
    seen = []
    loaders = [data.Loader(plan, rank=rank, world=3, numbers=True) for rank in range(3)]
    for loader in loaders:
        iterator = iter(loader)
        for _ in range(2):
            seen += next(iterator)[1].tolist()
        loader.close()
    state = json.loads(json.dumps(loaders[1].state_dict()))
    for rank in range(2):
        resumed = data.Loader(plan, rank=rank, world=2, numbers=True)
        resumed.load_state_dict(state)
        for batch, numbers in resumed:
            assert_batch(batch, numbers, adata)
            seen += numbers.tolist()
    assert sorted(seen) == list(range(CELLS))


@pytest.mark.parametrize("on_bad", ["raise", "skip", "fill"])
def test_damaged_chunks_of_sparse_rows(adata: anndata.AnnData, tmp_path: Path, on_bad: Any) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    (tmp_path / "a.zarr" / "X" / "data" / "c" / "5").write_bytes(b"damaged")
    pointers = adata.X.indptr
    bad = {row for row in range(CELLS) if pointers[row] < 300 and pointers[row + 1] > 250}
    bad -= {row for row in bad if pointers[row] == pointers[row + 1]}
    loader = data.Loader(data.Plan(parts(group), 32, window_nbytes=9000), on_bad=on_bad, numbers=True)
    if on_bad == "raise":
        with pytest.raises(zarrow.CodecError, match=r"chunk \[5\]"):
            list(loader)
        return
    seen = []
    for batch, numbers in loader:
        for row, number in enumerate(numbers.tolist()):
            expected = np.zeros(GENES) if number in bad else adata.X[number].toarray()[0]
            assert np.array_equal(batch["x"][row].toarray()[0], expected)
            assert batch["kind"][row] == adata.obs["kind"].cat.codes.iloc[number]
        seen += numbers.tolist()
    assert set(loader.stats().bad) == bad and bad
    assert sorted(seen) == [number for number in range(CELLS) if on_bad == "fill" or number not in bad]


@pytest.mark.parametrize("kind", ["optional", "text", "optional text"])
def test_damaged_chunks_of_text_and_masked_elements(tmp_path: Path, kind: str) -> None:
    values: Any = {
        "optional": np.ma.MaskedArray(np.arange(60), np.arange(60) % 3 == 0),
        "text": np.arange(60).astype(np.dtypes.StringDType()),
        "optional text": np.array([None if number % 3 == 0 else str(number) for number in range(60)], object),
    }[kind]
    missing: dict[str, Any] = {} if kind == "text" else {"missing": "optional"}
    array = zarrow.create_array(tmp_path / "a", data=values, chunks=10, compressors={"id": "zstd"}, **missing)
    (tmp_path / "a" / "c" / "2").write_bytes(b"damaged")
    for batch, numbers in data.Loader(data.Plan(array, 7), on_bad="fill", numbers=True):
        for found, number in zip(batch.tolist(), numbers.tolist(), strict=True):
            is_bad = 20 <= number < 30
            assert found == (("" if kind == "text" else None) if is_bad else values.tolist()[number])
    skipped = [numbers for _, numbers in data.Loader(data.Plan(array, 7), on_bad="skip", numbers=True)]
    assert sorted(np.concatenate(skipped)) == [*range(20), *range(30, 60)]


def test_rows_of_a_changed_matrix_are_refused(adata: anndata.AnnData, tmp_path: Path) -> None:
    """Elements without their pointers would be rows of other cells."""
    group = stored(adata, tmp_path / "a.zarr")
    plan = data.Plan(group["X"], 300)
    pointers = zarrow.open_array(tmp_path / "a.zarr" / "X" / "indptr", mode="r+")
    pointers[50] = 0
    with pytest.raises(zarrow.MetadataError, match="indptr does not rise"):
        list(data.Loader(plan, on_bad="skip"))
    pointers[50] = adata.X.indptr[50]
    zarrow.open_array(tmp_path / "a.zarr" / "X" / "indices", mode="r+")[7] = GENES
    with pytest.raises(zarrow.MetadataError, match="indices are outside"):
        list(data.Loader(plan))
    zarrow.open_array(tmp_path / "a.zarr" / "X" / "data", mode="r+").resize(10)
    with pytest.raises(zarrow.ZarrowError):
        data.Loader(plan, cache_nbytes=1 << 20)


def test_large_samples_are_read_less_far_ahead() -> None:
    """A plan counts a string as 64 bytes, and the loader as many as it has."""
    array = zarrow.create_array({}, data=np.array(["x" * 100_000] * 400, np.dtypes.StringDType()), chunks=4)
    loader = data.Loader(data.Plan(array, 4, order="shuffle", window_nbytes=256), memory_nbytes=2_000_000)
    iterator = iter(loader)
    next(iterator)
    assert iterator._prefetch._most_reads == 4  # type: ignore[attr-defined]
    assert loader.stats().nbytes == 400_064 and sum(map(len, iterator)) == 396


def test_threads_share_a_plan_of_sparse_rows(adata: anndata.AnnData, tmp_path: Path) -> None:
    plan = data.Plan(parts(stored(adata, tmp_path / "a.zarr")), 8, window_nbytes=3000)
    errors = []

    def work() -> None:
        try:
            for batch, numbers in data.Loader(plan, numbers=True):
                assert_batch(batch, numbers, adata)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors


def test_groups_that_are_no_source_say_what_to_pass(adata: anndata.AnnData, tmp_path: Path) -> None:
    group = stored(adata, tmp_path / "a.zarr")
    with pytest.raises(ValueError, match=r'is an AnnData.*fields=\["X", "obs/label"\]'):
        data.Plan(group)
    with pytest.raises(TypeError, match="found the group '/obs': pass one of its members"):
        data.Plan({"x": group["obs"]})
    with pytest.raises(TypeError, match=r"found Group: pass the group itself to zarrow.data.Plan"):
        data.Rows(group["X"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"group '/uns' has no arrays: pass a dict"):
        data.Plan(group["uns"])
    columns = anndata.AnnData(sp.csc_matrix(adata.X))
    columns.write_zarr(tmp_path / "csc.zarr")
    with pytest.raises(zarrow.UnsupportedError, match="stored by columns"):
        data.Plan(zarrow.open_group(tmp_path / "csc.zarr")["X"])
    with pytest.raises(ValueError, match="no samples"):
        anndata.AnnData(sp.csr_matrix((0, 5))).write_zarr(tmp_path / "empty.zarr")
        data.Plan(zarrow.open_group(tmp_path / "empty.zarr")["X"])


def test_a_matrix_without_elements(tmp_path: Path) -> None:
    anndata.AnnData(sp.csr_matrix((9, 5), dtype="f4")).write_zarr(tmp_path / "a.zarr")
    plan = data.Plan(zarrow.open_group(tmp_path / "a.zarr")["X"], 4)
    assert [batch.shape for batch in data.Loader(plan)] == [(4, 5), (4, 5), (1, 5)]
    assert plan.describe().samples == 9
