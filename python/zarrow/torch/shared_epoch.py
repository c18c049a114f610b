"""The epoch that the main process and its worker processes share."""

from __future__ import annotations

from typing import Any

import torch


class SharedEpoch:
    """An epoch in memory that worker processes share, so that persistent workers see changes."""

    def __init__(self) -> None:
        # The epoch, and the number of changes.
        self._shared = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._seen = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A pickle has a copy, unless it goes to a worker.
        self._shared.share_memory_()

    @property
    def value(self) -> int:
        """The epoch."""
        return int(self._shared[0])

    def set(self, epoch: int) -> None:
        """Set the epoch in all processes."""
        self._shared[0] = epoch
        self._shared[1] += 1

    def changed(self) -> int | None:
        """Return the epoch if it was set since the last call in this process."""
        changes = int(self._shared[1])
        if changes == self._seen:
            return None
        self._seen = changes
        return self.value
