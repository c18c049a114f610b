"""The order of an epoch: a pure function of seed, epoch and position.

1. Places are cut into blocks of `size`, which share stored chunks. Ends of the subset's runs cut blocks into
   ragged pieces.
2. `"window"`: blocks and pieces are permuted, and `slots` of them form a window. Its samples are permuted.
   Whole blocks have slots by a permutation; the slots of ragged pieces are listed.
3. `"sequential"`: windows of `slots` blocks, as stored.
4. `"shuffle"`, and blocks of one sample: all places are permuted. A window then is `slots` samples.

Memory is that of one window, of the subset's runs and of a table of at most 65,536 entries.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from zarrow.data.permutation import Numbers, Permutation, key, table
from zarrow.data.subset import Subset

Ordering: TypeAlias = Literal["sequential", "shuffle", "window"]


class Order:
    """The places of one epoch by position: `[0, len(subset))`."""

    def __init__(
        self, subset: Subset, kind: Ordering, size: int, phase: int, slots: int, seed: int, epoch: int
    ) -> None:
        self._subset = subset
        self._kind: Ordering = "shuffle" if kind == "window" and size == 1 else kind
        self._size, self._phase, self._slots = size, phase, slots
        self._key = (seed, epoch)
        self._window: tuple[int, Numbers] | None = None
        if self._kind == "shuffle":
            self._permutation = Permutation(len(subset), key(seed, epoch, "samples"))
        if self._kind == "window":
            self._cut_into_blocks()

    def __len__(self) -> int:
        return len(self._subset)

    def places(self, start: int, stop: int) -> Numbers:
        """Return the places at positions `[start, stop)`."""
        positions = np.arange(start, stop)
        if self._kind == "sequential":
            return self._subset[positions]
        if self._kind == "shuffle":
            return self._subset[self._permutation(positions)]
        parts = []
        while start < stop:
            number = self._window_of(start)
            first, last = self._position(number * self._slots), self._position((number + 1) * self._slots)
            parts.append(self._places_of(number)[start - first : min(stop, last) - first])
            start = last
        return np.concatenate(parts) if parts else positions

    def cut_after(self, position: int) -> int:
        """Return the next position where the window ends: a read up to here decodes each block once."""
        if self._kind == "shuffle":
            return min(position + self._slots, len(self))
        if self._kind == "sequential":
            cells = self._slots * self._size
            place = int(self._subset[np.array([position])][0])
            edge = ((place - self._phase) // cells + 1) * cells + self._phase
            return self._subset.rank(edge)
        return self._position((self._window_of(position) + 1) * self._slots)

    def _cut_into_blocks(self) -> None:
        """Find the whole blocks and the slots of ragged pieces (steps 1 and 2)."""
        size, phase, starts, stops = self._size, self._phase, self._subset.starts, self._subset.stops
        first = -(-(starts - phase) // size) * size + phase
        last = (stops - phase) // size * size + phase
        inside = first > last
        self._first_block = first
        counts = np.where(inside, 0, (last - first) // size)
        self._blocks_before = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        heads = np.stack([starts, np.where(inside, stops, first)], axis=1)
        tails = np.stack([np.where(inside, stops, last), stops], axis=1)
        pieces = np.concatenate([heads, tails])
        pieces = pieces[pieces[:, 0] < pieces[:, 1]]
        whole = int(self._blocks_before[-1])
        self._slot_count = whole + len(pieces)
        self._blocks = Permutation(self._slot_count, key(*self._key, "blocks"))
        slots = self._blocks.inverse(np.arange(whole, self._slot_count))
        by_slot = np.argsort(slots)
        self._ragged_slots, self._ragged = slots[by_slot], pieces[by_slot]
        lengths = self._ragged[:, 1] - self._ragged[:, 0]
        self._ragged_before = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def _position(self, slot: int) -> int:
        """Return how many positions precede a slot."""
        slot = min(slot, self._slot_count)
        ragged = int(np.searchsorted(self._ragged_slots, slot))
        return (slot - ragged) * self._size + int(self._ragged_before[ragged])

    def _window_of(self, position: int) -> int:
        """Return the window with a position, by bisection."""
        low, high = 0, -(-self._slot_count // self._slots)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._position(middle * self._slots) <= position else (low, middle)
        return low

    def _places_of(self, number: int) -> Numbers:
        """Return the places of a window in their order."""
        if self._window is None or self._window[0] != number:
            slots = np.arange(number * self._slots, min((number + 1) * self._slots, self._slot_count))
            ragged = np.searchsorted(self._ragged_slots, slots[[0, -1]] + [0, 1])
            blocks = self._blocks(slots)
            blocks = blocks[blocks < self._blocks_before[-1]]
            run = np.searchsorted(self._blocks_before, blocks, side="right") - 1
            starts = self._first_block[run] + (blocks - self._blocks_before[run]) * self._size
            parts = [(starts[:, None] + np.arange(self._size)).reshape(-1)]
            parts += [np.arange(start, stop) for start, stop in self._ragged[ragged[0] : ragged[1]]]
            places = np.concatenate(parts)
            self._window = number, places[table(len(places), key(*self._key, "window", number))]
        return self._window[1]
