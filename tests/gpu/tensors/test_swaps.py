"""Parts of a tensor on a GPU that exchange places: rows are never doubled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import zarrow
from test_swaps import ROWS, SWAPS, swap_elements


@pytest.mark.parametrize(("swap", "order"), SWAPS)
def test_parts_swap_on_a_gpu(swap: Callable[[Any], None], order: Callable[[Any], Any]) -> None:
    tensor = zarrow.gpu.asarray(ROWS.copy())
    swap(tensor)
    np.testing.assert_array_equal(tensor.cpu(), order(ROWS))


@pytest.mark.parametrize("dtype", ["u1", "c8", "M8[s]", "bfloat16"])
def test_parts_of_every_type_swap_on_a_gpu(dtype: str) -> None:
    tensor = zarrow.gpu.asarray(ROWS.astype("u1"))
    tensor = tensor.astype("i8").view(dtype) if dtype == "M8[s]" else tensor.astype(dtype)
    before = tensor.cpu().numpy().copy()
    tensor[0], tensor[5] = tensor[5], tensor[0]
    np.testing.assert_array_equal(tensor.cpu().numpy(), before[[5, 1, 2, 3, 4, 0]])


def test_elements_swap_on_a_gpu() -> None:
    tensor = zarrow.gpu.asarray(ROWS.copy())
    swap_elements(tensor)
    assert (tensor[0, 0].item(), tensor[5, 1].item()) == (11, 0)


def test_a_shuffle_on_a_gpu_keeps_each_row() -> None:
    tensor = zarrow.gpu.asarray(np.arange(40).reshape(20, 2))
    random.Random(1).shuffle(tensor)
    after = tensor.cpu().numpy()
    assert not np.array_equal(after, np.arange(40).reshape(20, 2))
    np.testing.assert_array_equal(after[np.argsort(after[:, 0])], np.arange(40).reshape(20, 2))


def test_a_fill_and_a_list_forget_what_was_overwritten() -> None:
    for write in (lambda t: t.fill(7), lambda t: t.__setitem__([0], 7), lambda t: t.__setitem__(0, 7)):
        tensor = zarrow.gpu.asarray(ROWS.copy())
        first = tensor[0]
        tensor[0] = tensor[1]
        write(tensor)
        tensor[2] = first
        assert tensor[2].cpu().tolist() == [7, 7]


def test_an_overwritten_part_that_overlaps_is_refused_on_a_gpu() -> None:
    tensor = zarrow.gpu.asarray(ROWS.copy())
    part = tensor[1:3]
    tensor[0:2] = part
    with pytest.raises(ValueError, match="overwritten before the assignment"):
        tensor[3:5] = part
