"""Chunks with one flipped bit, or truncated: an error or elements; exact under a checksum."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from hostile.encoders import ENCODERS
from hostile.process import flip
from hostile.stores import (
    ABSENT,
    BYTES,
    CRC32C,
    document,
    optional,
    sealed,
    shard_index,
    sharding,
    vlen,
    write,
)

pytestmark = pytest.mark.small_files

COUNT = 300
RNG = random.Random(5)
NUMBERS = struct.pack("<1024i", *(RNG.randrange(100) for _ in range(1024)))
WORDS = [("né" * RNG.randrange(9)).encode() for _ in range(200)]
ZSTD, ZSTD_CHECKSUM = ENCODERS["zstd"], ENCODERS["zstd-checksum"]


def numbers(*codecs: Any) -> dict[str, Any]:
    return document((1024,), (1024,), codecs=[BYTES, *codecs])


def strings(*codecs: Any) -> dict[str, Any]:
    return document((200,), (200,), "string", codecs=[{"name": "vlen-utf8"}, *codecs])


def shard() -> bytes:
    halves = [ZSTD.encode(NUMBERS[:1024]), ZSTD.encode(NUMBERS[1024:2048])]
    index = shard_index(
        (0, len(halves[0])), (ABSENT, ABSENT), (len(halves[0]), len(halves[1])), (ABSENT, ABSENT)
    )
    return b"".join(halves) + index


def optional_strings() -> bytes:
    mask = ZSTD.encode(bytes(len(word) % 3 > 0 for word in WORDS))
    data = ZSTD.encode(vlen(*(word for word in WORDS if len(word) % 3 > 0)))
    return struct.pack("<QQ", len(mask), len(data)) + mask + data


def optional_numbers() -> bytes:
    return struct.pack("<QQ", 1024, 2048) + bytes([1, 0] * 512) + NUMBERS[:2048]


SHARDS = document((1024,), (1024,), codecs=[sharding((256,), [BYTES, ZSTD.metadata])])
MASKED = document(
    (200,),
    (200,),
    {"name": "zarrs.optional", "configuration": {"name": "string", "configuration": {}}},
    codecs=[optional([{"name": "vlen-utf8"}, ZSTD.metadata], [{"name": "bytes"}, ZSTD.metadata])],
)
MASKED_NUMBERS = document(
    (1024,),
    (1024,),
    {"name": "zarrs.optional", "configuration": {"name": "int32", "configuration": {}}},
    codecs=[optional([BYTES])],
)

# Metadata, chunk, and whether a checksum covers the whole chunk.
CHAINS: dict[str, tuple[dict[str, Any], bytes, bool]] = {
    "bytes": (numbers(), NUMBERS, False),
    **{
        name: (numbers(encoder.metadata), encoder.encode(NUMBERS), encoder.is_guarded)
        for name, encoder in ENCODERS.items()
    },
    "zstd in crc32c": (numbers(ZSTD.metadata, CRC32C), sealed(ZSTD.encode(NUMBERS)), True),
    "shards of zstd": (SHARDS, shard(), False),
    "shards in crc32c": (SHARDS | {"codecs": [*SHARDS["codecs"], CRC32C]}, sealed(shard()), True),
    "strings": (strings(), vlen(*WORDS), False),
    "strings in zstd": (strings(ZSTD.metadata), ZSTD.encode(vlen(*WORDS)), False),
    "strings in zstd with checksum": (
        strings(ZSTD_CHECKSUM.metadata),
        ZSTD_CHECKSUM.encode(vlen(*WORDS)),
        True,
    ),
    "optional numbers": (MASKED_NUMBERS, optional_numbers(), False),
    "optional strings": (MASKED, optional_strings(), False),
    "optional strings in crc32c": (
        MASKED | {"codecs": [*MASKED["codecs"], CRC32C]},
        sealed(optional_strings()),
        True,
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_bits_that_flip_and_chunks_that_are_cut(name: str, tmp_path: Path) -> None:
    metadata, chunk, is_guarded = CHAINS[name]
    store = write(tmp_path / "store", metadata, {"c/0": chunk})
    original, *results = flip(store, "a", "a/c/0", COUNT, seed=1)
    assert original.get("error") is None, original
    assert len(results) == 2 * COUNT
    check_errors(store, results, {"corrupt", "wrong_size", "checksum", "limit"})
    exact = [result for result in results if result.get("value") == original["value"]]
    silent = [result for result in results if "value" in result and result not in exact]
    if is_guarded:
        assert not silent, silent[0]
    assert not [result for result in results if result["what"] == "cut" and "value" in result]


def test_metadata_with_flipped_bits(tmp_path: Path) -> None:
    """Flipped metadata are valid input too; chunks may no longer match them."""
    store = write(tmp_path / "store", SHARDS, {"c/0": shard()})
    _, *results = flip(store, "a", "a/zarr.json", COUNT, seed=2)
    assert len(results) == 2 * COUNT
    failed = [result for result in results if "error" in result]
    assert len(failed) > COUNT
    assert {result["store"] for result in failed} == {str(store)}
    assert {result["path"] for result in failed} == {"a"}
    assert "InternalError" not in {result["error"] for result in failed}


def check_errors(store: Path, results: list[dict[str, Any]], kinds: set[str]) -> None:
    """Each error names the problem and the location."""
    for result in results:
        if "error" in result:
            assert result["kind"] in kinds, result
            assert (result["store"], result["path"], result["chunk"]) == (str(store), "a", [0]), result
            assert result["codec"], result
