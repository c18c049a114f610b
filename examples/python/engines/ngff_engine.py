"""An engine as ngff-zarr asks for one: images are created, written and read through zarrow's public names.

What such a program asks of an engine, each tested against zarr-python in `tests/test_ngff_engine.py`:

1. Groups with attributes, of Zarr version 2 and 3, in folders, URLs and store objects.
2. Arrays of version 2, with ".zmetadata" for the whole store, and of version 3.
3. `shape` and `chunks` are tuples, and `dtype` is a NumPy dtype.
4. Integers drop their axis, and slices may have steps, in reading and in writing.
5. Values may be non-contiguous, big-endian, broadcast, or have negative strides.
6. Documents mean to zarr-python what its own mean: the byte order is only stored where it matters.
7. Only the caller's attributes are stored.
8. The path of the store can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import zarrow


@dataclass(frozen=True)
class EngineArray:
    """An array, with NumPy arrays as its elements."""

    node: zarrow.Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis."""
        return self.node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of elements in memory."""
        return self.node.dtype

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; of a sharded array, of an inner chunk."""
        return self.node.chunks

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard."""
        return self.node.shards

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes."""
        return dict(self.node.attrs)

    def __getitem__(self, selection: Any) -> npt.NDArray[Any]:
        """Read a selection; integers drop their axis."""
        elements: npt.NDArray[Any] = self.node[selection].numpy()
        return elements

    def __setitem__(self, selection: Any, values: npt.ArrayLike) -> None:
        """Write a selection, from values of any strides and byte order."""
        self.node[selection] = values


@dataclass(frozen=True)
class EngineGroup:
    """A group of arrays and groups."""

    node: zarrow.Group

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes."""
        return dict(self.node.attrs)

    @property
    def store_path(self) -> str:
        """The path or URL of the store."""
        return self.node.store

    def update_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Store attributes beside the others."""
        self.node.attrs.update(attributes)

    def __getitem__(self, path: str) -> EngineArray | EngineGroup:
        """Open a member."""
        return _wrapped(self.node[path])

    def __contains__(self, path: str) -> bool:
        """Whether a member exists."""
        return path in self.node

    def create_group(self, path: str, attributes: Mapping[str, Any] | None = None) -> EngineGroup:
        """Create a group below this one."""
        return EngineGroup(self.node.create_group(path, attributes=dict(attributes or {})))

    def create_array(
        self,
        path: str,
        *,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        chunks: Sequence[int],
        shards: Sequence[int] | None = None,
        compressors: Any = "auto",
        dimension_names: Sequence[str] | None = None,
        dimension_separator: Literal[".", "/"] = "/",
    ) -> EngineArray:
        """Create an array of zeros."""
        options: dict[str, Any] = {"compressors": compressors, "fill_value": 0}
        if self.node.zarr_format == 3:
            options.update(shards=shards, dimension_names=dimension_names)
        kind = "v2" if self.node.zarr_format == 2 else "default"
        options["chunk_key_encoding"] = {"name": kind, "separator": dimension_separator}
        # zarr-python stores version 3 in the machine's byte order.
        stored = np.dtype(dtype) if self.node.zarr_format == 2 else np.dtype(dtype).newbyteorder("=")
        created = self.node.create_array(
            path, shape=tuple(shape), dtype=stored, chunks=tuple(chunks), **options
        )
        return EngineArray(created)


def create(
    store: Any,
    zarr_format: Literal[2, 3],
    attributes: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> EngineGroup:
    """Create the root group of a store."""
    return EngineGroup(
        zarrow.create_group(store, attributes=attributes, zarr_format=zarr_format, overwrite=overwrite)
    )


def open_node(store: Any, path: str = "") -> EngineArray | EngineGroup:
    """Open a node of a store."""
    return _wrapped(zarrow.open(store, path))


def consolidate(store: Any) -> None:
    """Store the metadata of the whole tree in one document."""
    zarrow.consolidate_metadata(store)


def _wrapped(node: Any) -> EngineArray | EngineGroup:
    return EngineArray(node) if isinstance(node, zarrow.Array) else EngineGroup(node)
