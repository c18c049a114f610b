"""Stores that lie: each read is a typed error that says where, or the exact data, and the process lives.

Each read is a process of its own, whose address space may grow by 1 GiB.
"""

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hostile import bombs
from hostile.codecs import ENCODERS, Encoder
from hostile.process import Outcome, attempt, attempts
from hostile.stores import ABSENT, BYTES, CRC32C, codec, document, optional, sealed, shard_index, sharding, vlen, write

Json = dict[str, Any]
INTS = struct.pack("<4i", 1, 2, 3, 4)


def check(outcome: Outcome, folder: Path, error: str, *kinds: str, codec: str | None = None, chunk: Any = None) -> None:
    """The outcome is this error in the array `a` of the store, in this chunk and codec."""
    assert (outcome.error, outcome.kind in kinds) == (error, True), outcome
    assert (outcome.store, outcome.path) == (str(folder), "a"), outcome
    assert outcome.codec == codec, outcome
    assert outcome.chunk == chunk, outcome
    for place in (str(folder), '"a"', codec, chunk):
        assert place is None or str(place) in outcome.message, outcome


# Stores and paths


def test_a_folder_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    for store in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        outcome = attempt(store)
        assert (outcome.error, outcome.kind, outcome.store) == ("NotFoundError", "not_found", str(store)), outcome


def test_an_array_that_is_missing(tmp_path: Path) -> None:
    outcome = attempt(write(tmp_path / "store", document()), "nothing")
    assert (outcome.error, outcome.kind, outcome.path) == ("NotFoundError", "not_found", "nothing")
    assert outcome.store == str(tmp_path / "store")


@pytest.mark.parametrize(
    "path", ["../secret", "..", "a/../../secret", "a//b", ".", "./a", "a\0b", "..\\secret", "a/..", "../store/a", "\0"]
)
def test_paths_that_would_leave_the_store(path: str, tmp_path: Path) -> None:
    write(tmp_path / "secret", document())
    outcome = attempt(write(tmp_path / "store", document()), path)
    assert (outcome.error, outcome.kind) == ("InvalidKeyError", "bad_key"), outcome
    assert outcome.store == str(tmp_path / "store")


@pytest.mark.parametrize("path", ["/etc/passwd", "%2e%2e/secret", "file:///secret", "~", "c/0", "x" * 5000, "x/" * 3000 + "x"])
def test_paths_that_only_look_as_if(path: str, tmp_path: Path) -> None:
    write(tmp_path / "secret", document())
    outcome = attempt(write(tmp_path / "store", document()), path)
    assert outcome.error in ("NotFoundError", "StoreError", "InvalidKeyError"), outcome


@pytest.mark.parametrize("name", ["../secret", "..", "a/../../secret", "/secret", "", "a//b"])
def test_consolidated_names_that_would_leave_the_store(name: str, tmp_path: Path) -> None:
    write(tmp_path / "secret", document(), {"c/0": INTS})
    store = write(tmp_path / "store", document())
    consolidated = {"kind": "inline", "must_understand": False, "metadata": {name: document(), "b": document()}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": consolidated}
    (store / "zarr.json").write_text(json.dumps(group))
    for outcome in (attempt(store), attempt(store, name), attempt(store, "../secret")):
        assert outcome.error in ("MetadataError", "InvalidKeyError", "NotFoundError"), outcome
        assert outcome.store == str(store), outcome


def test_a_key_encoding_that_would_leave_the_array(tmp_path: Path) -> None:
    for number, encoding in enumerate(
        [
            codec("default", separator="/../"),
            codec("v2", separator=".."),
            codec("zarrs.default_suffix", suffix="/../../secret"),
            codec("fanout"),
        ]
    ):
        store = write(tmp_path / str(number), document(chunk_key_encoding=encoding))
        check(attempt(store, "a"), store, "MetadataError", "metadata")


# What stands where a file should be


def folder_instead(file: Path) -> None:
    file.mkdir()


def pipe_instead(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize("put", [folder_instead, pipe_instead])
def test_no_file_where_a_chunk_should_be(put: Callable[[Path], None], tmp_path: Path) -> None:
    store = write(tmp_path / "store", document(), {"c/1": INTS})
    put(store / "a/c/0")
    check(attempt(store, "a"), store, "StoreError", "io", chunk=[0])


@pytest.mark.parametrize("put", [folder_instead, pipe_instead])
def test_no_file_where_metadata_should_be(put: Callable[[Path], None], tmp_path: Path) -> None:
    store = write(tmp_path / "store", document())
    (store / "a/zarr.json").unlink()
    put(store / "a/zarr.json")
    check(attempt(store, "a"), store, "StoreError", "io")


def test_a_link_in_a_circle(tmp_path: Path) -> None:
    store = write(tmp_path / "store", document(), {"c/1": INTS})
    (store / "a/c/0").symlink_to(store / "a/c/0")
    check(attempt(store, "a"), store, "StoreError", "io", chunk=[0])


# Metadata

NOT_JSON = [b"", b"{", b"[]", b"null", b"\0" * 100, b"\xff\xfe{}", b'{"zarr_format": 3', b"[" * 200_000, b'{"a":' * 200_000]
NOT_JSON += [b'{"zarr_format":' + b"9" * 100_000 + b"}", b'"' + b"x" * 100_000]


def test_metadata_that_are_no_json(tmp_path: Path) -> None:
    stores = [write(tmp_path / str(number), text) for number, text in enumerate(NOT_JSON)]
    for store, outcome in zip(stores, attempts(stores, "a"), strict=True):
        check(outcome, store, "MetadataError", "metadata")


HUGE = 2**62
WRONG_METADATA: dict[str, Json] = {
    "shape 2^63": document((2**63,), (4,)),
    "shape 2^64": document((2**64,), (4,)),
    "shape 2^62 x 2^62": document((HUGE, HUGE), (4, 4)),
    "an empty axis behind a huge one": document((HUGE, HUGE, 0), (1, 1, 1)),
    "chunk 2^40 x 2^40": document((8, 8), (2**40, 2**40)),
    "chunk 2^62": document((8,), (HUGE,)),
    "chunk of 0": document((8,), (0,)),
    "negative shape": document((-1,), (4,)),
    "fractional shape": document((1.5,), (4,)),
    "shape of text": document("8", (4,)),
    "no shape": {key: value for key, value in document().items() if key != "shape"},
    "more axes in the chunks": document((8,), (4, 4)),
    "33 axes": document((1,) * 33, (1,) * 33),
    "100,000 axes": document((1,) * 100_000, (1,) * 100_000),
    "another version": document(zarr_format=4),
    "another node type": document(node_type="table"),
    "unknown type": document(data_type="decimal", fill_value=0),
    "unknown key": document(must_be_known={"name": "x"}),
    "type of 2^35 bits": document(data_type="r34359738368", fill_value=0),
    "type of no bits": document(data_type="r0", fill_value=[]),
    "type of 2^31 bytes": document(data_type=codec("null_terminated_bytes", length_bytes=2**31), fill_value=""),
    "optional 100 deep": document(data_type=json.loads('{"name":"zarrs.optional","configuration":' * 100 + '"int8"' + "}" * 100)),
    "fill value out of range": document(fill_value=2**40),
    "fill value of text": document(fill_value="x"),
    "fill value not UTF-16": document(data_type="string", fill_value=5),
    "unknown grid": document(chunk_grid=codec("hexagonal")),
    "storage transformer": document(storage_transformers=[{"name": "x"}]),
    "dimension names": document(dimension_names=["x", "y"]),
    "attributes": document(attributes=[]),
    "codecs: none": document(codecs=[]),
    "codecs: an object": document(codecs={"name": "bytes"}),
    "codecs: a number": document(codecs=[5]),
    "codecs: no name": document(codecs=[{"configuration": {}}]),
    "codecs: nested lists": document(codecs=[[[["bytes"]]]]),
}


@pytest.mark.parametrize("name", WRONG_METADATA)
def test_metadata_that_are_wrong(name: str, tmp_path: Path) -> None:
    store = write(tmp_path / "store", WRONG_METADATA[name], {"c/0": INTS})
    check(attempt(store, "a"), store, "MetadataError", "metadata")


def deep(levels: int) -> Json:
    """Shards in shards; each level of them takes five of JSON."""
    codecs = [BYTES]
    for _ in range(levels):
        codecs = [sharding((4,), codecs)]
    return document(codecs=codecs)


GZIP, TRANSPOSE = codec("gzip", level=5), codec("transpose", order=[0])
WRONG_CODECS: dict[str, tuple[Json, str, str]] = {
    "unknown": (document(codecs=[BYTES, {"name": "snappier"}]), "unknown_codec", "snappier"),
    "unknown first": (document(codecs=[{"name": "snappier"}, BYTES]), "unknown_codec", "snappier"),
    "unknown in a shard": (document(codecs=[sharding((2,), [BYTES, {"name": "x"}])]), "unknown_codec", "x"),
    "nothing makes bytes": (document(codecs=[GZIP]), "bad_codec", "gzip"),
    "bytes twice": (document(codecs=[BYTES, BYTES]), "bad_codec", "bytes"),
    "bytes after gzip": (document(codecs=[GZIP, BYTES]), "bad_codec", "gzip"),
    "transpose alone": (document(codecs=[TRANSPOSE]), "bad_codec", "transpose"),
    "transpose after bytes": (document(codecs=[BYTES, TRANSPOSE]), "bad_codec", "transpose"),
    "transpose of other axes": (document(codecs=[codec("transpose", order=[0, 1]), BYTES]), "bad_codec", "transpose"),
    "transpose of one axis twice": (
        document((4, 4), (2, 2), codecs=[codec("transpose", order=[0, 0]), BYTES]),
        "bad_codec",
        "transpose",
    ),
    "transpose of 2^64": (document(codecs=[codec("transpose", order=[2**64]), BYTES]), "bad_codec", "transpose"),
    "no byte order": (document(codecs=[{"name": "bytes"}]), "bad_codec", "bytes"),
    "unknown byte order": (document(codecs=[codec("bytes", endian="middle")]), "bad_codec", "bytes"),
    "strings of numbers": (document(codecs=[{"name": "vlen-utf8"}]), "bad_codec", "vlen-utf8"),
    "numbers of strings": (document(data_type="string", codecs=[BYTES]), "bad_codec", "bytes"),
    "optional of numbers": (document(codecs=[optional([BYTES])]), "bad_codec", "zarrs.optional"),
    "shards that chunks do not divide": (document(codecs=[sharding((3,))]), "bad_codec", "sharding_indexed"),
    "shards of other axes": (document(codecs=[sharding((2, 2))]), "bad_codec", "sharding_indexed"),
    "shards with chunks of 0": (document(codecs=[sharding((0,))]), "bad_codec", "sharding_indexed"),
    "shards of nothing": (document(codecs=[{"name": "sharding_indexed"}]), "bad_codec", "sharding_indexed"),
    "shards with an index anywhere": (
        document(codecs=[sharding((2,), index_location="middle")]),
        "bad_codec",
        "sharding_indexed",
    ),
    "shards with a compressed index": (
        document(codecs=[sharding((2,), index_codecs=[BYTES, GZIP])]),
        "unsupported",
        "sharding_indexed",
    ),
}


@pytest.mark.parametrize("name", WRONG_CODECS)
def test_codecs_that_are_wrong(name: str, tmp_path: Path) -> None:
    metadata, kind, codec_name = WRONG_CODECS[name]
    store = write(tmp_path / "store", metadata, {"c/0": INTS})
    error = "UnsupportedError" if kind == "unsupported" else "CodecError"
    check(attempt(store, "a"), store, error, kind, codec=codec_name)


def test_shards_as_deep_as_json_may_be(tmp_path: Path) -> None:
    # A shard in a shard that has nothing: the outermost says that all is missing.
    store = write(tmp_path / "deep", deep(20), {"c/0": shard_index((ABSENT, ABSENT))})
    assert attempt(store, "a").value == ["0"] * 8
    text = json.dumps(document(codecs=["CODECS"]))
    inner = '{"name":"sharding_indexed","configuration":{"chunk_shape":[4],"index_codecs":["bytes"],"codecs":['
    nested = text.replace('"CODECS"', inner * 2000 + '"bytes"' + "]}}" * 2000)
    store = write(tmp_path / "deeper", nested.encode())
    check(attempt(store, "a"), store, "MetadataError", "metadata")


def test_results_that_are_larger_than_memory(tmp_path: Path) -> None:
    """Nothing in the metadata is wrong, but the whole does not fit."""
    huge = {
        "one chunk": document((2**32,), (2**32,)),
        "many chunks": document((2**40,), (2**20,)),
        "many chunks of one": document((2**40,), (1,)),
        "strings": document((2**40,), (2**20,), "string", codecs=[{"name": "vlen-utf8"}]),
        "optional": document(
            (2**40,), (2**20,), codec("zarrs.optional", name="int8"), codecs=[optional([{"name": "bytes"}])]
        ),
    }
    for name, metadata in huge.items():
        store = write(tmp_path / name, metadata)
        check(attempt(store, "a"), store, "OutOfMemoryError", "out_of_memory")
        outcome = attempt(store, "a", index="-1")
        assert outcome.error is None or outcome.kind == "out_of_memory", outcome


def test_more_chunks_than_can_be_listed(tmp_path: Path) -> None:
    """100 million elements are 100 MB; a list of their chunks would be gigabytes."""
    store = write(tmp_path / "store", document((100_000_000,), (1,), "int8", codecs=[{"name": "bytes"}]))
    outcome = attempt(store, "a", index="slice(None, None, 1000)")
    assert outcome.value == 0, outcome
    outcome = attempt(store, "a", index="slice(0, 3)")
    assert outcome.value == ["0"] * 3, outcome


# Chunks


def array_of(encoder: Encoder, count: int = 4096) -> Json:
    return document((count,), (count,), codecs=[BYTES, encoder.metadata])


NUMBERS = struct.pack("<4096i", *(number * number % 1000 + 1 for number in range(4096)))


def check_all(
    folder: Path,
    metadata: Json,
    chunks: Iterable[bytes],
    *kinds: str,
    codec: str | None,
    index: str = "...",
    error: str = "CodecError",
) -> None:
    """Each of the chunks gives this error, in a store of its own."""
    stores = [write(folder / str(number), metadata, {"c/0": chunk}) for number, chunk in enumerate(chunks)]
    for store, outcome in zip(stores, attempts(stores, "a", index=index), strict=True):
        check(outcome, store, error, *kinds, codec=codec, chunk=[0])


@pytest.mark.parametrize("index", ["...", "slice(3, 90, 7)"])
@pytest.mark.parametrize("name", ENCODERS)
def test_chunks_that_are_cut_or_longer(name: str, index: str, tmp_path: Path) -> None:
    encoder = ENCODERS[name]
    encoded = encoder.encode(NUMBERS)
    good = write(tmp_path / "good", array_of(encoder), {"c/0": encoded})
    assert attempt(good, "a", index="slice(0, 3)").value == ["1", "2", "5"]
    cuts = [0, 1, 3, 4, 8, len(encoded) // 2, len(encoded) - 1]
    damaged = [encoded[:cut] for cut in cuts] + [encoded + b"\0", encoded + b"\x28\xb5\x2f\xfd"]
    kinds = ("corrupt", "wrong_size", "checksum")
    check_all(tmp_path, array_of(encoder), damaged, *kinds, codec=encoder.name, index=index)


@pytest.mark.parametrize("index", ["...", "slice(3, 90, 7)"])
@pytest.mark.parametrize("name", ENCODERS)
def test_chunks_that_decode_to_another_size(name: str, index: str, tmp_path: Path) -> None:
    encoder = ENCODERS[name]
    decoded = (NUMBERS[:-1], NUMBERS[:-4], NUMBERS[:8192], b"", NUMBERS + b"\0", NUMBERS * 2, NUMBERS * 64)
    # A checksum knows no sizes: it is the elements that are too few.
    codec_name = "bytes" if name == "crc32c" else encoder.name
    encoded = map(encoder.encode, decoded)
    check_all(tmp_path, array_of(encoder), encoded, "wrong_size", codec=codec_name, index=index)


@pytest.mark.parametrize("index", ["...", "slice(3, 90, 7)"])
def test_raw_chunks_of_another_size(index: str, tmp_path: Path) -> None:
    chunks = map(bytes, (0, 1, 16383, 16385, 32768))
    check_all(tmp_path, document((4096,), (4096,)), chunks, "wrong_size", codec="bytes", index=index)


def test_a_checksum_that_is_wrong(tmp_path: Path) -> None:
    metadata = document((2, 4), (1, 4), codecs=[BYTES, CRC32C])
    store = write(tmp_path / "store", metadata, {"c/0/0": sealed(INTS), "c/1/0": INTS + b"abcd"})
    assert attempt(store, "a", index="0").value == ["1", "2", "3", "4"]
    check(attempt(store, "a"), store, "CodecError", "checksum", codec="crc32c", chunk=[1, 0])


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "zstd claims 1 TiB": ("zstd", lambda: bombs.zstd_claim(1 << 40)),
    "zstd claims 2^64 - 1": ("zstd", lambda: bombs.zstd_claim(2**64 - 1)),
    "zstd claims 2^64 - 2": ("zstd", lambda: bombs.zstd_claim(2**64 - 2)),
    "zstd of 2 GiB": ("zstd", lambda: bombs.zstd_zeros(2 * bombs.GIB)),
    "zstd in frames": ("zstd", lambda: bombs.zstd_zeros(bombs.MIB) * 2000),
    "gzip of 2 GiB": ("gzip", lambda: bombs.gzip_zeros(2 * bombs.GIB)),
    "zlib of 64 MiB": ("zlib", lambda: bombs.zlib_zeros(64 * bombs.MIB)),
    "bz2 of 2 GiB": ("bz2", lambda: bombs.bz2_zeros(2 * bombs.GIB)),
    "lz4 of 512 MiB": ("lz4", lambda: bombs.lz4_zeros(bombs.GIB // 2)),
    "lz4 claims 2 GiB": ("lz4", lambda: bombs.lz4_claim(2**31 - 1)),
    "lz4 claims less than nothing": ("lz4", lambda: bombs.lz4_claim(-1)),
    "blosc claims 2 GiB": ("blosc-lz4", lambda: bombs.blosc_claim(2**31 - 17, 1 << 20)),
    "blosc claims 4 GiB": ("blosc-lz4", lambda: bombs.blosc_claim(2**32 - 1, 1 << 20)),
    "blosc claims blocks of 4 GiB": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 2**32 - 1)),
    "blosc claims blocks of nothing": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 0)),
    "blosc of no type": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 16384, type_size=0)),
    "blosc of no compressor": ("blosc-lz4", lambda: bombs.blosc_claim(16384, 16384, compressor=7)),
    "blosc of zeros": ("blosc-lz4", lambda: bytes(64)),
    "blosc of nothing": ("blosc-lz4", lambda: bombs.blosc_claim(0, 0, length=16)),
    "blosclz of 0xff": ("blosc-blosclz", lambda: bombs.blosclz_matches(9000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, tmp_path: Path) -> None:
    codec_name, make = BOMBS[name]
    encoder, chunk = ENCODERS[codec_name], make()
    assert len(chunk) < 3 * bombs.MIB
    # 16 KiB of numbers are expected.
    check_all(tmp_path, array_of(encoder), [chunk], "wrong_size", "corrupt", codec=encoder.name)
    # The metadata say how many strings there are, and nothing of how long they are.
    metadata = document((4,), (4,), "string", codecs=[{"name": "vlen-utf8"}, encoder.metadata])
    store = write(tmp_path / "strings", metadata, {"c/0": chunk})
    outcome = attempt(store, "a")
    assert outcome.error in ("CodecError", "LimitError", "OutOfMemoryError"), outcome
    assert outcome.kind in ("corrupt", "limit", "out_of_memory"), outcome
    assert (outcome.store, outcome.path, outcome.chunk) == (str(store), "a", [0]), outcome
    assert outcome.codec in (encoder.name, "vlen-utf8"), outcome


@pytest.mark.parametrize("outer", ["gzip", "zstd", "bz2", "blosc-zstd", "crc32c"])
def test_bombs_in_a_chain(outer: str, tmp_path: Path) -> None:
    """The stage between two compressors is no larger than what honest ones leave there."""
    encoder = ENCODERS[outer]
    bomb = {"gzip": bombs.gzip_zeros, "zstd": bombs.zstd_zeros, "bz2": bombs.bz2_zeros}
    chunk = bomb[outer](2 * bombs.GIB) if outer in bomb else encoder.encode(bombs.zstd_zeros(2 * bombs.GIB))
    metadata = document((4096,), (4096,), codecs=[BYTES, ENCODERS["zstd"].metadata, encoder.metadata])
    store = write(tmp_path / "store", metadata, {"c/0": chunk})
    outcome = attempt(store, "a")
    codec_name = encoder.name if outer in bomb else "zstd"
    assert outcome.error in ("CodecError", "LimitError"), outcome
    assert outcome.kind in ("wrong_size", "corrupt", "limit"), outcome
    assert (outcome.path, outcome.chunk, outcome.codec) == ("a", [0], codec_name), outcome


# Shards: an array of two, of two chunks of 16 bytes each


def shard(*entries: tuple[int, int], data: bytes = INTS * 2) -> bytes:
    return data + shard_index(*entries)


WRONG_SHARDS: dict[str, tuple[bytes, str, str]] = {
    "empty": (b"", "corrupt", "sharding_indexed"),
    "smaller than its index": (shard((0, 16), (16, 16))[-30:], "corrupt", "sharding_indexed"),
    "index changed": (shard((0, 16), (16, 16))[:-5] + b"\1\0\0\0\0", "checksum", "crc32c"),
    "chunk outside": (shard((0, 16), (1000, 16)), "corrupt", "sharding_indexed"),
    "chunk longer than the shard": (shard((0, 16), (16, 1000)), "corrupt", "sharding_indexed"),
    "chunk of 2^63": (shard((0, 16), (0, 2**63)), "corrupt", "sharding_indexed"),
    "end behind 2^64": (shard((0, 16), (2**64 - 8, 16)), "corrupt", "sharding_indexed"),
    "end at 2^64": (shard((0, 16), (2**64 - 16, 16)), "corrupt", "sharding_indexed"),
    "offset absent, length not": (shard((0, 16), (ABSENT, 16)), "corrupt", "sharding_indexed"),
    "length absent, offset not": (shard((0, 16), (16, ABSENT)), "corrupt", "sharding_indexed"),
    "chunk of nothing": (shard((0, 16), (16, 0)), "wrong_size", "bytes"),
    "chunk too short": (shard((0, 16), (16, 12)), "wrong_size", "bytes"),
    "chunk too long": (shard((0, 16), (0, 32)), "wrong_size", "bytes"),
}
SHARDED = document((16,), (8,), codecs=[sharding((4,))])


@pytest.mark.parametrize("index", ["...", "slice(12, None)", "slice(13, None, 2)"])
def test_shards_that_are_wrong(index: str, tmp_path: Path) -> None:
    first = shard((0, 16), (16, 16))
    stores = [
        write(tmp_path / name, SHARDED, {"c/0": first, "c/1": second}) for name, (second, _, _) in WRONG_SHARDS.items()
    ]
    assert attempt(stores[0], "a", index="slice(2, 6)").value == ["3", "4", "1", "2"]
    for store, outcome in zip(stores, attempts(stores, "a", index=index), strict=True):
        _, kind, codec_name = WRONG_SHARDS[store.name]
        check(outcome, store, "CodecError", kind, codec=codec_name, chunk=[1])


def test_shards_that_are_odd_and_right(tmp_path: Path) -> None:
    """Chunks that overlap, or lie in the index, are bytes like others."""
    overlapping = write(tmp_path / "overlapping", SHARDED, {"c/0": shard((0, 16), (4, 16))})
    assert attempt(overlapping, "a", index="slice(0, 8)").value == [*"1234", *"2341"]
    missing = write(tmp_path / "missing", SHARDED, {"c/0": shard((ABSENT, ABSENT), (ABSENT, ABSENT), data=b"")})
    assert attempt(missing, "a").value == ["0"] * 16
    in_index = write(tmp_path / "index", SHARDED, {"c/0": shard((0, 16), (32, 16))})
    assert attempt(in_index, "a", index="slice(4, 8)").value == ["0", "0", "16", "0"]


@pytest.mark.parametrize("location", ["start", "end"])
def test_an_index_larger_than_memory(location: str, tmp_path: Path) -> None:
    """2^36 chunks of one byte in a shard of a terabyte have an index of a terabyte, which its file does not."""
    metadata = document(
        (2**20, 2**16), (2**20, 2**16), "int8", codecs=[sharding((1, 1), [{"name": "bytes"}], index_location=location)]
    )
    store = write(tmp_path / "store", metadata, {"c/0/0": bytes(1000)})
    outcome = attempt(store, "a", index="(5, 5)")
    check(outcome, store, "CodecError", "corrupt", codec="sharding_indexed", chunk=[0, 0])


def test_a_shard_that_is_sparse(tmp_path: Path) -> None:
    """A file of a terabyte that takes no room holds any index: the read ends for lack of memory."""
    metadata = document((2**20, 2**16), (2**20, 2**16), "int8", codecs=[sharding((1, 1), [{"name": "bytes"}])])
    store = write(tmp_path / "store", metadata, {"c/0/0": b""})
    os.truncate(store / "a/c/0/0", 2**41)
    outcome = attempt(store, "a", index="(5, 5)")
    check(outcome, store, "OutOfMemoryError", "out_of_memory", chunk=[0, 0])


# Strings and bytes

WRONG_STRINGS: dict[str, bytes] = {
    "empty": b"",
    "half a count": b"\2\0",
    "a count alone": struct.pack("<I", 2),
    "fewer than they say": vlen(b"one", count=2),
    "more than they say": vlen(b"one", b"two", b"three", count=2),
    "fewer than the metadata": vlen(b"one"),
    "more than the metadata": vlen(b"one", b"two", b"three"),
    "2^32 - 1 elements": vlen(b"one", b"two", count=2**32 - 1),
    "an element of 2^32 - 1": struct.pack("<II", 2, 2**32 - 1) + b"one" + struct.pack("<I", 3) + b"two",
    "an element of 2^31": vlen(b"one") + struct.pack("<I", 2**31),
    "an element too long by one": vlen(b"one", b"two", count=2)[:-1],
    "an element too short by one": vlen(b"one", b"two") + b"x",
    "cut in a length": vlen(b"one", b"two")[:-5],
}


@pytest.mark.parametrize("index", ["...", "slice(None, None, -1)", "1"])
@pytest.mark.parametrize(("data_type", "codec_name"), [("string", "vlen-utf8"), ("bytes", "vlen-bytes")])
def test_strings_that_are_wrong(data_type: str, codec_name: str, index: str, tmp_path: Path) -> None:
    metadata = document((2,), (2,), data_type, codecs=[{"name": codec_name}])
    kinds = ("corrupt", "wrong_size")
    check_all(tmp_path, metadata, WRONG_STRINGS.values(), *kinds, codec=codec_name, index=index)


# A byte that is none, a character cut in two, half a surrogate pair, a NUL in two bytes.
NOT_UTF8 = [(b"\xff", b""), (b"\xc3", b"\xa9"), (b"\xed\xa0\x80", b""), (b"\xc0\x80", b"")]


@pytest.mark.parametrize("index", ["...", "slice(None, None, -1)", "slice(6, 19)", "slice(11, 2, -2)"])
def test_text_that_is_not_utf_8(index: str, tmp_path: Path) -> None:
    """The bytes of all elements together may well be text: each by itself must be."""
    good = vlen(b"one", "zwölf".encode(), b"three", b"")
    for elements in NOT_UTF8:
        bad = vlen(b"one", *elements, b"three")
        metadata = document((20,), (4,), "string", codecs=[{"name": "vlen-utf8"}])
        store = write(tmp_path / elements[0].hex(), metadata, {f"c/{at}": bad if at == 2 else good for at in range(5)})
        outcome = attempt(store, "a", index=index)
        check(outcome, store, "CodecError", "corrupt", codec="vlen-utf8", chunk=[2])


# Elements that may be missing


def optional_chunk(mask: bytes, data: bytes, mask_length: int | None = None, data_length: int | None = None) -> bytes:
    lengths = (len(mask) if mask_length is None else mask_length, len(data) if data_length is None else data_length)
    return struct.pack("<QQ", *lengths) + mask + data


WRONG_OPTIONAL: dict[str, bytes] = {
    "empty": b"",
    "half a header": bytes(8),
    "a header alone": struct.pack("<QQ", 4, 8),
    "no mask": optional_chunk(b"", INTS[:8]),
    "mask too short": optional_chunk(b"\1\1\0", INTS[:8]),
    "mask too long": optional_chunk(b"\1\1\0\0\0", INTS[:8]),
    "mask of 2^64 - 1": optional_chunk(b"\1\1\0\0", INTS[:8], mask_length=2**64 - 1),
    "data of 2^64 - 1": optional_chunk(b"\1\1\0\0", INTS[:8], data_length=2**64 - 1),
    "both, past 2^64": optional_chunk(b"\1\1\0\0", INTS[:8], 2**63, 2**63 + 12),
    "data longer than they say": optional_chunk(b"\1\1\0\0", INTS[:8], data_length=4),
    "data shorter than they say": optional_chunk(b"\1\1\0\0", INTS[:8], data_length=12),
    "fewer elements than the mask": optional_chunk(b"\1\1\1\0", INTS[:8]),
    "more elements than the mask": optional_chunk(b"\1\0\0\0", INTS[:8]),
    "elements where the mask has none": optional_chunk(b"\0\0\0\0", INTS[:8]),
    "none where the mask has some": optional_chunk(b"\1\1\0\0", b""),
    "bytes behind the end": optional_chunk(b"\1\1\0\0", INTS[:8]) + b"\0",
}
OPTIONAL = document((4,), (4,), codec("zarrs.optional", name="int32"), codecs=[optional([BYTES])])


def test_masks_that_lie(tmp_path: Path) -> None:
    good = write(tmp_path / "good", OPTIONAL, {"c/0": optional_chunk(b"\1\0\1\0", INTS[:8])})
    assert attempt(good, "a").value == ["1", None, "2", None]
    stores = [write(tmp_path / name, OPTIONAL, {"c/0": chunk}) for name, chunk in WRONG_OPTIONAL.items()]
    for store, outcome in zip(stores, attempts(stores, "a"), strict=True):
        assert outcome.codec in ("zarrs.optional", "bytes"), outcome
        check(outcome, store, "CodecError", "corrupt", "wrong_size", codec=outcome.codec, chunk=[0])


def test_a_mask_of_other_bytes_than_0_and_1(tmp_path: Path) -> None:
    store = write(tmp_path / "store", OPTIONAL, {"c/0": optional_chunk(b"\2\0\xff\0", INTS[:8])})
    outcome = attempt(store, "a")
    assert outcome.value == ["1", None, "2", None] or outcome.kind == "corrupt", outcome


def test_elements_that_are_missing_and_huge(tmp_path: Path) -> None:
    """A mask of 4 KiB, and room for 64 GiB of elements that are not there."""
    data_type = codec("zarrs.optional", name=f"r{8 * (16 << 20)}")
    metadata = document((4096,), (4096,), data_type, codecs=[optional([{"name": "bytes"}])])
    store = write(tmp_path / "store", metadata, {"c/0": optional_chunk(bytes(4096), b"")})
    outcome = attempt(store, "a", index="7")
    assert (outcome.error, outcome.kind) == ("OutOfMemoryError", "out_of_memory") or outcome.value == [None], outcome


def test_bombs_behind_a_mask(tmp_path: Path) -> None:
    zstd = ENCODERS["zstd"].metadata
    metadata = OPTIONAL | {"codecs": [optional([BYTES, zstd], [{"name": "bytes"}, zstd])]}
    bomb, mask = bombs.zstd_zeros(2 * bombs.GIB), ENCODERS["zstd"].encode(b"\1\1\0\0")
    for number, chunk in enumerate([optional_chunk(bomb, INTS[:8]), optional_chunk(mask, bomb)]):
        store = write(tmp_path / str(number), metadata, {"c/0": chunk})
        check(attempt(store, "a"), store, "CodecError", "wrong_size", codec="zstd", chunk=[0])


# Version 2

V2 = {
    "zarr_format": 2,
    "shape": [8],
    "chunks": [4],
    "dtype": "<i4",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": None,
}
WRONG_V2: dict[str, Json] = {
    "structured": {"dtype": [["a", "<i4"]]},
    "objects": {"dtype": "|O"},
    "a type of 2^40 characters": {"dtype": f"<U{2**40}"},
    "a type of 2^32 - 1 characters": {"dtype": f"<U{2**32 - 1}"},
    "no such type": {"dtype": "<q9"},
    "no type": {"dtype": None},
    "chunks of 0": {"chunks": [0]},
    "chunks of 2^63": {"chunks": [2**63]},
    "order": {"order": "K"},
    "separator": {"dimension_separator": "/../"},
    "compressor": {"compressor": "zlib"},
    "compressor without name": {"compressor": {"level": 1}},
    "filters": {"filters": {"id": "delta"}},
    "blosc shuffle": {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 99}},
}


@pytest.mark.parametrize("name", WRONG_V2)
def test_v2_metadata_that_are_wrong(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / "a/.zarray").write_text(json.dumps(V2 | WRONG_V2[name]))
    check(attempt(tmp_path, "a"), tmp_path, "MetadataError", "metadata")


def test_v2_codecs_that_are_unknown_or_lie(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    for codec_id in ("pickle", "snappy", "zfpy"):
        (tmp_path / "a/.zarray").write_text(json.dumps(V2 | {"compressor": {"id": codec_id}}))
        check(attempt(tmp_path, "a"), tmp_path, "CodecError", "unknown_codec", codec=f"numcodecs.{codec_id}")
    (tmp_path / "a/.zarray").write_text(json.dumps(V2 | {"compressor": {"id": "zlib", "level": 1}}))
    (tmp_path / "a/1").write_bytes(zlib.compress(bytes(17)))
    check(attempt(tmp_path, "a"), tmp_path, "CodecError", "wrong_size", codec="zlib", chunk=[1])
