"""The exceptions of zarrow: one base class, and subclasses that also derive from builtin exceptions.

>>> import zarrow
>>> try:
...     zarrow.open("no such folder")
... except FileNotFoundError as error:
...     print(error.kind)
not_found
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

    from zarrow._zarrow import Array, Group

__all__ = [
    "CodecError",
    "DataTypeError",
    "DeviceError",
    "ExchangeError",
    "IndexingError",
    "InternalError",
    "InvalidKeyError",
    "LimitError",
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
    "UnsupportedError",
    "ZarrowError",
    "ZarrowWarning",
]


class ZarrowError(Exception):
    """Base class of zarrow's exceptions.

    `node` sets `store` and `path` to those of an array or group.

    Attributes
    ----------
    kind : str
        A short name of the error, stable between versions: `"checksum"`, ... Each class has a default.
    store : str or None
        The store's name, if a store is involved.
    path : str or None
        The path of the array or group in the store.
    chunk : tuple of int or None
        The chunk's place in the grid.
    codec : str or None
        The name of the codec.
    """

    kind: str = "internal"

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        store: str | None = None,
        path: str | None = None,
        chunk: tuple[int, ...] | None = None,
        codec: str | None = None,
        node: Array | Group | None = None,
    ) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind
        self.store = store if node is None else node.store
        self.path = path if node is None else node.path
        self.chunk = chunk
        self.codec = codec

    def __str__(self) -> str:
        # `KeyError` would show the representation of the message.
        return str(self.args[0]) if self.args else ""


class NotFoundError(ZarrowError, FileNotFoundError, KeyError):
    """No array or group exists at the path."""

    kind = "not_found"


class NodeExistsError(ZarrowError, FileExistsError, ValueError):
    """A node or another file already exists at the path of a new array or group."""

    kind = "exists"


class StaleHandleError(ZarrowError, OSError):
    """The array was replaced or made smaller since this object was opened: open it again."""

    kind = "stale"


class NodeTypeError(ZarrowError, TypeError):
    """A group was found where an array was requested, or vice versa."""

    kind = "wrong_node"


class StoreError(ZarrowError, OSError):
    """The store could not be read or written; `kind` is "io", "write", "no_space" or "uncertain".

    `errno` is the number of the failed system call's error, if one failed.

    "uncertain" means that a write may or may not have been applied: read the array before you repeat it.
    """

    kind = "io"


class StorePermissionError(StoreError, PermissionError):
    """The user has no permission to read or write the store; `kind` is "permission"."""

    kind = "permission"


class ReadOnlyError(StoreError, PermissionError):
    """The store can only be read."""

    kind = "read_only"


class InvalidKeyError(ZarrowError, ValueError, KeyError):
    """A path is malformed, or would leave the store."""

    kind = "bad_key"


class MetadataError(ZarrowError, ValueError):
    """The metadata is malformed, or requires something that does not exist."""

    kind = "metadata"


class CodecError(ZarrowError, ValueError):
    """A chunk does not decode: unknown codec, corrupt bytes, wrong checksum, wrong size."""

    kind = "bad_codec"


class LimitError(ZarrowError, ValueError):
    """Something exceeds a limit that guards against hostile input."""

    kind = "limit"


class IndexingError(ZarrowError, IndexError):
    """An index is outside the array or the chunk grid, or of the wrong kind."""

    kind = "index"


class ShapeError(ZarrowError, ValueError):
    """A shape or an order of axes does not fit."""

    kind = "shape"


class OutOfMemoryError(ZarrowError, MemoryError):
    """Memory for the result could not be allocated."""

    kind = "out_of_memory"

    def __new__(cls, *args: object, **_: object) -> Self:
        """Create the exception in the memory of its first base; libraries that unpickle it call this."""
        return Exception.__new__(cls, *args)


class ExchangeError(ZarrowError, BufferError, ValueError):
    """An array cannot be shared as requested without a copy, or without losing its meaning."""

    kind = "no_such_type"


class DataTypeError(ExchangeError, TypeError):
    """An array does not have the requested data type, or cannot be cast safely when writing."""

    kind = "data_type"


class DeviceError(ZarrowError, RuntimeError):
    """A GPU cannot be used.

    `kind` is "unavailable", "no_device", "driver", "stream", "context_lost" or "forked".
    """

    kind = "unavailable"


class UnsupportedError(ZarrowError, NotImplementedError):
    """Valid input that zarrow does not support."""

    kind = "unsupported"


class InternalError(ZarrowError, RuntimeError):
    """A fault of zarrow itself, contained."""


class ZarrowWarning(UserWarning):
    """Something that works, but may be surprising.

    For example a store that other libraries cannot open, a skipped member, or a stored change that could not
    be copied to the consolidated metadata.
    """
