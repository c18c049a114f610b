"""Stores written byte by byte: a group with one array, `a`, with given metadata and chunks."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import google_crc32c

Json = dict[str, Any]
ABSENT = 2**64 - 1


def codec(name: str, /, **configuration: Any) -> Json:
    return {"name": name, "configuration": configuration}


BYTES = codec("bytes", endian="little")
CRC32C = {"name": "crc32c"}
INDEX_CODECS = [BYTES, CRC32C]


def optional(data_codecs: Sequence[Any], mask_codecs: Sequence[Any] = ({"name": "bytes"},)) -> Json:
    return codec("zarrs.optional", mask_codecs=list(mask_codecs), data_codecs=list(data_codecs))


def sharding(chunk_shape: Sequence[int], codecs: Sequence[Any] = (BYTES,), **more: Any) -> Json:
    keys: Json = {"chunk_shape": list(chunk_shape), "codecs": list(codecs), "index_codecs": INDEX_CODECS}
    return {"name": "sharding_indexed", "configuration": keys | more}


def document(shape: Any = (8,), chunks: Any = (4,), data_type: Any = "int32", **keys: Any) -> Json:
    """Return the metadata of an array, with any of its keys replaced."""
    fill: Any = {"string": "", "bytes": ""}.get(data_type, 0) if isinstance(data_type, str) else None
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape) if isinstance(shape, tuple) else shape,
        "data_type": data_type,
        "chunk_grid": codec("regular", chunk_shape=list(chunks) if isinstance(chunks, tuple) else chunks),
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill,
        "codecs": [BYTES],
        "attributes": {},
    } | keys


def write(folder: Path, metadata: Any, values: Mapping[str, bytes] | None = None) -> Path:
    """Write a group with the array `a`: its metadata as JSON or as bytes, and its values by key."""
    (folder / "a").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    text = metadata if isinstance(metadata, bytes) else json.dumps(metadata).encode()
    (folder / "a" / "zarr.json").write_bytes(text)
    for key, value in (values or {}).items():
        file = folder / "a" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(value)
    return folder


def sealed(data: bytes) -> bytes:
    """Return bytes with their correct CRC32C."""
    return data + struct.pack("<I", google_crc32c.value(data))


def shard_index(*entries: tuple[int, int]) -> bytes:
    """Return an index with its correct checksum."""
    return sealed(b"".join(struct.pack("<QQ", *entry) for entry in entries))


def vlen(*elements: bytes, count: int | None = None) -> bytes:
    """Return the count, then the elements, each after its length."""
    lengths = b"".join(struct.pack("<I", len(element)) + element for element in elements)
    return struct.pack("<I", len(elements) if count is None else count) + lengths
