"""Rows by positions, compared with NumPy's indexing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .driver import Driver
from .settings import PROPERTIES
from .structs import Gather, lengths, strides
from .views import ELEMENTS, View, random_bytes, shapes, views

pytestmark = pytest.mark.kernels


@st.composite
def rows(draw: st.DrawFn) -> tuple[int, View, View, list[int]]:
    """The side with all rows, the side with the listed rows, and the list; some positions are invalid."""
    item = draw(st.sampled_from([1, 2, 4, 8, 16]))
    inner = draw(shapes.filter(lambda shape: len(shape) < 4))
    count = draw(st.integers(1, 6))
    index = draw(st.lists(st.integers(-2, count + 1), min_size=1, max_size=8))
    return item, draw(views((count, *inner), item)), draw(views((len(index), *inner), item)), index


@PROPERTIES
@given(rows(), st.booleans())
def test_rows_are_taken_and_put(
    shared: Driver, drawn: tuple[int, View, View, list[int]], scatter: bool
) -> None:
    item, table, listed, index = drawn
    if scatter:
        # Any of several equal positions may win, so each occurs once.
        index = [at if at not in index[:number] else -1 for number, at in enumerate(index)]
    source, destination = (listed, table) if scatter else (table, listed)
    content, before = random_bytes(source.nbytes, 1), random_bytes(destination.nbytes, 2)
    after = before.copy()
    target, elements = destination.of(after, ELEMENTS[item]), source.of(content, ELEMENTS[item])
    for number, at in enumerate(index):
        if 0 <= at < table.shape[0]:
            if scatter:
                target[at] = elements[number]
            else:
                target[number] = elements[at]
    with shared.memory(content, before, np.array(index, np.int64).view(np.uint8)) as addresses:
        parameters = Gather(
            source=addresses[0] + source.offset,
            destination=addresses[1] + destination.offset,
            index=addresses[2],
            index_count=len(index),
            row_count=table.shape[0],
            source_row_stride=source.strides[0],
            destination_row_stride=destination.strides[0],
            row_elements=source.count // source.shape[0],
            shape=lengths(source.shape[1:]),
            source_stride=strides(source.strides[1:]),
            destination_stride=strides(destination.strides[1:]),
            rank=len(source.shape) - 1,
            scatter=scatter,
        )
        shared.launch(f"zarrow_gather_{item}", parameters, threads=6)
        np.testing.assert_array_equal(shared.download(addresses[1], len(after)), after)
