"""Properties and methods of an Array or a Group by zarr-python's names.

The stubs `_array.pyi` and `_group.pyi` document each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from zarrow._zarrow import Array, Group
from zarrow.arrays.methods import add_method, add_property


class Info:
    """A summary to print, which prompts and notebooks show directly."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def __call__(self) -> None:
        """Print the summary, as `info()` of pandas and xarray does."""
        print(self._text)


class Metadata(dict[str, Any]):
    """A metadata document: a dict that says what to type for the attributes of zarr-python's objects."""

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an AttributeError that says what to type."""
        text = f"metadata is a dict and has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(text)
        if name in ("asdict", "to_dict"):
            text += f": leave .{name}() out"
        elif name == "to_json":
            text += ": type json.dumps(array.metadata)"
        elif name in self:
            text += f': type array.metadata["{name}"]'
        elif hasattr(Array, name):
            text += f": type array.{name}"
        raise AttributeError(text)

    def __missing__(self, key: Any) -> NoReturn:
        """Raise a KeyError that says what to type for the keys of version 2."""
        name = "compressors" if key == "compressor" else key
        is_of_array = isinstance(name, str) and name in vars(Array)
        raise KeyError(f"{key}: type array.{name}" if is_of_array else key)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def add_to_classes() -> None:
    """Add these properties and methods to the classes Array and Group."""
    for get in (cdata_shape, compressors, filters, nchunks, nchunks_initialized, order, serializer):
        add_property(Array, get.__name__, get)
    for node in (Array, Group):
        # Each class gets a separate function, which is named after it.
        add_property(node, "basename", lambda node: node.path.rpartition("/")[2])
        add_property(node, "info", lambda node: Info(repr(node)))
        add_property(node, "read_only", lambda node: node._is_read_only())
    # Compiled: each look gives another dict.
    metadata = vars(Array)["metadata"]
    add_property(Array, "metadata", lambda array: Metadata(metadata.__get__(array)))
    add_method(Array, "info_complete", info_of_array)
    add_method(Group, "info_complete", info_of_group)
    add_method(Array, "update_attributes", update_attributes_of_array)
    add_method(Group, "update_attributes", update_attributes_of_group)


def compressors(array: Array) -> tuple[Any, ...]:
    """`Array.compressors`."""
    return tuple(array._codec_stages()[2])


def filters(array: Array) -> tuple[Any, ...]:
    """`Array.filters`."""
    return tuple(array._codec_stages()[0])


def order(array: Array) -> str:
    """`Array.order`."""
    return "F" if array._is_column_major() else "C"


def serializer(array: Array) -> Any:
    """`Array.serializer`."""
    return array._codec_stages()[1][0]


def cdata_shape(array: Array) -> tuple[int, ...] | None:
    """`Array.cdata_shape`."""
    if array.chunks is None:
        return None
    return tuple(-(-extent // chunk) for extent, chunk in zip(array.shape, array.chunks, strict=True))


def nchunks(array: Array) -> int | None:
    """`Array.nchunks`."""
    grid = cdata_shape(array)
    return None if grid is None else math.prod(grid)


def nchunks_initialized(array: Array) -> int:
    """`Array.nchunks_initialized`."""
    of_shard = zip(array.shards or (), array.chunks or (), strict=False)
    return array._stored_chunk_count() * math.prod(shard // chunk for shard, chunk in of_shard)


def info_of_array(self: Array) -> Info:
    """Return `info` with how much of the array is stored: looks at every chunk."""
    shards = self.shards is not None
    unit = self.write_unit
    grid = () if unit is None else zip(self.shape, unit, strict=True)
    count = "many" if unit is None else math.prod(-(-extent // part) for extent, part in grid)
    what = "shards" if shards else "chunks"
    stored = f"{self._stored_chunk_count()} of {count} {what}, {self.nbytes_stored()} B with the metadata"
    return Info(f"{self!r}\nin the store: {stored}")


def info_of_group(self: Group) -> Info:
    """Return `info` with the number of arrays and groups at all levels below: looks at each."""
    below = [member for _, member in self.members(max_depth=None)]
    arrays = sum(isinstance(member, Array) for member in below)
    return Info(f"{self!r}\nat all levels: {arrays} arrays, {len(below) - arrays} groups")


def update_attributes_of_array(self: Array, new_attributes: Mapping[str, Any]) -> Array:
    """Store these attributes, all in one step; the others stay. Gives the array itself.

    It is `attrs.update`, which documents the errors.
    """
    self.attrs.update(new_attributes)
    return self


def update_attributes_of_group(self: Group, new_attributes: Mapping[str, Any]) -> Group:
    """Store these attributes, all in one step; the others stay. Gives the group itself.

    It is `attrs.update`, which documents the errors.
    """
    self.attrs.update(new_attributes)
    return self
