"""Creates arrays of a single value, like NumPy and zarr-python.

>>> import zarrow
>>> counts = zarrow.zeros((2, 3), dtype="i4")
>>> counts[0, 1] = 5
>>> counts[...].tolist()
[[0, 5, 0], [0, 0, 0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, MemoryStore, _import
from zarrow.api.array_options import store_first
from zarrow.api.creation import create_array, layout_of
from zarrow.interchange.labels import names_for

if TYPE_CHECKING:
    from typing import Unpack

    from zarrow.api.array_options import FilledOptions, LikeOptions

__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


@store_first
def full(
    shape: int | Sequence[int], fill_value: Any, dtype: Any = "f8", **options: Unpack[FilledOptions]
) -> Array:
    """Create an array that reads as the fill value until it is written.

    No chunk is stored: the metadata hold the value.

    Parameters
    ----------
    shape
        The extent of each axis.
    fill_value
        Value of each element.
    dtype
        Data type, as for `create_array`; `"f8"` by default.
    options
        `store`, anything that `open` takes, by default a new store in memory, which lives as long as the
        array; a path, a URL or a store of zarrow may also come before the shape; `path`, the path in the
        store; `zarr_format`, the version of the format; and the other options of `create_array`: `chunks`,
        `compressors`, `overwrite` and so on.

    Raises
    ------
    NodeExistsError, MetadataError, CodecError, StoreError
        As `create_array`.
    ValueError
        The type cannot represent the value.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.full((2, 2), 1.5)[...].tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    >>> zarrow.full(3, -1, dtype="i2", store="levels.zarr", chunks=2).chunks
    (2,)
    """
    dtype = "f8" if dtype is None else dtype
    if isinstance(dtype, int | bytes):
        way = f": type shape=({shape}, {dtype}, ...)" if isinstance(dtype, int) else ", expected a data type"
        raise TypeError(f"dtype is {dtype!r}{way}")
    return _created({"shape": shape, "dtype": dtype, "fill_value": fill_value, **options})


@store_first
def zeros(shape: int | Sequence[int], dtype: Any = "f8", **options: Unpack[FilledOptions]) -> Array:
    """Create an array of zeros: `full` with 0. See there for parameters and errors.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.zeros((2, 2), dtype="i4")[...].tolist()
    [[0, 0], [0, 0]]
    """
    return full(shape, zero_of(dtype), dtype, **options)


@store_first
def ones(shape: int | Sequence[int], dtype: Any = "f8", **options: Unpack[FilledOptions]) -> Array:
    """Create an array of ones: `full` with 1. See there for parameters and errors.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.ones(3)[...].tolist()
    [1.0, 1.0, 1.0]
    """
    return full(shape, 1, dtype, **options)


@store_first
def empty(shape: int | Sequence[int], dtype: Any = "f8", **options: Unpack[FilledOptions]) -> Array:
    """Create an array with the default fill value of `create_array`, to be written later.

    That is zero, NaT for times, the empty string, or missing. See `full` for the parameters.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.empty(2, dtype="M8[D]")[...].tolist()
    [None, None]
    """
    return full(shape, None, dtype, **options)


def full_like(array: Any, fill_value: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array with the shape and type of another one, filled with a value.

    Parameters
    ----------
    array
        An Array, which also provides chunks, shards, codecs, axis names and the format version; or any object
        with a shape and a dtype. Attributes and elements are not copied.
    fill_value
        Value of each element.
    options
        Options of `full`, and `shape`, to differ from `array`.

    Raises
    ------
    NodeExistsError, MetadataError, CodecError, StoreError
        As `create_array`.
    TypeError
        `array` has no shape or no dtype.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> anomaly = zarrow.full_like(temperature, -1, store="new.zarr")
    >>> anomaly.shape == temperature.shape, anomaly.chunks == temperature.chunks, anomaly[0, 0, 0].item()
    (True, True, -1.0)
    """
    unsaid = [name for name in ("shape", "dtype", "zarr_format") if options.get(name) is None]
    differs = {name: value for name, value in options.items() if name not in unsaid}
    return _created({**_like(array, differs), "fill_value": fill_value, **differs})


def zeros_like(array: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array of zeros with the shape and type of another: see `full_like`.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> zarrow.zeros_like(np.ones(3, "i2")).dtype
    dtype('int16')
    """
    dtype = options.get("dtype")
    zero = zero_of(getattr(array, "dtype", "f8") if dtype is None else dtype)
    return full_like(array, zero, **options)


def ones_like(array: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array of ones with the shape and type of another: see `full_like`.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> zarrow.ones_like(np.zeros(3, "i2"))[...].tolist()
    [1, 1, 1]
    """
    return full_like(array, 1, **options)


def empty_like(array: Any, **options: Unpack[LikeOptions]) -> Array:
    """Create an array to be written later, with the shape and type of another: see `full_like` and `empty`.

    Examples
    --------
    >>> import numpy as np
    >>> import zarrow
    >>> zarrow.empty_like(np.ones((2, 3))).shape
    (2, 3)
    """
    return full_like(array, None, **options)


# Options that cannot be combined with a complete list of codecs.
_ABOUT_CODECS = (
    "dtype",
    "chunks",
    "shards",
    "filters",
    "serializer",
    "compressors",
    "compressor",
    "codecs",
    "order",
)


def _like(array: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `create_array` options that make an array like this one, unless others are given."""
    if isinstance(array, Array):
        version = options.get("zarr_format", array.zarr_format)
        layout = {"shape": array.shape, "zarr_format": version, **layout_of(array, version)}
        layout["dimension_names"] = names_for(array, version)
        if any(name in options for name in _ABOUT_CODECS):
            del layout["codecs"]
            keeps_shards = version == 3 and "chunks" not in options
            layout |= {"chunks": array.chunks, "shards": array.shards if keeps_shards else None}
        return layout
    try:
        return {"shape": array.shape, "dtype": array.dtype}
    except AttributeError:
        name = type(array).__name__
        message = f"expected an array with a shape and a dtype, got {name}: type zarrow.asarray(x) first"
        raise TypeError(message) from None


def _created(options: dict[str, Any]) -> Array:
    """Create an array in the store given by the options, or in a new one in memory."""
    store = options.pop("store", None)
    return create_array(MemoryStore() if store is None else store, options.pop("path", ""), **options)


def zero_of(dtype: Any) -> Any:
    """Return the zero of a type: 0, or an empty value for text and bytes."""
    np = _import("numpy")
    try:
        kind = np.dtype(dtype).kind
    except TypeError:  # a name of Zarr's
        kind = "T" if dtype == "string" else "f"
    return None if kind in "SUTO" else 0
