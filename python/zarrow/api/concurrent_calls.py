"""Calling functions that wait for a remote store, at once."""

from __future__ import annotations

import contextlib
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from zarrow._zarrow import _Cancellation
from zarrow.api import waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Threads that wait for a store together.
_MOST = 64


def run(functions: Iterable[Callable[[], object]], most: int = _MOST) -> None:
    """Call functions in at most `most` threads that wait for a store, and in this one; raise the first error.

    After an error or Ctrl-C the others are cancelled. A thread that cannot start is not needed.
    """
    todo: SimpleQueue[Callable[[], object]] = SimpleQueue()
    for function in functions:
        todo.put(function)
    errors: list[BaseException] = []
    cancellation = _Cancellation()

    def work() -> None:
        try:
            while not errors:
                todo.get_nowait()()
        except Empty:
            return
        except BaseException as error:
            errors.append(error)
            cancellation.cancel()

    def work_unless_cancelled() -> None:
        # A thread may begin only after the first error.
        with contextlib.suppress(RuntimeError):
            cancellation.run(work)

    threads = []
    try:
        for _ in range(min(todo.qsize(), most) - 1):
            thread = threading.Thread(target=work_unless_cancelled, name="zarrow-save", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                break
            threads.append(thread)
        work_unless_cancelled()
        for thread in threads:
            waits.join(thread)
    except BaseException:
        errors.append(KeyboardInterrupt())
        cancellation.cancel()
        for thread in threads:
            waits.join(thread)
        raise
    if errors:
        raise errors[0]
