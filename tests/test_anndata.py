"""Groups that represent an array or a table in AnnData's format."""

from __future__ import annotations

import operator
import pickle
from pathlib import Path
from typing import Any

import anndata
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import zarr

import anndata_store
import zarrow

EXPECTED = {
    "cell": ["AAA", "AAC", "AAG", "AAT"],
    "kind": ["T", None, "B", "T"],
    "stage": [10, 30, 20, 10],
    "count": [3, None, 7, 0],
    "doublet": [True, None, False, True],
    "donor": ["Ada", None, "Ben", None],
    "weight": [0.5, 1.0, 1.5, 2.0],
}


@pytest.fixture(scope="module", params=[2, 3])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cells") / "cells.zarr"
    anndata_store.cells(zarr.create_group(folder, zarr_format=request.param))
    return folder


@pytest.fixture
def cells(folder: Path) -> zarrow.Group:
    return zarrow.open(folder)


def test_nullable_groups_are_masked_layouts(cells):
    for name, layout in [("count", "MaskedTensor"), ("doublet", "MaskedTensor"), ("donor", "MaskedVariable")]:
        masked = cells[name].read()
        assert isinstance(masked, getattr(zarrow, layout)) and masked.tolist() == EXPECTED[name]
        assert cells[name].read(slice(None, None, -1)).tolist() == EXPECTED[name][::-1]
        assert cells[name].read(slice(1, 3)).arrow().to_pylist() == EXPECTED[name][1:3]
    assert cells["count"].read().arrow().equals(pa.array(EXPECTED["count"], pa.int32()))


def test_a_categorical_group_is_codes_and_categories(cells):
    kind = cells["kind"].read()
    assert isinstance(kind, zarrow.Categorical) and not kind.ordered
    assert (kind.shape, len(kind), kind.codes.tolist()) == ((4,), 4, [1, -1, 0, 1])
    assert kind.categories.tolist() == ["B", "T"] and kind.tolist() == EXPECTED["kind"]
    assert kind.numpy().tolist() == EXPECTED["kind"] and kind.numpy().dtype == object
    array = kind.arrow()
    array.validate(full=True)
    assert array.type == pa.dictionary(pa.int8(), pa.large_string()) and array.to_pylist() == EXPECTED["kind"]
    assert array.indices.buffers()[1].address == kind.codes.numpy().ctypes.data
    assert kind.polars().to_list() == EXPECTED["kind"] and kind.polars().dtype == pl.Categorical
    part = cells["kind"].read(slice(2, None))
    assert part.tolist() == ["B", "T"] and part.numpy().dtype == np.dtypes.StringDType()
    assert "2 categories" in repr(kind) and "None" in repr(kind)
    stage = cells["stage"].read()
    assert stage.ordered and stage.arrow().type.ordered and stage.numpy().tolist() == EXPECTED["stage"]
    assert "3 ordered categories" in repr(stage)


def test_a_dataframe_is_a_table_in_its_order(cells):
    table = pa.table(cells.to_arrow())
    table.validate(full=True)
    assert table.to_pydict() == EXPECTED and table.column_names == list(EXPECTED)
    assert cells.to_arrow().column_names == list(EXPECTED)
    assert pa.types.is_dictionary(table["kind"].type) and table.schema.field("stage").type.ordered
    in_batches = pa.table(cells.to_arrow(batch_rows=1))
    assert in_batches["kind"].num_chunks == 4 and in_batches.to_pydict() == EXPECTED
    addresses = {chunk.dictionary.buffers()[2].address for chunk in in_batches["kind"].chunks}
    assert len(addresses) == 1, "batches share the categories"
    assert pa.table(cells.to_arrow(["donor"], rows=slice(1, 3)))["donor"].to_pylist() == [None, "Ben"]


def test_polars_and_duckdb_take_the_table(cells):
    frame = pl.DataFrame(cells.to_arrow(bools="bits", batch_rows=3))
    assert {name: frame[name].to_list() for name in frame.columns} == EXPECTED
    with duckdb.connect() as connection:
        connection.register("cells", cells.to_arrow(batch_rows=3))
        rows = connection.sql("select * from cells").fetchall()
        assert [list(column) for column in zip(*rows, strict=True)] == list(EXPECTED.values())


def test_a_plain_group_lists_its_encoded_arrays(tmp_path):
    group = zarr.create_group(tmp_path)
    anndata_store.nullable(group, "a", np.arange(3), [True, False, False])
    anndata_store.array(group, "b", np.arange(3.0))
    group.create_group("c").create_array("other", shape=(5,), dtype="i1")
    assert pa.table(zarrow.open(tmp_path).to_arrow()).to_pydict() == {"a": [None, 1, 2], "b": [0.0, 1.0, 2.0]}


def test_values_without_a_category(tmp_path):
    group = zarr.create_group(tmp_path)
    anndata_store.categorical(group, "none", [-1, -1], np.array([], dtype=np.float64))
    anndata_store.categorical(group, "outside", [0, -1, 2], np.array(["x", "y"]))
    anndata_store.categorical(group, "numbers", [0, -1, 1], np.array([1.5, 2.5]))
    opened = zarrow.open(tmp_path)
    none, numbers = (opened[name].read() for name in ("none", "numbers"))
    assert none.tolist() == none.arrow().to_pylist() == none.numpy().tolist() == [None, None]
    assert isinstance(numbers.numpy(), np.ma.MaskedArray) and numbers.numpy().tolist() == [1.5, None, 2.5]
    assert numbers.polars().cast(pl.Float64).to_list() == [1.5, None, 2.5]
    with pytest.raises(zarrow.CodecError, match="element 2 has code 2, but there are only 2 categories"):
        opened["outside"].read()
    with pytest.raises(OSError, match=r"outside/codes.*|element 2 has code 2"):
        pa.table(opened.to_arrow(["outside"]))


def test_contradictory_groups_are_refused(tmp_path):
    group = zarr.create_group(tmp_path)
    anndata_store.nullable(group, "longer", np.arange(3), [True, False])
    anndata_store.nullable(group, "gone", np.arange(3), [True, False, False])
    del group["gone"]["mask"]
    anndata_store.categorical(group, "floats", [0], np.array(["x"]))
    del group["floats"]["codes"]
    group["floats"].create_array("codes", shape=(1,), dtype="f4")
    group.create_group("table", attributes={"encoding-type": "dataframe", "_index": 3})
    group.create_group("plain", attributes={"encoding-type": "raw"})
    opened = zarrow.open(tmp_path)
    for name, error in [("longer", "a bool mask"), ("floats", "1-D integer codes")]:
        with pytest.raises(zarrow.MetadataError, match=error):
            opened[name].read()
        with pytest.raises(zarrow.MetadataError, match=error):
            opened.to_arrow([name])
    with pytest.raises(zarrow.NotFoundError):
        opened["gone"].read()
    with pytest.raises(zarrow.MetadataError, match="_index and column-order"):
        opened["table"].to_arrow()
    with pytest.raises(zarrow.NodeTypeError, match="a group that stands for one"):
        opened["plain"].read()
    anndata_store.nullable(group, "fine", np.arange(3), [True, False, False])
    with pytest.raises(zarrow.IndexingError, match="fine"):
        opened["fine"].read(9)


def test_a_categorical_compares_as_pandas_does(cells):
    kind, stage = cells["kind"].read(), cells["stage"].read()
    theirs = pd.Categorical(EXPECTED["kind"], ["B", "T"])
    ordered = pd.Categorical(EXPECTED["stage"], [10, 20, 30], ordered=True)
    for compare in (operator.eq, operator.ne):
        for other in ("T", "none of them", theirs, kind, np.array(["T", "B", "B", "B"])):
            expected = np.asarray(compare(theirs, theirs if other is kind else other))
            np.testing.assert_array_equal(compare(kind, other), expected)
        np.testing.assert_array_equal(compare("T", kind), compare(theirs, "T"))
        np.testing.assert_array_equal(compare(theirs, kind), compare(theirs, theirs))
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
        for other in (20, ordered[::-1]):
            np.testing.assert_array_equal(compare(stage, other), compare(ordered, other))
    for refused in (lambda: kind < "T", lambda: stage < 15, lambda: kind == stage, lambda: hash(kind)):
        with pytest.raises(TypeError):
            refused()
    with pytest.raises(ValueError, match="cannot compare 4 values with 2 values"):
        kind == kind[:2]  # noqa: B015


def test_a_categorical_indexes_iterates_and_converts(cells):
    kind, stage = cells["kind"].read(), cells["stage"].read()
    assert list(kind) == EXPECTED["kind"] and [kind[at] for at in range(-4, 4)] == EXPECTED["kind"] * 2
    assert stage[0] == 10 and kind[0] == "T" and kind[1] is None and "T" in kind and "x" not in kind
    for index in (slice(1, None), [0, 2], kind == "T", np.array([3, 1])):
        part = kind[index]
        assert isinstance(part, zarrow.Categorical)
        assert part.tolist() == np.array(EXPECTED["kind"], object)[index].tolist()
    with pytest.raises(IndexError):
        kind[4]
    assert np.asarray(kind).tolist() == EXPECTED["kind"] and np.asarray(stage).tolist() == EXPECTED["stage"]
    series = pd.Series(kind)
    assert series.isna().tolist() == [False, True, False, False] and series[0] == "T"
    assert kind.arrow().to_pandas().dtype == "category"
    loaded = pickle.loads(pickle.dumps(stage))
    assert loaded.tolist() == EXPECTED["stage"] and loaded.ordered
    assert (kind.ndim, kind.size) == (1, 4)
    with pytest.raises(AttributeError, match=r"type x\.arrow\(\)\.to_pandas\(\)"):
        kind.to_pandas()
    counts = pd.Series(kind.arrow().to_pandas()).value_counts()
    assert counts.to_dict() == {"T": 2, "B": 1}


@pytest.mark.parametrize(
    ("categories", "expected"),
    [
        (np.array([10, 20], "i2"), [20.0, np.nan]),
        (np.array(["2020", "2021"], "M8[D]"), [np.datetime64("2021-01-01"), np.datetime64("NaT", "D")]),
        (np.array([False, True]), [True, None]),
    ],
)
def test_missing_values_to_numpy(tmp_path, categories, expected):
    group = zarr.create_group(tmp_path)
    anndata_store.categorical(group, "a", [1, -1], categories)
    found = np.asarray(zarrow.open(tmp_path)["a"].read())
    np.testing.assert_array_equal(found, np.array(expected))


@pytest.mark.parametrize("version", [2, 3])
def test_categoricals_are_stored_as_anndata_stores_them(tmp_path, cells, version):
    root = zarrow.create_group(tmp_path, zarr_format=version)
    made = pd.Categorical(["b", None, "a", "b"], ["b", "a"], ordered=True)
    arrow = pa.chunked_array(
        [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    )
    root.create_array("pandas", data=made, missing="anndata")
    root.create_array("series", data=pd.Series(made), missing="anndata", chunks=3)
    root.create_array(
        "polars", data=pl.Series(["b", None, "a", "b"], dtype=pl.Categorical), missing="anndata"
    )
    root.create_array("arrow", data=arrow, missing="anndata")
    for name in ("pandas", "series", "polars", "arrow"):
        found = root[name].read()
        assert isinstance(found, zarrow.Categorical) and found.tolist() == ["b", None, "a", "b"], name
        assert found.categories.tolist() == ["b", "a"] and found.ordered == (name in ("pandas", "series"))
    for name in ("kind", "stage"):
        for _ in range(2):  # the second replaces the first
            root[name] = cells[name].read()
        assert root[name].read().tolist() == EXPECTED[name]
        stored = zarr.open_group(tmp_path, mode="r")[name]
        assert stored.attrs["encoding-type"] == "categorical" and stored.attrs["ordered"] == (name == "stage")
        assert stored["codes"][:].tolist() == cells[name].read().codes.tolist()
        assert stored["codes"].attrs["encoding-type"] == "array"
    root.create_array("nothing", data=pd.Categorical([]), missing="anndata")
    assert root["nothing"].read().tolist() == []
    frame = pd.DataFrame({"size": [1, 2], "kind": pd.Categorical(["x", "y"])})
    zarrow.save(tmp_path / "frame", frame, missing="anndata")
    assert pa.table(zarrow.open(tmp_path / "frame").to_arrow()).to_pandas().equals(frame)
    with pytest.warns(zarrow.ZarrowWarning, match="the order of the categories"):
        root["text"] = made[[0, 2]]
    assert root["text"][...].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("codes", "categories"), [([0, 2], ["a", "b"]), ([0, 1], ["a", "a"]), ([1, 0], [3, 3]), ([5, -1], [])]
)
def test_malformed_categoricals_are_refused(tmp_path: Path, codes: list[int], categories: list[Any]) -> None:
    root = zarrow.create_group(tmp_path)
    attributes = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "i"}
    table = root.create_group("t", attributes={**attributes, "column-order": ["c"]})
    table["i"] = [1, 2]
    kind = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
    stored = table.create_group("c", attributes=kind)
    stored["codes"] = np.array(codes, "i1")
    stored["categories"] = np.array(categories, np.dtypes.StringDType() if "a" in categories else "i8")
    for read in (
        root["t/c"].read,
        lambda: root["t/c"].read([1, 0]),
        lambda: pa.table(root["t"].to_arrow()),
        root["t"].to_pandas,
    ):
        with pytest.raises((zarrow.ZarrowError, OSError), match=r"categor.*twice|categories"):
            read()


def test_other_encodings_name_a_reader(tmp_path):
    group = zarr.create_group(tmp_path)
    matrix = scipy.sparse.random(5, 4, 0.4, "csr", random_state=0)
    for kind in ("csr", "csc"):
        stored = group.create_group(
            kind, attributes={"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": [5, 4]}
        )
        for name in ("data", "indices", "indptr"):
            anndata_store.array(stored, name, getattr(matrix.asformat(kind), name))
    anndata_store.cells(group.create_group("obs"))
    group.create_group("all", attributes={"encoding-type": "anndata"})
    opened = zarrow.open(tmp_path)
    for name, way in (("obs", r"type group.to_pandas\(\)"), ("all", r"type zarrow\.load\(path\)")):
        with pytest.raises(zarrow.NodeTypeError, match=way):
            opened[name].read()
    for name in ("csr", "csc"):
        assert (opened[name].read() != matrix).nnz == 0
    assert opened["obs"].to_pandas().shape == (4, 6)
    assert opened["obs"].to_arrow().arrow().num_rows == 4


def test_a_group_that_stands_for_an_array_names_what_reads_it(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"kind": pd.Categorical(["T", None, "B"]), "n": pd.array([3, None, 3], "Int64")}, list("abc")
    )
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    zarrow.save(tmp_path / "a.zarr", anndata.AnnData(matrix, obs=table))
    root = zarrow.open(tmp_path / "a.zarr")
    assert np.array(root["obs/kind"].read()[::2], dtype=str).tolist() == ["T", "B"]
    for group, way in (
        (root["obs/kind"], r"group.read\(\)"),
        (root["obs/n"], r"group.read\(\)"),
        (root["X"], r"group.read\(\) reads the matrix"),
        (root, r"zarrow.load\(path\)"),
    ):
        # Its length is the number of its members: pandas would make a Series of that length.
        for convert in (np.asarray, pd.Series, lambda group: table.assign(new=group)):
            with pytest.raises(TypeError, match=way):
                convert(group)
    for name in ("obs/kind", "obs/n"):
        with pytest.raises(TypeError, match=r"group.read\(\) first"):
            root[name] == "T"  # noqa: B015
    assert root != "T" and root["obs"] != 1 and root["X"] not in ["a"]
