"""The reader for the lazy views of zarr-indexing, compared with the reader of the library itself.

`make test-upstream` installs zarr-indexing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zarrow

zarr_indexing = pytest.importorskip("zarr_indexing", reason="make test-upstream installs it")

SHAPE = (7, 9, 5)
ELEMENTS = np.arange(7 * 9 * 5, dtype="i4").reshape(SHAPE)


def sources(folder: Path, **options: Any) -> dict[str, Any]:
    """Return the array of one store as zarrow, zarr-python on the engine, and zarr-python open it."""
    array = zarr.create_array(folder, shape=SHAPE, dtype="i4", overwrite=True, **options)
    array[...] = ELEMENTS
    with zarrow.zarr_python.enable():
        engine = zarr.open_array(folder, mode="r+")
    return {"zarrow": zarrow.open(folder), "engine": engine, "own": array}


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return sources(tmp_path_factory.mktemp("lazy") / "a", chunks=(2, 3, 5), shards=(4, 6, 5))


def lazy(array: Any) -> Any:
    return zarr_indexing.LazyArray(array).with_reader(zarrow.zarr_python.reader)


VIEWS: dict[str, Any] = {
    "all": lambda view: view,
    "slices": lambda view: view[1:6:2, ::3, 4],
    "reversed": lambda view: view[::-1, ::-2, 1:][:, 1:],
    "integers": lambda view: view[3, 2, 1],
    "new axes": lambda view: view[None, 2, :, None, 1:3],
    "empty": lambda view: view[3:3, :, 0],
    "orthogonal": lambda view: view.oindex[[6, 0, 6], :, [4, 1]],
    "mask": lambda view: view.oindex[np.arange(7) % 2 == 0, 3, :],
    "points": lambda view: view.vindex[[6, 0, 3], [8, 8, 0], [1, 1, 4]],
    "points of all axes": lambda view: view.vindex[ELEMENTS % 5 == 1],
    "points and a slice": lambda view: view.vindex[[6, 0], [8, 1]][:, 1:4],
    "points of two axes": lambda view: view.vindex[[[6], [0]], [[8, 1, 2]]],
    "of a view": lambda view: view[::-1].oindex[[0, 5], 2:8:2, :][1, ::-1],
    "repeated": lambda view: view.vindex[np.zeros((3, 1), int), np.arange(4)[None]][:, 1],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("source", ["zarrow", "engine", "own"])
def test_lazy_views_are_read_as_by_the_library(arrays: dict[str, Any], source: str, name: str) -> None:
    expected = VIEWS[name](zarr_indexing.LazyArray.from_numpy(ELEMENTS)).result()
    view = VIEWS[name](lazy(arrays[source]))
    for each in (view, view.unpartitioned(), view.with_parts((3, 4, 2))):
        found = each.result()
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[str, Any]:
    bounds = st.none() | st.integers(-9, 9)
    slices = st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -3]))
    kind = draw(st.sampled_from(["basic", "orthogonal"]))
    selected = []
    for extent in shape:
        lists = st.lists(st.integers(-extent, extent - 1), max_size=4).map(lambda items: np.array(items, int))
        one = st.integers(-extent, extent - 1) if extent else slices
        selected.append(draw(slices | one | lists if kind == "orthogonal" and extent else slices | one))
    return kind, tuple(selected)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), source=st.sampled_from(["zarrow", "engine"]))
def test_views_of_views(arrays: dict[str, Any], data: st.DataObject, source: str) -> None:
    own, ours = zarr_indexing.LazyArray.from_numpy(ELEMENTS), lazy(arrays[source])
    for _ in range(data.draw(st.integers(1, 3))):
        kind, key = data.draw(keys(own.shape))
        own, ours = (each[key] if kind == "basic" else each.oindex[key] for each in (own, ours))
    for each in (ours, ours.unpartitioned()):
        np.testing.assert_array_equal(each.result(), own.result())


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "repeated"])
@pytest.mark.parametrize("source", ["zarrow", "engine"])
def test_lazy_views_are_written(tmp_path: Path, source: str, name: str) -> None:
    array = sources(tmp_path / "a", chunks=(2, 3, 5))[source]
    expected = ELEMENTS.copy()
    for target in (zarr_indexing.LazyArray.from_numpy(expected), lazy(array)):
        view = VIEWS[name](target)
        view.write(-np.arange(view.size, dtype="i4").reshape(view.shape))
    np.testing.assert_array_equal(np.asarray(array[...]), expected)


def test_text_is_read(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a", data=[["a", "bb"], ["", "ccc"]])
    assert lazy(array)[::-1, 1].result().tolist() == ["ccc", "bb"]
    assert lazy(array).vindex[[1, 0], [1, 0]].result().tolist() == ["ccc", "a"]


def test_an_unpartitioned_view_is_one_read(arrays: dict[str, Any]) -> None:
    reads = []

    class Counted(zarrow.zarr_python.Reader):
        def read_into(self, source: Any, context: Any, out: Any, /) -> None:
            reads.append(out.shape)
            super().read_into(source, context, out)

    view = zarr_indexing.LazyArray(arrays["zarrow"]).with_reader(Counted())
    np.testing.assert_array_equal(view.unpartitioned().result(), ELEMENTS)
    assert reads == [SHAPE]
