"""Metadata with false, excessive or contradictory values."""

import json
import zlib
from pathlib import Path

import pytest

from hostile.checks import INTS, check
from hostile.process import attempt, attempts
from hostile.stores import ABSENT, BYTES, Json, codec, document, optional, shard_index, sharding, write

NOT_JSON = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\0" * 100,
    b"\xff\xfe{}",
    b'{"zarr_format": 3',
    b"[" * 200_000,
    b'{"a":' * 200_000,
]
NOT_JSON += [b'{"zarr_format":' + b"9" * 100_000 + b"}", b'"' + b"x" * 100_000]


def test_metadata_that_are_not_json(tmp_path: Path) -> None:
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
    "negative chunk": document((8,), (-1,)),
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
    "type of 2^31 bytes": document(
        data_type=codec("null_terminated_bytes", length_bytes=2**31), fill_value=""
    ),
    "optional 100 deep": document(
        data_type=json.loads('{"name":"zarrs.optional","configuration":' * 100 + '"int8"' + "}" * 100)
    ),
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
def test_invalid_metadata(name: str, tmp_path: Path) -> None:
    store = write(tmp_path / "store", WRONG_METADATA[name], {"c/0": INTS})
    check(attempt(store, "a"), store, "MetadataError", "metadata")


def deep(levels: int) -> Json:
    """Nested shards; each level adds five levels of JSON."""
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
    "transpose of other axes": (
        document(codecs=[codec("transpose", order=[0, 1]), BYTES]),
        "bad_codec",
        "transpose",
    ),
    "transpose of one axis twice": (
        document((4, 4), (2, 2), codecs=[codec("transpose", order=[0, 0]), BYTES]),
        "bad_codec",
        "transpose",
    ),
    "transpose of 2^64": (
        document(codecs=[codec("transpose", order=[2**64]), BYTES]),
        "bad_codec",
        "transpose",
    ),
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
def test_invalid_codecs(name: str, tmp_path: Path) -> None:
    metadata, kind, codec_name = WRONG_CODECS[name]
    store = write(tmp_path / "store", metadata, {"c/0": INTS})
    error = "UnsupportedError" if kind == "unsupported" else "CodecError"
    check(attempt(store, "a"), store, error, kind, codec=codec_name)


def test_shards_as_deep_as_json_may_be(tmp_path: Path) -> None:
    # The outermost index marks all chunks as missing.
    store = write(tmp_path / "deep", deep(20), {"c/0": shard_index((ABSENT, ABSENT))})
    assert attempt(store, "a").value == ["0"] * 8
    text = json.dumps(document(codecs=["CODECS"]))
    inner = (
        '{"name":"sharding_indexed","configuration":{"chunk_shape":[4],"index_codecs":["bytes"],"codecs":['
    )
    nested = text.replace('"CODECS"', inner * 2000 + '"bytes"' + "]}}" * 2000)
    store = write(tmp_path / "deeper", nested.encode())
    check(attempt(store, "a"), store, "MetadataError", "metadata")


def test_results_that_are_larger_than_memory(tmp_path: Path) -> None:
    """Every value is valid, but the combination does not fit."""
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
    """100 million elements are 100 MB; a list of their chunks would take gigabytes."""
    store = write(tmp_path / "store", document((100_000_000,), (1,), "int8", codecs=[{"name": "bytes"}]))
    outcome = attempt(store, "a", index="slice(None, None, 1000)")
    assert outcome.value == 0, outcome
    outcome = attempt(store, "a", index="slice(0, 3)")
    assert outcome.value == ["0"] * 3, outcome


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
    "a structure of objects": {"dtype": [["a", "|O"]]},
    "a structure without fields": {"dtype": []},
    "a field that lies nowhere": {"dtype": [["a", "<i4", [2**62, 8]]]},
    "fields that multiply": {"dtype": [["a", [["b", [["c", "<i2"], ["d", "u1"]], [2**15]]], [2**15]]]},
    "objects": {"dtype": "|O"},
    "a type of 2^40 characters": {"dtype": f"<U{2**40}"},
    "a type of 2^32 - 1 characters": {"dtype": f"<U{2**32 - 1}"},
    "no such type": {"dtype": "<q9"},
    "no type": {"dtype": None},
    "negative chunks": {"chunks": [-1]},
    "chunks of 2^63": {"chunks": [2**63]},
    "order": {"order": "K"},
    "separator": {"dimension_separator": "/../"},
    "compressor": {"compressor": "zlib"},
    "compressor without name": {"compressor": {"level": 1}},
    "filters": {"filters": {"id": "delta"}},
    "blosc shuffle": {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 99}},
}


@pytest.mark.parametrize("name", WRONG_V2)
def test_invalid_v2_metadata(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / "a/.zarray").write_text(json.dumps(V2 | WRONG_V2[name]))
    check(attempt(tmp_path, "a"), tmp_path, "MetadataError", "metadata")


def test_unknown_v2_codecs_and_false_claims(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    for codec_id in ("pickle", "snappy", "zfpy"):
        (tmp_path / "a/.zarray").write_text(json.dumps(V2 | {"compressor": {"id": codec_id}}))
        check(attempt(tmp_path, "a"), tmp_path, "CodecError", "unknown_codec", codec=f"numcodecs.{codec_id}")
    (tmp_path / "a/.zarray").write_text(json.dumps(V2 | {"compressor": {"id": "zlib", "level": 1}}))
    (tmp_path / "a/1").write_bytes(zlib.compress(bytes(17)))
    check(attempt(tmp_path, "a"), tmp_path, "CodecError", "wrong_size", codec="zlib", chunk=[1])
