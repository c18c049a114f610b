"""Missing features of the other libraries, with reasons: each is tested, so that a new release shows up.

Of zarr-python 3.1 (on Python 3.11) and 3.4 (on Python 3.12 and later), TensorStore 0.1.86 and zarrs 0.23
(zarrista 0.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import zarr

from oracle.elements import Values

ZARR_PYTHON = tuple(int(part) for part in zarr.__version__.split(".")[:2])
NARROW = "u?int[24]|float[46]_.*|float8_.*|bfloat16"
STRUCTURES = "(nested )?structure|record.*"
READS = ("reads", "rereads")


@dataclass(frozen=True)
class Gap:
    """Cases that a library cannot create, cannot read, or cannot read after a write by zarrow."""

    library: str
    types: str
    layouts: str
    reason: str
    verbs: tuple[str, ...] = ("reads", "creates", "rereads")

    def holds(self, library: str, verb: str, case: str, layout: str) -> bool:
        """Return whether this gap covers the case."""
        matches = re.fullmatch(self.types, case) and re.fullmatch(self.layouts, layout)
        return self.library == library and verb in self.verbs and matches is not None


# Gaps of zarr-python 3.1 that 3.4 has closed.
LEARNED = [
    Gap("zarr-python", STRUCTURES, "v3-.*", "it has but the older name `structured`", ("reads",)),
    Gap("zarr-python", f"raw bytes|{STRUCTURES}", "v3-.*-shards.*", "it hashes the fill values of shards"),
    Gap("zarr-python", r"timedelta64\[generic\]", "v3-.*-shards.*", "it hashes the fill values of shards"),
    Gap("zarr-python", r"datetime64\[generic\]", ".*", "it refuses fill values without a unit, but for NaT"),
    Gap("zarr-python", "nested structure|record of records", "v2-.*", "it refuses the lists that it writes"),
    Gap("zarr-python", "string|bytes", "v3-F-.*", "it stores them in the order of memory", ("creates",)),
]

GAPS = [
    Gap("zarr-python", f"{NARROW}|complex_.*", ".*", "it has no types of ml_dtypes"),
    Gap("zarr-python", "optional .*", ".*", "it has no optional types"),
    *(LEARNED if ZARR_PYTHON < (3, 4) else ()),
    Gap(
        "zarr-python",
        r"timedelta64\[generic\]",
        ".*-big",
        "it writes them in the other byte order",
        ("creates",),
    ),
    Gap("zarr-python", "record of (times|records)", "v2-.-(?!raw).*", "it compresses no times", ("creates",)),
    Gap(
        "TensorStore",
        "uint[24]|float8_e4m3|float6_.*|complex_.*|optional .*|(datetime|timedelta)64.*",
        ".*",
        "it has no such types",
    ),
    Gap(
        "TensorStore", "fixed-length UTF-32|string|bytes", ".*", "it has no text, and no bytes of any length"
    ),
    Gap("TensorStore", "null-terminated bytes", "v3-.*", "it has them in version 2"),
    Gap("TensorStore", "nested structure|record.*", ".*", "fields are numbers there"),
    Gap("TensorStore", "float8_e8m0fnu", ".*", "it reads the fill value 2 as 0x1p-63", READS),
    Gap("TensorStore", "float4_e2m1fn", "v2-.*", "it wants the fill value in Base64"),
    Gap("zarrs", "(optional )?(complex_)?float8_e4m3fn", ".*", "it has no such type"),
    Gap("zarrs", "(optional )?null-terminated bytes", ".*", "it has no such type"),
    Gap("zarrs", f"optional ({STRUCTURES})|{STRUCTURES}", ".*", "it has no structures"),
    Gap("zarrs", f"{NARROW}|complex_.*|(datetime|timedelta)64.*", "v2-.*", "it has them in version 3"),
    Gap(
        "zarrs",
        "(optional )?raw bytes",
        "v3-.*",
        "its name for them is that of the specification",
        ("reads",),
    ),
    Gap("zarrs", "bytes", "v2-.*", "it takes the object type of version 2 for text", READS),
    Gap("zarrs", "string|bytes", "v.-F-.*", "it transposes places of elements of any length wrongly", READS),
    Gap("zarrs", "optional .*", "v3-F-.*", "it has the codec for optional elements outside of others"),
    Gap("zarrs", "optional .*", "v3-.*-shards", "it writes them, and then reads no part of a shard", READS),
    Gap(
        "zarrs",
        "optional (?!bool|u?int[248]$|float[468]_).*",
        "v3-.*-blosc",
        "it drops the end of a Blosc frame that is no multiple of an element",
        READS,
    ),
    Gap("zarrs", "optional (string|bytes)", ".*", "zarrista shows no such elements", READS),
]


def gap(library: str, verb: str, case: str, layout: str) -> Gap | None:
    """Return the gap of the case, if any."""
    return next((gap for gap in GAPS if gap.holds(library, verb, case, layout)), None)


def as_zarr_python_gives(values: Values) -> Values:
    """Return the values; bytes without axes become NumPy's, which drop trailing zero bytes."""
    if values.dtype != object or values.ndim:
        return values
    return np.array(values.item().rstrip(b"\0"), object)
