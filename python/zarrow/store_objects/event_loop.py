"""The thread that asks stores written in Python.

1. The queue of the engine wakes it when requests wait; it takes them all, and hands them to their askers.
2. An asker answers at once, in coroutines on an event loop, or in its own threads. This thread never waits.
3. Nothing that an asker raises ends the thread: it fails the requests that the asker was handed.

A forked child begins anew, with a new queue and a new thread.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from zarrow.store_objects.asker import cancel

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
    try:
        loop.run_forever()
    finally:
        queue.end()


def _hand_over(queue: _StoreQueue) -> None:
    """Take the waiting requests, and hand them to their askers (steps 1 and 3)."""
    requests, cancelled = queue.take()
    askers: dict[int, tuple[Any, list[_StoreRequest]]] = {}
    for request in requests:
        asker = request.asker
        askers.setdefault(id(asker), (asker, []))[1].append(request)
    for asker, own in askers.values():
        try:
            asker.submit(own)
        except BaseException as error:
            for request in own:
                request.failed(error)
    cancel(cancelled)
