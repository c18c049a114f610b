"""The engine's form of an array of zarr-python: its store, its document, and where its chunks begin.

1. zarr-python keeps the array's documents and may change them at any time. Only what never changes is taken
   from them: the chunk grid, the data type, the codecs. The array's shape comes from each batch.
2. Only codecs and data types of zarr-python itself are resolved (`fallback.py`).
3. A null fill value of version 2 means that the data type's default is missing, as in zarr-python.
4. zarr-python finds the store by its path at each call. The engine keeps the folder that it opened, and opens
   the path again when another folder is there. An archive stays open on both sides: it must be the same file.
5. A read-only session of icechunk never changes. The engine reads the array's chunks by their references,
   which it would note when it reads the document.
6. `to_dict` of zarr-python's metadata warns of data types without a specification. It did so when the array
   was created, and would not when the array is read.
"""

from __future__ import annotations

import json
import os
import sys
import weakref
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zarr.abc.metadata import Metadata
from zarr.core.dtype import (
    FixedLengthUTF32,
    NullTerminatedBytes,
    RawBytes,
    Structured,
    VariableLengthBytes,
    VariableLengthUTF8,
)
from zarr.storage import ZipStore

from zarrow._zarrow import _ChunkParts
from zarrow.errors import ZarrowError
from zarrow.store_objects import engine_stores
from zarrow.store_objects.icechunk_references import IcechunkAdapter, from_store
from zarrow.zarr_python.fallback import FallbackError, check_codecs

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

# The engine's form of each store, while the store lives.
_STORES: dict[int, tuple[weakref.ref[Any], Any]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of one array."""

    engine: _ChunkParts
    # Where each chunk's key begins, and the separator of its numbers.
    prefix: str
    separator: str
    # The chunk extent along each axis, or the edges of unequal chunks from 0 to the last.
    axes: tuple[int | list[int], ...]
    # The type of the elements as zarr-python holds them in memory.
    dtype: np.dtype[Any]
    data_type: Any
    # Whether elements are text or bytes of variable length.
    is_variable: bool
    is_local: bool
    # Size in bytes of the smallest part that is decoded at once.
    unit_nbytes: int
    # The folder of the store and its identity, if it is one (step 4).
    folder: str | None
    identity: tuple[int, int] | None

    def is_current(self) -> bool:
        """Return whether the folder that was opened is still at its path."""
        return self.folder is None or _identity(self.folder) == self.identity

    def position(self, path: str) -> tuple[int, ...]:
        """Return the position in the grid of the chunk at a path of the store."""
        if not path.startswith(self.prefix):
            raise FallbackError(f"a batch has chunks of several arrays: {path} is outside {self.prefix}")
        if not self.axes:
            return ()
        return tuple(map(int, path[len(self.prefix) :].split(self.separator)))

    def start(self, axis: int, number: int) -> int:
        """Return where a chunk begins along an axis."""
        edges = self.axes[axis]
        return number * edges if isinstance(edges, int) else edges[number]

    def stop(self, axis: int, number: int) -> int:
        """Return where a chunk ends along an axis."""
        return self.start(axis, number) + self.extent(axis, number)

    def extent(self, axis: int, number: int) -> int:
        """Return the extent of a chunk along an axis."""
        edges = self.axes[axis]
        return edges if isinstance(edges, int) else edges[number + 1] - edges[number]

    def check(self, position: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Check the shape of a chunk.

        Raises
        ------
        FallbackError
            The array was resized since it was opened, and so was this chunk of a grid of unequal chunks.
        """
        if shape == self.axes:
            return
        for axis, (edges, number, extent) in enumerate(zip(self.axes, position, shape, strict=True)):
            is_known = isinstance(edges, int) or number + 1 < len(edges)
            if not is_known or self.extent(axis, number) != extent:
                raise FallbackError("an array with chunks of unequal extents was resized since it was opened")

    def room(self, axis: int, stop: int) -> int:
        """Return an extent of the array that contains `stop` and ends with a chunk."""
        edges = self.axes[axis]
        if isinstance(edges, int):
            # Powers of two: few shapes over many batches.
            return edges << ((stop - 1) // edges).bit_length()
        return edges[min(bisect_right(edges, stop - 1), len(edges) - 1)]


def open_chunks(metadata: Any, store: Any, path: str) -> Chunks:
    """Return the chunks of an array, from the path of one chunk.

    Raises
    ------
    FallbackError
        The engine cannot read them, or would not give the same elements.
    """
    check_codecs(metadata)
    data_type = metadata.dtype
    dtype = data_type.to_native_dtype()
    is_variable = isinstance(data_type, VariableLengthUTF8 | VariableLengthBytes)
    if dtype.kind in "OT" and not is_variable:
        raise FallbackError(f"elements of the type {data_type} are read by zarr-python")
    prefix, array_path, separator = _place(metadata, path)
    try:
        resolved = resolve_store(store)
        if isinstance(resolved, IcechunkAdapter):
            resolved.note_array(array_path, len(metadata.shape))  # step 5
        folder = str(resolved) if isinstance(resolved, Path) and resolved.is_dir() else None
        # Before it is opened: if the folder is replaced, the identity is then out of date.
        identity = None if folder is None else _identity(folder)
        engine = _ChunkParts(resolved, array_path, metadata.zarr_format, document(metadata))
        if isinstance(resolved, str) and archive_of(store) != resolved:
            raise FallbackError("the archive was replaced since zarr-python opened it")
    # zarr-python warns of types without a specification, and a program may turn warnings into errors.
    # A newer zarr-python may warn of other types than step 6, and a program may turn warnings into errors.
    except (ZarrowError, TypeError, ValueError, Warning) as error:
        raise FallbackError(f"the engine cannot open the array: {error}") from error
    axes, unit = _axes(metadata), _unit(metadata)
    nbytes = prod(unit) * dtype.itemsize
    is_local = engine.is_local()
    return Chunks(
        engine, prefix, separator, axes, dtype, data_type, is_variable, is_local, nbytes, folder, identity
    )


def _identity(folder: str) -> tuple[int, int] | None:
    """Return device and inode, which only this folder has while it is open, or None."""
    try:
        found = os.stat(folder)  # noqa: PTH116 -- once a batch: twice as fast as Path.stat
    except OSError:
        return None
    return found.st_dev, found.st_ino


def resolve_store(store: Any) -> Any:
    """Return the engine's form of a store.

    Raises
    ------
    FallbackError
        The engine has no store of the same configuration.
    """
    known = _STORES.get(id(store))
    if known is not None and known[0]() is store:
        return known[1]
    if type(store).__module__.startswith("icechunk.") and store.session.read_only:
        return from_store(store)
    native_form = engine_stores.resolve(store)
    found = archive_of(store) if native_form is None else native_form[0]
    if found is None:
        kind = type(store)
        raise FallbackError(f"the engine has no form of the store {kind.__module__}.{kind.__qualname__}")
    key = id(store)
    _STORES[key] = (weakref.ref(store, lambda _: _STORES.pop(key, None)), found)
    return found


def archive_of(store: Any) -> str | None:
    """Return the URL of the archive that zarr-python reads; None for other stores, and if it was replaced."""
    if type(store) is not ZipStore or not store.read_only or not store._is_open:
        return None
    file: Any = store._zf.fp
    path = Path(str(store.path)).absolute()
    try:
        is_same = os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (OSError, ValueError):
        return None
    return f"zip://{path}" if is_same else None


def document(metadata: Any) -> bytes:
    """Return the document of an array, without its attributes."""
    fields: dict[str, Any]
    if metadata.zarr_format == 2:
        fields = metadata.to_dict()
        fields.pop("attributes", None)
        compressor = fields.get("compressor")
        if compressor is not None and compressor["id"] == "zstd":
            # zarr-python's own document lacks it, and the engine's default is a checksum.
            compressor.setdefault("checksum", bool(getattr(metadata.compressor, "checksum", False)))
        if metadata.fill_value is None:
            # Step 3.
            default = metadata.dtype.default_scalar()
            fields["fill_value"] = metadata.dtype.to_json_scalar(default, zarr_format=2)
    else:
        # Step 6.
        fields = Metadata.to_dict(metadata)
        # zarr-python 3.1.3 has no such fields.
        extra_fields: Any = fields.pop("extra_fields", {})
        fields.update(extra_fields)
        data_type = metadata.data_type
        fill_value = data_type.to_json_scalar(metadata.fill_value, zarr_format=3)
        fields["attributes"], fields["data_type"] = {}, _data_type(data_type)
        fields["fill_value"] = _with_bits(fill_value, metadata.fill_value)
    return json.dumps(fields).encode()


def _data_type(data_type: Any) -> Any:
    """Return a data type for a document of version 3 (step 6)."""
    name = data_type._zarr_v3_name
    if isinstance(data_type, VariableLengthBytes):
        return name
    if isinstance(data_type, FixedLengthUTF32 | NullTerminatedBytes | RawBytes):
        return {"name": name, "configuration": {"length_bytes": data_type.item_size}}
    if isinstance(data_type, Structured):
        fields = [(field, _data_type(kind)) for field, kind in data_type.fields]
        return {"name": name, "configuration": {"fields": fields}}
    return data_type.to_json(zarr_format=3)


def _with_bits(text: Any, fill_value: Any) -> Any:
    """Return a fill value for a document: the bits of a NaN, where zarr-python writes "NaN"."""
    kind = getattr(getattr(fill_value, "dtype", None), "kind", "")
    if kind == "c" and isinstance(text, list | tuple):
        return [
            _with_bits(part, one) for part, one in zip(text, (fill_value.real, fill_value.imag), strict=True)
        ]
    if kind != "f" or text != "NaN":
        return text
    return "0x" + fill_value.tobytes()[:: 1 if sys.byteorder == "big" else -1].hex()


def _place(metadata: Any, path: str) -> tuple[str, str, str]:
    """Return the prefix of the chunks' numbers, the path of the array, and the separator of the numbers."""
    ndim = len(metadata.shape)
    if metadata.zarr_format == 2:
        name, separator = "v2", metadata.dimension_separator
    else:
        encoding = metadata.chunk_key_encoding
        name, separator = encoding.name, encoding.separator
    if name == "default":
        count, lead = ndim + 1, "c" + separator
    elif name == "v2":
        count, lead = max(ndim, 1), ""
    else:
        raise FallbackError(f"the chunk key encoding {name!r}")
    if separator == ".":
        count = 1
    parts = path.rsplit("/", count)
    array_path = parts[0] if len(parts) > count else ""
    root = f"{array_path}/" if array_path else ""
    return root + (lead if ndim else ""), array_path, separator


def _axes(metadata: Any) -> tuple[int | list[int], ...]:
    """Return the chunk extent along each axis, or the edges of its chunks."""
    if metadata.zarr_format == 2:
        return tuple(int(extent) for extent in metadata.chunks)
    grid = metadata.chunk_grid
    regular = getattr(grid, "chunk_shape", None)
    if regular is not None:
        return tuple(int(extent) for extent in regular)
    return tuple(
        extents if isinstance(extents, int) else [0, *accumulate(extents)] for extents in grid.chunk_shapes
    )


def _unit(metadata: Any) -> Iterable[int]:
    """Return the shape of the smallest part that is decoded at once."""
    shape: Iterable[int] = [
        extents if isinstance(extents, int) else max(extents, default=1) for extents in _axes(metadata)
    ]
    codecs = () if metadata.zarr_format == 2 else metadata.codecs
    while sharding := next((codec for codec in codecs if hasattr(codec, "index_codecs")), None):
        shape, codecs = sharding.chunk_shape, sharding.codecs
    return shape
