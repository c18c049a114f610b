"""Sets of places as sorted runs, which take memory for each run and not for each place.

A place is the number of a sample by storage order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zarrow.data.permutation import Numbers


class Subset:
    """A set of places: sorted runs `[start, stop)` without overlap."""

    def __init__(self, starts: npt.ArrayLike, stops: npt.ArrayLike) -> None:
        self.starts: Numbers = np.asarray(starts, np.int64)
        self.stops: Numbers = np.asarray(stops, np.int64)
        # How many places precede each run; the total is last.
        self._before: Numbers = np.concatenate([[0], np.cumsum(self.stops - self.starts)]).astype(np.int64)

    @classmethod
    def whole(cls, count: int) -> Subset:
        """Return `range(count)`."""
        return cls([0], [count]) if count else cls([], [])

    @classmethod
    def from_mask(cls, mask: npt.NDArray[np.bool_]) -> Subset:
        """Return the places where a mask is true."""
        edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
        return cls(edges[::2], edges[1::2])

    def __len__(self) -> int:
        return int(self._before[-1])

    def __getitem__(self, ranks: Numbers) -> Numbers:
        """Return the places at ranks."""
        run = np.searchsorted(self._before, ranks, side="right") - 1
        return self.starts[run] + (ranks - self._before[run])

    def rank(self, place: int) -> int:
        """Return how many places are less than `place`."""
        run = int(np.searchsorted(self.starts, place, side="right")) - 1
        if run < 0:
            return 0
        return int(self._before[run] + min(place, self.stops[run]) - self.starts[run])

    def between(self, first: int, last: int) -> Subset:
        """Return the places with ranks in `[first, last)`."""
        starts = np.maximum(self._before[:-1], first)
        stops = np.minimum(self._before[1:], last)
        kept = starts < stops
        shift = (self.starts - self._before[:-1])[kept]
        return Subset(starts[kept] + shift, stops[kept] + shift)

    def places(self) -> Numbers:
        """Return all places."""
        return self[np.arange(len(self))]
