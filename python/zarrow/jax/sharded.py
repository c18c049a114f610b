"""Arrays with a sharding: the shards of a host are read in one plan."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array, read_many
from zarrow.data.element_sizes import has_fixed_size
from zarrow.errors import ExchangeError, IndexingError
from zarrow.jax.batches import narrowed

# The selection along an axis: one index, evenly spaced indices, or a list.
_Along: TypeAlias = int | range | npt.NDArray[np.int64]
_Shard: TypeAlias = tuple[tuple[int, int], ...]


def make_array(array: Array, sharding: Any, selection: Any = ...) -> jax.Array:
    """Read an array, or a selection, into an array of JAX with a sharding.

    All shards of this host are read at once, before JAX asks for the first: chunks that shards share are
    decoded once, and a shard with replicas is read once. Other hosts read their shards. JAX copies a shard
    to its device; on the CPU it shares memory that begins at a multiple of 64 bytes.

    Parameters
    ----------
    array
        The array.
    sharding
        A `jax.sharding.Sharding` of the selection's shape.
    selection
        An index for each axis: an integer, a slice, a list of positions or a mask. Lists are combined as in
        `array.oindex`.

    Returns
    -------
    jax.Array
        Numbers of 64 bits become numbers of 32 bits, if they fit, unless `jax_enable_x64` is on.

    Raises
    ------
    IndexingError
        The selection lies outside of the array (an `IndexError`).
    ExchangeError
        JAX has no such data type, or a number does not fit.
    ValueError
        The sharding does not divide the shape.

    And as `Array.read`.

    Examples
    --------
    >>> import jax, zarrow
    >>> import zarrow.jax
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> mesh = jax.make_mesh((1,), ("day",))
    >>> sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("day"))
    >>> zarrow.jax.make_array(temperature, sharding, (slice(8, 40), 0)).shape
    (32, 8)
    """
    if not has_fixed_size(array):
        raise ExchangeError(
            f"array {array.path!r} has text or elements that may be missing, but JAX has no such arrays: "
            "type array.read()"
        )
    along = _along_axes(selection, array.shape)
    shape = tuple(len(each) for each in along if not isinstance(each, int))
    places = sharding.addressable_devices_indices_map(shape).values()
    shards = list(dict.fromkeys(_key(index, shape) for index in places))
    decoded = read_many([(array.oindex, _part(along, shard)) for shard in shards])
    parts = {shard: narrowed(decoded[at].numpy()) for at, shard in enumerate(shards)}
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    return jax.make_array_from_callback(shape, sharding, lambda index: parts[_key(index, shape)], dtype=dtype)


def _along_axes(selection: Any, shape: tuple[int, ...]) -> list[_Along]:
    """Return the selection along each axis of an array."""
    items = selection if isinstance(selection, tuple) else (selection,)
    given = [item for item in items if item is not Ellipsis]
    if len(given) > len(shape) or len(items) > len(given) + 1:
        raise IndexingError(f"selection has {len(given)} indices for an array of {len(shape)} axes")
    at = next((number for number, item in enumerate(items) if item is Ellipsis), len(given))
    rest = [slice(None)] * (len(shape) - len(given))
    return list(map(_along, [*given[:at], *rest, *given[at:]], shape))


def _along(item: Any, extent: int) -> _Along:
    if isinstance(item, slice):
        return range(extent)[item]
    positions = np.asarray(item)
    if positions.dtype == bool and positions.shape == (extent,):
        return np.flatnonzero(positions)
    if positions.ndim == 0 and positions.dtype.kind in "iu":
        return operator.index(item)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iu"):
        raise IndexingError(
            f"index is {item!r}, expected an integer, a slice, a list of positions or a mask of {extent}"
        )
    return positions.astype(np.int64)


def _key(index: tuple[slice, ...] | None, shape: tuple[int, ...]) -> _Shard:
    """Return start and stop of a shard along each axis."""
    found = index or (slice(None),) * len(shape)
    return tuple(part.indices(extent)[:2] for part, extent in zip(found, shape, strict=True))


def _part(along: list[_Along], shard: _Shard) -> tuple[Any, ...]:
    """Return the selection of a shard."""
    ranges = iter(shard)
    return tuple(each if isinstance(each, int) else _cut(each, *next(ranges)) for each in along)


def _cut(along: range | npt.NDArray[np.int64], start: int, stop: int) -> Any:
    part = along[start:stop]
    if not isinstance(part, range):
        return part
    if not len(part):
        return slice(0, 0)
    return slice(part.start, part.stop if part.stop >= 0 else None, part.step)
