"""Variables of xarray from arrays of a store, with the attributes and the `encoding` of xarray's own engine.

Codecs in an encoding are objects of zarr-python, which `to_zarr` of xarray compares and takes. Without
zarr-python, and for codecs that it does not know, they are the documents of the metadata.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from zarrow._zarrow import Array
from zarrow.errors import LimitError
from zarrow.xarray.arrays import ZarrowArray
from zarrow.xarray.first_reads import FirstReads
from zarrow.xarray.preferred_chunks import Extents, preferred_chunks

DIMENSIONS = "_ARRAY_DIMENSIONS"

# Limit against hostile metadata: chunks of unequal extents along an axis.
_UNEQUAL = 1 << 20
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def variable_of(
    array: Array,
    *,
    is_v3: bool,
    fill_value_is_mask: bool,
    prefers_shards: bool,
    first_reads: FirstReads | None,
) -> xarray.Variable:
    """Return the variable that an array stores, before CF decoding."""
    metadata = array.metadata
    attributes = dict(metadata.get("attributes", {}))
    dimensions = _dimensions(array, metadata, attributes)
    stored = _Stored(array, metadata)
    data = ZarrowArray(array, stored.dtype)
    chunks, shards = _chunks(array, metadata)
    preferred = preferred_chunks(array, chunks, shards) if prefers_shards else chunks
    encoding: dict[str, Any] = {
        "chunks": chunks,
        "preferred_chunks": dict(zip(dimensions, preferred, strict=True)),
    }
    if stored.dtype.kind == "T":
        encoding["dtype"] = stored.dtype
    encoding.update(compressors=stored.compressors, filters=stored.filters, shards=shards)
    if is_v3:
        encoding["serializer"] = stored.serializer
    if fill_value_is_mask:
        if stored.fill_value is not None:
            attributes["_FillValue"] = stored.fill_value
    else:
        if is_v3:
            encoding["fill_value"] = stored.fill_value
        if "_FillValue" in attributes:
            attributes["_FillValue"] = FillValueCoder.decode(attributes["_FillValue"], stored.dtype)
    is_index = dimensions == (array.basename,)
    if first_reads is not None and (is_index or _is_time(attributes)):
        data.join(first_reads, is_index=is_index)
    return xarray.Variable(dimensions, indexing.LazilyIndexedArray(data), attributes, encoding)


def _dimensions(array: Array, metadata: Mapping[str, Any], attributes: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the axes; in version 2 they are an attribute, which is taken away."""
    if metadata["zarr_format"] == 3:
        names = tuple(metadata.get("dimension_names") or ())
        if len(names) != array.ndim:
            raise KeyError(
                f"array {array.path!r} has no `dimension_names`, which xarray needs: write it with "
                "`dimension_names=`, or read it by zarrow"
            )
        return names
    if DIMENSIONS not in attributes:
        raise KeyError(
            f"array {array.path!r} has no attribute `{DIMENSIONS}`, which xarray needs: add it, or pass "
            'engine="zarr" for a store of NCZarr'
        )
    names = tuple(attributes.pop(DIMENSIONS))
    for name in [name for name in attributes if name.lower().startswith("_nc")]:
        del attributes[name]
    return names


def _is_time(attributes: Mapping[str, Any]) -> bool:
    """Whether xarray looks at the first and the last element to decode times."""
    units = attributes.get("units")
    return isinstance(units, str) and " since " in units


class _Stored:
    """What a variable's encoding says about the stored array."""

    def __init__(self, array: Array, metadata: dict[str, Any]) -> None:
        self.dtype = array.dtype
        if metadata["zarr_format"] == 2:
            self._of_v2(array)
        else:
            self._of_v3(array, metadata)

    def _of_v2(self, array: Array) -> None:
        serializer = array.serializer
        if serializer.get("configuration", {}).get("endian") == "big":
            self.dtype = self.dtype.newbyteorder(">")
        filters = [codec for codec in array.filters if codec["name"] != "transpose"]
        # The serializer of texts is a filter in version 2.
        if serializer["name"] != "bytes":
            filters.append(serializer)
        self.filters: Any = tuple(map(_numcodec, filters))
        self.compressors: Any = tuple(map(_numcodec, array.compressors))
        self.serializer: Any = None
        self.fill_value: Any = array.fill_value if array._has_fill_value() else None

    def _of_v3(self, array: Array, metadata: dict[str, Any]) -> None:
        self.filters, self.serializer, self.compressors = array.filters, array.serializer, array.compressors
        self.fill_value = array.fill_value
        if importlib.util.find_spec("zarr") is None:
            return
        from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
        from zarr.core.metadata import ArrayV3Metadata

        # Only what xarray compares: attributes may be large, and the grid may be unknown there.
        plain = {**metadata, "attributes": {}, "chunk_grid": _one_chunk(array), "dimension_names": None}
        try:
            known = ArrayV3Metadata.from_dict(plain)
            dtype = known.data_type.to_native_dtype()
        except (KeyError, TypeError, ValueError, NotImplementedError):
            return
        if dtype.kind == self.dtype.kind:
            self.dtype = dtype
        self.fill_value = known.fill_value
        if self.dtype.kind == "S":
            # Stored with the zeros that pad it.
            self.fill_value = np.bytes_(bytes(self.fill_value).rstrip(b"\0"))
        codecs = known.inner_codecs
        self.filters = tuple(codec for codec in codecs if isinstance(codec, ArrayArrayCodec))
        self.serializer = next(codec for codec in codecs if isinstance(codec, ArrayBytesCodec))
        self.compressors = tuple(codec for codec in codecs if isinstance(codec, BytesBytesCodec))


def _one_chunk(array: Array) -> dict[str, Any]:
    """Return a regular grid that zarr-python always reads."""
    shape = array.write_unit or tuple(max(extent, 1) for extent in array.shape)
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def _numcodec(codec: Mapping[str, Any]) -> Any:
    """Return a codec of version 2 as an object of numcodecs; its document if that does not know it."""
    name = codec["name"].removeprefix("numcodecs.")
    configuration = dict(codec.get("configuration", {}))
    if name == "blosc":
        configuration["shuffle"] = _SHUFFLES[configuration["shuffle"]]
        configuration.pop("typesize", None)
    if name == "zstd":
        # Whether frames end with a checksum is no part of version 2, and numcodecs writes none.
        configuration.pop("checksum", None)
    if importlib.util.find_spec("numcodecs") is not None:
        import numcodecs

        try:
            return numcodecs.get_codec({"id": name, **configuration})
        except (TypeError, ValueError):
            pass
    return {"id": name, **configuration}


def _chunks(array: Array, metadata: Mapping[str, Any]) -> tuple[Extents, Extents | None]:
    """Return the extents of chunks and shards along each axis: a number, or a tuple if they differ."""
    if array.chunks is not None:
        return array.chunks, array.shards
    shapes = metadata["chunk_grid"]["configuration"]["chunk_shapes"]
    extents = tuple(itertools.starmap(_extents, zip(shapes, array.shape, strict=True)))
    for codec in metadata["codecs"]:
        if codec["name"] == "sharding_indexed":
            return tuple(codec["configuration"]["chunk_shape"]), extents
    return extents, None


def _extents(stored: int | list[Any], size: int) -> int | tuple[int, ...]:
    """Return the extents of chunks along an axis of this size, from the metadata."""
    if isinstance(stored, int):
        return stored
    runs = [(run, 1) if isinstance(run, int) else (run[0], run[1]) for run in stored]
    if (count := sum(times for _, times in runs)) > _UNEQUAL:
        raise LimitError(
            f"{count} chunks of unequal extents along one axis, expected at most {_UNEQUAL}: pass "
            "drop_variables=, or read the array by zarrow",
            kind="metadata",
        )
    found = [extent for extent, times in runs for _ in range(times)]
    # The last chunk may extend beyond the array.
    excess = sum(found) - size
    while found and excess >= found[-1]:
        excess -= found.pop()
    if not found:
        return (0,)
    found[-1] -= excess
    is_regular = len(set(found[:-1])) <= 1 and found[-1] <= found[0]
    return found[0] if is_regular else tuple(found)
