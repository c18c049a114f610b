"""The function read_many."""

from collections.abc import Sequence
from typing import Any, Literal, overload

from zarrow.api.progress import Progress
from zarrow.api.typed import AnyElements, Decompress, Gpu, Out
from zarrow.arrays._array import Array, _Index
from zarrow.arrays._indexer import Indexer
from zarrow.device_tensor._device_tensor import DeviceTensor

@overload
def read_many(
    items: Sequence[tuple[Array | Indexer, _Index] | Array | Indexer],
    *,
    device: Gpu,
    stream: Any = None,
    decompress: Decompress = None,
) -> DeviceTensor | list[DeviceTensor]: ...
@overload
def read_many(
    items: Sequence[tuple[Array | Indexer, _Index] | Array | Indexer],
    *,
    out: Out,
    device: Any = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
) -> Out: ...
@overload
def read_many(
    items: Sequence[tuple[Array | Indexer, _Index] | Array | Indexer],
    *,
    out: None = None,
    decode: Literal["cf"] | None = None,
    device: Any = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
) -> AnyElements:
    """Read many selections at once, and decode each needed chunk once.

    Overlapping selections, such as the random crops of a training loop, share decoded chunks.

    Parameters
    ----------
    items
        An array and a selection for each item, of one or several arrays; an array alone is read whole.
        Selections are as in `Array.__getitem__` except fields, or as in `oindex`, `vindex` or `blocks` if the
        item has one of these in place of the array. Items of one array share its decoded chunks, and see the
        same version of each, if they use the same Array object, or Arrays opened from the same group.
    out
        Existing memory to read into, of shape `(len(items), ...)`, with the same rules as `out` of
        `Array.read`. Ignored if `items` is empty.
    decode
        `"cf"` decodes the elements of each item by the attributes of its array, as `Array.read` does; without
        `out` and `device`. Decoded items are stacked by a copy.
    device, stream, decompress
        A GPU to read to, as in `Array.read`. Items are read one after the other if the GPU decompresses them,
        or if they differ in shape or type.
    progress
        Called with the bytes that are read and all bytes, or True for a bar. The items are then read in
        batches of some 64 MiB, and a chunk is decoded once for each batch that needs it. Not for a GPU.

    Returns
    -------
    Tensor, Variable, MaskedTensor, MaskedVariable or zarrow.gpu.Tensor
        In new memory, with item `i` at position `i` of a new first axis, if all items have the same shape and
        data type, and strings the same fill value.
    list
        An array for each item if the items differ, after decoding; empty if there are no items.
    object
        `out` itself, if it was given.

    Raises
    ------
    IndexingError
        A selection lies outside its array; the items differ in shape and `out` was given (an `IndexError`).
    CodecError, OutOfMemoryError, StoreError, DeviceError, KeyboardInterrupt
        As `Array.read`. The first error stops the whole batch; part of `out` may have been written by then.
    ValueError, TypeError, ExchangeError
        `out` is not memory for the batch, as `Array.read` says; `decode` is not "cf" or None, was given with
        `out` or `device`, or needs a malformed attribute.
    UnsupportedError
        `out` was given, and the items differ in type, are strings, or may be missing; or `decode` found dates
        that do not fit `datetime64`.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> crops = [(temperature, np.s_[day : day + 2, :4, :4]) for day in (0, 1, 30)]
    >>> batch = zarrow.read_many(crops)
    >>> batch.shape, batch[1, 0, 0, 0].item()
    ((3, 2, 4, 4), 48.0)
    >>> [rows.shape for rows in zarrow.read_many([(temperature, np.s_[:, 0, 0]), (temperature, 0)])]
    [(48,), (6, 8)]
    >>> zarrow.read_many(crops, progress=print).shape
    0 384
    384 384
    (3, 2, 4, 4)
    """
