"""Zarr in, tensors out, nothing copied on the way: NumPy, PyTorch, JAX and Arrow over one memory.

>>> import zarrow
>>> root = zarrow.open("data.zarr")
>>> tensor = root["temperature"][0:24, ::2, -1]  # in memory now, and each of these is another face of it:
>>> faces = tensor.numpy(), tensor.jax(), memoryview(tensor)
"""

from typing import TYPE_CHECKING, Any

from zarrow._zarrow import (
    Array,
    ArrowStream,
    Categorical,
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
)
from zarrow.arithmetic import add_to_classes as _add_arithmetic
from zarrow.attributes import Attributes
from zarrow.creation import consolidate_metadata, create_array, create_group, save
from zarrow.errors import (
    CodecError,
    DataTypeError,
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
)
from zarrow.limits import DecodeLimits

if TYPE_CHECKING:
    from zarrow import io as io

__all__ = [
    "Array",
    "ArrowStream",
    "Attributes",
    "Categorical",
    "CodecError",
    "DataTypeError",
    "DecodeLimits",
    "DecodedArray",
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
    "ReadOnlyError",
    "ShapeError",
    "StaleHandleError",
    "StoreError",
    "StorePermissionError",
    "Tensor",
    "Tree",
    "UnsupportedError",
    "Variable",
    "ZarrowError",
    "__version__",
    "asarray",
    "consolidate_metadata",
    "create_array",
    "create_group",
    "from_arrow",
    "from_dlpack",
    "from_numpy",
    "num_threads",
    "open",
    "read_many",
    "release_memory",
    "save",
    "set_memory_cache",
    "set_num_threads",
]

_add_arithmetic()


def __getattr__(name: str) -> Any:
    """Import `zarrow.io` when it is first looked at."""
    if name == "io":
        import importlib

        return importlib.import_module("zarrow.io")
    raise AttributeError(f"module 'zarrow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "io"})
