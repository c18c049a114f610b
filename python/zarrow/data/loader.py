"""The loader: iterates over the batches of a rank, and remembers its place."""

from __future__ import annotations

import operator
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

import numpy as np

import zarrow
from zarrow._zarrow import _StageTimes
from zarrow.api import waits
from zarrow.data.cache_size import CacheSize
from zarrow.data.current_arrays import CurrentArrays
from zarrow.data.device_batches import checked
from zarrow.data.fields import Sources
from zarrow.data.plan import Plan
from zarrow.data.plan_options import PlanOptions, planned
from zarrow.data.prefetch import CLOSE_SECONDS, OnBad, Options, Prefetch, Ready, transformed
from zarrow.data.rank_schedule import Schedule, ranges_of
from zarrow.data.stats import Stats
from zarrow.data.trace import Trace
from zarrow.hints.parameters import says_parameters

_VERSION = 1
_STALL_SECONDS = 0.001


@says_parameters
class Loader:
    """Batches of a plan, read ahead by threads: shuffled, unless you pass `order="sequential"`.

    Each iteration is the next epoch. It counts once it has given a batch: after an iterator that gave none,
    the same batches follow.

    A batch is an array, or a dict or tuple of the arrays of the plan. Arrays of a batch are writable. Their
    memory is used again only after they and all their views are gone.

    Parameters
    ----------
    plan
        The plan; all ranks need an equal one. Or the sources of one: a path, a group, an array and so on.
    rank, world
        This process and the number of processes that share an epoch.
    memory_nbytes
        Limit of the memory of batches that are read and not yet delivered. It is at least that of two reads.
    cache_nbytes
        Memory for decoded chunks, which later epochs do not decode again. Each array has a part of it by its
        size. A changed chunk is decoded again. It helps if most chunks fit: each needs a little more than
        its elements, and the least recently used ones are dropped.
    disk_cache_nbytes, disk_cache_folder
        Bytes on disk for chunks that do not fit in `cache_nbytes`, and the folder of their files, by default
        that for temporary files. Chunks stay there as long as they are used. The files have no name, and end
        with the loader. Worker processes use none. Chunks below 4 KiB are not written.
    on_bad
        What a damaged chunk does: `"raise"` ends the iteration, `"skip"` leaves its samples out, and `"fill"`
        gives them the array's fill value. `stats().bad` lists them. Under `"skip"`, a batch without a sound
        sample raises the error.
    transform
        Called with each batch in another thread; the consumer gets its result.
    numbers
        Whether to yield `(batch, numbers)`, with the number of each sample.
    allocate
        Returns writable memory of a number of bytes, such as pinned memory. An asynchronous copy to a device
        does not keep a batch: keep it until the copy has ended, or the next read overwrites it.
    device
        Where batches are: `"cuda:0"`, a number or a `torch.device`; by default the CPU. A batch is a
        `zarrow.gpu.Tensor`, which was copied once, beside the consumer's work. The consumer's thread calls
        the transform.
    trace
        Whether to note when each stage ran, for `save_trace`: at most the latest 100,000 events.
    fields, batch_size, order, window_nbytes, last, seed
        With sources: as in `zarrow.data.Plan`.

    Raises
    ------
    ValueError
        The samples fill no batch on each rank, or an argument is out of range.
    DeviceError
        There is no such device.
    ExchangeError, UnsupportedError
        With a device: a source has text, sparse rows, or elements without a type there.
    StaleHandleError
        An array was made smaller, replaced or erased: noticed within about a second, and at the end of an
        epoch.
    NotFoundError
        An array was erased, and a read has found a chunk missing; or an array was opened by its own path, and
        its folder was replaced.
    StoreError
        No file can be created in the folder of the cache.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import data
    >>> plan = data.Plan(zarrow.open("data.zarr")["temperature"], batch_size=20)
    >>> loader = data.Loader(plan, numbers=True)
    >>> for batch, numbers in loader:
    ...     print(batch.shape, len(numbers))
    (20, 6, 8) 20
    (20, 6, 8) 20
    (8, 6, 8) 8
    >>> for x, y in data.Loader("cells.zarr", fields=["weight", "kind"], batch_size=3):
    ...     print(x.shape, y.shape)
    (3,) (3,)
    (1,) (1,)
    """

    def __init__(
        self,
        plan: Plan | Sources,
        *,
        rank: int = 0,
        world: int = 1,
        memory_nbytes: int = 256 << 20,
        cache_nbytes: int = 0,
        disk_cache_nbytes: int = 0,
        disk_cache_folder: str | os.PathLike[str] | None = None,
        on_bad: OnBad = "raise",
        transform: Callable[[Any], Any] | None = None,
        numbers: bool = False,
        allocate: Callable[[int], Any] | None = None,
        device: Any = None,
        trace: bool = False,
        **options: Unpack[PlanOptions],
    ) -> None:
        plan, unknown = planned(plan, options)
        if unknown:
            raise TypeError(f"Loader() has no parameter {next(iter(unknown))!r}")
        rank, world, memory_nbytes = map(operator.index, (rank, world, memory_nbytes))
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} is not one of {world} ranks")
        if memory_nbytes < 0:
            raise ValueError(f"memory_nbytes must not be negative, found {memory_nbytes}")
        cache = CacheSize.checked(cache_nbytes, disk_cache_nbytes, disk_cache_folder)
        if on_bad not in ("raise", "skip", "fill"):
            raise ValueError(f'on_bad must be "raise", "skip" or "fill", found {on_bad!r}')
        self._whole = plan.schedule(world)
        self.plan = plan if cache is None else plan._cached(cache)
        self.rank, self.world = rank, world
        device = None if device is None else checked(plan, device)
        kept = Trace() if trace else None
        self._options = Options(memory_nbytes, on_bad, None, transform, allocate, device, kept)
        self._numbers = numbers
        self._current = CurrentArrays(self.plan._arrays())
        # Chunks of an array that has changed since it was opened are not worth a cache. A remote array is
        # checked while it is read.
        if cache is not None and self._current.is_local():
            self._current.check()
        self._stats = Stats()
        # Of the current iteration, or of the next one.
        self._epoch, self._schedule, self._step = 0, self._whole, 0
        self._running: weakref.ref[Any] | None = None
        # They end a little later than the prefetch is gone.
        self._threads: list[threading.Thread] = []
        # Whether the current iteration has given a batch, or has ended without one.
        self._begun = False
        # Worker processes take turns: this one begins at a step, and leaves out those of the others.
        self._turn = (0, 1)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return self._whole.steps

    def __iter__(self) -> Iterator[Any]:
        """Begin the next epoch, or go on after `load_state_dict`.

        An earlier iterator is closed: its next batch is a RuntimeError.
        """
        self._begin()
        iterator = _Iterator(self)
        self._running, self._threads = weakref.ref(iterator._prefetch), iterator._prefetch.threads
        return iterator

    def _begin(self) -> None:
        """Advance to the next epoch, unless the latest iteration has given no batch."""
        self.close()
        if self._begun:
            self._next_epoch()
        self._begun, self._running, self._stats = False, None, Stats()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the iterator. The next iteration of a copy begins where that of this loader would."""
        return {**self.__dict__, "_running": None, "_threads": []}

    def __enter__(self) -> Self:
        """Return the loader, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the loader."""
        self.close()

    def close(self) -> None:
        """End the threads of the latest iteration, and wait until they have ended.

        If the iteration had more batches, its next one is a RuntimeError. A transform that does not return is
        left behind after a second, with the memory of its batch.
        """
        prefetch = None if self._running is None else self._running()
        if prefetch is not None:
            prefetch.close()
        else:
            waits.join_others(self._threads, time.monotonic() + CLOSE_SECONDS)

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be an epoch from its beginning, as `DistributedSampler.set_epoch` does."""
        epoch = operator.index(epoch)
        self.close()
        self._begun = False
        self._epoch, self._schedule, self._step = epoch, self._whole, 0

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the epoch after the latest batch: a small dict for JSON or `torch.save`."""
        epoch, schedule, step = self._epoch, self._schedule, self._step
        if step >= schedule.steps:
            epoch, schedule, step = epoch + 1, self._whole, 0
        return {
            "version": _VERSION,
            "plan": self.plan.fingerprint,
            "epoch": epoch,
            "ranges": [list(part) for part in schedule.ranges],
            "world": schedule.world,
            "batch_size": schedule.batch_size,
            "last": schedule.last,
            "rank": self.rank,
            "step": step,
        }

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Let the next iteration go on after a state.

        If the number of ranks or the batch size has changed, the remaining samples of the epoch are divided
        anew, and each comes once. Samples that `last=` repeats or leaves out are then chosen anew.

        Parameters
        ----------
        state
            The state of any rank, if all ranks had taken equally many batches; or a list of all states.

        Raises
        ------
        TypeError
            It is no state.
        ValueError
            The state is of another plan, the states do not belong together, or the remaining samples cannot
            be shared.
        """
        if isinstance(state, str | bytes) or not isinstance(state, Mapping | Sequence):
            raise TypeError(
                f"a state is the dict of state_dict(), or a list of them, found {type(state).__name__}"
            )
        states = [state] if isinstance(state, Mapping) else list(state)
        try:
            epoch, old, steps = self._parsed(states)
        except (KeyError, TypeError) as error:
            raise ValueError(f"the state is damaged: {error!r}; pass the result of state_dict()") from error
        schedule, step = old, steps[0]
        alike = (old.world, old.batch_size, old.last) == (self.world, self.plan.batch_size, self.plan.last)
        if not alike or len(set(steps)) > 1:
            schedule, step = self.plan.schedule(self.world, old.remaining(steps)), 0
        self.close()
        self._begun = False
        self._epoch, self._schedule, self._step = epoch, schedule, step
        if step >= schedule.steps:
            self._next_epoch()

    def _parsed(self, states: list[Mapping[str, Any]]) -> tuple[int, Schedule, list[int]]:
        """Return epoch and schedule of states, and the steps of all ranks."""
        if not states:
            raise ValueError("there is no state: pass one state, or the states of all ranks")
        first = min(states, key=lambda state: operator.index(state["epoch"]))
        if any((each["version"], each["plan"]) != (_VERSION, self.plan.fingerprint) for each in states):
            raise ValueError(
                "the state is of another plan: fields, samples, order, window_nbytes, seed and chunks must "
                "be equal"
            )
        epoch, world, batch_size = (operator.index(first[name]) for name in ("epoch", "world", "batch_size"))
        # A rank that had all its batches has the state of the next epoch's beginning.
        unfinished = [each for each in states if (each["epoch"], each["step"]) != (epoch + 1, 0)]
        same = {
            "world": states,
            "batch_size": states,
            "last": states,
            "epoch": unfinished,
            "ranges": unfinished,
        }
        if any(each[name] != first[name] for name, those in same.items() for each in those):
            raise ValueError("the states are not of one epoch: save all ranks between the same two epochs")
        old = Schedule(ranges_of(first["ranges"], len(self.plan)), world, batch_size, first["last"])
        by_rank = {operator.index(each["rank"]): old.steps for each in states}
        by_rank.update((operator.index(each["rank"]), operator.index(each["step"])) for each in unfinished)
        if len(states) > 1 and sorted(by_rank) != list(range(world)):
            raise ValueError(f"pass one state, or the states of all {world} ranks")
        steps = [by_rank[rank] for rank in sorted(by_rank)] * (1 if len(states) > 1 else world)
        if not all(0 <= step <= old.steps for step in steps):
            raise ValueError(f"the state is damaged: one of its steps {steps[:8]} is not in 0 to {old.steps}")
        return epoch, old, steps

    def stats(self) -> Stats:
        """Return counts and times of the current or latest iteration."""
        return self._stats

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Save a timeline of all iterations in this process, as JSON for Perfetto or `chrome://tracing`.

        It has the stages of each thread: "read" (store, decoding and placement), "transform", and "wait" of
        the consumer.

        Raises
        ------
        ValueError
            The loader was made without `trace=True`.
        OSError
            The file cannot be written.
        """
        if self._options.trace is None:
            raise ValueError("the loader has no trace: pass trace=True when you make it")
        self._options.trace.save(path)

    def print_debug_info(self) -> None:
        """Print versions, the plan, its prediction and the statistics, for a report."""
        print(
            f"zarrow {zarrow.__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}, "
            f"{zarrow.num_threads()} threads"
        )
        print(f"{self.plan!r}, rank {self.rank} of {self.world}, epoch {self._epoch}, step {self._step}")
        for name, source in self.plan.sources.items():
            print(f"{name or 'array'}: {source._summary()}")
        print(self.plan.describe(self.rank, self.world, self._epoch, self._options.memory_nbytes))
        print(self._stats)

    def _next_epoch(self) -> None:
        self._epoch, self._schedule, self._step = self._epoch + 1, self._whole, 0


class _Iterator:
    """One iteration. When it is dropped, its threads end."""

    def __init__(self, loader: Loader) -> None:
        schedule, rank, step = loader._schedule, loader.rank, loader._step
        turn, turns = loader._turn
        steps = range(step + turn, schedule.steps, turns)
        ranges = (
            schedule.rest(rank, min(step + turn, schedule.steps))
            if turns == 1
            else tuple(part for number in steps for part in schedule.batch(rank, number))
        )
        sizes = (schedule.size(rank, number) for number in steps)
        self._loader, self._stats, self._pid = loader, loader._stats, os.getpid()
        self._start = step
        self._counting, self._cached = threading.Lock(), loader.plan._cache_counts()
        self._began = self._first = time.perf_counter()
        self._times = _StageTimes()
        plan = loader.plan._timed(self._times)
        self._prefetch = Prefetch(
            plan, loader._epoch, ranges, sizes, loader._options, loader._stats, loader._current
        )
        # Whether it has ended by itself: after the last batch, or by an error.
        self._is_over = False
        self._finalizer = weakref.finalize(self, self._prefetch.stop)
        self._finalizer.atexit = False

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"this iterator belongs to process {self._pid}, and a forked child has no reading threads: "
                "iterate over the loader in the child"
            )
        # An interrupt anywhere below ends the iteration before the batch is counted as delivered.
        try:
            return self._next()
        except BaseException as error:
            self._is_over = True
            self._prefetch.close(error)
            self._finalizer.detach()
            raise

    def _next(self) -> Any:
        called = time.perf_counter()
        ready = self._prefetch.take()
        if ready is None:
            if self._prefetch._stopped and not self._is_over:
                raise RuntimeError(
                    "this iteration was ended before its last batch: by close(), set_epoch(), "
                    "load_state_dict(), or by a newer iteration of the same loader"
                )
            # An epoch has ended, also for a worker process without a turn in it.
            if self._is_current() and not self._is_over:
                self._loader._begun = True
            raise StopIteration
        if ready.error is not None:
            try:
                raise ready.error
            finally:
                # The traceback refers to this frame.
                del ready
        now, loader = time.perf_counter(), self._loader
        options = loader._options
        if options.trace is not None:
            options.trace.add("wait", called, batch=ready.index)
        with self._counting:
            self._count(ready, called, now)
        if options.device is not None:
            # Work on a device is queued: it costs little here, and has its place in the consumer's stream.
            ready.batch = ready.batch if options.convert is None else options.convert(ready.batch)
            transformed(ready, options, self._stats)
        result = (ready.batch, ready.numbers) if loader._numbers else ready.batch
        if self._is_current():
            step = self._start + (ready.index + 1) * loader._turn[1]
            loader._step = max(loader._step, step)
            loader._begun = True
        return result

    def _is_current(self) -> bool:
        """Return whether this is the loader's latest iteration."""
        running = self._loader._running
        return running is not None and running() is self._prefetch

    def _count(self, ready: Ready, called: float, now: float) -> None:
        """Enter a batch into the statistics."""
        stats = self._stats
        if not stats.batches:
            stats.first_batch_s, self._first = now - self._began, now
            stats.first_nbytes = ready.nbytes
        else:
            stats.waited_s += now - called
            stats.stalls += now - called > _STALL_SECONDS
        stats.seconds = max(stats.seconds, now - self._first)
        stats.batches += 1
        stats.samples += len(ready.numbers)
        stats.nbytes += ready.nbytes
        stats.store_s, stats.decode_s, stats.placement_s = self._times.seconds()
        counts = self._loader.plan._cache_counts()
        stats.cache_hits, stats.cache_misses, stats.disk_cache_hits = (
            now - before for now, before in zip(counts, self._cached, strict=True)
        )
