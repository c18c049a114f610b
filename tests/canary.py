"""Memory for `out=` with canary bytes around and between its elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

CANARY = 0xA5


class Canary:
    """An output array surrounded by canary bytes, which a read must not change.

    `order` maps each axis of the memory, outermost first, to an axis of the array. `steps` is the distance
    between neighbouring elements along each axis of the array; negative steps run backwards.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        order: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self._shape = tuple(shape)
        self._order = tuple(range(len(shape))) if order is None else tuple(order)
        self._steps = (1,) * len(shape) if steps is None else tuple(steps)
        # One spare place at both ends of each axis.
        self._extents = [abs(self._steps[axis]) * self._shape[axis] + 2 for axis in self._order]
        self._guard = max(self.dtype.itemsize, 64)
        length = math.prod(self._extents) * self.dtype.itemsize + 2 * self._guard
        self._bytes = np.full(length, CANARY, np.uint8)
        self.out = self._elements(self._bytes.view(), self.dtype)

    def _elements(self, memory: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return a view of the elements in `memory`, which has the canary's layout."""
        inside = memory[self._guard : memory.size - self._guard].view(dtype).reshape(self._extents)
        slices = []
        for axis in self._order:
            step, extent = self._steps[axis], self._shape[axis]
            forwards = slice(1, 1 + abs(step) * extent, abs(step))
            slices.append((forwards, slice(None, None, -1 if step < 0 else 1)))
        inside = inside[(*(forwards for forwards, _ in slices), ...)][(*(turn for _, turn in slices), ...)]
        return inside.transpose(np.argsort(self._order)) if self._order else inside

    def is_intact(self) -> bool:
        """Return whether every byte outside of the elements is unchanged."""
        ours = np.zeros(self._bytes.size, np.uint8)
        self._elements(ours, np.dtype(f"V{self.dtype.itemsize}"))[...] = b"\xff" * self.dtype.itemsize
        return bool((self._bytes[ours == 0] == CANARY).all())

    def is_untouched(self) -> bool:
        """Return whether no byte was written."""
        return bool((self._bytes == CANARY).all())


def layouts(ndim: int) -> dict[str, dict[str, Any]]:
    """Return every memory layout that a read must distinguish, as arguments of `Canary`."""
    found: dict[str, dict[str, Any]] = {
        "c": {},
        "gaps": {"steps": (3,) * ndim},
        "backwards": {"steps": (-1,) * ndim},
        "last axis backwards": {"steps": (*(1,) * (ndim - 1), -1)},
        "gaps, backwards": {"steps": (-2,) * ndim},
        "rows apart": {"steps": (2, *(1,) * (ndim - 1))},
    }
    for order in itertools.islice(itertools.permutations(range(ndim)), 1, None):
        found[f"axes {order}"] = {"order": order}
    found["transposed, backwards, gaps"] = {
        "order": tuple(range(ndim))[::-1],
        "steps": (*(-2,) * (ndim - 1), 3),
    }
    return found
