"""Creating arrays and groups, in stores and in groups.

>>> import numpy as np
>>> import zarrow
>>> rain = zarrow.create_array("new.zarr", "rain", shape=(365, 100, 100), dtype="float32")
>>> rain[0] = np.ones((100, 100), np.float32)
>>> zarrow.open("new.zarr")["rain"][0, :2, :3].tolist()
[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from zarrow import _zarrow
from zarrow._zarrow import (
    Array,
    Group,
    MemoryStore,
    _create_array,
    _create_group,
    _shape_as,
    asarray,
    open,
)

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["ArrayOptions", "consolidate_metadata", "create_array", "create_group", "save"]

Store: TypeAlias = str | os.PathLike[str] | MemoryStore
"""A folder, a `file://` URL, or a store in memory."""

Codec: TypeAlias = str | Mapping[str, Any] | Any
"""A codec: its name, what metadata of version 3 or of numcodecs have, or an object of theirs."""


class ArrayOptions(TypedDict, total=False):
    """What can be said of a new array: `create_array` explains each."""

    shape: int | Sequence[int] | None
    dtype: Any
    data: Any
    chunks: int | Sequence[int | None] | Literal["auto"] | None
    shards: int | Sequence[int] | None
    filters: Codec | Iterable[Codec] | None
    serializer: Codec | Literal["auto"] | None
    compressors: Codec | Iterable[Codec] | Literal["auto"] | None
    codecs: Iterable[Codec] | None
    fill_value: Any
    order: Literal["C", "F"]
    attributes: Mapping[str, Any] | None
    chunk_key_encoding: str | Mapping[str, Any] | None
    dimension_names: Sequence[str | None] | None
    overwrite: bool


def create_array(
    store: Store,
    path: str = "",
    *,
    name: str | None = None,
    zarr_format: Literal[2, 3] = 3,
    durability: Literal["none", "file", "full"] = "none",
    **options: Unpack[ArrayOptions],
) -> Array:
    """Create an array in a store, and the groups above it that are not there.

    All is checked before anything is written, and `data` are written where nobody sees them before the array
    takes its place: where this raises, or the process is killed, the store is as it was.

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL, which is made where it is not there, or a `MemoryStore`.
    path, name
        Where in the store, such as `"model/rain"`; by default its root. `name` is another word for `path`.
    zarr_format
        The version of the format.
    durability
        What has reached the disk when a write returns, the metadata's now and all that the Array writes
        later: "none" leaves it to the operating system, "file" the bytes, "full" also the name. Whatever it
        is, each chunk and each metadata document is old or new, whole, when the process is killed.
    shape
        The extent of each axis. An axis that will grow can be 0.
    dtype
        What an element is: anything that NumPy makes a dtype of, of either byte order; a name of Zarr's
        (`"bfloat16"`); `str` or `"string"`, `bytes` or `"bytes"` for elements of any length;
        `"optional[int32]"` for elements that may be missing; or what `Array.data_type` gives. By default
        that of `data`.
    data
        Elements to begin with, anything that `asarray` takes. Shape and type follow from them.
    chunks
        The shape of what is encoded by itself; one int for all axes; -1 or None for all of an axis. By
        default the longest axis is halved until a chunk has no more than 1 MiB; without compressors, chunks
        are as many whole rows as have 4 MiB, which can be mapped (`Array.read(mmap=True)`) and of which any
        part is read by itself. Inside of shards the chunks divide the shard.
    shards
        The shape of what is stored in one file, a multiple of the chunks on each axis: many small chunks in
        few files. Only in version 3.
    filters
        Codecs from arrays to arrays, which come first.
    serializer
        The codec that makes bytes of an array; it follows from the data type.
    compressors
        Codecs from bytes to bytes. By default zstd of level 3 with the checksum of its frames, so that
        corrupt chunks are seen. None or `()` stores raw elements, without a checksum, since only plain
        elements can be mapped. A codec is a name (`"blosc"`), what metadata of version 3 (`{"name": "zstd",
        "configuration": {"level": 9}}`) or of numcodecs (`{"id": "zstd", "level": 9}`) have, or an object of
        either library. Parameters that are left out are what is usual.
    codecs
        All codecs as version 3 lists them, instead of filters, serializer, compressors, shards and order.
    fill_value
        What an element is that was not written. By default zero, the empty string, or missing.
    order
        How the elements of a chunk are stored: "C", the last axis side by side, or "F", the first; in
        version 3 that is a transpose codec.
    attributes
        What to store beside the array.
    chunk_key_encoding
        How chunks are named: "default" (`c/0/1`), "v2" (`0.1`), or a dict of `"name"` and `"separator"`,
        which is "." or "/".
    dimension_names
        A name for each axis, or None for it. Only in version 3.
    overwrite
        Whether an array or group that is there is erased, with everything below it, other files too. The new
        one takes its place in one step; at the root of the store in few, between which there is none. A
        folder that is no array or group and holds something is never erased.

    Returns
    -------
    Array

    Raises
    ------
    NodeExistsError
        There is an array or group, or something that looks like chunks; or, with `overwrite`, a folder that
        is neither and holds something (a `FileExistsError`).
    NodeTypeError
        There is an array where a group is to be above it (a `TypeError`).
    MetadataError, CodecError, LimitError
        Shape, chunks, names, fill value or codecs do not hold together (a `ValueError`).
    UnsupportedError
        Valid, but not here: such as a group above of another version (a `NotImplementedError`).
    InvalidKeyError
        The path is malformed, would leave the store, or is reserved (a `ValueError`).
    ReadOnlyError, StoreError
        The store cannot be written (an `OSError`).

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> rain = zarrow.create_array("a.zarr", shape=(1000, 1000), dtype="f4", shards=(500, 500))
    >>> rain.chunks, rain.shards
    ((500, 500), (500, 500))
    >>> raw = zarrow.create_array("b.zarr", data=np.ones((2000, 1000)), compressors=None)
    >>> raw.chunks, raw.read(mmap=True).is_mapped
    ((512, 1000), True)
    >>> names = zarrow.create_array("c.zarr", data=["Oslo", "Rome"], dimension_names=["city"])
    >>> names.dtype, names.dimension_names
    (StringDType(), ('city',))
    """
    if name is not None and path not in ("", name):
        raise ValueError("path and name are two words for the same")
    return _create(store, name or path, durability, {"zarr_format": zarr_format}, **options)


def create_group(
    store: Store,
    path: str = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    durability: Literal["none", "file", "full"] = "none",
) -> Group:
    """Create a group in a store, and the groups above it that are not there.

    Parameters are those of `create_array`. Arrays and groups that are there below a path that is no group
    yet stay, and are in it then.

    Raises
    ------
    NodeExistsError, NodeTypeError, UnsupportedError, InvalidKeyError, ReadOnlyError, StoreError
        As `create_array`.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.create_group("new.zarr", attributes={"title": "rain"})
    >>> model = root.create_group("model")
    >>> model["x"] = [1.5, 2.5]
    >>> print(root.tree())
    /
    └── model
        └── x (2,) float64
    """
    given = dict(attributes or {})
    return _create_group(
        store, path, given, zarr_format=zarr_format, overwrite=overwrite, durability=durability
    )


def save(store: Store, array: Any = None, /, **arrays: Any) -> None:
    """Store an array, or arrays by their names in a group, compressed as `create_array` does it.

    An array of the same name is replaced; a group is not, and what else is in the store stays.

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL, which is made where it is not there, or a `MemoryStore`.
    array
        An array to be the whole store: anything that `asarray` takes.
    arrays
        Arrays to be in the group that is the store.

    Raises
    ------
    TypeError
        There is no array, or one array and named ones too.
    NodeExistsError
        There is a group where an array is to be (a `FileExistsError`).
    NodeTypeError
        There is an array where a group is to be (a `TypeError`).

    Examples
    --------
    >>> import zarrow
    >>> zarrow.save("one.zarr", [1, 2, 3])
    >>> zarrow.open("one.zarr")[1:].tolist()
    [2, 3]
    >>> zarrow.save("two.zarr", x=[1.0, 2.0], names=["a", "b"])
    >>> zarrow.open("two.zarr").keys()
    ['names', 'x']
    """
    if (array is None) == (not arrays):
        raise TypeError("save() takes one array, or arrays by their names")
    if array is not None:
        _create(store, "", "none", {"zarr_format": 3}, data=array, overwrite="array")
        return
    group = open(store, mode="a")
    if not isinstance(group, Group):
        _require_group(group)
    for name, named in arrays.items():
        _store(group, name, named)


def consolidate_metadata(store: Store, path: str = "") -> Group:
    """Copy the metadata of everything below a group into the group's own, and open the group.

    Whoever opens the group then needs one look at the store for all that is below. zarrow keeps the copies
    true when it creates, changes or erases a node below the group, as long as the store is opened at the
    group or above it; programs that do not do so leave them stale, and consolidating anew makes them right.
    In version 3 the copies are in the group's `zarr.json`, as zarr-python has it, in version 2 in
    `.zmetadata`.

    Raises
    ------
    NotFoundError, NodeTypeError, ReadOnlyError, StoreError
        As `open`.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.consolidate_metadata("data.zarr")
    >>> root["model/pressure"].shape
    (2, 2)
    """
    group = open(store, path)
    if not isinstance(group, Group):
        _require_group(group)
    group.consolidate_metadata()
    return cast("Group", group)


def _require_group(node: Any) -> None:
    from zarrow.errors import NodeTypeError

    raise NodeTypeError("this is an array, not a group", kind="wrong_node", store=node.store, path=node.path)


def _create_array_in(group: Group, path: str, **options: Unpack[ArrayOptions]) -> Array:
    """`Group.create_array`."""
    return _create(group, path, "none", {"zarr_format": group.zarr_format}, **options)


def _store(group: Group, path: str, array: Any) -> None:
    """`Group.__setitem__`: replaces an array, and no group."""
    _create(group, path, "none", {"zarr_format": group.zarr_format}, data=array, overwrite="array")


def _create(
    target: Store | Group,
    path: str,
    durability: str,
    description: dict[str, Any],
    *,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    chunks: Any = "auto",
    shards: Any = None,
    filters: Any = None,
    serializer: Any = "auto",
    compressors: Any = "auto",
    codecs: Any = None,
    fill_value: Any = None,
    order: Any = "C",
    attributes: Any = None,
    chunk_key_encoding: Any = None,
    dimension_names: Any = None,
    overwrite: bool | Literal["array"] = False,
) -> Array:
    if order not in ("C", "F"):
        raise ValueError(f'order is {order!r}, not "C" or "F"')
    if codecs is not None and (filters, serializer, compressors, shards, order) != (
        None,
        "auto",
        "auto",
        None,
        "C",
    ):
        raise ValueError(
            "codecs lists all codecs, and goes without filters, serializer, compressors, shards, order"
        )
    if data is not None:
        data, shape, found = _described(data, shape, dtype)
        dtype, description["optional"] = (
            (found, type(data).__name__.startswith("Masked")) if dtype is None else (dtype, False)
        )
    if shape is None or dtype is None:
        raise TypeError("an array needs a shape and a dtype, or data")
    shape = _extents(shape)
    description |= {
        "shape": shape,
        "chunks": _chunks(chunks, shape),
        "shards": None if shards is None else _chunks(shards, shape),
        "filters": _codecs(filters),
        "serializer": None if serializer in (None, "auto") else [_codec(serializer)],
        "compressors": None
        if isinstance(compressors, str) and compressors == "auto"
        else _codecs(compressors),
        "codecs": None if codecs is None else _codecs(codecs),
        "order": order,
        "attributes": dict(attributes or {}),
        "chunk_key_encoding": _chunk_key_encoding(chunk_key_encoding),
        "dimension_names": None if dimension_names is None else list(dimension_names),
    }
    return _create_array(
        target, path, dtype, fill_value, description, data=data, overwrite=overwrite, durability=durability
    )


# An option that there is not is told of the function that the user called.
_create.__qualname__ = "create_array"


def _described(data: Any, shape: Any, dtype: Any) -> tuple[Any, tuple[int, ...], Any]:
    """Give the data as it will be written, its shape, and its type."""
    np = _zarrow._import("numpy")

    if dtype is not None and isinstance(data, (list, tuple, int, float, complex)):
        # What is an element of these, and what number it is, only the type says.
        return data, _same_shape(shape, _shape_as(data, dtype)), dtype
    if type(data) is not np.ndarray or data.dtype == object:
        data = asarray(data)
    return data, _same_shape(shape, data.shape), "bytes" if data.dtype == object else data.dtype


def _same_shape(shape: Any, found: tuple[int, ...]) -> tuple[int, ...]:
    if shape is not None and tuple(_extents(shape)) != found:
        raise ValueError(f"the shape {shape} is not that of the data, {found}")
    return found


def _extents(shape: Any) -> list[int]:
    try:
        return [operator.index(shape)]
    except TypeError:
        return [operator.index(extent) for extent in shape]


def _chunks(chunks: Any, shape: list[int]) -> list[int] | None:
    """Give the extent of a chunk along each axis, None where it is to be found."""
    if chunks is None or (isinstance(chunks, str) and chunks == "auto"):
        return None
    try:
        given = [operator.index(chunks)] * len(shape)
    except TypeError:
        given = list(chunks)
    if len(given) != len(shape):
        raise ValueError(f"chunks of shape {tuple(given)} for an array of shape {tuple(shape)}")
    whole = [None, -1]
    return [
        max(extent, 1) if chunk in whole else operator.index(chunk)
        for chunk, extent in zip(given, shape, strict=True)
    ]


def _codecs(codecs: Any) -> list[Any]:
    """List the codecs of one, of several, or of none."""
    if codecs is None or (isinstance(codecs, str) and codecs == "auto"):
        return []
    if isinstance(codecs, (str, Mapping)) or hasattr(codecs, "to_dict") or hasattr(codecs, "get_config"):
        codecs = [codecs]
    return [_codec(codec) for codec in codecs]


def _codec(codec: Any) -> Any:
    """Give a codec as metadata have it."""
    if hasattr(codec, "to_dict"):  # of zarr-python
        codec = codec.to_dict()
    elif hasattr(codec, "get_config"):  # of numcodecs
        codec = codec.get_config()
    return dict(codec) if isinstance(codec, Mapping) else codec


def _chunk_key_encoding(encoding: Any) -> Any:
    """Give the encoding as metadata of version 3 have it, from that or the shorter form of zarr-python."""
    if not isinstance(encoding, Mapping) or "configuration" in encoding:
        return encoding
    rest = dict(encoding)
    name = rest.pop("name", None)
    return {"name": name, "configuration": rest}
