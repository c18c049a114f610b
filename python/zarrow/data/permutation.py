"""Permutations that are pure functions of a key, on every machine and version of NumPy.

1. A small permutation sorts hashes of its positions, in a table.
2. A large one encrypts positions with a Feistel network of hashes, which takes no memory. The network
   permutes a power of four; results outside the range are encrypted again until they fall inside.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
_Hashes: TypeAlias = npt.NDArray[np.uint64]

_TABLE_LIMIT = 1 << 16
_ROUNDS = 6


def key(*parts: object) -> int:
    """Return 64 bits that depend on all parts."""
    text = ",".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def mixed(values: _Hashes, key: int) -> _Hashes:
    """Return a hash of each value (the finalizer of splitmix64)."""
    with np.errstate(over="ignore"):
        hashes: Any = values + np.uint64(key)
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15)
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(hashes ^ (hashes >> np.uint64(31)), np.uint64)


def table(count: int, key: int) -> Numbers:
    """Return a permutation of `range(count)`."""
    return np.argsort(mixed(np.arange(count, dtype=np.uint64), key), kind="stable").astype(np.int64)


class Permutation:
    """A permutation of `range(count)` and its inverse."""

    def __init__(self, count: int, key: int) -> None:
        self.count = count
        self._key = key
        self._table = table(count, key) if count <= _TABLE_LIMIT else None
        half_bits = ((count - 1).bit_length() + 1) // 2
        self._shift = np.uint64(half_bits)
        self._mask = np.uint64((1 << half_bits) - 1)

    def __call__(self, positions: Numbers) -> Numbers:
        """Return the elements at positions."""
        if self._table is not None:
            return self._table[positions]
        return self._walk(positions, range(_ROUNDS))

    def inverse(self, elements: Numbers) -> Numbers:
        """Return the positions of elements."""
        if self._table is not None:
            inverse = np.empty_like(self._table)
            inverse[self._table] = np.arange(self.count)
            return inverse[elements]
        return self._walk(elements, range(_ROUNDS - 1, -1, -1))

    def _walk(self, numbers: Numbers, rounds: range) -> Numbers:
        """Encrypt or decrypt until each number is in the range (step 2)."""
        values = self._crypt(numbers.astype(np.uint64), rounds)
        while (outside := values >= np.uint64(self.count)).any():
            values[outside] = self._crypt(values[outside], rounds)
        return values.astype(np.int64)

    def _crypt(self, values: _Hashes, rounds: range) -> _Hashes:
        left, right = values >> self._shift, values & self._mask
        if rounds.step > 0:
            for number in rounds:
                left, right = (
                    right,
                    left ^ (mixed(right, self._key + number & 0xFFFFFFFFFFFFFFFF) & self._mask),
                )
        else:
            for number in rounds:
                left, right = (
                    right ^ (mixed(left, self._key + number & 0xFFFFFFFFFFFFFFFF) & self._mask),
                    left,
                )
        return left << self._shift | right
