"""AnnData objects, tables and sparse matrices, compared with anndata."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anndata as ad
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import zarr
from anndata.tests.helpers import assert_equal

import zarrow

pytestmark = pytest.mark.small_files

N, M = 9, 5


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="anndata|zarr")
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*(setting|zarr v3)")
        yield


def frame() -> pd.DataFrame:
    text = ["x", None, "z"] * 3
    return pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b", None] * 3),
            "stage": pd.Categorical([1, 2, 3] * 3, ordered=True),
            "number": np.arange(N, dtype="i4"),
            "weight": np.linspace(0, 1, N),
            "flag": np.arange(N) % 2 == 0,
            "count": pd.array([1, None, 3] * 3, dtype="Int32"),
            "doublet": pd.array([True, None, False] * 3, dtype="boolean"),
            "text": ["x", "y", "z"] * 3,
            "text_or_nan": text,
            "text_or_na": pd.array(text, dtype="string"),
        },
        index=[f"cell{number}" for number in range(N)],
    )


def made(x: Any = None, *, raw: bool = True) -> ad.AnnData:
    matrix = sp.random(N, M, 0.4, format="csr", random_state=0)
    obs = frame()
    var = pd.DataFrame(
        {"gene": np.arange(M)}, index=pd.Index([f"g{number}" for number in range(M)], name="gene_id")
    )
    adata = ad.AnnData(
        matrix if x is None else x,
        obs=obs,
        var=var,
        obsm={"pca": np.ones((N, 2)), "table": obs[["number"]], "sparse": sp.csc_matrix(np.eye(N, 3))},
        varm={"loadings": np.ones((M, 2), "f4")},
        obsp={"distances": sp.csr_matrix(np.eye(N))},
        varp={"correlation": np.eye(M)},
        layers={name: make() for name, make in MATRICES.items()},
        uns={
            "none": None,
            "text": "word",
            "numpy_text": np.str_("word"),
            "integer": 3,
            "float": np.float32(2.5),
            "bool": True,
            "list": [1, 2],
            "texts": np.array(["a", "b"]),
            "objects": np.array(["a", "b"], object),
            "nested": {"a": {"b": np.arange(3)}, "empty": {}},
            "table": obs,
            "structures": np.array([(1, "a", 2.5)], dtype=[("x", "i4"), ("name", "U5"), ("y", "f8")]),
            "categories": pd.Categorical(["a", "b"]),
            "complex": np.array([1 + 2j]),
        },
    )
    if raw:
        adata.raw = adata.copy()
    return adata


def nodes(folder: Path) -> dict[str, Any]:
    """Return what anndata can see of each node."""
    found = {}
    root = zarr.open_group(folder, mode="r", use_consolidated=False)
    for path, node in [("", root), *root.members(max_depth=None)]:
        found[path] = (dict(node.attrs), isinstance(node, zarr.Array) and (node.dtype, node.shape))
    return found


MATRICES = {
    "csr": lambda: sp.random(N, M, 0.4, format="csr", random_state=1),
    "csc": lambda: sp.random(N, M, 0.4, format="csc", random_state=1, dtype="f4"),
    "csr_array": lambda: sp.csr_array(np.eye(N, M)),
    "dense": lambda: np.arange(N * M, dtype="f4").reshape(N, M),
    "empty": lambda: sp.csr_matrix((N, M)),
    "integers": lambda: sp.csr_matrix(np.eye(N, M, dtype="u1")),
}


# The other kinds of matrices are among the layers.
@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("version", [2, 3])
def test_an_anndata_is_loaded_as_anndata_reads_it(tmp_path: Path, kind: str, version: Any) -> None:
    with ad.settings.override(zarr_write_format=version):
        made(MATRICES[kind]()).write_zarr(tmp_path / "a.zarr", convert_strings_to_categoricals=kind == "csr")
    expected, found = ad.read_zarr(tmp_path / "a.zarr"), zarrow.load(tmp_path / "a.zarr")
    assert type(found.X) is type(expected.X)
    assert [type(found.layers[name]) for name in MATRICES] == [
        type(expected.layers[name]) for name in MATRICES
    ]
    assert_equal(found, expected, exact=True)
    for name, value in expected.uns.items():
        assert type(found.uns[name]) is type(value), name


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_anndata_reads_a_saved_anndata(tmp_path: Path, kind: str) -> None:
    adata = made(MATRICES[kind](), raw=kind != "dense")
    zarrow.save(tmp_path / "ours.zarr", adata)
    adata.write_zarr(tmp_path / "theirs.zarr", convert_strings_to_categoricals=False)
    assert nodes(tmp_path / "ours.zarr") == nodes(tmp_path / "theirs.zarr")
    found = ad.read_zarr(tmp_path / "ours.zarr")
    assert_equal(found, ad.read_zarr(tmp_path / "theirs.zarr"), exact=True)
    assert_equal(zarrow.load(tmp_path / "ours.zarr"), found, exact=True)
    assert_equal(found.X, adata.X)


def test_views_and_objects_without_a_matrix_are_saved(tmp_path: Path) -> None:
    adata = made()
    zarrow.save(tmp_path / "view.zarr", adata[::2, [3, 1]])
    assert_equal(ad.read_zarr(tmp_path / "view.zarr").X, adata.X[::2][:, [3, 1]])
    assert ad.read_zarr(tmp_path / "view.zarr").obs_names.tolist() == adata.obs_names[::2].tolist()
    empty = ad.AnnData(obs=frame())
    zarrow.save(tmp_path / "empty.zarr", empty)
    assert_equal(ad.read_zarr(tmp_path / "empty.zarr"), empty)
    assert zarrow.load(tmp_path / "empty.zarr").X is None


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_backed_objects_are_saved(tmp_path: Path, kind: str) -> None:
    adata = made(MATRICES[kind](), raw=False)
    del adata.uns["none"]
    adata.write_h5ad(tmp_path / "a.h5ad", convert_strings_to_categoricals=False)
    backed = ad.read_h5ad(tmp_path / "a.h5ad", backed="r")
    zarrow.save(tmp_path / "a.zarr", backed)
    assert_equal(ad.read_zarr(tmp_path / "a.zarr").X, adata.X)
    assert_equal(zarrow.load(tmp_path / "a.zarr").obs, adata.obs)


def test_arrays_of_dask_are_computed(tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    adata = made(da.from_array(np.eye(N, M), chunks=(2, M)), raw=False)
    zarrow.save(tmp_path / "a.zarr", adata)
    np.testing.assert_array_equal(ad.read_zarr(tmp_path / "a.zarr").X, np.eye(N, M))


def test_a_save_replaces_only_an_anndata(tmp_path: Path) -> None:
    adata = made()
    root = zarrow.create_group(tmp_path / "a.zarr")
    root["other"] = [1, 2]
    root["cells"] = adata
    with pytest.raises(zarrow.NodeExistsError, match="not an AnnData"):
        zarrow.save(tmp_path / "a.zarr", adata)
    with pytest.raises(zarrow.NodeExistsError, match="not an AnnData"):
        root["other"] = adata
    smaller = adata[:3].copy()
    del smaller.layers["dense"]
    zarrow.save(tmp_path / "a.zarr", smaller, path="cells")
    assert root["other"][...].tolist() == [1, 2] and "dense" not in zarrow.open(
        tmp_path / "a.zarr", "cells/layers"
    )
    assert_equal(zarrow.load(tmp_path / "a.zarr", "cells").layers["csc"], smaller.layers["csc"])
    zarrow.save(tmp_path / "b.zarr", first=adata, second=[1.0])
    assert_equal(zarrow.load(tmp_path / "b.zarr", "first").obs, adata.obs)


@pytest.mark.parametrize(
    "value", [object(), {"a/b": 1}, {1: 2}, np.array([1, "a"], object), np.ma.masked_all(3)]
)
def test_nothing_is_stored_if_an_element_cannot_be(tmp_path: Path, value: Any) -> None:
    adata = ad.AnnData(np.eye(2))
    adata.uns["bad"] = value
    with pytest.raises(zarrow.ExchangeError, match="uns/bad"):
        zarrow.save(tmp_path / "a.zarr", adata)
    assert not (tmp_path / "a.zarr").exists()


def test_text_with_none_becomes_nullable_text(tmp_path: Path) -> None:
    obs = pd.DataFrame(
        {"kind": ["a", None, "b"], "gone": ["x", np.nan, "y"]}, index=list("xyz"), dtype=object
    )
    zarrow.save(tmp_path / "a.zarr", ad.AnnData(np.eye(3), obs=obs))
    for adata in (zarrow.load(tmp_path / "a.zarr"), ad.read_zarr(tmp_path / "a.zarr")):
        assert adata.obs["kind"].isna().tolist() == [False, True, False]
        assert adata.obs["kind"].dropna().tolist() == ["a", "b"]
        assert adata.obs["gone"].dropna().tolist() == ["x", "y"]
    assert zarrow.open(tmp_path / "a.zarr")["obs/kind"].read().tolist() == ["a", None, "b"]
    bad = pd.DataFrame({"kind": ["a", None, 3]}, index=list("xyz"), dtype=object)
    with pytest.raises(zarrow.ExchangeError, match="obs/kind"):
        zarrow.save(tmp_path / "b.zarr", ad.AnnData(np.eye(3), obs=bad))


def test_unknown_encodings_name_anndata(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", made())
    root = zarr.open_group(tmp_path / "a.zarr", use_consolidated=False)
    root["uns"].create_group("records").attrs.update(
        {"encoding-type": "awkward-array", "encoding-version": "0.1.0"}
    )
    zarr.consolidate_metadata(tmp_path / "a.zarr")
    with pytest.raises(zarrow.UnsupportedError, match=r"/uns/records.*awkward-array.*anndata\.read_zarr"):
        zarrow.load(tmp_path / "a.zarr")


def test_tables_are_read_into_pandas_and_polars(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", made())
    obs = zarrow.open(tmp_path / "a.zarr")["obs"]
    expected = ad.read_zarr(tmp_path / "a.zarr").obs
    pd.testing.assert_frame_equal(obs.to_pandas(), expected)
    for rows in (slice(2, 5), slice(0, 0), slice(-2, None)):
        pd.testing.assert_frame_equal(obs.to_pandas(rows=rows), expected[rows])
    pd.testing.assert_frame_equal(obs.to_pandas(["text", "kind"]), expected[["text", "kind"]])
    polars = obs.to_polars(rows=slice(1, 4))
    assert polars.columns == ["_index", *expected.columns] and polars["kind"].dtype == pl.Categorical
    assert polars["_index"].to_list() == ["cell1", "cell2", "cell3"]
    assert polars["count"].to_list() == [None, 3, 1] and polars["text_or_na"].to_list() == [None, "z", "x"]
    zarrow.save(tmp_path / "plain.zarr", pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    assert zarrow.open(tmp_path / "plain.zarr").to_pandas().to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}


SELECTIONS = [
    None,
    ...,
    slice(2, 5),
    slice(5, 2),
    slice(None, None, -2),
    3,
    -1,
    [4, 1, 1, 2, 3],
    [],
    np.array([0, 8]),
    np.arange(N) % 3 == 0,
    (slice(1, 6), [2, 0]),
    (slice(None), slice(1, 4)),
    ([3, 2], 1),
    (..., slice(0, 2)),
]


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_parts_of_a_sparse_matrix(tmp_path: Path, kind: str, selection: Any) -> None:
    matrix = getattr(sp, kind)(sp.random(N, M, 0.4, random_state=3))
    zarrow.save(tmp_path / "a.zarr", ad.AnnData(matrix))
    group = zarrow.open(tmp_path / "a.zarr")["X"]
    dense = matrix.toarray()
    rows, columns = selection if isinstance(selection, tuple) else (selection, slice(None))
    rows = slice(None) if rows is None or rows is ... else [rows] if isinstance(rows, int) else rows
    columns = [columns] if isinstance(columns, int) else columns
    for found in (group.to_scipy(selection), group.read(selection)):
        assert type(found) is type(matrix)
        np.testing.assert_array_equal(found.toarray(), dense[rows][:, columns])


class Counting(dict[str, bytes]):
    """A store that notes the bytes of each value it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, int] = {}

    def __getitem__(self, key: str) -> bytes:
        value = super().__getitem__(key)
        self.given[key] = len(value)
        return value


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_rows_are_read_without_the_others(kind: str) -> None:
    matrix = sp.random(1000, 1000, 0.1, format=kind, random_state=0)
    store = Counting()
    root = zarrow.create_group(store, attributes={})
    group = root.create_group("x", attributes={"encoding-type": f"{kind}_matrix", "shape": [1000, 1000]})
    for name in ("data", "indices", "indptr"):
        group.create_array(name, data=getattr(matrix, name), chunks=100, compressors=None)
    rows = [500, 501, 7, 990]
    index = rows if kind == "csr" else (slice(None), rows)
    opened = zarrow.open(store)["x"]
    store.given.clear()
    np.testing.assert_array_equal(opened.to_scipy(index).toarray(), matrix.toarray()[index])
    of_elements = sum(size for key, size in store.given.items() if "/data/" in key or "/indices/" in key)
    assert of_elements < 0.02 * (matrix.data.nbytes + matrix.indices.nbytes)
    store.given.clear()
    index = slice(100, 110) if kind == "csr" else (slice(None), slice(100, 110))
    np.testing.assert_array_equal(opened.to_scipy(index).toarray(), matrix.toarray()[index])
    assert sum(size for key, size in store.given.items() if "/indptr/" in key) <= 2 * 100 * 8


def test_malformed_sparse_matrices_are_refused() -> None:
    parts = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2]}
    for change, message in [
        ({"indptr": [0, 2]}, "do not fit"),
        ({"indptr": [0, 2, 1]}, "does not rise"),
        ({"indptr": [0, 1, 3]}, "does not rise"),
        ({"indptr": [-1, 1, 2]}, "does not rise"),
        ({"indices": [0, 2]}, "outside of 0 to 1"),
        ({"indices": [0, -1]}, "outside of 0 to 1"),
        ({"indices": [0.0, 1.0]}, "must be integers"),
        ({"shape": [2]}, "'shape' is"),
        ({"shape": [2, -2]}, "'shape' is"),
    ]:
        shape = change.pop("shape", [2, 2])
        group = zarrow.create_group({}, attributes={"encoding-type": "csr_matrix", "shape": shape})
        for name, values in {**parts, **change}.items():
            group[name] = np.array(values)
        for selection in (None, [0, 1]):
            with pytest.raises(zarrow.MetadataError, match=message):
                group.to_scipy(selection)
    group = zarrow.create_group({}, attributes={"encoding-type": "csr_matrix", "shape": [2, 2]})
    for name, values in parts.items():
        group[name] = np.array(values)
    for index in (2, [-3], [True], [[1]], 1.5, [0.5], "x"):
        for selection in (index, (slice(None), index)):
            with pytest.raises(zarrow.IndexingError):
                group.to_scipy(selection)
    with pytest.raises(zarrow.NodeTypeError, match="no attribute 'encoding-type'"):
        zarrow.create_group({}).to_scipy()


def tampered(folder: Path, change: Any) -> zarrow.Group:
    """Store an AnnData, and change it by zarr-python."""
    obs = pd.DataFrame({"kind": pd.Categorical(["a", "b", "a"]), "n": range(3)}, index=list("xyz"))
    ad.AnnData(sp.csr_matrix(np.eye(3)), obs=obs).write_zarr(folder)
    change(zarr.open_group(folder, mode="a", use_consolidated=False))
    zarr.consolidate_metadata(folder)
    return zarrow.open(folder)


def change_codes(code: int) -> Any:
    def change(root: Any) -> None:
        root["obs/kind/codes"][1] = code

    return change


def repeat_a_category(root: Any) -> None:
    categories = root["obs/kind/categories"]
    (categories["values"] if isinstance(categories, zarr.Group) else categories)[1] = "a"


def add_an_axis(root: Any) -> None:
    del root["obs/n"]
    root["obs"].create_array("n", data=np.ones((3, 2))).attrs.update(
        {"encoding-type": "array", "encoding-version": "0.2.0"}
    )


@pytest.mark.parametrize("change", [change_codes(-7), change_codes(2), repeat_a_category, add_an_axis])
def test_malformed_tables_are_refused(tmp_path: Path, change: Any) -> None:
    root = tampered(tmp_path / "a.zarr", change)
    with pytest.raises(ValueError):
        ad.read_zarr(tmp_path / "a.zarr")
    for read in (
        lambda: zarrow.load(tmp_path / "a.zarr"),
        root["obs"].to_pandas,
        lambda: root["obs"].to_pandas(rows=slice(0, 2)),
    ):
        with pytest.raises(zarrow.MetadataError, match="/obs") as raised:
            read()
        assert str(raised.value.path).startswith("obs") and raised.value.store


def test_a_column_that_is_named_twice(tmp_path: Path) -> None:
    def change(root: Any) -> None:
        root["obs"].attrs["column-order"] = ["kind", "n", "n"]

    root = tampered(tmp_path / "a.zarr", change)
    assert list(zarrow.load(tmp_path / "a.zarr").obs) == list(ad.read_zarr(tmp_path / "a.zarr").obs)
    with pytest.raises(zarrow.MetadataError, match="twice"):
        root["obs"].to_polars()
    assert root["obs"].to_polars(["n"])["n"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("indptr", [[1, 1, 2, 3], [0, 2, 1, 3], [0, 1, 2, 2]])
def test_rows_are_not_read_by_a_malformed_indptr(tmp_path: Path, indptr: list[int]) -> None:
    def change(root: Any) -> None:
        root["X/indptr"][:] = indptr

    matrix = tampered(tmp_path / "a.zarr", change)["X"]
    for selection in (None, [0, 2], slice(0, 3)):
        with pytest.raises(zarrow.MetadataError, match="indptr"):
            matrix.to_scipy(selection)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_positions_keep_their_type(tmp_path: Path, dtype: str) -> None:
    matrix = sp.csr_matrix(np.eye(3))
    matrix.indices, matrix.indptr = matrix.indices.astype(dtype), matrix.indptr.astype(dtype)
    ad.AnnData(matrix).write_zarr(tmp_path / "a.zarr")
    root = zarrow.open(tmp_path / "a.zarr")
    whole = zarrow.load(tmp_path / "a.zarr").X
    for found in (whole, root["X"].to_scipy(), root["X"].to_scipy([2, 0]), root["X"].to_scipy(slice(1, 3))):
        assert found.indices.dtype == found.indptr.dtype == dtype
        found.sum(), found[0], found @ found.T, found.sort_indices()
    np.testing.assert_array_equal(root["X"].to_scipy([2, 0]).toarray(), np.eye(3)[[2, 0]])


def test_messages_about_sparse_matrices_name_to_scipy(tmp_path: Path) -> None:
    matrix = sp.csr_matrix(np.eye(3))
    zarrow.save(tmp_path / "a.zarr", ad.AnnData(matrix))
    root = zarrow.open(tmp_path / "a.zarr", mode="r+")
    for name in ("tocsr", "toarray", "shape"):
        with pytest.raises(AttributeError, match=rf"group\.to_scipy\(\)\.{name}"):
            getattr(root["X"], name)
    for store in (
        lambda: root.__setitem__("m", matrix),
        lambda: zarrow.save(tmp_path / "b.zarr", matrix),
        lambda: zarrow.save(tmp_path / "b.zarr", m=matrix),
    ):
        with pytest.raises(TypeError, match=r"toarray\(\).*AnnData.*to_scipy"):
            store()


def test_columns_are_loaded_by_path_as_in_their_group(tmp_path: Path) -> None:
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b", "a"]),
            "count": pd.array([1, None, 3], dtype="Int64"),
            "name": pd.array(["x", None, "z"], dtype="string"),
        },
        index=list("pqr"),
    )
    zarrow.save(tmp_path / "a.zarr", ad.AnnData(np.eye(3), obs=obs))
    whole: Any = zarrow.load(tmp_path / "a.zarr", "obs")
    for name in obs:
        for progress in (None, lambda done, total: None):
            found: Any = zarrow.load(tmp_path / "a.zarr", f"obs/{name}", progress=progress)
            assert type(found) is type(whole[name]) is not dict
            assert found.tolist() == whole[name].tolist()
