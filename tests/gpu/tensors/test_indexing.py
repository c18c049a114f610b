"""Reading and writing parts of tensors by every index of NumPy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import zarrow
from zarrow.errors import IndexingError

SHAPE = (4, 3, 5)
ARRAY = np.arange(60, dtype="i4").reshape(SHAPE)


@st.composite
def indices(draw: st.DrawFn) -> Any:
    """Draw integers, slices, lists, masks, `...` and None, at most one for each axis."""
    items: list[Any] = []
    lists = draw(arrays.array_shapes(max_dims=2, max_side=3))
    axis = 0
    count = draw(st.integers(0, len(SHAPE)))
    while axis < count:
        extent = SHAPE[axis]
        kind = draw(st.sampled_from(["integer", "slice", "list", "mask", "new"]))
        axis += kind != "new"
        if kind == "integer":
            items.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "slice":
            items.append(draw(st.slices(extent)))
        elif kind == "list":
            items.append(draw(arrays.arrays(np.int64, lists, elements=st.integers(-extent, extent - 1))))
        elif kind == "mask" and len(lists) == 1 and lists[0] <= extent:
            mask = np.zeros(extent, bool)
            mask[draw(st.permutations(range(extent)))[: lists[0]]] = True
            items.append(mask)
        elif kind == "mask":
            items.append(slice(None))
        elif len(items) < 5:
            items.append(None)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))) if axis == len(SHAPE) else len(items), ...)
    return tuple(items)


@settings(max_examples=150)
@given(indices(), st.booleans())
def test_parts_are_numpys(index: Any, turned: bool) -> None:
    array = ARRAY.transpose(0, 1, 2) if not turned else np.asfortranarray(ARRAY)
    tensor = zarrow.gpu.asarray(array)
    expected = array[index]
    part = tensor[index]
    assert part.shape == expected.shape
    assert np.array_equal(part.cpu().numpy(), expected)
    # For repeated positions NumPy uses any of the values, so these are all equal.
    target, numpys = tensor.T.copy().T, array.copy()
    target[index] = -1
    numpys[index] = -1
    assert np.array_equal(target.cpu().numpy(), numpys)


@settings(max_examples=80)
@given(indices())
def test_written_parts_are_read_again(index: Any) -> None:
    positions = ARRAY[index]
    if len(np.unique(positions)) != positions.size:
        return
    tensor, numpys = zarrow.gpu.asarray(ARRAY).T.copy().T, ARRAY.copy()
    values = np.arange(1000, 1000 + positions.size, dtype="i4").reshape(positions.shape)
    tensor[index] = values
    numpys[index] = values
    assert np.array_equal(tensor.cpu().numpy(), numpys)
    tensor[index] = zarrow.gpu.asarray(-values.astype("f8"))
    numpys[index] = -values
    assert np.array_equal(tensor.cpu().numpy(), numpys)


@pytest.mark.parametrize(
    "index",
    [
        7,
        (0, 0, 0, 0),
        [4],
        np.ones(3, bool),
        np.ones((4, 2), bool),
        (..., np.ones(4, bool)),
        (..., np.ones((3, 4), bool)),
        ([0, 1], [0, 1, 2]),
        [1.5],
        "name",
        (..., ...),
        True,
        [-5],
    ],
)
def test_wrong_indices(index: Any) -> None:
    tensor = zarrow.gpu.asarray(ARRAY)
    with pytest.raises(IndexingError):
        tensor[index]
    with pytest.raises(IndexingError):
        tensor[index] = 0


def test_masks_of_several_axes_and_of_the_device() -> None:
    tensor, array = zarrow.gpu.asarray(ARRAY), ARRAY.copy()
    for mask in (ARRAY > 30, ARRAY[:, :, 0] > 20, np.zeros(SHAPE, bool), np.ones(4, bool)):
        assert np.array_equal(tensor[mask].cpu().numpy(), array[mask])
        assert np.array_equal(tensor[zarrow.gpu.asarray(mask)].cpu().numpy(), array[mask])
    tensor[tensor == 7] = 70
    array[array == 7] = 70
    assert np.array_equal(tensor.cpu().numpy(), array)


def test_views_share_memory_and_overlapping_parts_are_copied() -> None:
    tensor, array = zarrow.gpu.asarray(ARRAY), ARRAY.copy()
    tensor[1:, ::-1, 2][0, 1] = 99
    array[1:, ::-1, 2][0, 1] = 99
    tensor[1:] = tensor[:-1]
    array[1:] = array[:-1].copy()
    tensor[:, :, ::-1] = tensor
    array[:, :, ::-1] = array.copy()
    assert np.array_equal(tensor.cpu().numpy(), array)


def test_values_that_do_not_fit() -> None:
    tensor = zarrow.gpu.asarray(ARRAY)
    for index, value in ((np.s_[0], np.zeros(4)), (np.s_[[0, 1]], np.zeros((3, 3, 5)))):
        with pytest.raises(ValueError, match="broadcast"):
            tensor[index] = value


def test_only_the_listed_elements_are_written() -> None:
    # The two axes of the lists do not merge.
    tensor, array = zarrow.gpu.asarray(ARRAY), ARRAY.copy()
    other = np.s_[[[1], [2]], [[0, 2]], 3]

    values = np.array([[-1, -2], [-3, -4]], "i4")
    tensor[other] = values
    array[other] = values
    assert np.array_equal(tensor.cpu().numpy(), array)
    # Values from the same memory, overlapping the written part.
    view, numpys = tensor.transpose(1, 0, 2), array.transpose(1, 0, 2)
    view[[0, 1, 2], [1, 2, 3]] = view[0, :3]
    numpys[[0, 1, 2], [1, 2, 3]] = numpys[0, :3].copy()
    assert np.array_equal(tensor.cpu().numpy(), array)


def test_threads_write_beside_each_other() -> None:
    tensor = zarrow.gpu.asarray(np.zeros((8, 64, 8), "i4")).transpose(0, 2, 1)

    def write(number: int) -> None:
        for value in range(1, 6):
            tensor[[[0], [3], [5]], [[1, 2]], number] = value * 100 + number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    expected = np.zeros((8, 8, 64), "i4")
    expected[np.ix_([0, 3, 5], [1, 2])] = 500 + np.arange(64)
    assert np.array_equal(tensor.cpu().numpy(), expected)
