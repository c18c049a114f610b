"""Sessions of icechunk: consolidated metadata, xarray, and handles that are used after the commit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import icechunk
import numpy as np
import pytest

import zarrow
import zarrow.xarray

xarray = pytest.importorskip("xarray")


def new_session() -> Any:
    return icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main")


def dataset() -> Any:
    return xarray.Dataset({"rain": ("day", [1.0, 2.0])})


@pytest.mark.parametrize("of_session", [lambda session: session, lambda session: session.store])
def test_consolidation_is_refused_in_icechunk(of_session: Callable[[Any], Any]) -> None:
    session = new_session()
    zarrow.save(session, x=np.arange(3), **{"below/y": np.arange(3)})
    for consolidate in (
        lambda: zarrow.consolidate_metadata(of_session(session)),
        lambda: zarrow.open(of_session(session), mode="r+").consolidate_metadata(),
        lambda: zarrow.open(of_session(session), "below", mode="r+").consolidate_metadata(),
    ):
        with pytest.raises(zarrow.UnsupportedError, match="icechunk has no consolidated metadata"):
            consolidate()
    assert not zarrow.open(session)._is_consolidated()
    assert zarrow.open(session)["below/y"][...].tolist() == [0, 1, 2]


def test_attributes_may_be_named_as_consolidated_metadata() -> None:
    session = new_session()
    zarrow.create_group(session, attributes={"consolidated_metadata": {"a": 1}})
    assert zarrow.open(session).attrs["consolidated_metadata"] == {"a": 1}


def test_anndata_in_icechunk_is_complete_without_consolidation() -> None:
    anndata = pytest.importorskip("anndata")
    session = new_session()
    zarrow.save(session, anndata.AnnData(np.ones((3, 2), "f4")))
    root = zarrow.open(session)
    assert not root._is_consolidated()
    assert root.attrs["encoding-type"] == "anndata"
    np.testing.assert_array_equal(root["X"][...], np.ones((3, 2)))


@pytest.mark.parametrize("consolidated", [None, False])
def test_xarray_writes_and_reads_a_session(consolidated: bool | None) -> None:
    tree = xarray.DataTree.from_dict({"/": dataset(), "/below": dataset()})
    for obj in (dataset(), dataset()["rain"], tree):
        for wrapped in (lambda session: session, zarrow.PythonStore):
            session = new_session()
            zarrow.xarray.to_zarr(obj, wrapped(session), consolidated=consolidated)
            with warnings.catch_warnings():
                # None asks for consolidation neither in the write nor in the read.
                warnings.simplefilter("error")
                found = zarrow.xarray.open_zarr(wrapped(session), chunks=None, consolidated=consolidated)
                engine = xarray.open_dataset(wrapped(session), engine="zarrow", consolidated=consolidated)
                trees = xarray.open_datatree(wrapped(session), engine="zarrow", consolidated=consolidated)
            for each in (found, engine, trees.to_dataset()):
                assert zarrow.xarray.load(each)["rain"].values.tolist() == [1.0, 2.0]
            assert not zarrow.open(session)._is_consolidated()


def test_xarray_refuses_to_consolidate_in_a_session() -> None:
    session = new_session()
    with pytest.raises(zarrow.UnsupportedError, match="leave consolidated out"):
        zarrow.xarray.to_zarr(dataset(), session, consolidated=True)
    with pytest.raises(zarrow.NotFoundError):
        zarrow.open(session)


def test_handles_of_a_committed_session_are_read_only() -> None:
    session = new_session()
    root = zarrow.create_group(session)
    array = zarrow.create_array(session, "x", data=np.arange(4), chunks=(2,))
    session.commit("x")
    for change in (
        lambda: array.write(..., [7, 8, 9, 10]),
        lambda: array.attrs.update(unit="m"),
        lambda: array.resize(9),
        lambda: root.create_group("new"),
        lambda: root.__delitem__("x"),
    ):
        with pytest.raises(zarrow.StorePermissionError, match=r"writable_session\(branch\)"):
            change()
    np.testing.assert_array_equal(array[...], np.arange(4))
