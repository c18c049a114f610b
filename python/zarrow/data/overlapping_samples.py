"""Which samples of one part of a split share elements with samples of a later part.

1. Windows and their distances grow with the number of the sample. So it is enough to compare the last index
   of a sample with the first index of the next sample in another part, over all sources of windows.
2. Crops at given corners lie anywhere. A grid of cells, each as large as a crop, finds candidates: two crops
   that share elements touch a common cell. Crops of one cell are compared with each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from zarrow.data.crops import Crops
from zarrow.data.permutation import Numbers
from zarrow.data.sources import Source
from zarrow.data.windows import Windows

# Comparisons of crops at once.
_PAIRS = 1 << 22


class Spans:
    """The indices of windows along their axis, over several sources (step 1)."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._windows = [source for source in sources if isinstance(source, Windows)]

    def __bool__(self) -> bool:
        return bool(self._windows)

    def first(self, samples: Numbers) -> Numbers:
        """Return the first index of each sample."""
        starts = np.array([source.offset + samples * source.step for source in self._windows])
        return starts.min(axis=0)

    def last(self, samples: Numbers) -> Numbers:
        """Return the last index of each sample."""
        ends = [
            source.offset + samples * source.step + (source.length - 1) * source.stride
            for source in self._windows
        ]
        return np.array(ends).max(axis=0)


def crops_apart(sources: Sequence[Source], parts: Numbers) -> npt.NDArray[np.bool_]:
    """Return which places share no element with a place of a later part, among crops (step 2).

    Parameters
    ----------
    sources
        The sources of a plan. Others than crops at given corners are ignored.
    parts
        The part of each place; negative for none.
    """
    kept = np.ones(len(parts), bool)
    crops = [source for source in sources if isinstance(source, Crops) and not source.is_random]
    places = np.arange(len(parts))
    for one, other in itertools.product(crops, repeat=2):
        if one is other or one.array == other.array:
            corners = one._at(places, (0, 0)), other._at(places, (0, 0))
            _drop(kept, parts, *corners, one.sample_shape, other.sample_shape)
    return kept


def _drop(
    kept: npt.NDArray[np.bool_],
    parts: Numbers,
    one: Numbers,
    other: Numbers,
    shape: tuple[int, ...],
    other_shape: tuple[int, ...],
) -> None:
    """Clear `kept` of places with a crop of `one` that shares elements with a later crop of `other`."""
    cell = np.maximum(np.maximum(shape, other_shape), 1)
    chosen = np.flatnonzero(parts >= 0)
    touched = [_cells(corners[chosen], cell) for corners in (one, other)]
    _, numbers = np.unique(np.concatenate(touched), axis=0, return_inverse=True)
    owners = np.tile(chosen, len(touched[0]) // max(len(chosen), 1))
    early, late = np.split(numbers.reshape(-1), 2)
    order, late_order = np.argsort(early, kind="stable"), np.argsort(late, kind="stable")
    early, late, owners_late = early[order], late[late_order], owners[late_order]
    owners = owners[order]
    begins = np.flatnonzero(np.diff(early, prepend=-1))
    for start, stop in zip(begins, np.append(begins[1:], len(early)), strict=True):
        low, high = np.searchsorted(late, [early[start], early[start] + 1])
        behind = owners_late[low:high]
        if not len(behind):
            continue
        for at in range(start, stop, max(1, _PAIRS // len(behind))):
            before = owners[at : min(stop, at + max(1, _PAIRS // len(behind)))]
            is_shared = parts[before][:, None] < parts[behind]
            for axis in range(one.shape[1]):
                distance = other[behind, axis] - one[before, axis][:, None]
                is_shared &= (distance < shape[axis]) & (distance > -other_shape[axis])
            kept[before[is_shared.any(axis=1)]] = False


def _cells(corners: Numbers, cell: npt.NDArray[np.int64]) -> Numbers:
    """Return the cells that each crop touches, at most two along each axis."""
    first = corners // cell
    steps = itertools.product((0, 1), repeat=corners.shape[1])
    return np.concatenate([first + np.array(step, np.int64) for step in steps])
