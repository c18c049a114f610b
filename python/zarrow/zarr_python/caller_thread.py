"""Reads and writes in the thread that asks for them, without zarr-python's event loop.

zarr-python runs each read of `zarr.Array` as a coroutine on the event loop of another thread, and the caller
waits. Both changes of threads together take longer than a small read.

1. `zarr.core.array` calls `sync` with a coroutine. If it reads or writes an array that has the engine's
   pipeline, it begins in the caller's thread. All others go to zarr-python's own `sync`.
2. There the pipeline calls the engine without a change of threads: `call`.
3. What waits for an event loop, such as zarr-python's own pipeline, first awaits `on_event_loop`. The rest of
   the coroutine then runs on zarr-python's loop.
4. In a thread that runs an event loop, and in a version of zarr-python without these functions, everything is
   as in zarr-python.

Source: `zarr.core.sync.sync` and `AsyncArray._get_selection` of zarr-python 3.1 to 3.4.
"""

from __future__ import annotations

import asyncio
import threading
import types
from functools import partial
from typing import TYPE_CHECKING, Any

import zarr.core.array

from zarrow.api.asynchronous import _awaited, _future, _in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

_OTHER_THREAD = object()


class _Here(threading.local):
    """Whether this thread runs the beginning of a coroutine (step 1)."""

    is_caller = False


_here = _Here()
_arrays: Any = zarr.core.array
_stock_sync: Any = getattr(_arrays, "sync", None)
_methods = (getattr(_arrays.AsyncArray, name, None) for name in ("_get_selection", "_set_selection"))
_CODES = frozenset(code for method in _methods if (code := getattr(method, "__code__", None)) is not None)


def is_caller() -> bool:
    """Return whether this thread asked for the elements; a method of a value may run an event loop there."""
    return _here.is_caller and asyncio._get_running_loop() is None


async def call(function: Callable[[], Any]) -> Any:
    """Call a function of the engine: here in the caller's thread, else in a thread (step 2)."""
    return function() if is_caller() else await _in_thread(function)


async def begun(begin: Callable[..., Any]) -> Any:
    """Begin work on the engine's threads, and await its result; `begin` takes the callback."""
    future, callback = _future()
    work = begin(callback)
    return await _awaited(future, work.cancel)


@types.coroutine
def on_event_loop() -> Generator[object, None, None]:
    """Run what follows on the event loop (step 3)."""
    if is_caller():
        yield _OTHER_THREAD


def install(pipeline: type) -> None:
    """Let arrays with this class of pipelines be read and written in the caller's thread."""

    def sync(coroutine: Any, loop: Any = None, timeout: float | None = None) -> Any:
        if loop is not None or timeout is not None or not _is_begun_here(coroutine, pipeline):
            return _stock_sync(coroutine, loop, timeout)
        _here.is_caller = True
        try:
            awaited = coroutine.send(None)
        except StopIteration as ended:
            return ended.value
        finally:
            _here.is_caller = False
        if awaited is not _OTHER_THREAD:
            coroutine.close()
            raise RuntimeError(
                f"zarr-python waits for {awaited!r} where zarrow expected no wait: report this"
            )
        return _stock_sync(_rest(coroutine))

    if _stock_sync is not None:
        _arrays.sync = sync


def _is_begun_here(coroutine: Any, pipeline: type) -> bool:
    if getattr(coroutine, "cr_code", None) not in _CODES or asyncio._get_running_loop() is not None:
        return False
    array = coroutine.cr_frame.f_locals.get("self")
    if type(getattr(array, "codec_pipeline", None)) is not pipeline or _here.is_caller:
        return False
    # Before its first write, zarr-python stores a document that it has repaired.
    return getattr(getattr(array, "metadata", None), "_stored_document", None) is None


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Continue a coroutine that has begun; `await` refuses one."""
    step = partial(coroutine.send, None)
    while True:
        try:
            awaited = step()
        except StopIteration as ended:
            return ended.value
        try:
            step = partial(coroutine.send, (yield awaited))
        except BaseException as error:
            step = partial(coroutine.throw, error)
