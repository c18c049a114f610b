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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

from zarrow import _zarrow
from zarrow._zarrow import (
    Array,
    Group,
    _create_array,
    _create_group,
    _shape_as,
    _with_options,
    asarray,
)
from zarrow.api.array_options import OPTIONS, Chunks, Codec, Codecs, Store, check_names, says_options
from zarrow.api.codec_arguments import chosen_codecs
from zarrow.api.node_batch import NodeBatch, NotInBatchError
from zarrow.api.progress import Progress, reporting
from zarrow.api.reported_amounts import Amount, size_of
from zarrow.arrays import categorical
from zarrow.arrays import missing as _missing
from zarrow.device_tensor.methods import is_on_device
from zarrow.groups.attribute_values import as_dict
from zarrow.interchange import labels, lazy_arrays

__all__ = ["create_array", "create_group"]


@says_options
def create_array(
    store: Store,
    path: str = "",
    *,
    name: str | None = None,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    data: Any = None,
    chunks: Chunks = "auto",
    shards: int | Sequence[int] | Literal["auto"] | None = None,
    filters: Codecs = "auto",
    compressors: Codecs = "auto",
    compressor: Codec | None = "auto",
    serializer: Codec | Literal["auto"] | None = "auto",
    codecs: Iterable[Codec] | None = None,
    fill_value: Any = None,
    order: Literal["C", "F"] | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: str | Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    missing: Literal["optional", "fill", "anndata"] | None = None,
    overwrite: bool = False,
    zarr_format: Literal[2, 3] = 3,
    storage_options: Mapping[str, Any] | None = None,
    durability: Literal["none", "file", "full"] = "none",
    progress: Progress | bool | None = None,
) -> Array:
    """Create an array in a store, and any missing groups above it.

    Everything is checked before the first write, and `data` are written to a hidden place before the array
    becomes visible. If this raises, or the process is killed, the store is unchanged. (If old chunks of a
    replaced array cannot be removed, the error says that the new array is in place.)

    Parameters
    ----------
    store
        A folder, as a path or a `file://` URL, which is created if missing; the URL of a cloud store (see
        `open`), a `CloudStore` or a `MemoryStore`; or a store object of another library.
    path, name
        Path in the store, such as `"model/rain"`; by default its root. `name` is an alias of `path`.
    shape
        The extent of each axis. It can be 0 for an axis that will grow.
    dtype
        Data type of an element: any argument of `numpy.dtype`, of either byte order; the name of a Zarr type
        (`"bfloat16"`); `str` or `"string"`, `bytes` or `"bytes"` for elements of any length;
        `"optional[int32]"` for elements that may be missing; or a value of `Array.data_type`. By default that
        of `data`.
    data
        Initial elements: anything that `asarray` takes. They determine shape and type. An array of a store,
        also of zarr-python or h5py, is read part by part, and keeps its attributes, dimension names and fill
        value unless you pass others.
    chunks
        The shape of a chunk, which is encoded as a unit; one int for all axes; -1 or None for a whole axis.
        By default the longest axis is halved until a chunk has at most 1 MiB. Without compressors, a chunk
        has as many whole rows as fit in 4 MiB: such chunks can be mapped (`Array.read(mmap=True)`), and any
        part can be read separately. The chunks of a shard divide it evenly. True is "auto"; False is a single
        chunk.
    shards
        The shape of a shard, which stores many small chunks in one file; a multiple of the chunks along each
        axis. "auto" takes as many chunks as have 64 MiB of elements. Only in version 3.
    filters
        Array-to-array codecs, which are applied first. None by default.
    compressors
        Bytes-to-bytes codecs. By default zstd of level 3 with checksums, which detect corrupt chunks. None or
        `()` stores raw elements without a checksum, because only plain elements can be mapped. A codec is a
        name (`"blosc"`), a dict in the form of version 3 (`{"name": "zstd", "configuration": {"level": 9}}`)
        or of numcodecs (`{"id": "zstd", "level": 9}`), or a codec object of zarr-python or numcodecs. Omitted
        parameters have default values; Blosc's element size and shuffle depend on the data type, as in
        zarr-python.
    compressor
        Alias of `compressors` for a single codec.
    serializer
        The array-to-bytes codec; the default depends on the data type.
    codecs
        All codecs, as listed in version 3, instead of filters, serializer, compressors, shards and order.
    fill_value
        Value of elements that were never written. By default zero, NaT for dates and durations, the empty
        string, or missing.
    order
        Memory order within a stored chunk: "C", the default, the last axis is contiguous, or "F", the
        first; in version 3 that is a transpose codec.
    zarr_format
        The version of the format.
    attributes
        Attributes to store with the array.
    chunk_key_encoding
        How chunks are named: "default" (`c/0/1`), "v2" (`0.1`), or a dict of `"name"` and `"separator"`,
        which is "." or "/".
    dimension_names
        A name or None for each axis. In version 2 the names are the attribute `_ARRAY_DIMENSIONS`, as in
        xarray: each axis needs a name, and the fill value is undefined unless you pass one, because xarray
        would mask it.
    missing
        How missing elements of `data` (None, masked, null) are stored. "optional", the default, is Zarr's
        optional type, with a warning, because zarr-python cannot open it. "fill" stores a value instead,
        `fill_value` or one that does not occur, and names it in the attribute `_FillValue`, which xarray
        reads. "anndata" creates a group of `values` and `mask`, and returns the Group. `set_missing` sets the
        default.
    overwrite
        Whether to erase an existing array or group, with everything below it, including other files. It is
        replaced in one step; at the root of the store in a few steps, with no node in between. A folder that
        is neither an array nor a group is never erased, unless it is empty.
    storage_options
        Credentials and other options of a cloud URL: see `CloudStore`.
    durability
        What has reached the disk when a write returns, for the metadata now and all later writes of the
        Array: "none" leaves it to the operating system, "file" guarantees the bytes, "full" also the file
        name. In all three modes, a killed process leaves each chunk and each metadata document old or new,
        never half-written.
    progress
        Called with the bytes of `data` that were stored, and of all; or True for a bar, as in `save`.

    Returns
    -------
    Array

    Raises
    ------
    NodeExistsError
        The path has an array or group, or files that look like chunks; or, with `overwrite`, a non-empty
        folder that is neither (a `FileExistsError`).
    NodeTypeError
        A parent on the path is an array, not a group (a `TypeError`).
    MetadataError, CodecError, LimitError
        Shape, chunks, names, fill value or codecs contradict each other (a `ValueError`).
    UnsupportedError
        The options are valid but unsupported, such as a version other than that of the parent group (a
        `NotImplementedError`).
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
    >>> heights = zarrow.create_array("d.zarr", data=[3, None, 5], missing="fill", fill_value=-1)
    >>> heights[...].tolist(), heights.read(mask="cf").tolist()
    ([3, -1, 5], [3, None, 5])
    """
    options = {option: given for option, given in locals().items() if option in OPTIONS}
    if name is not None and path and path != name:
        raise ValueError(f"path is {path!r} and name is {name!r}, which mean the same: give only one")
    store = _with_options(store, storage_options)
    version = {"zarr_format": zarr_format}
    created: Array = _create_reported(progress, store, name or path or "", durability, version, **options)
    return created  # a Group with missing="anndata"


@says_options
def create_group(
    store: Store,
    path: str = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: Literal[2, 3] = 3,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    durability: Literal["none", "file", "full"] = "none",
) -> Group:
    """Create a group in a store, and any missing groups above it.

    Parameters are as in `create_array`. Existing arrays and groups below the path stay, and become members of
    the new group.

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
    given = as_dict(attributes)
    store = _with_options(store, storage_options)
    return _create_group(
        store, path, given, zarr_format=zarr_format, overwrite=overwrite, durability=durability
    )


def _require_group(node: Any) -> NoReturn:
    from zarrow.errors import NodeTypeError

    raise NodeTypeError("this is an array, expected a group", node=node)


@says_options
def create_array_in(
    self: Group,
    name: str,
    *,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    data: Any = None,
    chunks: Chunks = "auto",
    shards: int | Sequence[int] | Literal["auto"] | None = None,
    filters: Codecs = "auto",
    compressors: Codecs = "auto",
    compressor: Codec | None = "auto",
    serializer: Codec | Literal["auto"] | None = "auto",
    codecs: Iterable[Codec] | None = None,
    fill_value: Any = None,
    order: Literal["C", "F"] | None = None,
    attributes: Mapping[str, Any] | None = None,
    chunk_key_encoding: str | Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    missing: Literal["optional", "fill", "anndata"] | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
) -> Array:
    """`Group.create_array`."""
    options = {option: given for option, given in locals().items() if option in OPTIONS}
    version = {"zarr_format": self.zarr_format}
    created: Array = _create_reported(progress, self, name, "none", version, **options)
    return created  # a Group with missing="anndata"


def layout_of(array: Array, zarr_format: int) -> dict[str, Any]:
    """Return the options that create an array of the same type and layout in a version of the format."""
    metadata = array.metadata
    layout = {"dtype": array.data_type, "chunks": array.write_unit, "codecs": metadata["codecs"]}
    if zarr_format == array.zarr_format:
        layout["chunk_key_encoding"] = metadata["chunk_key_encoding"]
    return layout


def _names(given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise TypeError(f"dimension_names is {given!r}, expected a list of str or None") from None


def _create_reported(progress: Progress | bool | None, *place: Any, data: Any = None, **options: Any) -> Any:
    """Create an array as `_create` does, and report the bytes of `data` that are stored."""
    with reporting(progress, "create_array") as report:
        if report is None:
            return _create(*place, data=data, **options)
        data = lazy_arrays.opened(data)
        amount = Amount(report, size_of(data))
        amount.begin(size_of(data))
        created = _create(*place, data=data, report=amount.add, **options)
        amount.finish_all()
        return created


def _create(
    target: Store | Group | NodeBatch,
    path: str,
    durability: str,
    description: dict[str, Any],
    *,
    data: Any = None,
    elements: Any = None,
    missing: Any = None,
    report: Callable[[int], object] | None = None,
    **options: Any,
) -> Any:
    """Create an array, or a group in its place if `missing` asks for one; or add an array to a batch.

    `elements` are the elements of `data`, if it is an array of a store and was read already. `report` is
    called with the bytes of each part that is stored; large arrays in memory are divided for it.

    Raises
    ------
    NotInBatchError
        The data cannot be added to a batch.
    """
    check_names(options)
    if missing is not None:
        _missing.checked(missing)
    if data is None:
        if missing not in (None, "optional"):
            raise ValueError(
                f"missing={missing!r} stores the missing elements of data=: pass data=, or choose "
                "dtype, fill_value "
                "and the attribute _FillValue yourself"
            )
        return _create_described(target, path, durability, description, **options)
    data = lazy_arrays.opened(data)
    if options.get("dtype") is None and categorical.is_stored_as_group(data, missing or _missing.chosen()):
        _refuse_batch(target)
        # The fill value is for other elements than the codes.
        _check({**options, "fill_value": None}, description, len(data), "i1")
        return categorical.create(target, path, durability, description["zarr_format"], data, options)
    categorical.warn_of_order(data)
    options = labels.taken(data, description["zarr_format"], options)
    if isinstance(data, Array):
        description["has_fill_value"] = options.get("fill_value") is not None
        if elements is not None:
            data = elements
        elif _is_read_whole(data, target, path, missing, options):
            data = data[...]
    is_divided = report is not None and lazy_arrays.is_divided(data)
    if missing is None and (is_divided or lazy_arrays.is_read_in_parts(data)):
        _refuse_batch(target)
        shape = _same_shape(options.pop("shape", None), data.shape)
        dtype = options.pop("dtype", None)
        if dtype is None:
            dtype = data.data_type if isinstance(data, Array) else data.dtype
        source = lazy_arrays.parts_of(data, report)
        return _create_described(
            target, path, durability, description, parts=source, shape=shape, dtype=dtype, **options
        )
    dtype = options.pop("dtype", None)
    data, shape, found = _described(data, options.pop("shape", None), None if missing else dtype)
    is_masked = isinstance(data, _zarrow.MaskedTensor | _zarrow.MaskedVariable)
    form = "optional"
    if is_masked and (missing or dtype is None):
        if description["zarr_format"] == 2:
            _missing.refuse_optional(missing, path)
        form = _missing.form_of(missing, path)
    if form == "anndata" and data.dtype.kind != "f":
        _refuse_batch(target)
        from zarrow.arrays.nullable import create

        _check(options, description, shape, dtype or found)
        return create(target, path, durability, description["zarr_format"], data, dtype, options)
    if form != "optional":
        data, is_masked = _missing.filled(data, form, dtype, options), False
    if dtype is None:
        dtype, description["optional"] = found, is_masked
    return _create_described(
        target, path, durability, description, data=data, shape=shape, dtype=dtype, **options
    )


def _check(options: dict[str, Any], description: dict[str, Any], shape: Any, dtype: Any) -> None:
    """Raise the errors of options before a group stands for the array: create such an array in memory."""
    options = {name: given for name, given in options.items() if name not in ("overwrite", "shape", "dtype")}
    _create_described(
        _zarrow.MemoryStore(), "", "none", dict(description), shape=shape, dtype=dtype, **options
    )


def _refuse_batch(target: Any) -> None:
    if isinstance(target, NodeBatch):
        raise NotInBatchError


def _is_read_whole(source: Array, target: Any, path: str, missing: Any, options: dict[str, Any]) -> bool:
    """Return whether an array is read at once: to find its missing elements, or before it is replaced."""
    names_type = isinstance(source.data_type, Mapping) and source.data_type.get("name") == "zarrs.optional"
    is_converted = missing is not None or (names_type and options.get("dtype") is None)
    return is_converted or lazy_arrays.may_be_replaced(source, target, path, options.get("overwrite", False))


def _create_described(
    target: Store | Group | NodeBatch,
    path: str,
    durability: str,
    description: dict[str, Any],
    *,
    shape: Any = None,
    dtype: Any = None,
    data: Any = None,
    parts: Any = None,
    chunks: Any = "auto",
    shards: Any = None,
    filters: Any = None,
    serializer: Any = "auto",
    compressors: Any = "auto",
    compressor: Any = "auto",
    codecs: Any = None,
    fill_value: Any = None,
    order: Any = None,
    attributes: Any = None,
    chunk_key_encoding: Any = None,
    dimension_names: Any = None,
    overwrite: bool | Literal["array"] = False,
) -> Any:
    if not isinstance(path, str):
        found = type(path).__name__
        raise TypeError(
            f"expected the path of an array as a str, got {found}: a shape goes by name, as shape=..."
        )
    order = order or "C"
    if order not in ("C", "F"):
        raise ValueError(f'order is {order!r}, expected "C" or "F"')
    if not _is_auto(compressor):
        if not _is_auto(compressors):
            raise ValueError("compressor is an alias of compressors: give only one")
        compressors = compressor
    if codecs is not None:
        given = [
            name
            for name, is_given in {
                "filters": not (filters is None or _is_auto(filters)),
                "serializer": not (serializer is None or _is_auto(serializer)),
                "compressors": not _is_auto(compressors),
                "shards": shards is not None,
                "order": order != "C",
            }.items()
            if is_given
        ]
        if given:
            raise ValueError(f"codecs lists all codecs: leave out {', '.join(given)}")
    if shape is None or dtype is None:
        raise TypeError("expected shape=... and dtype=..., or data=...")
    dtype = _text_type(dtype)
    shape = extents(shape)
    description |= {
        "shape": shape,
        "chunks": _chunks(chunks, shape),
        "shards": _shards(shards, shape),
        "filters": [] if _is_auto(filters) else chosen_codecs(filters),
        "serializer": None if serializer is None or _is_auto(serializer) else chosen_codecs([serializer]),
        "compressors": None if _is_auto(compressors) else chosen_codecs(compressors),
        "codecs": None if codecs is None else chosen_codecs(codecs),
        "order": order,
        "attributes": as_dict(attributes),
        "chunk_key_encoding": _chunk_key_encoding(chunk_key_encoding),
        "dimension_names": None if dimension_names is None else _names(dimension_names),
    }
    if fill_value is None and dimension_names is not None and description["zarr_format"] == 2:
        description["has_fill_value"] = False  # xarray masks elements of the fill value
    if isinstance(target, NodeBatch):
        target.add_array(path, dtype, fill_value, description, data=data, overwrite=overwrite)
        return None
    return _create_array(
        target,
        path,
        dtype,
        fill_value,
        description,
        data=data,
        parts=parts,
        overwrite=overwrite,
        durability=durability,
    )


def _text_type(dtype: Any) -> Any:
    """Return `str` or `bytes` for h5py's types of text; return other types unchanged.

    Raises
    ------
    UnsupportedError
        The dtype is that of Python objects.
    """
    kind = getattr(dtype, "metadata", None)
    if isinstance(kind, Mapping) and kind.get("vlen") in (str, bytes):
        return kind["vlen"]
    if (
        dtype is object
        or (isinstance(dtype, str) and dtype in ("object", "O"))
        or getattr(dtype, "kind", "") == "O"
    ):
        from zarrow.errors import UnsupportedError

        raise UnsupportedError(
            "dtype is object, which has no Zarr data type: type dtype=str for text, dtype=bytes for bytes"
        )
    return dtype


def _described(data: Any, shape: Any, dtype: Any) -> tuple[Any, tuple[int, ...], Any]:
    """Return the data as it will be written, its shape, and its type."""
    np = _zarrow._import("numpy")

    if is_on_device(data):
        data = _zarrow.DeviceTensor._of(data).cpu()
    if dtype is not None and isinstance(data, (list, tuple, int, float, complex)):
        # The dtype determines what counts as one element, and how it is parsed.
        return data, _same_shape(shape, _shape_as(data, dtype)), dtype
    if type(data) is not np.ndarray or data.dtype.kind in "OT":
        data = asarray(data)
    return data, _same_shape(shape, data.shape), "bytes" if data.dtype == object else data.dtype


def _same_shape(shape: Any, found: tuple[int, ...]) -> tuple[int, ...]:
    if shape is not None and tuple(extents(shape)) != found:
        raise ValueError(f"shape is {shape}, and data have shape {found}: leave out shape")
    return found


def extents(shape: Any) -> list[int]:
    """List the extents of a shape, which may be one int."""
    try:
        return _integers(shape)
    except TypeError:
        raise TypeError(
            f"shape is {shape!r}, expected an int or a tuple of ints, such as (365, 100)"
        ) from None


def _integers(extents: Any) -> list[int]:
    """List one or several integers; text is refused."""
    if isinstance(extents, str | bytes | Mapping):
        raise TypeError
    try:
        return [operator.index(extents)]
    except TypeError:
        return [operator.index(extent) for extent in extents]


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _shards(shards: Any, shape: list[int]) -> list[int] | Literal["auto"] | None:
    """Return the extent of a shard along each axis; True and False are as for chunks."""
    if shards is True or _is_auto(shards):
        return "auto"
    return None if shards is None or shards is False else _chunks(shards, shape, "shards")


def _chunks(chunks: Any, shape: list[int], name: str = "chunks") -> list[int] | None:
    """Return the extent of a chunk along each axis, None if it is not yet chosen."""
    if chunks is None or chunks is True or _is_auto(chunks):
        return None
    if chunks is False:
        return [max(extent, 1) for extent in shape]
    try:
        is_several = not isinstance(chunks, str) and hasattr(chunks, "__iter__")
        given = _integers([-1 if chunk is None else chunk for chunk in chunks] if is_several else chunks)
    except TypeError:
        raise TypeError(
            f'{name} is {chunks!r}, expected an int, one int per axis, or "auto"; -1 is all of an axis'
        ) from None
    if not is_several:
        given *= len(shape)
    if len(given) != len(shape):
        raise ValueError(f"{name} is {chunks!r}, expected one int per axis of the shape {tuple(shape)}")
    return [max(extent, 1) if chunk == -1 else chunk for chunk, extent in zip(given, shape, strict=True)]


def _chunk_key_encoding(encoding: Any) -> Any:
    """Return the encoding in the form of version 3, from that or from zarr-python's shorter form."""
    if not isinstance(encoding, Mapping) or "configuration" in encoding:
        return encoding
    rest = dict(encoding)
    name = rest.pop("name", None)
    return {"name": name, "configuration": rest}
