"""Arrays of zarr-python on zarrow's codec pipeline and on its own, for tests that compare them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from hypothesis import strategies as st
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

import zarrow

SHAPE = (23, 31)
CHUNKS = (5, 7)

# Arguments of `zarr.create_array`: layouts and codecs.
LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"chunks": CHUNKS},
    "one chunk": {"chunks": SHAPE},
    "uncompressed": {"chunks": CHUNKS, "compressors": None},
    "gzip and crc32c": {"chunks": CHUNKS, "compressors": [GzipCodec(level=1), Crc32cCodec()]},
    "blosc": {"chunks": CHUNKS, "compressors": BloscCodec(cname="lz4", typesize=4, shuffle="shuffle")},
    "transposed": {"chunks": CHUNKS, "filters": TransposeCodec(order=(1, 0))},
    "big-endian": {"chunks": CHUNKS, "serializer": BytesCodec(endian="big")},
    "v2 keys": {"chunks": CHUNKS, "chunk_key_encoding": {"name": "v2", "separator": "."}},
    "shards": {"chunks": CHUNKS, "shards": (10, 14)},
    "index first": {"chunks": CHUNKS, "shards": {"shape": (10, 14), "index_location": "start"}},
    "nested shards": {
        "chunks": (20, 28),
        "compressors": None,
        "serializer": ShardingCodec(
            chunk_shape=(10, 14),
            codecs=[ShardingCodec(chunk_shape=CHUNKS, codecs=[BytesCodec(), ZstdCodec()])],
        ),
    },
    "v2": {"chunks": CHUNKS, "zarr_format": 2},
    "v2 in order F": {"chunks": CHUNKS, "zarr_format": 2, "order": "F"},
    "v2 with slashes": {
        "chunks": CHUNKS,
        "zarr_format": 2,
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
}
DTYPES = ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "U3", "S4", "M8[s]", "m8[ms]", "V3"]
DTYPES_OF_V2 = [">i4", ">f8", ">c16", ">U3", ">M8[s]"]


@dataclass
class Pair:
    """The same array twice: on zarr-python's own pipeline, and on zarrow's."""

    own: Any
    engine: Any

    def equal(self, operation: Callable[[Any], Any]) -> None:
        """Check that an operation has the same result or error, and leaves the same elements and keys."""
        results = [outcome(operation, array) for array in (self.own, self.engine)]
        assert_equal(*results)

    def stored_equal(self) -> None:
        """Check that both store the same chunks, with elements that zarr-python decodes to the same."""
        paths = [Path(array.store.root) for array in (self.own, self.engine)]
        assert files(paths[0]) == files(paths[1])
        with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
            assert_equal(*(zarr.open_array(path, mode="r")[...] for path in paths))


def files(folder: Path) -> list[str]:
    """Return the names of all files below a folder."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def outcome(operation: Callable[[Any], Any], array: Any) -> Any:
    """Return the result of an operation, or the type of its error."""
    try:
        return operation(array)
    except Exception as error:
        return type(error)


def assert_equal(own: Any, engine: Any) -> None:
    """Check that two results are equal in type, shape and bits."""
    assert type(own) is type(engine), (own, engine)
    if not isinstance(own, np.ndarray):
        assert own == engine or (own != own and engine != engine), (own, engine)
        return
    assert (own.dtype, own.shape) == (engine.dtype, engine.shape)
    if own.dtype.hasobject or own.dtype.kind == "T":
        assert own.tolist() == engine.tolist()
    else:
        assert own.tobytes() == engine.tobytes()


def pair(folder: Path, **options: Any) -> Pair:
    """Create an array twice."""
    own = zarr.create_array(folder / "own", **options)
    with zarrow.zarr_python.enable():
        engine = zarr.create_array(folder / "engine", **options)
    return Pair(own, engine)


def elements(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return random elements, with some fill values."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    if dtype.kind in "US":
        return random.integers(0, 50, shape).astype(dtype.newbyteorder("=")).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind == "V" or dtype.hasobject:
        return np.frombuffer(random.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
    values = random.integers(0, 5 if seed % 3 == 0 else 100, shape)
    return values.astype("i8").astype(dtype) if dtype.kind in "mM" else values.astype(dtype)


def slices(extent: int) -> st.SearchStrategy[Any]:
    """Draw an integer or a slice with a positive step."""
    bounds = st.none() | st.integers(-extent - 2, extent + 2)
    return st.integers(-extent, extent - 1) | st.builds(
        slice, bounds, bounds, st.none() | st.integers(1, extent + 1)
    )


def lists(extent: int) -> st.SearchStrategy[Any]:
    """Draw integers, in any order, or a mask."""
    return st.lists(st.integers(-extent, extent - 1), min_size=1, max_size=9).map(np.array) | st.lists(
        st.booleans(), min_size=extent, max_size=extent
    ).map(np.array)


@st.composite
def selections(draw: st.DrawFn, shape: tuple[int, ...] = SHAPE) -> tuple[str, Any]:
    """Draw a kind of indexing and its selection."""
    kind = draw(st.sampled_from(["basic", "orthogonal", "coordinate", "mask", "block"]))
    if kind == "basic":
        return kind, tuple(draw(slices(extent)) for extent in shape)
    if kind == "orthogonal":
        return kind, tuple(draw(slices(extent) | lists(extent)) for extent in shape)
    if kind == "coordinate":
        count = draw(st.integers(1, 9))
        points = (st.lists(st.integers(-n, n - 1), min_size=count, max_size=count) for n in shape)
        return kind, tuple(np.array(draw(axis)) for axis in points)
    if kind == "mask":
        seed, share = draw(st.integers(0, 99)), draw(st.floats(0.01, 0.9))
        return kind, np.random.default_rng(seed).random(shape) < share
    start, stop = sorted((draw(st.integers(0, 1)), draw(st.integers(1, 3))))
    return kind, (slice(start, stop), draw(st.integers(0, 1)))


def read(array: Any, kind: str, selection: Any, how: str = "sync") -> Any:
    """Read a selection, by the synchronous or the asynchronous array."""
    if how == "async" and kind in ("basic", "orthogonal", "coordinate"):
        indexed = array.async_array
        if kind != "basic":
            indexed = indexed.oindex if kind == "orthogonal" else indexed.vindex
        return asyncio.run(_awaited(indexed, selection))
    return getattr(array, f"get_{kind}_selection")(selection)


async def _awaited(indexed: Any, selection: Any) -> Any:
    return await indexed.getitem(selection)


def write(array: Any, kind: str, selection: Any, value: Any) -> None:
    """Write to a selection."""
    getattr(array, f"set_{kind}_selection")(selection, value)
