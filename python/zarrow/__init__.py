"""Zarr in, tensors out, without a copy in between.

NumPy, PyTorch, JAX and Arrow share the same memory.

>>> import zarrow
>>> root = zarrow.open("data.zarr")
>>> tensor = root["temperature"][0:24, ::2, -1]  # in memory now
>>> faces = tensor.numpy(), tensor.jax(), memoryview(tensor)  # one memory

`help(zarrow.open)` and so on explain each name. Start with
`help(zarrow.Array.read)`.

Open
    open, open_group, open_array   a store, as a Group or an Array
    load                           all elements of it, in memory
    consolidate_metadata           one document for a whole tree
    Group, Array, Attributes       nodes of a store, and their attributes
    Tree                           a printable hierarchy: `Group.tree`
    Indexer                        `array.oindex`, `.vindex`, `.blocks`
    CloudStore, MemoryStore        stores in the cloud and in memory
    PythonStore                    a store object with declared properties
    DecodeLimits                   limits against hostile stores

Read
    array[...], array.read(...)    an array, or a selection
    read_many                      several parts in one batch
    open_async, read_many_async    the same, awaited; and of an Array
                                   read_async, write_async
    DecodedArray                   result of a read, in one of four layouts:
    Tensor, MaskedTensor           numbers, plain or with missing values
    Variable, MaskedVariable       text, plain or with missing values
    Categorical                    values by codes and categories
    ArrowStream                    rows of a table: `Group.to_arrow`
    Table                          rows and columns: `group[0:10]`

Write
    save, copy, write_many         into a store; to another; many arrays
    create_array, create_group     with your own chunks and codecs
    zeros, ones, full, empty       arrays of one value
    zeros_like, ones_like,
    full_like, empty_like          of the shape and type of another array
    set_missing                    how missing elements are stored
    codecs                         your own codecs

Memory of other libraries
    asarray                        any array, without a copy
    from_dlpack, from_numpy,
    from_arrow                     by one protocol
    io                             helpers from one library to another
    gpu                            tensors on a GPU, and for zarr-python
    xarray                         an engine for xarray
    zarr_python                    this engine under zarr-python
    ome, pyramid                   images in several resolutions
    jobs                           work for many processes
    stream                         a writer for frames of an instrument
    data                           batches for training
    dask, ray                      arrays of dask, and datasets of Ray
    checks: verify, repair, diff,
    digest, convert                stores checked, mended and compared
    files                          NPY, Parquet, safetensors and others

Settings
    num_threads, set_num_threads   threads that decode and encode
    set_memory_cache,
    release_memory                 memory that is kept for the next result

Errors
    ZarrowError                    the base of CodecError, DataTypeError,
        DeviceError, ExchangeError, IndexingError, InternalError,
        InvalidKeyError, LimitError, MetadataError, NodeExistsError,
        NodeTypeError, NotFoundError, OutOfMemoryError, ReadOnlyError,
        ShapeError, StaleHandleError, StoreError, StorePermissionError,
        UnsupportedError
    ZarrowWarning                  warnings about surprising behaviour
"""

import sys as _sys
import typing as _typing

# Its import covers those below.
import zarrow.early_interrupt as _early_interrupt  # noqa: F401
from zarrow import codecs
from zarrow._zarrow import (
    Array,
    ArrowStream,
    Categorical,
    CloudStore,
    DecodedArray,
    Group,
    Indexer,
    MaskedTensor,
    MaskedVariable,
    MemoryStore,
    Tensor,
    Tree,
    Variable,
    __version__,
    asarray,
    from_arrow,
    from_dlpack,
    from_numpy,
    num_threads,
    open,
    read_many,
    release_memory,
    set_memory_cache,
    set_num_threads,
    write_many,
)
from zarrow.anndata.methods import add_to_class as _add_anndata
from zarrow.api.array_options import says_options as _says_options
from zarrow.api.asynchronous import add_to_class as _add_asynchronous
from zarrow.api.asynchronous import open_async, read_many_async
from zarrow.api.consolidation import consolidate_metadata
from zarrow.api.creation import create_array, create_group
from zarrow.api.dask_arrays import add_to_class as _add_dask
from zarrow.api.filled_arrays import empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like
from zarrow.api.limits import DecodeLimits
from zarrow.api.opening import load, open_array, open_group
from zarrow.api.reported_writes import add_to_class as _add_reported_writes
from zarrow.api.saving import save
from zarrow.api.whole_copies import copy
from zarrow.arrays.arithmetic import add_to_classes as _add_arithmetic
from zarrow.arrays.categorical import add_to_class as _add_categorical
from zarrow.arrays.chunk_grid import add_to_classes as _add_chunks
from zarrow.arrays.follow_method import add_to_class as _add_growing
from zarrow.arrays.missing import set_missing
from zarrow.arrays.read_casts import add_to_class as _add_casts
from zarrow.arrays.selections import add_to_class as _add_selections
from zarrow.device_tensor.methods import add_to_class as _add_device_methods
from zarrow.errors import (
    CodecError,
    DataTypeError,
    DeviceError,
    ExchangeError,
    IndexingError,
    InternalError,
    InvalidKeyError,
    LimitError,
    MetadataError,
    NodeExistsError,
    NodeTypeError,
    NotFoundError,
    OutOfMemoryError,
    ReadOnlyError,
    ShapeError,
    StaleHandleError,
    StoreError,
    StorePermissionError,
    UnsupportedError,
    ZarrowError,
    ZarrowWarning,
)
from zarrow.groups.attributes import Attributes
from zarrow.groups.members import add_to_class as _add_members
from zarrow.groups.node_info import add_to_classes as _add_info
from zarrow.hints.missing_modules import add_finder as _add_finder
from zarrow.hints.module_names import add_to_modules as _add_module_hints
from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.hints.unknown_names import add_to_classes as _add_hints
from zarrow.interchange.consumers import add_to_classes as _add_protocols
from zarrow.store_objects.python_store import PythonStore
from zarrow.tables.methods import add_to_class as _add_tables
from zarrow.tables.table import Table

if _typing.TYPE_CHECKING:
    from zarrow import checks as checks
    from zarrow import dask as dask
    from zarrow import data as data
    from zarrow import files as files
    from zarrow import gpu as gpu
    from zarrow import io as io
    from zarrow import jobs as jobs
    from zarrow import ome as ome
    from zarrow import ray as ray
    from zarrow import stream as stream
    from zarrow import xarray as xarray
    from zarrow import zarr_python as zarr_python
    from zarrow.checks import convert as convert
    from zarrow.checks import diff as diff
    from zarrow.checks import digest as digest
    from zarrow.checks import repair as repair
    from zarrow.checks import verify as verify
    from zarrow.ome import pyramid as pyramid

__all__ = [
    "Array",
    "ArrowStream",
    "Attributes",
    "Categorical",
    "CloudStore",
    "CodecError",
    "DataTypeError",
    "DecodeLimits",
    "DecodedArray",
    "DeviceError",
    "ExchangeError",
    "Group",
    "Indexer",
    "IndexingError",
    "InternalError",
    "InvalidKeyError",
    "LimitError",
    "MaskedTensor",
    "MaskedVariable",
    "MemoryStore",
    "MetadataError",
    "NodeExistsError",
    "NodeTypeError",
    "NotFoundError",
    "OutOfMemoryError",
    "PythonStore",
    "ReadOnlyError",
    "ShapeError",
    "StaleHandleError",
    "StoreError",
    "StorePermissionError",
    "Table",
    "Tensor",
    "Tree",
    "UnsupportedError",
    "Variable",
    "ZarrowError",
    "ZarrowWarning",
    "__version__",
    "asarray",
    "codecs",
    "consolidate_metadata",
    "copy",
    "create_array",
    "create_group",
    "empty",
    "empty_like",
    "from_arrow",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "load",
    "num_threads",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_async",
    "open_group",
    "read_many",
    "read_many_async",
    "release_memory",
    "save",
    "set_memory_cache",
    "set_missing",
    "set_num_threads",
    "write_many",
    "zeros",
    "zeros_like",
]

_add_anndata()
_add_arithmetic()
_add_categorical()
_add_chunks()
_add_info()
_add_members()
_add_selections()
_add_casts()
_add_asynchronous()
_add_dask()
_add_growing()
_add_reported_writes()
_add_protocols()
_add_tables()
_add_device_methods()
_add_hints()
_add_module_hints()
_add_finder()

if not _typing.TYPE_CHECKING:  # the compiled function, with messages for calls that other libraries take
    open = _says_options(open)
    open.__module__ = "zarrow"


# `pydoc` asks `inspect`, which asks `dir`.
_HELP_DEPTH = 4

# Imported when they are first looked at, with the library that each needs.
_MODULES = {
    "checks": "numpy",
    "dask": "dask",
    "data": "numpy",
    "files": "numpy",
    "gpu": "numpy",
    "io": "numpy",
    "jobs": "numpy",
    "ome": "numpy",
    "ray": "ray",
    "stream": "numpy",
    "xarray": "xarray",
    "zarr_python": "zarr",
}

# Imported when they are first looked at, each from its module.
_FUNCTIONS = {
    "convert": "checks",
    "diff": "checks",
    "digest": "checks",
    "pyramid": "ome",
    "repair": "checks",
    "verify": "checks",
}


if not _typing.TYPE_CHECKING:  # a type checker would take every name for one that exists
    _unknown_name = _getattr_of("zarrow")

    def __getattr__(name: str) -> _typing.Any:
        """Import these names on first access; suggest a replacement for any other one."""
        if name not in _MODULES and name not in _FUNCTIONS:
            return _unknown_name(name)
        import importlib

        module = importlib.import_module(f"zarrow.{_FUNCTIONS.get(name, name)}")
        return getattr(module, name) if name in _FUNCTIONS else module


def __dir__() -> list[str]:
    """List the names that can be imported; for `help(zarrow)`, which prints each, list only `__version__`."""
    frame = _sys._getframe(1)
    for _ in range(_HELP_DEPTH):
        if frame.f_globals.get("__name__") == "pydoc":
            return ["__version__"]
        if frame.f_back is None:
            break
        frame = frame.f_back
    from importlib.util import find_spec

    installed = (name for name, library in _MODULES.items() if find_spec(library) is not None)
    return sorted({*__all__, *_FUNCTIONS, *installed})
