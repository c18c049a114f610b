"""Values of any type of NumPy or ml_dtypes: random bits, and patterns that are easily lost."""

from __future__ import annotations

import math
import os
import zlib
from typing import Any

import ml_dtypes
import numpy as np

from oracle.elements import BYTES, TEXTS, Values

# Half of the values of a number or a time are special patterns.
SPECIAL = 0.5
# The infinity of each float by size: float16 and bfloat16 both have two bytes.
INFINITE = {1: [0x78, 0x7C], 2: [0x7C00, 0x7F80], 4: [0x7F800000], 8: [0x7FF0000000000000]}
# The kinds of NumPy, and of ml_dtypes' complex numbers.
COMPLEX = "cW"
# Code points of one to four bytes in UTF-8, including NUL; surrogates are not text.
CODE_POINTS = [0, 0x41, 0xE9, 0x7FF, 0x65E5, 0xD7FF, 0xE000, 0xFFFF, 0x1F980, 0x10FFFF]


def seed_of(name: str) -> int:
    """Return the seed of a case: the same each time, or another for each `ZARROW_TEST_SEED`."""
    return zlib.crc32(name.encode(), int(os.environ.get("ZARROW_TEST_SEED", "0")) & 0xFFFFFFFF)


def random_values(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Values:
    """Return native-endian values of the type."""
    count = math.prod(shape)
    values: Values = np.zeros(count, dtype)
    if dtype.names is not None:
        for name in dtype.names:
            values[name] = random_values(rng, dtype[name], (count,))
    elif isinstance(dtype, np.dtypes.StringDType) or dtype.kind == "O":
        pool = BYTES if dtype.kind == "O" else TEXTS
        for at, which in enumerate(rng.integers(0, len(pool), count)):
            values[at] = pool[which]
    elif dtype.kind == "U":
        values = rng.choice(np.array(CODE_POINTS, "u4"), count * dtype.itemsize // 4).view(dtype)
    elif dtype.kind in "SV" and dtype.isbuiltin != 2:
        values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    else:
        values = numbers(rng, dtype, count)
    return values.reshape(shape)


def numbers(rng: np.random.Generator, dtype: np.dtype[Any], count: int) -> Values:
    """Return random words and special ones: both zeros, extremes, infinities, NaNs with payloads."""
    every = narrow(dtype)
    if every is not None:
        return rng.choice(every.view("u1"), count).view(dtype)
    size = dtype.itemsize // (2 if dtype.kind in COMPLEX else 1)
    sign = 1 << (8 * size - 1)
    special = [0, 1, sign - 1, *INFINITE[size], *(one + 1 for one in INFINITE[size])]
    special += [word ^ sign for word in special]
    random = np.frombuffer(rng.bytes(count * dtype.itemsize), f"u{size}")
    chosen = rng.choice(np.array(special, random.dtype), random.size)
    return np.where(rng.random(random.size) < SPECIAL, chosen, random).view(dtype)


def narrow(dtype: np.dtype[Any]) -> Values | None:
    """Return every value of a type of fewer than 8 bits, one per byte as in ml_dtypes, or None."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.name in ("int2", "int4", "uint2", "uint4"):
        limits = ml_dtypes.iinfo(dtype)
        return np.arange(int(limits.min), int(limits.max) + 1).astype(dtype)
    if dtype.name.startswith(("float4_", "float6_")):
        return np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype="u1").view(dtype)
    return None


def missing(values: Values) -> Values:
    """Return which elements are missing: of a structure, all fields or none."""
    mask: Values = np.ma.getmaskarray(values)
    while mask.dtype.names is not None:
        mask = mask[mask.dtype.names[0]]
    if values.dtype == object:
        mask = mask | np.array([value is None for value in values.flat], bool).reshape(values.shape)
    return mask


def randomly_missing(rng: np.random.Generator, values: Values) -> Values:
    """Return the values with half of them masked."""
    mask = rng.random(values.shape) < 0.5
    if values.dtype.kind in "OT":
        return np.where(mask, None, values.astype(object))
    return np.ma.MaskedArray(values, mask if values.dtype.names is None else full_mask(mask, values.dtype))


def full_mask(mask: Values, dtype: np.dtype[Any]) -> Values:
    """Return NumPy's mask of a structure."""
    full: Values = np.zeros(mask.shape, np.ma.make_mask_descr(dtype))
    full[mask] = np.ones((), full.dtype)
    return full
