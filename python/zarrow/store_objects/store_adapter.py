"""Objects that ask a store: by coroutines on an event loop, or by calls in threads.

1. An adapter describes its store: how many requests it takes at once, whether it reads the end of a value by
   length, whether puts have conditions, whether it takes only chunks of arrays that it knows, whether chunks
   have references that the engine follows without Python, and whether forked children can use it.
2. Each request is answered by one method of the adapter: `get`, `measure`, `list`, `put` or `delete`. If the
   method raises before it answers, the exception is the answer.
3. The errors of a store are kept unchanged. `CancelledError` is not reported as a store error: it would end
   the receiver.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import queue
import threading
import weakref
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _serves_stores

if TYPE_CHECKING:
    from zarrow._zarrow import _References, _StoreRequest

# For `_serves_stores`: the thread runs loops of stores.
_LOOPS = 1

# Coroutines under way, by the numbers of their requests.
_UNDER_WAY: dict[int, Future[None] | asyncio.Task[None]] = {}


def cancel(numbers: Iterable[int]) -> None:
    """Cancel the coroutines of requests that are no longer wanted."""
    for number in numbers:
        task = _UNDER_WAY.pop(number, None)
        if task is not None:
            task.cancel()


def name_of(store: Any) -> str:
    """Return the name of a store for errors: its class, since its own description may be secret."""
    kind = type(store)
    home = kind.__module__.partition(".")[0]
    name = kind.__qualname__ if home == "builtins" else f"{home}.{kind.__qualname__}"
    # In brackets, so that it cannot be mistaken for a path.
    return f"<{name}>"


def fail(request: _StoreRequest, error: BaseException) -> None:
    """Answer with a store's exception (step 3)."""
    if isinstance(error, asyncio.CancelledError):
        error = RuntimeError("the store cancelled a request")
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    request.failed(error)


def answer_with(request: _StoreRequest, value: bytes | memoryview) -> None:
    """Answer with the requested part of a value."""
    nbytes, start, stop = len(value), 0, len(value)
    if request.suffix is not None:
        start = max(0, nbytes - request.suffix)
    elif request.range is not None:
        start, stop = request.range
    request.found(value[start:stop], start, nbytes)


class StoreAdapter:
    """How a store is asked (step 1)."""

    requests = 64
    has_suffix = False
    # Whether the answer to a range tells the size of the value.
    tells_size = True
    is_writable = False
    has_conditions = False
    needs_documents_first = False
    references: _References | None = None
    forks = True

    def __init__(self, source: Any, store: Any) -> None:
        self.source = source
        self.name = name_of(store)

    def __str__(self) -> str:
        return self.name

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Take requests, and return without waiting."""
        raise NotImplementedError

    def needs(self, mark: int, kind: str) -> bool:
        """Return whether requests of a kind need a thread, by the `id` of its running loop or of a lock."""
        return False


class AsyncAdapter(StoreAdapter):
    """Asks in coroutines."""

    def own_loop(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop of the store, or None for that of the thread that takes requests."""
        return None

    def started_loop(self) -> asyncio.AbstractEventLoop | None:
        """Return the store's own loop if its thread was started already."""
        return None

    def needs(self, mark: int, kind: str) -> bool:
        """Return whether the marked thread runs the store's own loop."""
        return mark == id(self.started_loop())

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Begin a coroutine for each request."""
        own = asyncio.get_running_loop()
        loop = self.own_loop() or own
        for request in requests:
            self.begin(request.number, self._answer(request), own, loop)

    def begin(
        self,
        number: int,
        coroutine: Coroutine[Any, Any, None],
        own: asyncio.AbstractEventLoop,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Run a coroutine on the loop, so that it can be cancelled."""
        task: Future[None] | asyncio.Task[None]
        if loop is own:
            task = loop.create_task(coroutine)
        else:
            task = asyncio.run_coroutine_threadsafe(coroutine, loop)
        _UNDER_WAY[number] = task
        task.add_done_callback(lambda _: _UNDER_WAY.pop(number, None))

    async def _answer(self, request: _StoreRequest) -> None:
        """Step 2."""
        _serves_stores(_LOOPS)
        try:
            await getattr(self, request.kind)(request)
        except BaseException as error:
            # Ctrl-C and the like are the answer too: raised here, they would end the thread.
            fail(request, error)
            if isinstance(error, asyncio.CancelledError):
                raise


class ThreadAdapter(StoreAdapter):
    """Calls the store in threads, which start on demand and end after some idle time.

    The thread that takes the requests counts them and the threads. These report changes by a queue: under a
    lock, a finalizer that uses the store would wait for itself.
    """

    requests = 16
    threads = 16
    IDLE_SECONDS = 2.0

    def __init__(self, source: Any, store: Any) -> None:
        super().__init__(source, store)
        self._forget()

    def _forget(self) -> None:
        import os

        self._process = os.getpid()
        # None ends a thread, so that the threads do not keep the adapter alive.
        self._waiting: queue.SimpleQueue[_StoreRequest | None] = queue.SimpleQueue()
        weakref.finalize(self, _end_threads, self._waiting, self.threads).atexit = False
        # Changes of the numbers of threads and of unanswered requests.
        self._changes: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self._threads = self._unanswered = 0

    def submit(self, requests: list[_StoreRequest]) -> None:
        """Put requests where the threads take them."""
        import os

        if self._process != os.getpid():
            # A forked child has none of these threads.
            self._forget()
        for request in requests:
            # Put before counting: a thread that is about to end reports it, and then checks the queue.
            self._waiting.put(request)
            self._unanswered += 1
            self._count()
            if self._threads < min(self._unanswered, self.threads):
                self._start_thread()

    def _count(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                threads, unanswered = self._changes.get_nowait()
                self._threads += threads
                self._unanswered += unanswered

    def _start_thread(self) -> None:
        """Start a thread. If the system refuses the only one, fail the waiting requests."""
        arguments = (weakref.ref(self), self._waiting, self.IDLE_SECONDS)
        try:
            # `threading` waits until the thread runs: it may first run a finalizer that uses a store.
            _thread.start_new_thread(_serve, arguments)
            self._threads += 1
        except (RuntimeError, MemoryError) as error:
            self._count()
            with contextlib.suppress(queue.Empty):
                while not self._threads:
                    request = self._waiting.get_nowait()
                    self._unanswered -= 1
                    if request is not None:
                        fail(request, error)

    def serve(self, request: _StoreRequest | None) -> bool:
        """Answer a request; without one, tell whether the thread that waited for it is to go on."""
        if request is None:
            self._changes.put((-1, 0))
            try:
                request = self._waiting.get_nowait()
            except queue.Empty:
                return False
            self._changes.put((1, 0))
        if request is not None:
            if request.is_wanted:
                self.answer(request)
            self._changes.put((0, -1))
        return True

    def answer(self, request: _StoreRequest) -> None:
        """Step 2."""
        try:
            getattr(self, request.kind)(request)
        except BaseException as error:
            fail(request, error)


def mark_loop(loop: asyncio.AbstractEventLoop | None) -> None:
    """Mark the thread of a loop, which runs the requests of stores: see `StoreAdapter.needs`."""
    if loop is None:
        return
    if asyncio._get_running_loop() is loop:
        _serves_stores(_LOOPS)
        return
    with contextlib.suppress(RuntimeError):  # a closed loop
        loop.call_soon_threadsafe(_serves_stores, _LOOPS)


class StoreLock:
    """A lock of an adapter. Its holder cannot make requests that take it, for example in a finalizer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: int | None = None

    def __enter__(self) -> None:
        served = _serves_stores(id(self))
        self._lock.acquire()
        self._served = served

    def __exit__(self, *_: object) -> None:
        served = self._served
        self._lock.release()
        _serves_stores(served)


def _end_threads(waiting: queue.SimpleQueue[_StoreRequest | None], count: int) -> None:
    for _ in range(count):
        waiting.put(None)


def _serve(
    to_adapter: weakref.ref[ThreadAdapter],
    waiting: queue.SimpleQueue[_StoreRequest | None],
    idle_seconds: float,
) -> None:
    """Have requests answered, until none comes for some time, or no sender is left."""
    goes_on = True
    while goes_on:
        request = None
        with contextlib.suppress(queue.Empty):
            request = waiting.get(timeout=idle_seconds)
        adapter = to_adapter()
        goes_on = adapter is not None and adapter.serve(request)
        del adapter, request


def below(
    keys: Iterable[tuple[str, int]], prefix: str, recursive: bool
) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the entries below a prefix: values with their sizes, and prefixes."""
    start = f"{prefix}/" if prefix else ""
    values, prefixes = [], set()
    for key, nbytes in keys:
        if not key.startswith(start):
            continue
        name, slash, _ = key.removeprefix(start).partition("/")
        if recursive or not slash:
            values.append((key, nbytes))
        else:
            prefixes.add(start + name)
    return values, sorted(prefixes)
