"""Chunks that are truncated, longer, of another size, or changed, with each codec."""

import os
from pathlib import Path

import numpy as np
import pytest

from hostile.checks import GROWTH, INTS, NUMBERS, array_of, check, check_all
from hostile.encoders import ENCODERS
from hostile.process import attempt, attempts
from hostile.stores import BYTES, CRC32C, document, sealed, write

pytestmark = pytest.mark.small_files


@pytest.mark.parametrize("index", ["...", "slice(3, 90, 7)"])
@pytest.mark.parametrize("name", ENCODERS)
def test_chunks_that_are_cut_or_longer(name: str, index: str, tmp_path: Path) -> None:
    encoder = ENCODERS[name]
    encoded = encoder.encode(NUMBERS)
    cuts = [0, 1, 3, 4, 8, len(encoded) // 2, len(encoded) - 1]
    behind = {b"\0", b"\x28\xb5\x2f\xfd"}
    padded = behind if encoder.behind is None else behind & {encoder.behind}
    stores = [
        write(tmp_path / f"padded{number}", array_of(encoder), {"c/0": encoded + tail})
        for number, tail in enumerate([b"", *sorted(padded)])
    ]
    # What a process says of many elements is the sum of their bytes.
    some = np.frombuffer(NUMBERS, "<i4")[3:90:7].tolist()
    expected = sum(NUMBERS) if index == "..." else [repr(number) for number in some]
    assert [outcome.value for outcome in attempts(stores, "a", index=index)] == [expected] * len(stores)
    damaged = [encoded[:cut] for cut in cuts] + [encoded + tail for tail in sorted(behind - padded)]
    kinds = ("corrupt", "wrong_size", "checksum")
    check_all(tmp_path, array_of(encoder), damaged, *kinds, codec=encoder.name, index=index)


@pytest.mark.parametrize("index", ["...", "slice(3, 90, 7)"])
@pytest.mark.parametrize("name", ENCODERS)
def test_chunks_that_decode_to_another_size(name: str, index: str, tmp_path: Path) -> None:
    encoder = ENCODERS[name]
    decoded = (NUMBERS[:-1], NUMBERS[:-4], NUMBERS[:8192], b"", NUMBERS + b"\0", NUMBERS * 2, NUMBERS * 48)
    # A checksum ignores sizes: the number of elements is too small.
    codec_name = "bytes" if name in ("crc32c", "crc32", "adler32", "jenkins_lookup3") else encoder.name
    encoded = map(encoder.encode, decoded)
    check_all(tmp_path, array_of(encoder), encoded, "wrong_size", codec=codec_name, index=index)


@pytest.mark.parametrize("index", ["...", "slice(3, 90, 7)"])
def test_raw_chunks_of_another_size(index: str, tmp_path: Path) -> None:
    chunks = map(bytes, (0, 1, 16383, 16385, 32768))
    check_all(tmp_path, document((4096,), (4096,)), chunks, "wrong_size", codec="bytes", index=index)


@pytest.mark.parametrize("name", ENCODERS)
def test_chunks_that_are_stored_in_far_more_bytes_than_they_can_need(name: str, tmp_path: Path) -> None:
    """Sparse files of a terabyte are not read into memory."""
    store = write(tmp_path / "store", array_of(ENCODERS[name]), {"c/0": b""})
    os.truncate(store / "a/c/0", 2**40)
    outcome = attempt(store, "a")
    check(outcome, store, "LimitError", "limit", chunk=[0])
    assert outcome.grown < GROWTH, outcome


def test_wrong_checksums(tmp_path: Path) -> None:
    metadata = document((2, 4), (1, 4), codecs=[BYTES, CRC32C])
    store = write(tmp_path / "store", metadata, {"c/0/0": sealed(INTS), "c/1/0": INTS + b"abcd"})
    assert attempt(store, "a", index="0").value == ["1", "2", "3", "4"]
    check(attempt(store, "a"), store, "CodecError", "checksum", codec="crc32c", chunk=[1, 0])
