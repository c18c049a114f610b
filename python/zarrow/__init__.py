"""Zarr in, tensors out, nothing copied on the way: NumPy, PyTorch, JAX and Arrow over one memory.

>>> import zarrow
>>> root = zarrow.open("data.zarr")
>>> tensor = root["temperature"][0:24, ::2, -1]  # in memory now, and each of these is another face of it:
>>> faces = tensor.numpy(), tensor.jax(), memoryview(tensor)
"""

from zarrow._zarrow import (
    Array,
    DecodedArray,
    Group,
    MaskedTensor,
    MaskedVariable,
    Tensor,
    Tree,
    Variable,
    __version__,
    num_threads,
    open,
    read_many,
    release_memory,
    set_memory_cache,
    set_num_threads,
)
from zarrow.errors import (
    CodecError,
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
    StoreError,
    UnsupportedError,
    ZarrowError,
)
from zarrow.limits import DecodeLimits

__all__ = [
    "Array",
    "CodecError",
    "DecodeLimits",
    "DecodedArray",
    "ExchangeError",
    "Group",
    "IndexingError",
    "InternalError",
    "InvalidKeyError",
    "LimitError",
    "MaskedTensor",
    "MaskedVariable",
    "MetadataError",
    "NodeExistsError",
    "NodeTypeError",
    "NotFoundError",
    "OutOfMemoryError",
    "ReadOnlyError",
    "ShapeError",
    "StoreError",
    "Tensor",
    "Tree",
    "UnsupportedError",
    "Variable",
    "ZarrowError",
    "__version__",
    "num_threads",
    "open",
    "read_many",
    "release_memory",
    "set_memory_cache",
    "set_num_threads",
]
