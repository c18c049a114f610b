"""Shards with a false index. The array has two, each of two chunks of 16 bytes."""

import os
from pathlib import Path

import pytest

from hostile.checks import INTS, check
from hostile.process import attempt, attempts
from hostile.stores import ABSENT, document, shard_index, sharding, write


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
        write(tmp_path / name, SHARDED, {"c/0": first, "c/1": second})
        for name, (second, _, _) in WRONG_SHARDS.items()
    ]
    assert attempt(stores[0], "a", index="slice(2, 6)").value == ["3", "4", "1", "2"]
    for store, outcome in zip(stores, attempts(stores, "a", index=index), strict=True):
        _, kind, codec_name = WRONG_SHARDS[store.name]
        check(outcome, store, "CodecError", kind, codec=codec_name, chunk=[1])


def test_unusual_but_valid_shards_decode(tmp_path: Path) -> None:
    """Overlapping chunks, and chunks inside the index, decode like any other bytes."""
    overlapping = write(tmp_path / "overlapping", SHARDED, {"c/0": shard((0, 16), (4, 16))})
    assert attempt(overlapping, "a", index="slice(0, 8)").value == [*"1234", *"2341"]
    missing = write(
        tmp_path / "missing", SHARDED, {"c/0": shard((ABSENT, ABSENT), (ABSENT, ABSENT), data=b"")}
    )
    assert attempt(missing, "a").value == ["0"] * 16
    in_index = write(tmp_path / "index", SHARDED, {"c/0": shard((0, 16), (32, 16))})
    assert attempt(in_index, "a", index="slice(4, 8)").value == ["0", "0", "16", "0"]


@pytest.mark.parametrize("location", ["start", "end"])
def test_an_index_larger_than_memory(location: str, tmp_path: Path) -> None:
    """2^36 chunks of one byte in a shard of a terabyte need an index of a terabyte, which is missing."""
    metadata = document(
        (2**20, 2**16),
        (2**20, 2**16),
        "int8",
        codecs=[sharding((1, 1), [{"name": "bytes"}], index_location=location)],
    )
    store = write(tmp_path / "store", metadata, {"c/0/0": bytes(1000)})
    outcome = attempt(store, "a", index="(5, 5)")
    check(outcome, store, "CodecError", "corrupt", codec="sharding_indexed", chunk=[0, 0])


def test_a_shard_that_is_sparse(tmp_path: Path) -> None:
    """A sparse file of a terabyte can hold any index: the read fails for lack of memory."""
    metadata = document(
        (2**20, 2**16), (2**20, 2**16), "int8", codecs=[sharding((1, 1), [{"name": "bytes"}])]
    )
    store = write(tmp_path / "store", metadata, {"c/0/0": b""})
    os.truncate(store / "a/c/0/0", 2**41)
    outcome = attempt(store, "a", index="(5, 5)")
    check(outcome, store, "OutOfMemoryError", "out_of_memory", chunk=[0, 0])
