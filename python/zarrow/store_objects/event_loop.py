"""The thread that calls stores written in Python.

1. The engine's queue wakes it when requests wait. It takes them all, and passes them to their adapters.
2. An adapter answers immediately, in coroutines on an event loop, or in its own threads. This thread never
   waits.
3. An exception of an adapter does not end the thread: it fails the adapter's requests.

A forked child starts again, with a new queue and a new thread.
"""

from __future__ import annotations

import _thread
import asyncio
import gc
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _serves_stores
from zarrow.store_objects.store_adapter import cancel

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreQueue, _StoreRequest

# For `_serves_stores`: every store needs the thread.
_ALL_STORES = 0


def start(queue: _StoreQueue) -> None:
    """Start the thread, which serves the queue as long as the process lives.

    Acquire resources that may be refused (file descriptors, a thread) here, where the caller gets the error.
    """
    loop = asyncio.new_event_loop()
    # Before it is marked, the thread must run no finalizer that uses a store.
    collects = gc.isenabled()
    gc.disable()
    try:
        loop.add_reader(queue.fileno(), _hand_over, queue)
        _thread.start_new_thread(_serve, (queue, loop, collects))
    except BaseException:
        if collects:
            gc.enable()
        loop.close()
        raise


def _serve(queue: _StoreQueue, loop: asyncio.AbstractEventLoop, collects: bool) -> None:
    _serves_stores(_ALL_STORES)
    if collects:
        gc.enable()
    try:
        loop.run_forever()
    finally:
        queue.end()


def _hand_over(queue: _StoreQueue) -> None:
    """Take the waiting requests, and pass them to their adapters (steps 1 and 3)."""
    requests, cancelled = queue.take()
    adapters: dict[int, tuple[Any, list[_StoreRequest]]] = {}
    for request in requests:
        adapter = request.adapter
        adapters.setdefault(id(adapter), (adapter, []))[1].append(request)
    for adapter, own in adapters.values():
        try:
            adapter.submit(own)
        except BaseException as error:
            for request in own:
                request.failed(error)
    cancel(cancelled)
