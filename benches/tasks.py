"""The tasks: each prepares, and returns a function that runs once and returns seconds and result."""

import importlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from benches.peers import Peer
from benches.row import Row
from benches.scale import SMALL_CHUNK

Run = Callable[[], tuple[float, Any]]
CALLS = 100_000
TICK = 0.0002  # seconds


def timed(action: Callable[[], Any]) -> Run:
    """Time an action. Its result is dropped after the clock has stopped."""

    def run() -> tuple[float, Any]:
        started = time.perf_counter()
        result = action()
        return time.perf_counter() - started, result

    return run


def read(peer: Peer, row: Row, path: Path) -> Run:
    """Read all of an open array, or its selections in turn."""
    array = peer.open(path)
    if not row.selections:
        return timed(lambda: peer.read(array, None))

    def each() -> Any:
        result = None
        for selection in row.selections:
            result = peer.read(array, selection)
        return result

    return timed(each)


def read_kept(peer: Peer, row: Row, path: Path) -> Run:
    """Read all of an open array repeatedly and keep the results: each read touches fresh memory."""
    array = peer.open(path)

    def run() -> tuple[float, Any]:
        peer.release_memory()
        kept = []
        started = time.perf_counter()
        for _ in range(row.kept):
            kept.append(peer.read(array, None))
        return time.perf_counter() - started, kept[-1]

    return run


def read_late(peer: Peer, url: str) -> Run:
    """Read all of an array that was opened by HTTP."""
    array = peer.open_url(url)
    return timed(lambda: peer.read(array, None))


def open_read(peer: Peer, row: Row, path: Path) -> Run:
    """Open an array and read it."""
    return timed(lambda: peer.read(peer.open(path), None))


def open_sum(peer: Peer, row: Row, path: Path) -> Run:
    """Open and read an array, and sum its bytes."""
    return timed(lambda: np.asarray(peer.read(peer.open(path), None)).view(np.uint8).sum())


class Written:
    """A written array, as its library reads it."""

    def __init__(self, peer: Peer, path: Path) -> None:
        self.peer, self.path = peer, path

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self.path.suffix == ".zarr":
            return np.asarray(zarr.open_array(self.path, mode="r")[...])
        return np.asarray(self.peer.read(self.peer.open(self.path), None))


def write(peer: Peer, row: Row, path: Path) -> Run:
    """Write the set again, from memory, after deleting the previous copy."""
    data = np.asarray(zarr.open_array(path.with_suffix(".zarr"), mode="r")[...])
    folder = Path(tempfile.gettempdir(), "written")

    def run() -> tuple[float, Any]:
        target = folder / path.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        started = time.perf_counter()
        peer.write(target, data, path)
        return time.perf_counter() - started, Written(peer, target)

    return run


def batch(peer: Peer, row: Row, path: Path) -> Run:
    """Read selections into one array."""
    array = peer.open(path)
    return timed(lambda: peer.batch(array, row.selections))


def points(peer: Peer, row: Row, path: Path) -> Run:
    """Read points."""
    array = peer.open(path)
    return timed(lambda: peer.points(array, row.index))


def orthogonal(peer: Peer, row: Row, path: Path) -> Run:
    """Read all combinations of the positions of several axes."""
    array = peer.open(path)
    return timed(lambda: peer.orthogonal(array, row.index))


def change(peer: Peer, row: Row, path: Path) -> Run:
    """Write to part of an existing array."""
    whole = np.asarray(zarr.open_array(path.with_suffix(".zarr"), mode="r")[...])
    part = np.ascontiguousarray(whole[row.index])
    target = Path(tempfile.gettempdir(), f"changed-{peer.name.replace(' ', '-')}", path.name)
    target.parent.mkdir()
    peer.write(target, whole, path)
    array = peer.open_to_write(target)

    def run() -> tuple[float, Any]:
        started = time.perf_counter()
        peer.change(array, row.index, part)
        return time.perf_counter() - started, Written(peer, target)

    return run


def opening(peer: Peer, row: Row, path: Path) -> Run:
    """Open an array many times, and read the row's index if it has one."""
    times = 100

    def run() -> tuple[float, Any]:
        started = time.perf_counter()
        for _ in range(times):
            array = peer.open(path)
            if row.index is not None:
                peer.read(array, row.index)
        return (time.perf_counter() - started) / times, None

    return run


def members(peer: Peer, row: Row, path: Path) -> Run:
    """Take each array from an open group of zarr-python."""
    group = zarr.open_group(path, mode="r")
    names = list(group.array_keys())

    def run() -> tuple[float, Any]:
        started = time.perf_counter()
        for name in names:
            group[name]
        return (time.perf_counter() - started) / len(names), None

    return run


def creating(peer: Peer, row: Row, path: Path) -> Run:
    """Create arrays."""
    times = 100
    folder = Path(tempfile.gettempdir(), f"created-{peer.name.replace(' ', '-')}")

    def run() -> tuple[float, Any]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        started = time.perf_counter()
        for number in range(times):
            peer.create(folder / str(number))
        return (time.perf_counter() - started) / times, None

    return run


def threads(peer: Peer, row: Row, path: Path) -> Run:
    """Read crops on several threads of the caller."""
    array = peer.open(path)
    side = np.asarray(zarr.open_array(path, mode="r").shape)
    corners = np.random.default_rng(7).integers(0, side - 64, (64, len(side)))
    crops = [tuple(slice(int(at), int(at) + 64) for at in corner) for corner in corners]

    def run() -> tuple[float, Any]:
        with ThreadPoolExecutor(8) as pool:
            started = time.perf_counter()
            results = list(pool.map(lambda crop: peer.read(array, crop), crops))
            return (time.perf_counter() - started) / len(crops), results[-1]

    return run


def to_arrow(peer: Peer, row: Row, path: Path) -> Run:
    """Read strings and pass them to pyarrow; its import is not timed."""
    importlib.import_module("pyarrow")
    array = peer.open(path)
    return timed(lambda: peer.arrow(peer.read(array, None)))


def to_strings(peer: Peer, row: Row, path: Path) -> Run:
    """Read strings and convert them to NumPy."""
    array = peer.open(path)
    return timed(lambda: peer.strings(peer.read(array, None)))


def call(peer: Peer, row: Row, path: Path) -> Run:
    """Call a method of a result many times."""
    if row.name not in peer.calls:
        raise NotImplementedError("has no such call")
    statement = peer.calls[row.name]
    names: dict[str, Any] = {
        "t": peer.read(peer.open(path), (slice(0, SMALL_CHUNK),)),
        "numpy_array": np.zeros(SMALL_CHUNK, np.float32),
    }
    for package in ("numpy", "pyarrow", "torch", "tvm_ffi", "zarrow"):
        if f"{package}." in statement:
            names[package] = importlib.import_module(package)
    if "torch_tensor" in statement:
        names["torch_tensor"] = importlib.import_module("torch").zeros(SMALL_CHUNK)
    if "nop" in statement:
        names["nop"] = importlib.import_module("tvm_ffi").get_global_func("testing.nop")
    timer = timeit.Timer(statement, globals=names)
    return lambda: (timer.timeit(CALLS) / CALLS, None)


def import_time(peer: Peer, row: Row, path: Path) -> Run:
    """Start an interpreter that measures the import."""
    code = f"import time; t = time.perf_counter(); import {peer.package}; print(time.perf_counter() - t)"

    def run() -> tuple[float, Any]:
        command = [sys.executable, "-c", code]
        return float(subprocess.run(command, check=True, capture_output=True).stdout), None

    return run


def stall(peer: Peer, row: Row, path: Path) -> Run:
    """Read while another thread ticks, and return the longest time between two ticks."""
    array = peer.open(path)

    def run() -> tuple[float, Any]:
        done = threading.Event()
        gaps = [0.0]

        def tick() -> None:
            last = time.perf_counter()
            while not done.is_set():
                time.sleep(TICK)
                now = time.perf_counter()
                gaps.append(now - last)
                last = now

        ticking = threading.Thread(target=tick)
        ticking.start()
        result = peer.read(array, None)
        done.set()
        ticking.join()
        return max(gaps), result

    return run


TASKS: dict[str, Callable[[Peer, Row, Path], Run]] = {
    task.__name__: task
    for task in (
        read,
        read_kept,
        open_read,
        open_sum,
        write,
        batch,
        points,
        orthogonal,
        change,
        opening,
        members,
        creating,
        threads,
        to_arrow,
        to_strings,
        call,
        import_time,
        stall,
    )
}
