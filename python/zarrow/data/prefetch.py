"""Reads ahead: threads that fill batches while the consumer works.

1. Two threads read in turn, so that one read's requests go out while the other one's chunks are decoded; from
   a remote store, more threads if reads are small. The engine's threads decode, straight into the memory of
   batches. A read has the samples of a window; samples that do not fill a batch are copied to the front of
   the next memory. Samples without a fixed size have new memory for each read, and are joined. Reads end in
   their order. The first one runs alone, so that the first batch is early; but the first two small reads from
   a remote store begin together, since their round trips take longer than their transfer.
2. Another thread calls the transform, if there is one. With a device, the reading thread copies the batch
   there, and the consumer calls the transform.
3. Reads pause while the byte budget is used. Memory that the consumer keeps is not counted, so a consumer may
   keep every batch.
4. Threads end with the iteration: after the last batch, after an error, by `close`, or when the consumer
   drops the iterator. They refer to this object alone. The interpreter waits for them before it exits: a
   thread that it ends inside the engine aborts the process. No wait is long after Ctrl-C: a transform that
   hangs is left behind. It keeps the memory of its batch, and all other memory is freed.
5. Between reads, about once a second, a thread checks that the arrays are those that were opened. The last
   check runs beside the last read, and after it where it sends no request.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import _Cancellation
from zarrow.api import waits
from zarrow.data.buffers import Ring
from zarrow.data.current_arrays import CurrentArrays
from zarrow.data.device_batches import on_device
from zarrow.data.joined_samples import Behind, joined, nbytes_of, part_of
from zarrow.data.permutation import Numbers
from zarrow.data.plan import Plan
from zarrow.data.rank_schedule import Ranges
from zarrow.data.sources import Out, Source
from zarrow.data.stats import Stats
from zarrow.data.trace import Trace
from zarrow.errors import CodecError, LimitError

OnBad: TypeAlias = Literal["raise", "skip", "fill"]
# Arrays of NumPy, masked arrays, and sparse matrices of SciPy.
Arrays: TypeAlias = dict[str, Any]
Batch: TypeAlias = Any | Arrays | tuple[Any, ...]

_T = TypeVar("_T")

_READERS, _MOST_READERS = 2, 8
# Bytes of samples that are requested from a remote store at a time.
_REQUESTED_NBYTES = 64 << 20
# Transformed batches that wait for the consumer.
_TRANSFORMED = 4
_BAD_LISTED = 1000
# How long to wait for threads. A transform, an `allocate` or a store of the user may never return.
CLOSE_SECONDS, _EXIT_SECONDS, _INTERRUPTED_SECONDS = 1.0, 5.0, 0.2


@dataclass(slots=True)
class Options:
    """How a loader reads."""

    memory_nbytes: int
    on_bad: OnBad
    convert: Callable[[Batch], Any] | None
    transform: Callable[[Any], Any] | None
    allocate: Callable[[int], Any] | None
    device: str | None = None
    trace: Trace | None = None


@dataclass(slots=True)
class Ready:
    """A batch, or an error in its place."""

    batch: Any
    numbers: Numbers
    nbytes: int
    # Number of the batch in this iteration.
    index: int = 0
    # The read has no later batch.
    ends_read: bool = False
    error: BaseException | None = None


@dataclass(slots=True)
class _Rows:
    """Samples in memory."""

    arrays: Arrays
    numbers: Numbers
    # 0 for sound samples, else 1 + the index of an error.
    bad: npt.NDArray[np.int32]

    def part(self, index: slice | npt.NDArray[np.bool_]) -> _Rows:
        """Return some of the samples."""
        arrays = {name: part_of(array, index) for name, array in self.arrays.items()}
        return _Rows(arrays, self.numbers[index], self.bad[index])


@dataclass(slots=True)
class _Read:
    """A read that has begun."""

    number: int
    places: Numbers
    # How many samples the reads before leave over.
    before: int
    # Sizes of the batches that end in this read.
    sizes: list[int]
    # When it is the last one.
    error: BaseException | None = None


_RUNNING: weakref.WeakSet[Prefetch] = weakref.WeakSet()


@atexit.register
def _end() -> None:
    """End all threads (step 4)."""
    # What ended the program, if it was an error.
    error: BaseException | None = getattr(sys, "last_value", None)
    until = time.monotonic() + seconds_after(error, _EXIT_SECONDS)
    running = list(_RUNNING)
    for prefetch in running:
        prefetch.stop()
    for prefetch in running:
        prefetch.join(until)


def seconds_after(error: BaseException | None, otherwise: float) -> float:
    """Return how long to wait for threads after an error: hardly after Ctrl-C, and after `sys.exit`."""
    return otherwise if error is None or isinstance(error, Exception) else _INTERRUPTED_SECONDS


class Prefetch:
    """The threads of one iteration, and what they share with the consumer."""

    def __init__(
        self,
        plan: Plan,
        epoch: int,
        ranges: Ranges,
        sizes: Iterator[int],
        options: Options,
        stats: Stats,
        current: CurrentArrays,
    ) -> None:
        self._plan, self._epoch, self._options, self._stats = plan, epoch, options, stats
        self._sizes, self._size, self._current = sizes, next(sizes, 0), current
        early = plan._early(epoch, ranges, self._size)
        self._loads = plan.loads(epoch, ranges, first=early)
        total = sum(stop - start for start, stop in ranges)
        self._most_reads, samples = plan._held(total, options.memory_nbytes)
        self._rings = {
            name: Ring(samples * source.sample_nbytes, self._most_reads + 1, options.allocate)
            for name, source in plan.sources.items()
            if source.has_fixed_size
        }
        self._pid = os.getpid()
        self._condition = threading.Condition()
        self._cancellation = _Cancellation()
        self._stopped = False
        self._damages: list[CodecError | LimitError] = []
        # Held by the thread that begins a read.
        self._beginning = threading.Lock()
        self._begun = self._ended = self._unfinished_reads = 0
        # The consumer still holds the last batch of a read.
        self._holds_read = False
        self._left, self._is_last = 0, False
        self._rest = _Rows({}, np.empty(0, np.int64), np.empty(0, np.int32))
        self._index = itertools.count()
        # Since when reads run, or none does.
        self._since = time.perf_counter()
        self._read: deque[Ready | None] = deque()
        has_thread = options.transform is not None and options.device is None
        self._ready = deque[Ready | None]() if has_thread else self._read
        # Samples without a fixed size are read to other memory, and copied to their places.
        each = (
            source.sample_nbytes * (1 + (name not in self._rings)) for name, source in plan.sources.items()
        )
        readers = self._readers(samples * sum(each))
        # The last check of the arrays runs beside the last read, and must not run beside the only one.
        has_second = total > (early or plan.load_samples)
        self._first_reads = 2 if readers > _READERS and has_second else 1
        work = [self._read_all] * readers + [self._transform_all] * has_thread
        self.threads = [
            threading.Thread(target=self._run, args=(each,), daemon=True, name="zarrow-data") for each in work
        ]
        try:
            for thread in self.threads:
                thread.start()
        except BaseException as error:
            self.close(error)
            raise
        _RUNNING.add(self)

    def take(self) -> Ready | None:
        """Wait for the next batch and return it; None at the end."""
        with self._condition:
            while not self._ready and not self._stopped:
                waits.wait(self._condition)
            if self._stopped or (found := self._ready.popleft()) is None:
                return None
            self._unfinished_reads -= self._holds_read
            self._holds_read = found.ends_read
            self._condition.notify_all()
            return found

    def stop(self) -> None:
        """Let the threads end, cancel a read, and free the unused memory.

        A forked child has no such threads.
        """
        if os.getpid() != self._pid or self._stopped:
            return
        self._stopped = True
        self._cancellation.cancel()
        # A finalizer may run in a thread that holds the lock.
        if self._condition.acquire(timeout=1):
            self._read.clear()
            self._ready.clear()
            self._condition.notify_all()
            self._condition.release()
        for ring in self._rings.values():
            ring.close()

    def close(self, error: BaseException | None = None) -> None:
        """Stop, and wait a short time until the threads have ended. `error` is what ended the iteration."""
        self.stop()
        if os.getpid() == self._pid:
            self.join(time.monotonic() + seconds_after(error, CLOSE_SECONDS))

    def join(self, until: float) -> None:
        """Wait until the threads have ended, or until a time of `time.monotonic()`."""
        waits.join_others(self.threads, until)

    def _readers(self, nbytes: int) -> int:
        """Return how many threads read, if a read takes this many bytes (step 1)."""
        if self._current.is_local():
            return _READERS
        several = -(-_REQUESTED_NBYTES // max(nbytes, 1))
        return max(_READERS, min(several, _MOST_READERS, self._most_reads))

    def _run(self, work: Callable[[], None]) -> None:
        """Run a thread, and pass its error on to the consumer."""
        try:
            work()
        except BaseException as error:
            self._end(self._ready, error)

    def _end(self, target: deque[Ready | None], error: BaseException | None) -> None:
        """Put an error, or the end of the epoch, behind the batches."""
        last = [] if error is None else [_failure(error)]
        with self._condition:
            target.extend([*last, None])
            self._is_last = True
            self._condition.notify_all()

    def _wait(self, may_go_on: Callable[[], bool]) -> bool:
        """Wait for a condition; return whether the iteration still runs."""
        with self._condition:
            while not self._stopped and not may_go_on():
                waits.wait(self._condition)
            return not self._stopped

    def _read_all(self) -> None:
        """Read in turn with the other threads (step 1)."""
        while (read := self._begin()) is not None and self._finish(read):
            del read

    def _begin(self) -> _Read | None:
        """Return the next read as soon as the byte budget allows it; None after the last one."""
        with self._beginning:
            if not self._wait(self._may_begin) or self._is_last:
                return None
            with self._condition:
                self._note_time()
                number, self._begun = self._begun, self._begun + 1
            read = _Read(number, np.empty(0, np.int64), self._left, [])
            try:
                places = next(self._loads, None)
            except BaseException as error:
                self._is_last, read.error = True, error
                return read
            if places is None:
                self._is_last = True
                return read
            read.places, count, at = places, read.before + len(places), 0
            while self._size and at + self._size <= count:
                read.sizes.append(self._size)
                at, self._size = at + self._size, next(self._sizes, 0)
            self._left = count - at
            return read

    def _may_begin(self) -> bool:
        """Return whether there is memory for another read, and its turn has come."""
        running = self._begun - self._ended
        has_turn = self._ended > 0 or self._begun < self._first_reads
        return self._is_last or (has_turn and self._unfinished_reads + running < self._most_reads)

    def _note_time(self) -> None:
        """Enter the time since reads run, or since none does; under the lock, before the number changes."""
        now = time.perf_counter()
        if self._begun > self._ended:
            self._stats.read_s += now - self._since
        else:
            self._stats.paused_s += now - self._since
        self._since = now

    def _finish(self, read: _Read) -> bool:
        """Read, and hand over the batches in the order of reads; return whether others may follow."""
        found, error, rows = list[Ready](), read.error, None
        try:
            if error is None and len(read.places):
                began = time.perf_counter()
                rows, error = _tried(self._rows, read.places, read.before)
                if self._options.trace is not None:
                    self._options.trace.add("read", began, number=read.number, samples=len(read.places))
            elif error is None:
                error = self._check(self._current.check_beside_last_read)
            if not self._wait(lambda: self._ended == read.number):
                return False
            if rows is not None:
                batches, error = _tried(self._batches, rows, read)
                found = batches or found
            with self._condition:
                if self._stopped:
                    return False
                self._note_time()
                # After an error, no later read has its turn.
                self._ended += error is None
                if found:
                    found[-1].ends_read = True
                    self._unfinished_reads += 1
                    self._read.extend(found)
                self._condition.notify_all()
            if error is None:
                current, is_last = self._current, not len(read.places)
                error = self._check(current.check_after_last_read if is_last else current.check_now_and_then)
                if error is None and not is_last:
                    return True
            self._end(self._read, error)
            return False
        finally:
            # The traceback refers to the frames of this thread.
            rows = error = read.error = None

    def _check(self, check: Callable[[], None]) -> BaseException | None:
        """Return the error of arrays that have changed (step 5)."""
        return _tried(self._cancellation.run, check)[1]

    def _rows(self, places: Numbers, before: int) -> _Rows:
        """Read samples into new rows, behind free places for the rest of earlier reads."""
        plan = self._plan
        arrays: Arrays = {
            name: ring.array((before + len(places), *source.sample_shape), source.array.dtype)
            for name, source in plan.sources.items()
            if (ring := self._rings.get(name)) is not None
        }
        bad = np.zeros(before + len(places), np.int32)
        for name, source in plan.sources.items():
            out = arrays[name][before:] if name in self._rings else None
            found = self._fill(source, places, out, bad[before:])
            if out is None:
                arrays[name] = joined(found)
        return _Rows(arrays, np.concatenate([np.empty(before, np.int64), plan.numbers_at(places)]), bad)

    def _batches(self, rows: _Rows, read: _Read) -> list[Ready]:
        """Return the batches that end in a read, and keep the samples that are left over."""
        before, rest = read.before, self._rest
        rows.numbers[:before], rows.bad[:before] = rest.numbers, rest.bad
        self._learn_size(rows)
        for name, array in rest.arrays.items():
            if name in self._rings:
                rows.arrays[name][:before] = array
            elif before:
                rows.arrays[name] = Behind(array, rows.arrays[name])
        found = rows.numbers[before:][rows.bad[before:] > 0].tolist()
        self._stats.bad += found[: _BAD_LISTED - len(self._stats.bad)]
        batches, at = list[Ready](), 0
        for size in read.sizes:
            batches.append(self._batch(rows.part(slice(at, at + size)), next(self._index)))
            at += size
        self._rest = rows.part(slice(at, None))
        # A view would keep the memory in use.
        self._rest.arrays = {name: array.copy() for name, array in self._rest.arrays.items()}
        return batches

    def _learn_size(self, rows: _Rows) -> None:
        """Lower the number of reads ahead if samples are larger than the plan estimated."""
        if len(self._rings) < len(rows.arrays):
            nbytes = sum(map(nbytes_of, rows.arrays.values()))
            most = max(2, self._options.memory_nbytes // max(nbytes, 1))
            self._most_reads = min(self._most_reads, most)

    def _fill(self, source: Source, places: Numbers, out: Out, bad: npt.NDArray[np.int32]) -> list[Any]:
        """Read samples, in parts that follow each other; find the damaged ones by halves."""
        found, error = self._read_or_damage(source, places, out)
        if error is None:
            return [found]
        if len(places) > 1:
            half = len(places) // 2
            parts = [
                self._fill(source, places[part], None if out is None else out[part], bad[part])
                for part in (slice(half), slice(half, None))
            ]
            return parts[0] + parts[1]
        with self._condition:
            if len(self._damages) < _BAD_LISTED:
                self._damages.append(error)
            bad[0] = len(self._damages)
        filled = source._filled(1)
        if out is not None:
            out[...] = filled
        return [filled]

    def _read_or_damage(
        self, source: Source, places: Numbers, out: Out
    ) -> tuple[Any, CodecError | LimitError | None]:
        """Read samples, or return the error of a damaged chunk, without the frames that share the memory."""
        draw = (self._plan.seed, self._epoch)
        try:
            return self._cancellation.run(lambda: source._read(places, out, draw)), None
        except (CodecError, LimitError) as error:
            # A damaged size may exceed a limit before a checksum is compared.
            is_damage = isinstance(error, CodecError) or error.codec is not None
            if self._options.on_bad == "raise" or not is_damage:
                raise
            return None, error.with_traceback(None)

    def _batch(self, rows: _Rows, index: int) -> Ready:
        """Return a batch of samples."""
        if self._options.on_bad == "skip" and rows.bad.any():
            if rows.bad.all():
                return Ready(None, rows.numbers, 0, error=self._damages[rows.bad[0] - 1])
            rows = rows.part(rows.bad == 0)
        arrays = rows.arrays
        batch: Batch = self._plan._batch(arrays)
        if self._options.device is not None:
            batch = on_device(batch, self._options.device)
        elif self._options.convert is not None:
            batch = self._options.convert(batch)
        return Ready(batch, rows.numbers, sum(map(nbytes_of, arrays.values())), index)

    def _transform_all(self) -> None:
        """Transform batches in order (step 2)."""
        while True:
            with self._condition:
                if not self._wait(lambda: bool(self._read) and len(self._ready) < _TRANSFORMED):
                    return
                found = self._read.popleft()
            if found is None:
                self._end(self._ready, None)
                return
            if found.error is not None:
                self._end(self._ready, found.error)
                return
            transformed(found, self._options, self._stats)
            with self._condition:
                if not self._stopped:
                    self._ready.append(found)
                self._condition.notify_all()
            del found


def transformed(ready: Ready, options: Options, stats: Stats) -> None:
    """Replace a batch by the result of the transform, if there is one."""
    if options.transform is None:
        return
    began = time.perf_counter()
    ready.batch = options.transform(ready.batch)
    stats.transform_s += time.perf_counter() - began
    if options.trace is not None:
        options.trace.add("transform", began, batch=ready.index)


def _tried(work: Callable[..., _T], *arguments: Any) -> tuple[_T | None, BaseException | None]:
    """Return a result, or an error without the frames that share the memory of a read."""
    try:
        return work(*arguments), None
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        del arguments
        return None, error


def _failure(error: BaseException) -> Ready:
    """Return an error in the place of a batch. `StopIteration` would end the epoch in silence."""
    if isinstance(error, StopIteration):
        stopped = error
        error = RuntimeError("a transform or an allocation raised StopIteration")
        error.__cause__ = stopped
    return Ready(None, np.empty(0, np.int64), 0, error=error)
