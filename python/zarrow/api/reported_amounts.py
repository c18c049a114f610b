"""Adds up the bytes of finished elements for `progress=`, of a call that stores or reads several arrays.

1. The total is estimated before: text counts by a guess, and values without a known size as nothing.
2. An array that takes several parts advances by each of them, and any other value when it is finished.
3. The first report is made before anything is stored or read: a function that always fails changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Group
from zarrow.interchange.lazy_arrays import estimated_nbytes

if TYPE_CHECKING:
    from zarrow.api.progress import Progress


class Amount:
    """The bytes that are finished, and all."""

    def __init__(self, progress: Progress | None, total: int = 0) -> None:
        self.is_reported = progress is not None
        self._progress = progress
        self._done, self._total = 0, total
        self._end = 0

    def expect(self, nbytes: int) -> None:
        """Raise the total."""
        self._total += nbytes

    def begin(self, nbytes: int) -> None:
        """Begin a value of this size (step 2)."""
        self._end = min(self._done + nbytes, self._total)
        if self._done == 0:
            # Step 3.
            self._reach(0)

    def add(self, nbytes: int) -> None:
        """Report that a part of the value is finished."""
        self._reach(min(self._done + nbytes, self._end))

    def finish(self) -> None:
        """Report that the value is finished."""
        self._reach(self._end)

    def finish_all(self) -> None:
        """Report that everything is finished, unless the last value did."""
        if self._done < self._total or self._total == 0:
            self._reach(self._total)

    def _reach(self, done: int) -> None:
        self._done = done
        if self._progress is not None:
            self._progress(done, self._total)


def size_of(value: Any) -> int:
    """Return the bytes of the elements of a value to store; 0 if unknown (step 1)."""
    if isinstance(value, Array):
        return estimated_nbytes(value)
    if isinstance(value, Group):
        return 0
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    size_of_polars = getattr(value, "estimated_size", None)
    nbytes = getattr(value, "nbytes", None) if size_of_polars is None else size_of_polars()
    return nbytes if isinstance(nbytes, int) else 0
