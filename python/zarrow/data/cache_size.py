"""How much a loader's cache of decoded chunks may take, in memory and on disk."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# More than any memory or disk.
_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class CacheSize:
    """Limits in bytes, and the folder of the files on disk."""

    memory_nbytes: int
    disk_nbytes: int
    folder: Path

    @classmethod
    def checked(cls, memory_nbytes: Any, disk_nbytes: Any, folder: Any) -> CacheSize | None:
        """Return the limits that a user gave; None for no cache.

        Raises
        ------
        TypeError
            A limit is no integer.
        ValueError
            A limit is negative, or a folder has no limit.
        """
        memory_nbytes = _checked(memory_nbytes, "cache_nbytes")
        disk_nbytes = _checked(disk_nbytes, "disk_cache_nbytes")
        if folder is not None and not disk_nbytes:
            raise ValueError("disk_cache_folder needs disk_cache_nbytes, the most bytes of files there")
        if folder is None:
            import tempfile

            folder = tempfile.gettempdir()
        return cls(memory_nbytes, disk_nbytes, Path(folder)) if memory_nbytes or disk_nbytes else None

    def share(self, part: int, whole: int) -> CacheSize:
        """Return the limits for a part of the elements."""
        memory, disk = (size * part // max(whole, 1) for size in (self.memory_nbytes, self.disk_nbytes))
        return replace(self, memory_nbytes=memory, disk_nbytes=disk)


def _checked(nbytes: Any, name: str) -> int:
    try:
        found = operator.index(nbytes)
    except TypeError:
        raise TypeError(f"{name} is a number of bytes, found {type(nbytes).__name__}") from None
    if found < 0:
        raise ValueError(f"{name} must not be negative, found {found}")
    return min(found, _MOST)
