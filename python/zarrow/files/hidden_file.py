"""A file that is written under a hidden name beside its place.

1. The name has a digest of the final name and a random number. The writer holds an `flock` of the file, which
   ends with its process.
2. A writer first removes the unlocked files of the same final name: their writers were killed. Without locks,
   they stay.
3. Another writer may remove the file after it is created and before it is locked. Then it is created again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def hidden_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Yield the path of a new hidden file beside `path`, and the file; remove it after the block."""
    digest = hashlib.blake2b(os.fsencode(path.name), digest_size=8).hexdigest()
    _remove_abandoned(path.parent, f".zarrow-{digest}-")
    while True:
        hidden = path.with_name(f".zarrow-{digest}-{secrets.token_hex(8)}{path.suffix}")
        with hidden.open("xb", buffering=0) as opened:
            with contextlib.suppress(OSError):
                # Waits for a writer that is removing the file.
                fcntl.flock(opened, fcntl.LOCK_EX)
            if not _is_at(hidden, opened):
                continue
            try:
                yield hidden, opened
            finally:
                with contextlib.suppress(FileNotFoundError):
                    hidden.unlink()
            return


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Step 2."""
    for name in [name for name in _names(folder) if name.startswith(prefix)]:
        with contextlib.suppress(OSError), (folder / name).open("rb") as found:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(folder / name, found):
                (folder / name).unlink()


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 -- names alone
    except OSError:
        return []


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether the file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False
