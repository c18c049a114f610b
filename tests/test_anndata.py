"""Groups that stand for an array or a table, as AnnData writes them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
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
    none, outside, numbers = (opened[name].read() for name in ("none", "outside", "numbers"))
    assert none.tolist() == none.arrow().to_pylist() == none.numpy().tolist() == [None, None]
    assert isinstance(numbers.numpy(), np.ma.MaskedArray) and numbers.numpy().tolist() == [1.5, None, 2.5]
    assert numbers.polars().cast(pl.Float64).to_list() == [1.5, None, 2.5]
    with pytest.raises(zarrow.ShapeError, match="element 2 has the code 2, expected less than 2"):
        outside.arrow()
    with pytest.raises(IndexError):
        outside.numpy()
    with pytest.raises(OSError, match=r"outside/codes.*|element 2 has the code 2"):
        pa.table(opened.to_arrow(["outside"]))


def test_what_does_not_go_together_is_refused(tmp_path):
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
    for name, error in [("longer", "a mask of bools"), ("floats", "codes that are integers")]:
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
