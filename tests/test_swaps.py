"""Parts of a tensor that exchange places: rows are never doubled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zarrow

ROWS = np.arange(12.0).reshape(6, 2)


def swap_rows(t: Any) -> None:
    t[0], t[1] = t[1], t[0]


def swap_columns(t: Any) -> None:
    t[:, 0], t[:, 1] = t[:, 1], t[:, 0]


def swap_blocks(t: Any) -> None:
    t[0:2], t[2:4] = t[2:4], t[0:2]


def swap_elements(t: Any) -> None:
    t[0, 0], t[5, 1] = t[5, 1], t[0, 0]


def swap_by_a_name(t: Any) -> None:
    first = t[0]
    t[0] = t[3]
    t[3] = first


def rotate_left(t: Any) -> None:
    t[0], t[1], t[2] = t[1], t[2], t[0]


def rotate_right(t: Any) -> None:
    t[0], t[1], t[2] = t[2], t[0], t[1]


SWAPS: list[tuple[Callable[[Any], None], Callable[[Any], Any]]] = [
    (swap_rows, lambda t: t[[1, 0, 2, 3, 4, 5]]),
    (swap_columns, lambda t: t[:, ::-1]),
    (swap_blocks, lambda t: t[[2, 3, 0, 1, 4, 5]]),
    (swap_by_a_name, lambda t: t[[3, 1, 2, 0, 4, 5]]),
    (rotate_left, lambda t: t[[1, 2, 0, 3, 4, 5]]),
    (rotate_right, lambda t: t[[2, 0, 1, 3, 4, 5]]),
]


@pytest.mark.parametrize(("swap", "order"), SWAPS)
def test_parts_swap_as_items_of_a_list_do(swap: Callable[[Any], None], order: Callable[[Any], Any]) -> None:
    tensor = zarrow.asarray(ROWS.copy())
    swap(tensor)
    np.testing.assert_array_equal(tensor.numpy(), order(ROWS))


def test_elements_swap() -> None:
    tensor = zarrow.asarray(ROWS.copy())
    swap_elements(tensor)
    assert (float(tensor[0, 0]), float(tensor[5, 1])) == (11, 0)
    counts = zarrow.asarray(np.arange(3))
    counts[0], counts[2] = counts[2], counts[0]
    assert counts.tolist() == [2, 1, 0]


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("shape", [(40,), (40, 3), (10, 2, 2)])
@pytest.mark.parametrize(
    "shuffle",
    [
        random.Random(1).shuffle,
        np.random.RandomState(1).shuffle,
        np.random.default_rng(1).shuffle,
    ],
)
def test_a_shuffle_keeps_each_row(shuffle: Callable[[Any], None], shape: tuple[int, ...]) -> None:
    before = np.arange(np.prod(shape)).reshape(shape)
    tensor = zarrow.asarray(before.copy())
    shuffle(tensor)
    after = tensor.numpy()
    assert not np.array_equal(after, before)
    np.testing.assert_array_equal(after[np.argsort(after.reshape(len(after), -1)[:, 0])], before)


def test_a_shuffled_column_keeps_each_element() -> None:
    tensor = zarrow.asarray(ROWS.copy())
    random.Random(2).shuffle(tensor[:, 0])
    assert sorted(tensor[:, 0].tolist()) == ROWS[:, 0].tolist()
    np.testing.assert_array_equal(tensor[:, 1], ROWS[:, 1])


def test_a_view_taken_after_an_assignment_shows_it() -> None:
    tensor = zarrow.asarray(ROWS.copy())
    tensor[1] = tensor[0]
    tensor[2] = tensor[1]
    assert tensor[2].tolist() == ROWS[0].tolist()
    tensor[0] += 5
    assert tensor[0].tolist() == (ROWS[0] + 5).tolist()


def test_a_tensor_given_to_itself_is_what_it_shows() -> None:
    tensor, array = zarrow.asarray(ROWS.copy()), ROWS.copy()
    tensor[1:] = tensor[:-1]
    array[1:] = array[:-1].copy()
    tensor[::-1] = tensor
    np.testing.assert_array_equal(tensor, array[::-1])


def test_an_overlapping_part_that_was_overwritten_is_refused() -> None:
    tensor = zarrow.asarray(ROWS.copy())
    part = tensor[1:3]
    tensor[0:2] = part
    with pytest.raises(ValueError, match="overwritten before the assignment"):
        tensor[3:5] = part


@pytest.mark.parametrize("function", [np.mean, np.std, np.var, np.sum, np.max, np.cumsum, np.nanmean])
def test_results_go_to_a_tensor_as_out(function: Callable[..., Any]) -> None:
    expected = function(ROWS, axis=0)
    out = zarrow.asarray(np.zeros_like(expected))
    try:
        function(ROWS, axis=0, out=out)
    except TypeError as error:
        assert "array" in str(error)
        return
    np.testing.assert_array_equal(out, expected)


def test_ufuncs_write_to_tensors() -> None:
    tensor = zarrow.asarray(ROWS.copy())
    np.add(tensor, 1, out=tensor)
    np.testing.assert_array_equal(tensor, ROWS + 1)
    np.negative(tensor, where=tensor > 6, out=tensor)
    np.testing.assert_array_equal(tensor, np.where(ROWS + 1 > 6, -ROWS - 1, ROWS + 1))
    counts = zarrow.asarray(np.zeros(3, "i8"))
    np.add.at(counts, [0, 0, 2], 1)
    assert counts.tolist() == [2, 0, 1]
