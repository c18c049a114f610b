"""Checksums of frames on the device, compared with zlib's and with libzstd's frame checksums."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Sequence
from itertools import product

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .driver import Bytes, Driver
from .settings import PROPERTIES
from .structs import Guarded
from .views import random_bytes

pytestmark = pytest.mark.kernels

MISMATCH = 4
# Bytes in a part of CRC-32 and Adler-32, and bytes that an XXH64 lane fetches at once.
PART_NBYTES, AHEAD_NBYTES = 1024, 512


def xxh64(content: Bytes) -> int:
    """Return the low 32 bits, which libzstd appends to a frame."""
    return int.from_bytes(numcodecs.Zstd(level=1, checksum=True).encode(content)[-4:], "little")


# By the number of the kind.
CHECKSUMS: list[Callable[[Bytes], int]] = [xxh64, zlib.crc32, zlib.adler32]
Launch = tuple[int, int, int]
ONE_LAUNCH: Launch = (2, 2, 32)


def statuses(
    driver: Driver,
    content: Bytes,
    frames: Sequence[tuple[int, int, int, int]],
    launch: Launch = ONE_LAUNCH,
    before: int = 0,
) -> list[int]:
    """Return the status of each frame: its start, its bytes, the kind and the expected checksum."""
    columns, rows, threads = launch
    status = np.full(max(len(frames), 1), before, np.uint32)
    table = np.zeros(max(len(frames), 1) * ctypes.sizeof(Guarded), np.uint8)
    with driver.memory(content, status.view(np.uint8), table) as [address, answers, guarded]:
        for number, (start, nbytes, kind, expected) in enumerate(frames):
            frame = Guarded(
                source=address + start,
                nbytes=nbytes,
                status=answers + number * 4,
                kind=kind,
                expected=expected,
            )
            driver.upload(guarded + number * ctypes.sizeof(Guarded), np.frombuffer(bytes(frame), np.uint8))
        list_and_count = ctypes.c_uint64(guarded), ctypes.c_uint32(len(frames))
        driver.launch("zarrow_checksum_lanes", *list_and_count, blocks=(columns, 1), threads=threads)
        driver.launch("zarrow_checksum_parts", *list_and_count, blocks=(columns, rows), threads=threads)
        driver.launch("zarrow_checksum_verify", *list_and_count, blocks=(columns, 1), threads=threads)
        return driver.download(answers, len(frames) * 4).view(np.uint32).tolist()


def right_and_wrong(
    driver: Driver, content: Bytes, ranges: Sequence[tuple[int, int]], launch: Launch = ONE_LAUNCH
) -> None:
    """Check each checksum of each range, and that no other value matches."""
    frames = []
    for (start, nbytes), (kind, checksum) in product(ranges, enumerate(CHECKSUMS)):
        expected = checksum(content[start : start + nbytes])
        # One correct checksum, and one with a flipped bit.
        bit = 1 << (start * 7 + nbytes + kind) % 32
        frames += [(start, nbytes, kind, expected), (start, nbytes, kind, expected ^ bit)]
    assert statuses(driver, content, frames, launch) == [0, MISMATCH] * (len(frames) // 2)


def test_short_frames_at_every_alignment(shared: Driver) -> None:
    content = random_bytes(140, 1)
    for start in range(17):
        right_and_wrong(shared, content, [(start, nbytes) for nbytes in range(101)])


def test_lengths_around_powers_of_two(shared: Driver) -> None:
    content = random_bytes((1 << 16) + 4, 2)
    lengths = sorted({(1 << power) + more for power in range(5, 17) for more in (-1, 0, 1)})
    right_and_wrong(shared, content, [(start, nbytes) for nbytes in lengths for start in (0, 3)])


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_frames_as_large_as_the_device_takes(shared: Driver, more: int) -> None:
    """All bits set: the largest possible sums."""
    nbytes = (2 << 20) + more
    for content in (random_bytes(nbytes, 3), np.full(nbytes, 0xFF, np.uint8)):
        right_and_wrong(shared, content, [(0, nbytes)], (3, 2, 64))


def test_every_bit_of_an_expected_checksum_counts(shared: Driver) -> None:
    content = random_bytes(3 * PART_NBYTES + 5, 4)
    frames = [
        (0, len(content), kind, checksum(content) ^ 1 << bit)
        for kind, checksum in enumerate(CHECKSUMS)
        for bit in range(32)
    ]
    assert statuses(shared, content, frames) == [MISMATCH] * len(frames)


def test_every_byte_counts(shared: Driver) -> None:
    """Flips bits of bytes in a stripe, in the tail, in the first part and in the others."""
    content = random_bytes(AHEAD_NBYTES + 7 * 32 + 31 + PART_NBYTES, 5)
    frames = [(0, len(content), kind, checksum(content)) for kind, checksum in enumerate(CHECKSUMS)]
    for place in [*range(0, len(content), 41), *range(len(content) - 40, len(content))]:
        changed = content.copy()
        changed[place] ^= 1 << place % 8
        assert statuses(shared, changed, frames) == [MISMATCH] * 3, place


def test_the_order_of_bytes_counts(shared: Driver) -> None:
    """Swaps bytes, words, stripes and parts."""
    content = random_bytes(4 * PART_NBYTES, 6)
    frames = [(0, len(content), kind, checksum(content)) for kind, checksum in enumerate(CHECKSUMS)]
    for nbytes in (1, 4, 8, 32, AHEAD_NBYTES, PART_NBYTES):
        changed = content.copy()
        changed[:nbytes], changed[nbytes : 2 * nbytes] = content[nbytes : 2 * nbytes], content[:nbytes]
        assert statuses(shared, changed, frames) == [MISMATCH] * 3, nbytes


@PROPERTIES
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5 * PART_NBYTES)), min_size=1, max_size=5),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 5, 32])),
    st.integers(0, 99),
)
def test_frames_anywhere_by_any_launch(
    shared: Driver, ranges: list[tuple[int, int]], launch: Launch, seed: int
) -> None:
    content = random_bytes(max(start + nbytes for start, nbytes in ranges) + 1, seed)
    right_and_wrong(shared, content, ranges, launch)


def test_errors_of_the_decompressor_are_kept(shared: Driver) -> None:
    content = random_bytes(100, 7)
    right = [(0, 100, kind, checksum(content)) for kind, checksum in enumerate(CHECKSUMS)]
    assert statuses(shared, content, right, before=12) == [12] * 3
    assert statuses(shared, content, [], before=12) == []


def test_the_values_of_the_specifications() -> None:
    """Known values, which verify the oracles of this file."""
    assert xxh64(np.frombuffer(b"", np.uint8)) == 0xEF46DB3751D8E999 & 0xFFFFFFFF
    check = np.frombuffer(b"123456789", np.uint8)
    assert zlib.crc32(check) == 0xCBF43926 and zlib.adler32(check) == 0x091E01DE
    assert ctypes.sizeof(Guarded) == 64
