"""The thread that calls stores written in Python.

1. The engine's queue wakes it when requests wait. It takes them all, and passes them to their adapters.
2. An adapter answers immediately, in coroutines on an event loop, or in its own threads. This thread never
   waits.
3. An exception of an adapter does not end the thread: it fails the adapter's requests.

A forked child starts again, with a new queue and a new thread.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _serves_stores
from zarrow.store_objects.store_adapter import ALL_STORES, cancel

if TYPE_CHECKING:
    from zarrow._zarrow import _StoreQueue, _StoreRequest


def start(queue: _StoreQueue) -> None:
    """Start the thread, which serves the queue as long as the process lives.

    Acquire resources that may be refused (file descriptors, a thread) here, where the caller gets the error.
    """
    loop = asyncio.new_event_loop()
    try:
        loop.add_reader(queue.fileno(), _hand_over, queue)
        threading.Thread(target=_serve, args=(queue, loop), name="zarrow-stores", daemon=True).start()
    except BaseException:
        loop.close()
        raise


def _serve(queue: _StoreQueue, loop: asyncio.AbstractEventLoop) -> None:
    _serves_stores(ALL_STORES)
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
