"""Optional elements with false headers and masks."""

import struct
from pathlib import Path

from hostile import bombs
from hostile.checks import GROWTH, INTS, check
from hostile.encoders import ENCODERS
from hostile.process import attempt, attempts
from hostile.stores import BYTES, codec, document, optional, write


def optional_chunk(
    mask: bytes, data: bytes, mask_length: int | None = None, data_length: int | None = None
) -> bytes:
    lengths = (
        len(mask) if mask_length is None else mask_length,
        len(data) if data_length is None else data_length,
    )
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


def test_masks_with_false_claims(tmp_path: Path) -> None:
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
    """A mask of 4 KiB, with space for 64 GiB of missing elements."""
    data_type = codec("zarrs.optional", name=f"r{8 * (16 << 20)}")
    metadata = document((4096,), (4096,), data_type, codecs=[optional([{"name": "bytes"}])])
    store = write(tmp_path / "store", metadata, {"c/0": optional_chunk(bytes(4096), b"")})
    outcome = attempt(store, "a", index="7")
    assert (outcome.error, outcome.kind) == ("OutOfMemoryError", "out_of_memory") or outcome.value == [
        None
    ], outcome


def test_bombs_behind_a_mask(tmp_path: Path) -> None:
    zstd = ENCODERS["zstd"].metadata
    metadata = OPTIONAL | {"codecs": [optional([BYTES, zstd], [{"name": "bytes"}, zstd])]}
    bomb, mask = bombs.zstd_zeros(2 * bombs.GIB), ENCODERS["zstd"].encode(b"\1\1\0\0")
    for number, chunk in enumerate([optional_chunk(bomb, INTS[:8]), optional_chunk(mask, bomb)]):
        store = write(tmp_path / str(number), metadata, {"c/0": chunk})
        outcome = attempt(store, "a")
        check(outcome, store, "CodecError", "wrong_size", codec="zstd", chunk=[0])
        assert outcome.grown < GROWTH, outcome
