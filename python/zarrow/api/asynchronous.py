"""Opening, reading and writing in an event loop.

Every function runs on the loop that awaits it, of `asyncio` or `uvloop`. A program may have several loops.

- The engine's own threads read (as parallel as any other read), open nodes, and write to remote stores.
  No thread is blocked while a remote store answers.
- Everything else runs in a thread of the loop's executor.
- A cancelled task stops its work, and resumes when the work has ended. Then nothing writes to `out` any more,
  and all its requests have ended.

>>> import asyncio, numpy as np, zarrow
>>> async def rows():
...     temperature = await zarrow.open_async("data.zarr", "temperature")
...     first, last = await asyncio.gather(temperature.read_async(0), temperature.read_async(-1))
...     return first.shape, last.shape
>>> asyncio.run(rows())
((6, 8), (6, 8))
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, overload

from zarrow._zarrow import (
    Array,
    _Cancellation,
    _open_detached,
    _read_detached,
    _write_detached,
    open,
    read_many,
)
from zarrow.arrays.chunk_grid import regions
from zarrow.arrays.methods import add_method
from zarrow.errors import NotFoundError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Iterable

    from zarrow.api.progress import Progress
    from zarrow.api.typed import AnyElements, AnyNode, Decompress, Gpu, Out
    from zarrow.arrays._array import _Index
    from zarrow.arrays._indexer import Indexer
    from zarrow.device_tensor._device_tensor import DeviceTensor

    Items = tuple[Array | Indexer, _Index] | Array | Indexer

__all__ = ["open_async", "read_many_async"]


def add_to_class() -> None:
    """Give the class Array these methods."""
    for function in (read_async, write_async, iter_chunks_async):
        add_method(Array, function.__name__, function)


@overload
async def read_async(
    self: Array,
    selection: _Index = ...,
    *,
    device: Gpu,
    stream: Any = None,
    decompress: Decompress = None,
) -> DeviceTensor: ...
@overload
async def read_async(
    self: Array,
    selection: _Index = ...,
    *,
    out: Out,
    device: Any = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
) -> Out: ...
@overload
async def read_async(
    self: Array,
    selection: _Index = ...,
    *,
    out: None = None,
    mask: Any = None,
    decode: Literal["cf"] | None = None,
    device: Any = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
) -> AnyElements: ...
async def read_async(
    self: Array,
    selection: _Index = ...,
    *,
    out: Any = None,
    mask: Any = None,
    decode: Literal["cf"] | None = None,
    device: Any = None,
    stream: Any = None,
    decompress: Any = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Any:
    """Read a selection, as `read` does with the same arguments, and await it.

    For `order` and `mmap` type `await asyncio.to_thread(array.read, selection, order="F")`. Also read
    `array.oindex`, `array.vindex` and `array.blocks` in a thread.

    Parameters
    ----------
    selection
        As for `read`.
    out
        Existing memory to read into, as for `read`. The engine writes to it until the `await` ends, even if
        the task is cancelled.
    mask
        Which values mean that an element is missing, as for `read`.
    decode
        "cf" decodes by CF attributes, as for `read`.
    device, stream, decompress
        Read to a GPU, as for `read`. After the `await`, work in `stream` sees the result. Without `stream`,
        an `out` of PyTorch or CuPy uses the current stream of the task's thread.
    progress
        As for `read`. A thread of the loop's executor reads, and calls the function.

    Returns
    -------
    Tensor, MaskedTensor, Variable, MaskedVariable or zarrow.gpu.Tensor
        The elements in new memory, or `out` if it was given.

    Raises
    ------
    asyncio.CancelledError
        The task was cancelled, with its requests.
    TypeError
        An option is not supported here.

    And as `read`.

    Examples
    --------
    >>> import asyncio, zarrow
    >>> temperature = zarrow.open("data.zarr", "temperature")
    >>> asyncio.run(temperature.read_async((slice(0, 24), ..., 5))).shape
    (24, 6)
    """
    if options:
        name = next(iter(options))
        raise TypeError(
            f"Array.read_async() takes no {name}=: "
            f"type await asyncio.to_thread(array.read, selection, {name}=...)"
        )
    if progress is not None:
        given = {"mask": mask, "decode": decode, "device": device, "stream": stream, "decompress": decompress}
        given = {option: value for option, value in given.items() if value is not None}
        return await _in_thread(lambda: self.read(selection, out=out, progress=progress, **given))
    if decode is not None:
        from zarrow.arrays import cf

        return await cf.read_async(self, selection, decode, {"out": out, "mask": mask, "device": device})
    if any(option is not None for option in (device, stream, decompress)) or _is_on_device(out):
        if stream is None:
            stream = _current_stream(out)
        return await _in_thread(
            lambda: self.read(
                selection, out=out, mask=mask, device=device, stream=stream, decompress=decompress
            )
        )
    future, callback = _future()
    read = _read_detached(self, selection, out, mask, callback)
    decoded = await _awaited(future, read.cancel)
    return decoded if out is None else out


def _future() -> tuple[asyncio.Future[Any], Callable[[Any, BaseException | None], object]]:
    """Create a future, and a function that settles it from another thread."""
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def callback(result: Any, error: BaseException | None) -> None:
        # A closed loop raises, and has no task that awaits the future.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, future, result, error)

    return future, callback


def _is_on_device(out: Any) -> bool:
    """Whether `out` is memory of a GPU."""
    if (device := getattr(out, "__dlpack_device__", None)) is not None:
        # CUDA's own memory, and memory shared with the CPU.
        return device()[0] in (2, 13)
    return hasattr(out, "__cuda_array_interface__")


def _current_stream(out: Any) -> Any:
    """Return the current stream of `out`'s library in this thread; other threads have other streams."""
    match type(out).__module__.partition(".")[0]:
        case "torch" if _is_on_device(out):
            from torch.cuda import current_stream

            return current_stream(out.device)
        case "cupy":
            from cupy.cuda import get_current_stream

            return get_current_stream()
        case _:
            return None


async def write_async(self: Array, selection: _Index, value: Any, **options: Any) -> None:
    """Write to a selection, as `write` does with the same arguments, and await it; also from a GPU.

    A cancelled task resumes when the write has ended. Some chunks may be written, each completely. With
    `progress`, a thread of the loop's executor writes, and calls the function.

    Raises
    ------
    asyncio.CancelledError
        The task was cancelled.

    And as `write`.

    Examples
    --------
    >>> import asyncio, zarrow
    >>> array = zarrow.zeros(4, dtype="int16")
    >>> asyncio.run(array.write_async(slice(1, 3), 7))
    >>> array[...].tolist()
    [0, 7, 7, 0]
    """
    if not _is_on_device(value) and options.get("progress") is None:
        options.pop("progress", None)
        future, callback = _future()
        write = _write_detached(self, selection, value, callback, **options)
        if write is not None:
            await _awaited(future, write.cancel)
            return
    await _in_thread(lambda: self.write(selection, value, **options))


async def iter_chunks_async(
    self: Array, *, prefetch: int = 4
) -> AsyncGenerator[tuple[tuple[slice, ...], AnyElements], None]:
    """Iterate over the shards, or the chunks of an unsharded array: yields slices and elements.

    Parameters
    ----------
    prefetch
        Number of shards or chunks to read ahead. These reads are cancelled when the iteration ends. If you
        leave the loop early, `contextlib.aclosing` ends the iteration at once.

    Raises
    ------
    ValueError
        `prefetch` is negative.

    And as `read`.

    Examples
    --------
    >>> import asyncio, zarrow
    >>> temperature = zarrow.open("data.zarr", "temperature")
    >>> async def largest():
    ...     return max([chunk.numpy().max() async for _, chunk in temperature.iter_chunks_async()])
    >>> bool(asyncio.run(largest()) == temperature[...].numpy().max())
    True
    """
    import asyncio

    if prefetch < 0:
        raise ValueError(f"prefetch is {prefetch}, expected at least 0")
    under_way: deque[tuple[tuple[slice, ...], asyncio.Task[Any]]] = deque()
    places = regions(self)
    try:
        for place in places:
            under_way.append((place, asyncio.ensure_future(read_async(self, place))))
            if len(under_way) > prefetch:
                first, task = under_way.popleft()
                yield first, await task
        while under_way:
            first, task = under_way.popleft()
            yield first, await task
    finally:
        for _, task in under_way:
            task.cancel()
        await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)


async def open_async(store: Any, path: str = "", **options: Any) -> AnyNode:
    """Open an array or a group, as `open` does with the same arguments, and await it.

    Hundreds of nodes of a remote store can be opened at once, because no thread waits for answers. Creating a
    node (`mode`, `shape`) and opening one in a folder or archive run in a thread of the loop's executor.

    Raises
    ------
    asyncio.CancelledError
        The task was cancelled.

    And as `open`.

    Examples
    --------
    >>> import asyncio, zarrow
    >>> asyncio.run(zarrow.open_async("data.zarr", "temperature")).shape
    (48, 6, 8)
    """
    future, callback = _future()
    if (begun := _open_detached(store, path, callback, **options)) is not None:
        # If the node is missing, the thread looks for a hint.
        with suppress(NotFoundError):
            found: AnyNode = await _awaited(future, begun.cancel)
            return found
    opened: AnyNode = await _in_thread(lambda: open(store, path, **options))
    return opened


@overload
async def read_many_async(
    items: Iterable[Items], *, device: Gpu, stream: Any = None, decompress: Decompress = None
) -> DeviceTensor | list[DeviceTensor]: ...
@overload
async def read_many_async(
    items: Iterable[Items],
    *,
    out: Out,
    device: Any = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
) -> Out: ...
@overload
async def read_many_async(
    items: Iterable[Items],
    *,
    out: None = None,
    decode: Literal["cf"] | None = None,
    device: Any = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
) -> AnyElements: ...
async def read_many_async(items: Iterable[Items], *, out: Any = None, **options: Any) -> Any:
    """Read many selections as one batch, as `read_many` does with the same arguments, and await it.

    To read to a GPU, pass `device`, `stream` and `decompress`, or an `out` on the GPU. A thread of the loop's
    executor reads, and calls `progress`.

    Raises
    ------
    asyncio.CancelledError
        The task was cancelled.

    And as `read_many`.

    Examples
    --------
    >>> import asyncio, zarrow
    >>> temperature = zarrow.open("data.zarr", "temperature")
    >>> crops = [(temperature, slice(start, start + 4)) for start in (0, 8, 40)]
    >>> asyncio.run(zarrow.read_many_async(crops)).shape
    (3, 4, 6, 8)
    """
    items = list(items)
    return await _in_thread(lambda: read_many(items, out=out, **options))


def _settle(future: asyncio.Future[Any], decoded: Any, error: BaseException | None) -> None:
    """Settle a future with the outcome of the work, unless it is cancelled."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(decoded)


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Call a function in a thread of the loop's executor, and stop its work if the task is cancelled."""
    import asyncio

    cancellation = _Cancellation()
    try:
        future = asyncio.get_running_loop().run_in_executor(None, cancellation.run, function)
    except BaseException:
        # No thread could be started. The executor keeps the call, which does nothing later.
        cancellation.cancel()
        raise
    return await _awaited(future, cancellation.cancel)


async def _awaited(future: asyncio.Future[Any], cancel: Callable[[], None]) -> Any:
    """Await work that `cancel` stops; if the task is cancelled, resume when the work has ended."""
    import asyncio

    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancel()
        # The task may be cancelled repeatedly while it waits.
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        if not future.cancelled():
            # Nothing needs the result any more: retrieve the exception so that asyncio does not log it.
            future.exception()
        raise
