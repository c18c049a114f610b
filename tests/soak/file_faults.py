"""A failing file system: one kind of call is refused during one change.

The change succeeds or raises an error of zarrow; it never crashes. Afterwards everything can be opened, every
row is old or new, and the same change works.
"""

from __future__ import annotations

import errno
import os
import random
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import seccomp
import zarrow

ROWS, WIDTH = 8, 5000
FAULTS: list[dict[str, int]] = [
    {"pwritev": errno.ENOSPC, "pwritev2": errno.ENOSPC, "pwrite64": errno.ENOSPC},
    {"pwritev": errno.EIO, "pwritev2": errno.EIO, "pwrite64": errno.EIO},
    {"renameat": errno.EIO, "renameat2": errno.EIO},
    {"renameat2": errno.EINVAL},
    {"openat": errno.EMFILE},
    {"openat": errno.EACCES},
    {"openat": errno.ENOENT},
    {"fstat": errno.ENOENT, "newfstatat": errno.ENOENT, "statx": errno.ENOENT},
    {"mkdirat": errno.EEXIST},
    {"renameat": errno.ENOENT, "renameat2": errno.ENOENT},
    {"unlinkat": errno.EPERM},
    {"flock": errno.ENOLCK},
    {"flock": errno.ENOSYS},
    {"fsync": errno.EIO},
    {"fstat": errno.EIO, "newfstatat": errno.EIO, "statx": errno.EIO},
    {"pread64": errno.EIO, "preadv": errno.EIO, "preadv2": errno.EIO},
    {"mkdirat": errno.ENOSPC},
    {"utimensat": errno.EPERM},
    {"getdents64": errno.EIO},
    {"mmap": errno.ENOMEM},
    {"linkat": errno.EPERM},
]
CODECS: list[Any] = [None, "zstd", "blosc", "gzip", ["zstd", "crc32c"]]
NEW = np.full((ROWS, WIDTH), 2, "u4")

CHANGES: dict[str, Callable[[zarrow.Group], object]] = {
    "whole": lambda root: root["plain"].__setitem__(..., NEW),
    "part": lambda root: root["plain"].__setitem__((slice(None), slice(0, 2500)), NEW[:, :2500]),
    "shards": lambda root: root["shards"].__setitem__(..., NEW),
    "append": lambda root: root["plain"].append(NEW),
    "shrink": lambda root: root["plain"].resize((4, WIDTH)),
    "grow": lambda root: root["plain"].resize((20, WIDTH)),
    "attributes": lambda root: root.attrs.update(a=2),
    "create": lambda root: root.create_array("new/deep/array", data=NEW),
    "replace": lambda root: root.__setitem__("plain", NEW),
    "delete": lambda root: root.__delitem__("plain"),
    "consolidate": lambda root: root.consolidate_metadata(),
    "read": lambda root: (root["plain"][...], root["shards"][::2], list(root)),
    "map": lambda root: root["plain"].read(..., mmap=True),
}


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Draw a change and a fault, until the time is up."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    counts = {"changes": 0, "failed": 0, "passed": 0}
    while time.monotonic() < end:
        name, fault, odd = rng.choice(list(CHANGES)), rng.choice(FAULTS), rng.random() < 0.5
        durability = rng.choice(["none", "full"])
        case = (name, fault, odd, durability)
        with tempfile.TemporaryDirectory() as folder:
            prepare(folder, rng.choice(CODECS), rng.choice([2, 3]), rng.random() < 0.5)
            failed = in_child(folder, CHANGES[name], fault, odd)
            counts["changes"] += 1
            counts["failed" if failed else "passed"] += 1
            if name == "append":
                # A retry after an error must not store the rows twice.
                assert zarrow.open_array(folder + "/plain").shape[0] == (ROWS if failed else 2 * ROWS), case
            check(folder, name, case)
    return counts


def prepare(folder: str, codec: Any, version: Any, is_consolidated: bool) -> None:
    """Write the store to change."""
    root = zarrow.create_group(folder, zarr_format=version)
    options: dict[str, Any] = {"shape": NEW.shape, "dtype": "u4", "compressors": codec}
    shards = {"chunks": (1, 1000), "shards": (4, WIDTH)} if version == 3 else {"chunks": (4, 1000)}
    root.create_array("plain", chunks=(1, WIDTH), **options)[...] = 1
    root.create_array("shards", **shards, **options)[...] = 1
    if is_consolidated:
        root.consolidate_metadata()


def in_child(folder: str, change: Callable[[zarrow.Group], object], fault: dict[str, int], odd: bool) -> bool:
    """Make the change while the kernel refuses calls; return whether it raised an error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # The files that the process opens at its first use are open, as in a long-running program.
            root = zarrow.open(folder)
            assert isinstance(root, zarrow.Group)
            root["plain"][0].numpy()
            warnings.simplefilter("ignore")
            seccomp.refuse(fault, odd=odd)
            try:
                change(root)
                os._exit(0)
            except zarrow.ZarrowError:
                os._exit(1)
        except BaseException as error:
            os.write(writer, repr(error).encode()[:4000])
            os._exit(2)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        message = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1), (status, message, fault, odd)
    return status == 1


def check(folder: str, name: str, case: object) -> None:
    """Check that everything opens, every row is old or new, and the same change works now."""
    root = zarrow.open(folder)
    assert isinstance(root, zarrow.Group)
    # A change may have been stored without its copies, with a warning.
    root.consolidate_metadata()
    for member in root:
        array = root[member]
        if isinstance(array, zarrow.Array):
            found = array[...].numpy()
            assert np.isin(found, [0, 1, 2]).all(), (case, member)
            if name not in ("grow", "create"):
                assert (found != 0).all(), (case, member)
            if name != "part":
                assert (found == found[:, :1]).all() or member == "shards", (case, member, "torn")
    if name == "create" and "new" in root:
        del root["new"]
    if name != "delete" or "plain" in root:
        CHANGES[name](root)
