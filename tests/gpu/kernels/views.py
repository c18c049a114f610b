"""Strided views drawn by Hypothesis: permuted axes, any steps, margins, broadcast axes, odd addresses."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from .driver import Bytes

# Elements that are moved as opaque bytes.
ELEMENTS = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
    16: np.dtype("V16"),
}

shapes = st.lists(st.integers(1, 5), max_size=4).map(tuple)


@dataclass(frozen=True)
class View:
    """The layout of a shape's elements in a buffer of `nbytes` bytes."""

    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]
    nbytes: int

    @property
    def count(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    def of(self, content: Bytes, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
        """Return the elements in a buffer; NumPy checks that they are all inside."""
        return np.ndarray(self.shape, dtype, buffer=content, offset=self.offset, strides=self.strides)


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], item: int, *, broadcast: bool = False) -> View:
    """Draw a view of elements of `item` bytes. With `broadcast`, axes may have the stride 0."""
    order = draw(st.permutations(range(len(shape))))
    steps = draw(
        st.tuples(*[st.sampled_from([1, 1, 1, -1, 2, -3, *([0] if broadcast else [])]) for _ in shape])
    )
    margins = draw(st.tuples(*[st.integers(0, 2) for _ in shape]))
    strides = [0] * len(shape)
    # An odd start or row pitch makes elements unaligned.
    offset = draw(st.sampled_from([0, 0, 0, item, 1, 3]))
    pitch = item
    for axis in reversed(order):
        extent = (shape[axis] - 1) * abs(steps[axis]) + 1 + margins[axis]
        strides[axis] = steps[axis] * pitch
        if steps[axis] < 0:
            offset += (shape[axis] - 1) * -strides[axis]
        pitch = pitch * extent + draw(st.sampled_from([0, 0, 0, 1]))
    return View(shape, offset, tuple(strides), offset + pitch + draw(st.integers(0, 3)))


def random_bytes(nbytes: int, seed: int) -> Bytes:
    """Return random bytes."""
    return np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)
