"""The first reads of coordinates, which xarray makes one by one while it opens a dataset, as one batch.

xarray reads each index, and the first and the last element of each variable of times. The first of these
reads loads all such variables of the dataset or tree, which are small: in a remote store that is one round
trip, not one for each.

Elements of indexes are kept until they were requested completely, and elements of other times until the
dataset is open: later reads see later changes of the store.

Larger variables, and variables that cannot be read, are read one by one.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from zarrow._zarrow import _read_each
from zarrow.errors import ZarrowError

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from zarrow.xarray.arrays import ZarrowArray

# Elements of a variable in the batch, in bytes. Texts count as pointers.
_INDEX_NBYTES = 1 << 26
_TIMES_NBYTES = 1 << 20


class FirstReads:
    """The batch of a dataset or tree."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[ZarrowArray] = []
        self._only_for_opening: set[int] = set()
        self._values: dict[int, np.ndarray[Any, Any]] = {}

    def add(self, array: ZarrowArray, *, is_index: bool) -> bool:
        """Add an array to the batch, unless it is too large."""
        nbytes = math.prod(array.shape) * array.dtype.itemsize
        if nbytes > (_INDEX_NBYTES if is_index else _TIMES_NBYTES):
            return False
        self._waiting.append(array)
        if not is_index:
            self._only_for_opening.add(id(array))
        return True

    def end_of_opening(self) -> None:
        """Drop what xarray only looks at while it opens a dataset."""
        with self._lock:
            dropped, self._only_for_opening = self._only_for_opening, set()
            self._waiting = [array for array in self._waiting if id(array) not in dropped]
            for number in dropped:
                self._values.pop(number, None)

    def values(self, array: ZarrowArray, *, only_read: bool = False) -> np.ndarray[Any, Any] | None:
        """Return the elements of an array of the batch; None if it must be read alone."""
        with self._lock:
            if self._waiting and not only_read:
                waiting, self._waiting = self._waiting, []
                try:
                    decoded = _read_each([item.node for item in waiting])
                    self._values = {
                        id(item): item.view(part) for item, part in zip(waiting, decoded, strict=True)
                    }
                except (ZarrowError, OSError, ValueError, MemoryError):
                    # Each read alone raises its own error.
                    self._values = {}
            return self._values.get(id(array))

    def forget(self, array: ZarrowArray) -> None:
        """Drop the elements of an array that was read completely."""
        with self._lock:
            self._values.pop(id(array), None)
