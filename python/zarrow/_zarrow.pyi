"""The compiled part of zarrow: everything here is public as `zarrow.*`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self, Unpack, final, overload

from typing_extensions import disjoint_base

from zarrow.api.array_options import ArrayOptions, LayoutOptions, Store
from zarrow.api.limits import DecodeLimits
from zarrow.api.typed import AnyElements, AnyNode
from zarrow.arrays._array import Array
from zarrow.arrays._categorical import Categorical
from zarrow.arrays._decoded_array import DecodedArray
from zarrow.arrays._indexer import Indexer
from zarrow.arrays._masked_tensor import MaskedTensor
from zarrow.arrays._masked_variable import MaskedVariable
from zarrow.arrays._read_many import read_many
from zarrow.arrays._tensor import Tensor
from zarrow.arrays._variable import Variable
from zarrow.arrays._write_many import write_many
from zarrow.device_tensor._device_tensor import DeviceTensor
from zarrow.groups._group import Group
from zarrow.groups._node_batch import (
    _create_all,
    _create_array,
    _create_group,
    _is_remote,
    _new_array,
    _NewNode,
)
from zarrow.groups._tree import Tree
from zarrow.interchange._arrow_stream import ArrowStream
from zarrow.store_objects._cloud_store import CloudStore
from zarrow.store_objects._memory_store import MemoryStore
from zarrow.store_objects._store_requests import (
    _ChunkReferences,
    _reference_target,
    _References,
    _ReferenceTarget,
    _StoreQueue,
    _StoreRequest,
)
from zarrow.store_objects._stored_values import _StoredValues

__all__ = [
    "Array",
    "ArrowStream",
    "BufferProducer",
    "Categorical",
    "CloudStore",
    "DecodedArray",
    "DeviceTensor",
    "Group",
    "Indexer",
    "MaskedTensor",
    "MaskedVariable",
    "MemoryStore",
    "Tensor",
    "Tree",
    "Variable",
    "_Cancellation",
    "_ChunkParts",
    "_ChunkReferences",
    "_Detached",
    "_NewNode",
    "_RecycledMemory",
    "_ReferenceTarget",
    "_References",
    "_StageTimes",
    "_StoreQueue",
    "_StoreRequest",
    "_StoredValues",
    "_Unread",
    "__version__",
    "_categorical",
    "_count_assignment",
    "_create_all",
    "_create_array",
    "_create_group",
    "_create_whole_group",
    "_explain",
    "_help",
    "_import",
    "_is_remote",
    "_mask_levels",
    "_masked",
    "_members_or_errors",
    "_new_array",
    "_open_detached",
    "_open_members",
    "_read_detached",
    "_read_each",
    "_read_into",
    "_read_masked",
    "_reference_target",
    "_register_codec",
    "_serves_stores",
    "_shape_as",
    "_shapes_of",
    "_text",
    "_variable",
    "_visible",
    "_with_options",
    "_write_detached",
    "asarray",
    "from_arrow",
    "from_dlpack",
    "from_numpy",
    "num_threads",
    "open",
    "read_many",
    "release_memory",
    "set_memory_cache",
    "set_num_threads",
    "write_many",
]

__version__: str

@disjoint_base
class BufferProducer:
    """Base for classes that expose the buffer of a Tensor, because Python 3.11 has no `__buffer__`."""

    def __new__(cls, tensor: Tensor) -> Self: ...
    @property
    def tensor(self) -> Tensor:
        """The tensor that owns the memory."""
    if sys.version_info >= (3, 12):
        # The buffer protocol (PEP 3118); Python 3.11 has it too, but no names for it.
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...

class _Unread: ...

def _create_whole_group(
    target: Any,
    path: str,
    attributes: dict[str, Any],
    members: Callable[[Group], None],
    may_replace: Callable[[], bool],
    *,
    zarr_format: int,
    overwrite: bool,
) -> bool: ...
def _explain(array: Array, selection: Any = None, device: Any = None) -> dict[str, Any]: ...
def _help(name: str) -> str | None: ...

@final
class _Detached:
    def cancel(self) -> None: ...

@final
class _Cancellation:
    def __new__(cls) -> _Cancellation: ...
    def run(self, function: Callable[[], Any]) -> Any: ...
    def cancel(self) -> None: ...

@final
class _StageTimes:
    def __new__(cls) -> _StageTimes: ...
    def measured(self, array: Array) -> Array: ...
    def seconds(self) -> tuple[float, float, float]: ...

@final
class _ChunkParts:
    def __new__(cls, store: Any, path: str, zarr_format: int, document: bytes) -> _ChunkParts: ...
    def array(self, shape: Sequence[int], *, coalescing: tuple[int, int] | None = None) -> Array: ...
    def take_missing(self, array: Array) -> list[tuple[int, ...]]: ...
    def is_local(self) -> bool: ...
    def read(
        self,
        shape: Sequence[int],
        kind: str,
        parts: Sequence[tuple[Any, Sequence[slice]]],
        result: Any,
        *,
        coalescing: tuple[int, int] | None = None,
    ) -> list[tuple[int, ...]]: ...
    def begin_read(
        self,
        shape: Sequence[int],
        kind: str,
        parts: Sequence[tuple[Any, Sequence[slice]]],
        result: Any,
        callback: Callable[[list[tuple[int, ...]] | None, BaseException | None], object],
        *,
        coalescing: tuple[int, int] | None = None,
    ) -> _Detached: ...
    def write(
        self,
        shape: Sequence[int],
        kind: str,
        parts: Sequence[tuple[Any, Any]],
        *,
        write_empty_chunks: bool,
        replace_edges: bool,
    ) -> None: ...

@final
class _RecycledMemory:
    def __new__(cls, nbytes: int) -> _RecycledMemory: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

def _read_detached(
    array: Array,
    selection: Any,
    out: Any,
    mask: Any,
    callback: Callable[[Any, BaseException | None], object],
) -> _Detached: ...
def _open_detached(
    store: Any,
    path: str,
    callback: Callable[[Any, BaseException | None], object],
    *,
    mode: str = "r+",
    zarr_format: int | None = None,
    storage_options: Any = None,
    cache_bytes: int = 0,
    limits: Any = None,
    durability: str = "none",
    **options: Any,
) -> _Detached | None: ...
def _write_detached(
    array: Array,
    selection: Any,
    value: Any,
    callback: Callable[[Any, BaseException | None], object],
    *,
    durability: Literal["none", "file", "full"] | None = None,
    write_empty_chunks: bool = False,
    casting: str = "same_kind",
) -> _Detached | None: ...
def _open_members(store: Any, path: str) -> tuple[Any, list[tuple[str, Any]] | None]: ...
def _members_or_errors(group: Group) -> list[tuple[str, AnyNode | Exception]]: ...
def _read_each(arrays: Sequence[Array]) -> list[Any]: ...
def _read_into(items: Sequence[tuple[Array | Indexer, Any]], outs: Sequence[Any]) -> None: ...
def _read_masked(items: Sequence[tuple[Array | Indexer, Any]], masks: Sequence[Any]) -> list[Any]: ...
def _import(name: str) -> Any: ...
def _serves_stores(mark: int | None) -> int | None: ...
def _register_codec(name: str, kind: str, make: Any) -> None: ...
def _shape_as(data: Any, dtype: Any) -> tuple[int, ...]: ...
def _shapes_of(items: Sequence[tuple[Array | Indexer, Any]]) -> list[tuple[int, ...]]: ...
def _visible(text: str) -> str: ...
def _with_options(store: Any, storage_options: Mapping[str, Any] | None) -> Any: ...
@overload
def open(
    store: Store,
    path: str = "",
    *,
    mode: Literal["r", "r+", "a", "w", "w-", "x"] = "r+",
    zarr_format: Literal[2, 3] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    cache_bytes: int = 0,
    limits: DecodeLimits | None = None,
    durability: Literal["none", "file", "full"] = "none",
    shape: int | Sequence[int],
    dtype: Any = None,
    fill_value: Any = None,
    **options: Unpack[LayoutOptions],
) -> Array: ...
@overload
def open(
    store: Store,
    path: str = "",
    *,
    mode: Literal["w", "w-", "x"],
    zarr_format: Literal[2, 3] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    cache_bytes: int = 0,
    limits: DecodeLimits | None = None,
    durability: Literal["none", "file", "full"] = "none",
) -> Group: ...
@overload
def open(
    store: Store,
    path: str = "",
    *,
    mode: Literal["r", "r+", "a", "w", "w-", "x"] = "r+",
    zarr_format: Literal[2, 3] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    cache_bytes: int = 0,
    limits: DecodeLimits | None = None,
    durability: Literal["none", "file", "full"] = "none",
    **options: Unpack[ArrayOptions],
) -> AnyNode:
    """Open the array or group at a path of a store: a folder, a URL, or a store object.

    Reads metadata only, no chunks. The stored metadata decide between version 2 and 3 of Zarr.

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL; the URL of a cloud store (`s3://`, `gs://`, `az://`,
        `abfs://`, `http://`, `https://`); a store object of zarrow, zarr-python, obstore, fsspec, icechunk or
        VirtualiZarr; a mapping of keys to bytes; or `reference://` and a JSON file of kerchunk's references,
        which may lead to any file or host. A folder or URL may also be any node inside a larger hierarchy.
    path
        Path of the node in the store; `""` is the root.
    mode
        "r+", the default, opens an existing node for reading, and for writing if the store allows it. "r"
        opens it for reading: writing raises ReadOnlyError. "a" creates a group if none exists. "w-" (or "x")
        creates a group, and raises if a node exists at the path. "w" erases an existing array or group with
        everything in its folder, and creates a group; it refuses to erase any other folder, unless the folder
        is empty. Missing parent groups are created; `create_group` and `create_array` have more options.
    zarr_format
        Format version for new nodes (default 3). If given, an existing node must have it.
    storage_options
        Credentials, endpoint, region and other options of a cloud URL, named as in fsspec: see `CloudStore`.
    cache_bytes
        Size in bytes of each array's cache of decoded chunks, for overlapping reads. The least recently used
        chunks are dropped first. A changed chunk is decoded again, and a file written in the last
        milliseconds is not cached. 0 disables the cache.
    limits
        Decode limits against hostile stores, for every node opened from here.
    durability
        What has reached the disk when a write returns, for every node opened from here: "none" leaves it to
        the operating system, "file" guarantees the bytes, "full" also the file name. In all three modes, a
        killed process leaves each chunk and each metadata document old or new, never half-written.
    options
        Options of `create_array`, including `shape` and `dtype`: "a", "w" and "w-" then create an array, as
        `open_array` does.

    Returns
    -------
    Array or Group
        `open_array`, `open_group`, `Group.get_array` and `Group.get_group` have precise return types. Other
        functions return a type with the attributes of both classes, so that `zarrow.open(...)["name"][0:10]`
        passes a type checker.

    Raises
    ------
    NotFoundError
        No array or group exists at the path (a `FileNotFoundError`).
    NodeExistsError
        A node exists at the path, and the mode is "w-" (a `FileExistsError`).
    MetadataError
        The metadata is malformed, or beyond the limits (a `ValueError`).
    UnsupportedError
        The URL has an unsupported scheme, or an option is unknown (a `NotImplementedError`).
    StorePermissionError, StoreError
        A cloud store refuses, fails or cannot be reached (a `PermissionError`, an `OSError`). Messages never
        show secrets.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open("data.zarr")
    >>> root["temperature"].shape
    (48, 6, 8)
    """

def asarray(x: Any, dtype: Any = None, copy: bool | None = None) -> AnyElements:
    """Wrap any array as one of the four layouts, sharing its memory if possible.

    Writes are visible on both sides, and the source stays alive as long as the result or any view of it.
    Read-only memory stays read-only, in every view.

    Parameters
    ----------
    x
        An array of another library, by the first interface that it supports: the buffer protocol, DLPack's
        table of C functions (PyTorch), Arrow (see `from_arrow`), DLPack by capsule, `__array_interface__`,
        `__array__`. `numpy.ma` gives a MaskedTensor. Python numbers, text, bytes, None and sequences of these
        are copied, as are NumPy arrays of objects or `StringDType`. An array of zarrow is returned unchanged.
    dtype
        The type that the data must have: any argument of `numpy.dtype`, the name of a Zarr type, `"string"`
        or `"bytes"`. Arrays are never cast; only Python numbers, which have no type yet, are converted.
    copy
        None: copy only if the memory cannot be shared (non-native byte order, strides that are not a multiple
        of the element size, as of a field of packed records, and Python objects). False: raise an error
        instead of copying. True: always copy, to memory aligned to 64 bytes.

    Returns
    -------
    Tensor, Variable, MaskedTensor or MaskedVariable
        An array of the same shape and, except for Python objects, of the same type.

    Raises
    ------
    DataTypeError
        The data has another type than `dtype`, or non-native byte order with `copy=False` (a `TypeError` and
        a `ValueError`).
    ExchangeError
        The memory is not on the CPU, violates its protocol, or needs a copy although `copy=False` (a
        `BufferError` and a `ValueError`).
    UnsupportedError
        A NumPy dtype has no counterpart (a `NotImplementedError`).
    TypeError
        `x` is not an array, and cannot be made into one.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> array = np.arange(6, dtype="f4").reshape(2, 3)
    >>> tensor = zarrow.asarray(array)
    >>> array[0, 0] = 9
    >>> tensor.tolist()
    [[9.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    >>> zarrow.asarray(["Oslo", None, "Quito"])
    <zarrow.MaskedVariable (3,) string on cpu, 44 B>
    ['Oslo', None, 'Quito']
    """

def from_arrow(x: Any) -> AnyElements:
    """Wrap an Arrow array. Values, offsets and bytes of text are shared and read-only, as in Arrow.

    Numbers, `arrow.bool8`, 64-bit times, fixed-size binary, and nested fixed-size lists or
    `arrow.fixed_shape_tensor` of these become a Tensor at the same address. Large strings and large binary
    become a Variable. Nulls give a masked layout, with a new mask of one byte per element.

    Types that Arrow represents differently are copied: packed bools, 32-bit offsets and the offsets of
    slices, string views, 32-bit dates, dictionaries (decoded), and arrays of several chunks (joined).
    Variable-size lists, structs (take a column of a table), unions, decimals and null arrays are refused.

    Types that would lose their meaning are also refused: times with a time zone, times of day, dates in
    milliseconds, and fixed-size lists with null lists. The error's `kind` is `"loses_meaning"`, and its
    message says what to cast to.

    Parameters
    ----------
    x
        An object with `__arrow_c_array__` or `__arrow_c_stream__` (pyarrow, polars, DuckDB, pandas), or their
        capsules, which are consumed.

    Raises
    ------
    ExchangeError
        The type has no counterpart here, or only a partial one; the array breaks Arrow's rules; the stream's
        producer failed (a `BufferError`).
    ShapeError
        Offsets decrease, or text is not UTF-8 (a `ValueError`).
    TypeError
        `x` is not an Arrow array.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import zarrow
    >>> zarrow.from_arrow(pa.array([1, None, 3]))
    <zarrow.MaskedTensor (3,) int64 on cpu, 27 B>
    [1 -- 3]
    >>> column = pa.array(["Oslo", "Quito"], pa.large_string())
    >>> zarrow.from_arrow(column).data.numpy().ctypes.data == column.buffers()[2].address
    True
    """

def from_dlpack(x: Any, dtype: Any = None, *, copy: bool | None = None) -> Tensor:
    """Wrap the tensor that an object exports by DLPack. The memory is shared, not copied.

    Parameters
    ----------
    x
        An object with `__dlpack__`, which is called for the newest version, or a capsule, which is consumed.
        Capsules from before DLPack 1.0 do not say whether their memory is writable: they are read-only here,
        as in NumPy, except PyTorch's, which are always writable.
    dtype
        The type that the data must have, as in `asarray`.
    copy
        True: copy to new memory. False: refuse data that the producer copied. None: accept both.

    Raises
    ------
    DataTypeError
        The data has another type than `dtype` (a `TypeError` and a `ValueError`).
    ExchangeError
        The memory is not on the CPU; the type has no counterpart here; the tensor violates DLPack's rules;
        the capsule was already consumed; the PyTorch tensor is a lazy negative or conjugate of its memory (a
        `BufferError`).
    TypeError
        `x` does not support DLPack.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> array = np.arange(3)
    >>> zarrow.from_dlpack(array).numpy().ctypes.data == array.ctypes.data
    True
    """

def from_numpy(x: Any, dtype: Any = None) -> AnyElements:
    """Wrap a NumPy array, or any object with `__array_interface__`, without a copy.

    The result has the same type and strides (including negative ones), and is writable if the array is. Dates
    are supported, although DLPack has no type for them, and a `numpy.ma.MaskedArray` gives a MaskedTensor.

    Parameters
    ----------
    x
        The array; it stays alive as long as the result.
    dtype
        The type that the data must have, as in `asarray`.

    Raises
    ------
    DataTypeError
        The data has another type than `dtype`, or is not native-endian (a `TypeError` and a `ValueError`).
    ExchangeError
        The strides are not multiples of the element size, as in a field of packed records; or NumPy cannot
        share the elements, as of text and objects (a `ValueError`).
    TypeError
        `x` does not describe its memory.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> days = np.array(["2026-11-21", "2026-11-22"], dtype="M8[D]")
    >>> tensor = zarrow.from_numpy(days[::-1])
    >>> days[0] = "1970-01-01"
    >>> tensor.numpy()
    array(['2026-11-22', '1970-01-01'], dtype='datetime64[D]')
    """

def set_num_threads(count: int) -> None:
    """Set how many threads a read may use, including the calling one.

    The environment variable `ZARROW_NUM_THREADS` sets the initial value.

    Raises
    ------
    ValueError
        The count is 0.
    """

def num_threads() -> int:
    """Return how many threads a read may use, including the calling one."""

def set_memory_cache(nbytes: int) -> None:
    """Set how many bytes of freed results are kept for the next results; 0 keeps none.

    The same limit applies to the buffers of threads.

    The first access to fresh memory takes half as long as an uncompressed read. A loop that reads, uses and
    drops results of similar size reuses the memory of the previous result. Results of 2 MiB and more are
    kept, 512 MiB in total by default, as are the last eight smaller results, each of at most `nbytes`. Kept
    memory beyond a new limit is freed. Old contents are never visible: a result is filled before it is
    returned.

    Raises
    ------
    ValueError
        The count is negative.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.set_memory_cache(64 << 20)
    >>> zarrow.set_memory_cache(512 << 20)
    """

def release_memory() -> int:
    """Free the memory kept for later reads and writes, and return its size in bytes.

    This includes the memory of dropped results and the threads' buffers for decoding and encoding. GPU memory
    and pinned memory that are kept are also freed, but not counted. Results in use and running reads and
    writes are not affected.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.release_memory() >= 0
    True
    >>> zarrow.release_memory()
    0
    """

def _variable(offsets: Any, data: Any, shape: Sequence[int], is_text: bool) -> Variable: ...
def _masked(data: Tensor | Variable, levels: list[Any]) -> MaskedTensor | MaskedVariable: ...
def _text(array: DecodedArray) -> str: ...
def _count_assignment() -> int: ...
def _mask_levels(array: MaskedTensor | MaskedVariable) -> list[Tensor]: ...
def _categorical(codes: Tensor, categories: Tensor | Variable, ordered: bool) -> Categorical: ...
