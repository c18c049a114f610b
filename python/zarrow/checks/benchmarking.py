"""Measures how fast a store is read: opening, scans, whole chunks and single elements.

1. The first scan reads parts of whole chunks one after the other, until a limit of bytes or of time. These
   parts are the sample: later measurements read it again, so that they do not mix cold and warm bytes.
2. Scans have one caller, and the engine's threads divide its chunks. Other measurements have as many callers
   as threads, each with one call at a time.
3. Chunks and elements are drawn at random, by a fixed seed.
4. Nothing is written, and no lock is taken: nodes are opened and read.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from zarrow._zarrow import Array, Group, _StoredValues, num_threads, set_num_threads
from zarrow.api import concurrent_calls
from zarrow.api.array_options import Store
from zarrow.api.progress import Progress, reporting
from zarrow.checks.chunk_regions import parts
from zarrow.checks.nodes import below, nbytes_of, opened
from zarrow.checks.process_io import bytes_read
from zarrow.checks.timings import Benchmark, Timing

Region = tuple[slice, ...]
# Opens or reads something, and returns the bytes of its elements.
Call = Callable[[], int]

# Calls of a measurement, except for the first scan.
_MOST_CALLS = 1000
# Steps of the progress for each measurement.
_STEPS = 10
_SEED = 0


def bench(
    node: Array | Group | Store,
    *,
    max_nbytes: int = 1 << 30,
    seconds: float = 10.0,
    progress: Progress | bool | None = None,
) -> Benchmark:
    """Measure how fast an array, or all arrays below a group, are read. The store is not changed.

    Opening, scans, reads of whole chunks and of single elements are measured, each with all threads and with
    one. The first scan does not clear the caches of the system or server, and other measurements read the
    same elements again. On Linux, the result says how many bytes of a local store came from the disk. To
    measure cold reads, drop the system's caches before, or choose a store larger than the memory.

    During the call, the process has other numbers of threads: see `set_num_threads`.

    Parameters
    ----------
    node
        An opened array or group, or a store as `open` takes it.
    max_nbytes
        The bytes of elements that each measurement may read, 1 GiB by default; at least one part is read.
    seconds
        The time of all measurements together. A call that has begun is finished.
    progress
        Called with the finished steps and all, from any thread, one call at a time; or True for a bar in a
        terminal or a notebook.

    Returns
    -------
    Benchmark
        The measurements; `print` shows a table.

    Raises
    ------
    ValueError
        A limit is not positive.
    NotFoundError, CodecError, StoreError, OutOfMemoryError
        As `open` and `Array.read`.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow.checks import bench
    >>> zarrow.save("heights.zarr", [1.5, 2.5])
    >>> found = bench("heights.zarr", seconds=0.1)
    >>> found.nbytes, found.nbytes_sampled
    (16, 16)
    >>> {timing.name for timing in found.timings} == {"open", "first scan", "scan", "chunks", "elements"}
    True
    """
    run = Run(node, max_nbytes=max_nbytes, seconds=seconds)
    with reporting(progress, "bench", "{} steps".format) as report:
        run.complete(report)
    return run.found


class Run:
    """A benchmark: `found` has the finished measurements, also after an error or Ctrl-C."""

    def __init__(self, node: Array | Group | Store, *, max_nbytes: int, seconds: float) -> None:
        if max_nbytes < 1:
            raise ValueError(f"max_nbytes is at least 1, got {max_nbytes}")
        if not (seconds > 0 and math.isfinite(seconds)):
            raise ValueError(f"seconds is a positive number, got {seconds!r}")
        self._node = opened(node)
        self._arrays = [each for each in below(self._node).values() if isinstance(each, Array)]
        self._max_nbytes = max_nbytes
        # The parts that the first scan has read (step 1).
        self._sample: list[tuple[Array, Region]] = []
        self._most = num_threads()
        self.found = Benchmark(
            self._node.store, self._node.path, len(self._arrays), sum(map(nbytes_of, self._arrays))
        )
        location = self._node.__reduce__()[1][0]
        self._is_local = isinstance(location, str) and _StoredValues(location, create=False).is_local()
        self._rows = [
            (name, threads)
            for name, has_one in (
                ("open", True),
                ("first scan", False),
                ("scan", True),
                ("chunks", True),
                ("elements", True),
            )
            for threads in ([self._most, 1] if has_one and self._most > 1 else [self._most])
        ]
        self._limit = seconds / len(self._rows)

    def complete(self, progress: Progress | None = None) -> None:
        """Do all measurements."""
        try:
            for number, (name, threads) in enumerate(self._rows):
                set_num_threads(threads)
                self._measure(name, threads, _Steps(progress, number, len(self._rows), self._limit))
        finally:
            set_num_threads(self._most)

    def _calls(self, name: str) -> Iterator[Call]:
        rng = random.Random(_SEED)
        if not self._sample and name not in ("open", "first scan"):
            return iter(())
        if name == "open":
            return (self._open for _ in range(_MOST_CALLS))
        if name == "first scan":
            return self._first_scan()
        if name == "scan":
            # Small samples are read several times.
            often = itertools.chain.from_iterable(itertools.repeat(self._sample))
            return (_reader(array, region) for array, region in itertools.islice(often, _MOST_CALLS))
        weights = [_size(region) for _, region in self._sample]
        places = rng.choices(self._sample, weights, k=_MOST_CALLS)
        choose = _chunk_in if name == "chunks" else _element_in
        return (_reader(array, choose(rng, array, region)) for array, region in places)

    def _open(self) -> int:
        # As unpickling: the store and the metadata are opened anew.
        function, arguments = self._node.__reduce__()[:2]
        function(*arguments)
        return 0

    def _first_scan(self) -> Iterator[Call]:
        for array in self._arrays:
            for region in parts(array):
                yield functools.partial(self._read_first, array, region)

    def _read_first(self, array: Array, region: Region) -> int:
        nbytes = _reader(array, region)()
        self._sample.append((array, region))
        self.found.nbytes_sampled += nbytes_of(array) * _size(region) // array.size
        return nbytes

    def _measure(self, name: str, threads: int, steps: _Steps) -> None:
        """Make calls until they, the time or the bytes end, and enter the measurement."""
        latencies: list[float] = []
        nbytes = 0
        callers = 1 if name.endswith("scan") else threads
        calls = iter(self._calls(name))
        lock = threading.Lock()
        before = bytes_read() if self._is_local else None
        began = time.perf_counter()

        def work() -> None:
            nonlocal nbytes
            while True:
                with lock:
                    is_over = time.perf_counter() - began >= self._limit or nbytes >= self._max_nbytes
                    call = None if latencies and is_over else next(calls, None)
                if call is None:
                    return
                start = time.perf_counter()
                read = call()
                latency = time.perf_counter() - start
                with lock:
                    nbytes += read
                    latencies.append(latency)
                    steps.report(time.perf_counter() - began)

        try:
            concurrent_calls.run([work] * callers, callers)
        finally:
            seconds = time.perf_counter() - began
            after = None if before is None else bytes_read()
            if latencies:
                has_counts = before is not None and after is not None
                self.found.timings.append(
                    Timing(
                        name,
                        threads,
                        seconds,
                        tuple(sorted(latencies)),
                        nbytes,
                        after.files - before.files if has_counts else None,  # type: ignore[union-attr]
                        after.devices - before.devices if has_counts else None,  # type: ignore[union-attr]
                    )
                )
        steps.end()


class _Steps:
    """Reports the progress of one measurement, which takes at most `limit` seconds."""

    def __init__(self, progress: Progress | None, number: int, count: int, limit: float) -> None:
        self._progress = progress
        self._first, self._total = number * _STEPS, count * _STEPS
        self._limit = limit

    def report(self, seconds: float) -> None:
        """Report the seconds since this measurement began."""
        self._show(min(_STEPS - 1, int(seconds / self._limit * _STEPS)))

    def end(self) -> None:
        """Report the end of this measurement."""
        self._show(_STEPS)

    def _show(self, done: int) -> None:
        if self._progress is not None:
            self._progress(self._first + done, self._total)


def _reader(array: Array, region: Any) -> Call:
    return lambda: int(getattr(array.read(region), "nbytes", 0))


def _size(region: Iterable[slice]) -> int:
    return math.prod(part.stop - part.start for part in region)


def _chunk_in(rng: random.Random, array: Array, region: Region) -> Region:
    """Return the region of a random chunk (step 3); of a rectilinear grid, the whole region."""
    if array.chunks is None:
        return region
    chosen = []
    for part, step, extent in zip(region, array.chunks, array.shape, strict=True):
        index = rng.randrange(part.start // step, -(-part.stop // step))
        chosen.append(slice(max(part.start, index * step), min(part.stop, (index + 1) * step, extent)))
    return tuple(chosen)


def _element_in(rng: random.Random, array: Array, region: Region) -> tuple[int, ...]:
    """Return the index of a random element (step 3)."""
    return tuple(rng.randrange(part.start, part.stop) for part in region)
