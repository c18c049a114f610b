"""A simulated store with conditional puts, and workers that share it in simulated time.

1. Each worker is a thread with a clock. One runs at a time, until it waits for an answer or sleeps.
   The earliest event is next.
2. Each worker asks by its own adapter, so that its requests have its time. The requests of one call are under
   way together.
3. A put has a condition, as in S3: the key is missing, or has a version. A put that is repeated after a lost
   answer may meet its own value: each value has the ids of the puts that made it, as the engine's marks do.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from unittest import mock

import zarrow
from zarrow.jobs import ledger
from zarrow.jobs import plan as plan_module
from zarrow.store_objects import recognition
from zarrow.store_objects.store_adapter import StoreAdapter, below

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreRequest

LATENCY = 0.03
AT_ONCE = 64
LOST = 0.05
TRIES = 4
# Names that a server lists at once.
PAGE = 1000

_running = threading.local()

# Yields the seconds until the next answer of the store, and returns the answer to the request.
Steps: TypeAlias = Generator[float, None, Callable[[], None]]


@dataclass(frozen=True)
class Value:
    """A value, and the ids of the puts that made it and those before."""

    data: bytes
    ids: tuple[int, ...]

    @property
    def version(self) -> str:
        """The last id."""
        return str(self.ids[-1])


class Worker:
    """A thread with a clock."""

    def __init__(self, world: World, number: int, now: float) -> None:
        self.world, self.number, self.now = world, number, now
        self.waiting = 0
        self.awake = threading.Semaphore(0)
        self.error: BaseException | None = None
        self.store: Any = zarrow.PythonStore(_Named(self))

    def sleep(self, seconds: float) -> None:
        """Wait, in simulated time."""
        with self.world.changed:
            self.world.add(self.now + seconds, self._wake)
            self.world.count_running(-1)
        self.awake.acquire()

    def _wake(self, when: float) -> None:
        with self.world.changed:
            self.world.count_running(1)
        self.now = when
        self.awake.release()

    def work(self, function: Callable[[Worker], object]) -> None:
        """Call a function in this thread."""
        _running.worker = self
        try:
            function(self)
        except BaseException as error:
            self.error = error
        with self.world.changed:
            self.world.count_running(-1)


class World:
    """The time, the values and the losses."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.values: dict[str, Value] = {}
        # Names directly below each folder, and whether they are folders.
        self.names: defaultdict[str, dict[str, bool]] = defaultdict(dict)
        self.ids = itertools.count()
        self.changed = threading.Condition(threading.RLock())
        self._running = 0
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._patches = ExitStack()

    def __enter__(self) -> Self:
        clock = types.SimpleNamespace(
            monotonic=lambda: _running.worker.now, sleep=lambda seconds: _running.worker.sleep(seconds)
        )
        known = recognition._mapping_adapter

        def adapter(store: Any, source: Any, sole_writer: bool) -> StoreAdapter:
            is_own = isinstance(store, _Named)
            return Adapter(store, source) if is_own else known(store, source, sole_writer)

        for patch in (
            mock.patch.object(ledger, "time", clock),
            mock.patch.object(plan_module, "time", clock),
            mock.patch.object(recognition, "_mapping_adapter", adapter),
        ):
            self._patches.enter_context(patch)
        return self

    def __exit__(self, *error: object) -> None:
        self._patches.close()

    def worker(self, number: int, now: float = 0.0) -> Worker:
        """Return a new worker."""
        return Worker(self, number, now)

    def run(self, functions: Sequence[Callable[[Worker], object]], began: float = 0.0) -> list[float]:
        """Call each function by a worker; return when they ended."""
        workers = [self.worker(number, began) for number in range(len(functions))]
        before = threading.stack_size(1 << 20)
        for worker, function in zip(workers, functions, strict=True):
            with self.changed:
                self.count_running(1)
            threading.Thread(target=worker.work, args=(function,), daemon=True).start()
            self._wait()
        threading.stack_size(before)
        while self._events:
            when, _, action = heapq.heappop(self._events)
            action(when)
            self._wait()
        for worker in workers:
            if worker.error is not None:
                raise worker.error
        return [worker.now for worker in workers]

    def _wait(self) -> None:
        """Wait until no worker runs (step 1)."""
        with self.changed:
            self.changed.wait_for(lambda: self._running == 0)

    def count_running(self, more: int) -> None:
        """Change the number of workers that run. The caller holds `changed`."""
        self._running += more
        if not self._running:
            self.changed.notify()

    def add(self, when: float, action: Callable[[float], None]) -> None:
        """Add an event. The caller holds `changed`, or no worker runs."""
        heapq.heappush(self._events, (when, next(self.ids), action))

    def set(self, key: str, value: Value) -> None:
        """Store a value."""
        self.values[key] = value
        is_folder = False
        while key:
            above, _, name = key.rpartition("/")
            self.names[above][name] = is_folder
            key, is_folder = above, True

    def delete(self, key: str) -> None:
        """Delete a value, and the folders that become empty."""
        if self.values.pop(key, None) is None:
            return
        while key and not self.names.get(key):
            above, _, name = key.rpartition("/")
            del self.names[above][name]
            key = above


class _Named(MutableMapping[str, bytes]):
    """What `zarrow.PythonStore` takes. The adapter asks the world."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def _unused(self, *given: object) -> Any:
        raise NotImplementedError

    __getitem__ = __setitem__ = __delitem__ = __iter__ = __len__ = _unused


class Adapter(StoreAdapter):
    """Answers the requests of one worker (steps 2 and 3)."""

    requests = AT_ONCE
    is_writable = has_conditions = has_suffix = True

    def __init__(self, store: _Named, source: Any) -> None:
        super().__init__(source, store)
        self.worker, self.world = store.worker, store.worker.world

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Add an event for each request."""
        with self.world.changed:
            was_running = not self.worker.waiting
            self.worker.waiting += len(requests)
            for request in requests:
                self._go_on(getattr(self, request.kind)(request), self.worker.now)
            if was_running:
                self.world.count_running(-1)

    def _go_on(self, steps: Steps, when: float) -> None:
        """Run until the next answer of the store, or answer the request."""
        try:
            pause = next(steps)
        except StopIteration as ended:
            self._answer(when, ended.value)
        else:
            with self.world.changed:
                self.world.add(when + pause, partial(self._go_on, steps))

    def _answer(self, when: float, answer: Callable[[], None]) -> None:
        """Answer a request. If the worker waits for no other one, it runs next."""
        with self.world.changed:
            self.worker.waiting -= 1
            if not self.worker.waiting:
                self.worker.now = when
                self.world.count_running(1)
        answer()

    def get(self, request: _StoreRequest) -> Steps:
        """Answer with a value or a part."""
        yield LATENCY
        self.world.counts["ledger gets"] += 1
        found = self.world.values.get(request.key)
        if found is None:
            return request.missing
        if request.if_version not in (None, found.version):
            return request.changed
        start, stop = request.range or (0, len(found.data))
        start = start if request.suffix is None else max(0, len(found.data) - request.suffix)
        return partial(request.found, found.data[start:stop], start, len(found.data), found.version)

    def measure(self, request: _StoreRequest) -> Steps:
        """Answer with the size and the version of a value."""
        yield LATENCY
        self.world.counts["ledger gets"] += 1
        found = self.world.values.get(request.key)
        if found is None:
            return request.missing
        assert request.range is not None
        return partial(request.found, b"", request.range[0], len(found.data), found.version)

    def list(self, request: _StoreRequest) -> Steps:
        """Answer with the names in a folder, or with all keys below it."""
        names = self.world.names[request.key]
        if request.recursive:
            keys = [(key, len(value.data)) for key, value in self.world.values.items()]
            listed = below(keys, request.key, True)
        pages = 1 + len(names) // PAGE
        yield LATENCY * pages
        self.world.counts["ledger lists"] += pages
        if not request.recursive:
            start = f"{request.key}/" if request.key else ""
            listed = (
                [(start + name, 0) for name, is_folder in names.items() if not is_folder],
                [start + name for name, is_folder in names.items() if is_folder],
            )
        return partial(request.listed, *listed)

    def put(self, request: _StoreRequest) -> Steps:
        """Store a value if its condition is met (step 3)."""
        world, own = self.world, set[int]()
        for _ in range(TRIES):
            yield LATENCY
            world.counts["ledger puts"] += 1
            is_lost = world.chance.random() < LOST
            if is_lost and world.chance.random() < 0.5:
                continue
            found = world.values.get(request.key)
            version = None if found is None else found.version
            if (request.if_absent and found is not None) or request.if_version not in (None, version):
                if is_lost:
                    continue
                if found is None or own.isdisjoint(found.ids):
                    world.counts["conflicts"] += 1
                    return request.conflict
                yield LATENCY  # for the ids
                world.counts["ledger gets"] += 1
                return partial(request.changed_it, str(max(own)))
            number = next(world.ids)
            own.add(number)
            world.set(request.key, Value(request.body, (*(() if found is None else found.ids), number)))
            if not is_lost:
                return partial(request.changed_it, str(number))
        return partial(request.failed, OSError("no answer"))

    def delete(self, request: _StoreRequest) -> Steps:
        """Delete values."""
        yield LATENCY
        self.world.counts["ledger puts"] += len(request.keys)
        for key in request.keys:
            self.world.delete(key)
        return request.changed_it
