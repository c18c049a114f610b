"""Chains of codecs: their metadata in each version, and the libraries that read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oracle.elements import Element

Json = dict[str, Any]
Chunks = tuple[int, ...]

BLOSC = [
    (name, shuffle)
    for name in ("lz4", "zstd", "blosclz")
    for shuffle in ("noshuffle", "shuffle", "bitshuffle")
]
BLOSC += [("lz4hc", "shuffle"), ("zlib", "bitshuffle")]


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain: `keys` returns its metadata for given elements and chunks."""

    name: str
    version: int
    keys: Callable[[Element, Chunks], Json]
    tensorstore: bool = True
    zarr_python: bool = True
    is_sharded: bool = False
    is_transposed: bool = False
    fits: Callable[[Element], bool] = lambda element: True


def codec(name: str, **configuration: Any) -> Json:
    return {"name": name, "configuration": configuration}


def elements_to_bytes(element: Element, endian: str = "little") -> Json:
    if element.is_variable:
        return {"name": "vlen-utf8" if element.name == "string" else "vlen-bytes"}
    return codec("bytes", endian=endian) if element.word > 1 else {"name": "bytes"}


def has_byte_order(element: Element) -> bool:
    return element.word > 1


def has_words_of_4_bytes(element: Element) -> bool:
    return not element.is_variable and element.dtype.itemsize % 4 == 0 and element.dtype.kind != "U"


# Version 3


def scaled(chunks: Chunks, factor: int) -> Chunks:
    return tuple(extent * factor for extent in chunks)


def v3_keys(chunks: Chunks, codecs: list[Json], **keys: Any) -> Json:
    return {"chunk_grid": codec("regular", chunk_shape=list(chunks)), "codecs": codecs, **keys}


def v3(name: str, *bytes_to_bytes: Json, endian: str = "little", order: str = "C", **chain: Any) -> Chain:
    def keys(element: Element, chunks: Chunks) -> Json:
        before = [transpose(len(chunks), order)] if order != "C" else []
        return v3_keys(chunks, [*before, elements_to_bytes(element, endian), *bytes_to_bytes])

    if endian == "big":
        chain["fits"] = has_byte_order
    return Chain(name, 3, keys, is_transposed=order != "C", **chain)


def transpose(ndim: int, order: str) -> Json:
    """Order `F` reverses the axes, `cycle` makes the first the last."""
    axes = list(range(ndim))
    return codec("transpose", order=axes[::-1] if order == "F" else axes[1:] + axes[:1])


def shards(
    chunks: Chunks, codecs: list[Json], index: str = "end", checksum: bool = True, endian: str = "little"
) -> Json:
    index_codecs = [codec("bytes", endian=endian), *([{"name": "crc32c"}] if checksum else [])]
    return codec(
        "sharding_indexed",
        chunk_shape=list(chunks),
        codecs=codecs,
        index_codecs=index_codecs,
        index_location=index,
    )


def sharded(
    name: str, *bytes_to_bytes: Json, endian: str = "little", outer: tuple[Json, ...] = (), **index: Any
) -> Chain:
    def keys(element: Element, chunks: Chunks) -> Json:
        inner = [elements_to_bytes(element, endian), *bytes_to_bytes]
        return v3_keys(scaled(chunks, 2), [shards(chunks, inner, **index), *outer])

    fits = has_byte_order if endian == "big" else lambda element: True
    # TensorStore refuses shards that are compressed as a whole.
    return Chain(name, 3, keys, tensorstore=not outer, is_sharded=True, fits=fits)


def nested(name: str, *locations: str) -> Chain:
    """Nested shards, with the index of each level at `locations`, outermost first."""

    def keys(element: Element, chunks: Chunks) -> Json:
        codecs = [elements_to_bytes(element), codec("zstd", level=1, checksum=False)]
        for level, location in enumerate(reversed(locations)):
            codecs = [shards(scaled(chunks, 2**level), codecs, location)]
        return v3_keys(scaled(chunks, 2 ** len(locations)), codecs)

    return Chain(name, 3, keys, is_sharded=True)


def transposed_shard(element: Element, chunks: Chunks) -> Json:
    """A transpose outside of the shards: the inner chunks have the stored order of axes."""
    order = transpose(len(chunks), "cycle")
    inner = tuple(chunks[axis] for axis in order["configuration"]["order"])
    return v3_keys(
        scaled(chunks, 2), [order, shards(inner, [elements_to_bytes(element), codec("gzip", level=1)])]
    )


def shard_of_transposed(element: Element, chunks: Chunks) -> Json:
    inner = [transpose(len(chunks), "F"), elements_to_bytes(element), codec("zstd", level=1, checksum=False)]
    return v3_keys(scaled(chunks, 2), [shards(chunks, inner, "start")])


def short_keys(element: Element, chunks: Chunks) -> Json:
    key_encoding = codec("v2", separator=".")
    return v3_keys(
        chunks, [elements_to_bytes(element), codec("gzip", level=1)], chunk_key_encoding=key_encoding
    )


def blosc(name: str, shuffle: str) -> Json:
    return codec("blosc", cname=name, clevel=5, shuffle=shuffle, typesize=4, blocksize=0)


ZSTD, CRC32C = codec("zstd", level=3, checksum=False), {"name": "crc32c"}

V3 = [
    v3("bytes"),
    v3("zstd", ZSTD),
    v3("zstd-checksum", codec("zstd", level=3, checksum=True)),
    v3("gzip", codec("gzip", level=5)),
    v3("zlib", codec("numcodecs.zlib", level=1), tensorstore=False),
    v3("lz4", codec("numcodecs.lz4", acceleration=1), tensorstore=False),
    v3("bz2", codec("numcodecs.bz2", level=1), tensorstore=False),
    *(v3(f"blosc-{name}-{shuffle}", blosc(name, shuffle)) for name, shuffle in BLOSC),
    v3("crc32c", CRC32C),
    v3("zstd-crc32c", ZSTD, CRC32C),
    v3("crc32c-gzip", CRC32C, codec("gzip", level=1)),
    v3("zstd-gzip", ZSTD, codec("gzip", level=1)),
    v3("order-f", order="F"),
    v3("order-cycle-zstd", ZSTD, order="cycle"),
    v3("big", endian="big"),
    v3("big-blosc", blosc("lz4", "shuffle"), endian="big"),
    v3("big-order-f-gzip", codec("gzip", level=1), endian="big", order="F"),
    sharded("shard-end", ZSTD),
    sharded("shard-start", ZSTD, index="start"),
    sharded("shard-raw"),
    sharded("shard-crc32c", CRC32C, checksum=False),
    sharded("shard-big", ZSTD, endian="big"),
    sharded("shard-blosc", blosc("zstd", "bitshuffle"), index="start"),
    sharded("shard-gzipped", outer=(codec("gzip", level=1),)),
    sharded("shard-in-crc32c", ZSTD, outer=(CRC32C,)),
    nested("nested-end", "end", "end"),
    nested("nested-mixed", "start", "end"),
    nested("nested-deep", "end", "start", "end"),
    # zarr-python 3.1 requires that the inner chunks divide a shard before it is transposed; by the
    # specification a codec sees the output of the previous codec. So TensorStore is the only oracle.
    Chain(
        "transposed-shard",
        3,
        transposed_shard,
        zarr_python=False,
        is_sharded=True,
        fits=lambda element: element.tensorstore,
    ),
    Chain("shard-of-transposed", 3, shard_of_transposed, is_sharded=True, is_transposed=True),
    Chain("v2-keys", 3, short_keys),
]

# Version 2


def v2(
    name: str,
    compressor: Json | None = None,
    *filters: Json,
    order: str = "C",
    endian: str = "<",
    **chain: Any,
) -> Chain:
    separator = chain.pop("separator", ".")

    def keys(element: Element, chunks: Chunks) -> Json:
        before = (
            [{"id": "vlen-utf8" if element.name == "string" else "vlen-bytes"}] if element.is_variable else []
        )
        keys: Json = {
            "chunks": list(chunks),
            "compressor": compressor,
            "order": order,
            "dimension_separator": separator,
        }
        keys["filters"] = [*before, *filters] or None
        if endian == ">" and element.v2:
            keys["dtype"] = element.v2.replace("<", ">")
        return keys

    if endian == ">":
        chain["fits"] = lambda element: has_byte_order(element) and element.zarr_python
    return Chain(name, 2, keys, **chain)


def v2_blosc(name: str, shuffle: str) -> Json:
    number = ("noshuffle", "shuffle", "bitshuffle").index(shuffle)
    return {"id": "blosc", "cname": name, "clevel": 5, "shuffle": number, "blocksize": 0}


V2 = [
    v2("none"),
    v2("zstd", {"id": "zstd", "level": 3}),
    v2("zstd-checksum", {"id": "zstd", "level": 3, "checksum": True}, tensorstore=False),
    v2("gzip", {"id": "gzip", "level": 5}),
    v2("zlib", {"id": "zlib", "level": 1}),
    v2("lz4", {"id": "lz4", "acceleration": 1}, tensorstore=False),
    v2("bz2", {"id": "bz2", "level": 1}),
    *(v2(f"blosc-{name}-{shuffle}", v2_blosc(name, shuffle)) for name, shuffle in BLOSC),
    v2("blosc-auto", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1}),
    v2("crc32c", None, {"id": "crc32c"}, tensorstore=False),
    v2(
        "shuffle-zlib",
        {"id": "zlib", "level": 1},
        {"id": "shuffle", "elementsize": 4},
        tensorstore=False,
        fits=has_words_of_4_bytes,
    ),
    v2("order-f", order="F"),
    v2("order-f-zstd", {"id": "zstd", "level": 3}, order="F"),
    v2("big", endian=">"),
    v2("big-blosc", v2_blosc("lz4", "shuffle"), endian=">"),
    v2("big-order-f-gzip", {"id": "gzip", "level": 1}, endian=">", order="F"),
    v2("slash", {"id": "zstd", "level": 3}, separator="/"),
]

CHAINS: Mapping[int, list[Chain]] = {2: V2, 3: V3}
