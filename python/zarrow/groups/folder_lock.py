"""A lock that serializes `Group.append` and `xarray.to_zarr` in a folder, in threads and in processes.

1. The lock is an `flock` of the folder itself: it leaves no file, and ends with the process.
2. A folder can be replaced while a writer waits: the lock is then of the old one, and is taken again.
3. Some network file systems have no locks of folders. There, changed documents are still found.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Self


class FolderLock:
    """The lock of a folder, taken at the start of the `with` block if `at_once`. No path, no lock."""

    def __init__(self, path: Path | None, *, at_once: bool) -> None:
        self._path = path
        self._at_once = at_once
        self._folder: int | None = None

    def __enter__(self) -> Self:
        if self._at_once:
            self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    def take(self) -> None:
        """Wait for the lock, unless it is held or the folder is missing."""
        if self._path is None:
            return
        while not self._is_current():
            self._release()
            try:
                self._folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                return
            try:
                fcntl.flock(self._folder, fcntl.LOCK_EX)
            except OSError:  # step 3
                self._release()
                return
            except BaseException:
                self._release()
                raise

    def _is_current(self) -> bool:
        """Whether the folder at the path is locked (step 2)."""
        if self._folder is None or self._path is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._folder), self._path.stat())
        except OSError:
            return False

    def _release(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            # A forked child may have a copy of the descriptor: closing alone would not unlock.
            with contextlib.suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_UN)
            os.close(folder)
