"""Members of a group in a bucket are opened together: round trips, and equal results."""

from __future__ import annotations

from pathlib import Path

import anndata
import numpy as np
import pandas
import pytest
import scipy.sparse

import zarrow
from counted_bucket import Bucket, counted_bucket
from round_trips import in_few_round_trips
from zarrow import data

pytestmark = [pytest.mark.small_files, pytest.mark.filterwarnings("ignore::zarrow.errors.ZarrowWarning")]

FRAME = pandas.DataFrame(
    {f"number{at}": np.arange(6) + at for at in range(10)}
    | {f"kind{at}": pandas.Categorical(["x", "y", "x", "z", "y", "x"]) for at in range(5)}
    | {f"maybe{at}": pandas.array([1, None, 3, 4, None, 6], dtype="Int64") for at in range(5)},
    index=list("abcdef"),
)


def opened(bucket: Bucket, name: str) -> zarrow.Group:
    """Open a group without its consolidated metadata."""
    store = zarrow.CloudStore(bucket.url(name), storage_options=bucket.options)
    return zarrow.open_group(store)._without_consolidated()


@in_few_round_trips(counted_bucket)
def test_columns_of_a_table_are_opened_together(bucket: Bucket, tmp_path: Path) -> None:
    store = zarrow.CloudStore(bucket.url("table"), storage_options=bucket.options)
    zarrow.save(store, anndata.AnnData(obs=FRAME))
    found: list[pandas.DataFrame] = []
    group = opened(bucket, "table/obs")
    # Columns and members of columns, for the names and for the frame; then the elements.
    bucket.expect(lambda: found.append(group.to_pandas()), 5)
    pandas.testing.assert_frame_equal(found[0], FRAME)
    bucket.expect(lambda: group.to_arrow(["number3", "kind1", "maybe2"]), 2)
    assert group.to_pandas(["/kind2/"]).iloc[:, 0].tolist() == FRAME["kind2"].tolist()


@in_few_round_trips(counted_bucket)
def test_the_parts_of_a_sparse_matrix_are_opened_together(bucket: Bucket, tmp_path: Path) -> None:
    matrix = scipy.sparse.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    store = zarrow.CloudStore(bucket.url("cells"), storage_options=bucket.options)
    zarrow.save(store, anndata.AnnData(matrix))
    group = opened(bucket, "cells/X")
    bucket.expect(lambda: data.Plan(group, 8), 1)
    found = scipy.sparse.vstack(list(data.Loader(data.Plan(group, 8, order="sequential"))))
    assert np.array_equal(found.toarray(), matrix.toarray())


@in_few_round_trips(counted_bucket)
def test_the_fields_of_a_plan_are_opened_together(bucket: Bucket, tmp_path: Path) -> None:
    store = zarrow.CloudStore(bucket.url("fields"), storage_options=bucket.options)
    zarrow.save(store, {f"a{at}": np.arange(20) + at for at in range(12)})
    group, names = opened(bucket, "fields"), [f"a{at}" for at in range(12)]
    bucket.expect(lambda: data.Plan(group, 4, fields=names), 1)
    first = next(iter(data.Loader(data.Plan(group, 4, fields=names, order="sequential"))))
    assert [part.tolist() for part in first] == [[at, at + 1, at + 2, at + 3] for at in range(12)]
    with pytest.raises(zarrow.errors.NotFoundError, match="no field 'a99'"):
        data.Plan(group, 4, fields=["a1", "a99"])


@in_few_round_trips(counted_bucket)
def test_members_are_named_as_in_a_lookup(bucket: Bucket, tmp_path: Path) -> None:
    store = zarrow.CloudStore(bucket.url("names"), storage_options=bucket.options)
    for place in (store, tmp_path / "names"):
        zarrow.save(place, {"g": {"b": np.arange(3), "a": {"c": np.arange(4)}}})
        group = zarrow.open_group(place)["g"]._without_consolidated()
        paths = [node.path for node in group._get_each(["b", "", "/a/c/", "b", "a"])]
        assert paths == ["g/b", "g", "g/a/c", "g/b", "g/a"]
        with pytest.raises(zarrow.errors.NotFoundError, match="missing"):
            group._get_each(["b", "missing", "a//../b"])
        with pytest.raises(zarrow.errors.InvalidKeyError):
            group._get_each(["b", "a/../b", "missing"])


def test_members_of_a_folder_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    zarrow.save(tmp_path, {"b": np.arange(3), "a": {"c": np.arange(4)}})
    group = zarrow.open_group(tmp_path)
    assert [node.path for node in group._get_each(["b", "a/c", "b", "a"])] == ["b", "a/c", "b", "a"]
    with pytest.raises(KeyError, match="a/d"):
        group._get_each(["b", "a/d"])
