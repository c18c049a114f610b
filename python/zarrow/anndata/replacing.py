"""Replacing a whole folder by one that was built beside it.

1. The new folder is built beside the target, under a hidden name. It is locked until it is in place: a folder
   with such a name and a free lock was left by a process that ended, and the next call removes it.
2. One system call exchanges the two folders, or gives the new one its name if there was no target.
3. The old folder is made inaccessible and removed: unless it runs as root, a program that holds it open gets
   errors for its chunks, and not fill values.
4. Where this is impossible, nothing changes and `replace` returns False: no permission in the parent folder,
   a mount point, a file system that cannot exchange folders, a folder of other files without a node, or the
   current folder.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import os
import re
import shutil
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# The engine's form of names: machine, process, start of the process (0: unknown), time and number.
_NAME = re.compile(r"\.zarrow-([0-9a-f]+)-[0-9a-f]+-0-[0-9a-f]+-[0-9a-f]+")
_COUNTER = itertools.count()
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux
_AT_CWD = -100
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_IMPOSSIBLE = (errno.EBUSY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def replace(path: str, build: Callable[[Path], None], is_replaceable: Callable[[], bool]) -> bool:
    """Build a folder and put it in place of another, or of none; return whether that was possible (step 4).

    `is_replaceable` says whether the target may be replaced; if it raises an error, nothing changes.
    """
    target = Path(os.path.realpath(path))
    if sys.platform != "linux" or (target.exists() and not target.is_dir()):
        return False
    if Path.cwd().is_relative_to(target):  # it would be removed
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        folder, lock = _new_folder(target.parent)
    except OSError as error:
        if error.errno in _DENIED:
            return False
        raise
    try:
        build(folder)
        return _put(folder, target, is_replaceable)
    except BaseException as error:
        error.add_note(f"nothing was changed at {str(target)!r}")
        raise
    finally:
        _remove(folder)
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder (step 3)."""
    with suppress(OSError):
        for entry in list(os.scandir(folder)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry, ignore_errors=True)
            else:
                Path(entry).unlink()
        folder.chmod(0)
        try:
            folder.rmdir()
        except OSError:
            folder.chmod(0o700)  # the next call removes it


def _put(folder: Path, target: Path, is_replaceable: Callable[[], bool]) -> bool:
    """Give the new folder its name (step 2); `folder` is then the old one, or does not exist."""
    while True:
        if not is_replaceable():
            return False
        try:
            if not target.is_dir() or not any(target.iterdir()):
                folder.rename(target)
                return True
            shutil.copymode(target, folder)
            _exchange(folder, target)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST) and folder.exists():
                continue  # another program changed the target in between
            if error.errno in _DENIED + _IMPOSSIBLE:
                return False
            raise
        return True


def _exchange(one: Path, other: Path) -> None:
    """Exchange two folders in one step."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    first, second = (ctypes.c_char_p(os.fsencode(path)) for path in (one, other))
    if function(_AT_CWD, first, _AT_CWD, second, _EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(one), None, str(other))


def _new_folder(parent: Path) -> tuple[Path, int]:
    """Create a hidden folder and lock it (step 1)."""
    while True:
        folder = parent / f".zarrow-{_machine():x}-{os.getpid():x}-0-{time.time_ns():x}-{next(_COUNTER):x}"
        folder.mkdir()
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.is_dir():
                return folder, lock
            os.close(lock)


def _sweep(parent: Path) -> None:
    """Remove the folders of processes of this machine that ended (step 1)."""
    for folder in parent.iterdir():
        found = _NAME.fullmatch(folder.name)
        if found is None or int(found[1], 16) != _machine():
            continue
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _machine() -> int:
    """Return a number of this machine since its start, never 0."""
    identity = os.uname().nodename
    with suppress(OSError):
        identity += Path("/proc/sys/kernel/random/boot_id").read_text()
    return zlib.crc32(identity.encode()) | 1


def folder_of(store: Any) -> str | None:
    """Return the folder that a store given as a path or a `file://` URL names; None for other stores."""
    if isinstance(store, os.PathLike):
        store = os.fspath(store)
    if not isinstance(store, str):
        return None
    if store.startswith("file://"):
        from urllib.parse import unquote, urlsplit

        address = urlsplit(store)
        return unquote(address.path) if address.netloc in ("", "localhost") else None
    return None if "://" in store or "::" in store or store.lower().endswith(".zip") else store
