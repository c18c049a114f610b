"""Random arrays of every type and layout, written by zarrow and read by other libraries, and the reverse.

1. Types are all rows of `docs/data-types.md`, all units of time, structures of all kinds of fields, and an
   optional type of each. Layouts are both orders, the usual codecs, shards, both byte orders.
2. An array has edge chunks and missing chunks: the last rows are its fill value.
3. zarrow creates and writes it: zarrow and each library read the same bits.
4. Each library creates and writes it: zarrow reads the same bits, writes others, and the library reads them.
5. `GAPS` lists known failures of libraries with their reason; such a test must fail.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import zarrow
from data_types.types import PLAIN, DataTypeCase, optional, structure, time
from oracle.arrays import bits
from oracle.elements import Values
from oracle.gaps import GAPS, gap
from oracle.libraries import LIBRARIES
from oracle.random_values import missing, random_values, randomly_missing, seed_of
from test_data_types import TABLES

pytestmark = pytest.mark.small_files

SHAPE, CHUNKS, SHARDS = (7, 5), (2, 3), (4, 6)
# Rows from here on are in missing chunks, or in a missing shard.
WRITTEN = slice(0, 4)
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
DOCUMENTS = {2: ".zarray", 3: "zarr.json"}
# All layouts of each type take two minutes.
THOROUGH = "ZARROW_THOROUGH" in os.environ
CODECS = {"raw": None, "zstd": "zstd", "gzip": "gzip", "blosc": "blosc"}


@dataclass(frozen=True)
class Layout:
    """Encoding of an array."""

    version: int
    order: str
    codec: str
    is_sharded: bool = False
    is_big: bool = False

    @property
    def name(self) -> str:
        """Name of the case."""
        parts = [f"v{self.version}", self.order, self.codec]
        return "-".join(parts + ["shards"] * self.is_sharded + ["big"] * self.is_big)


LAYOUTS = {
    2: [Layout(2, order, codec) for order in "CF" for codec in CODECS]
    + [Layout(2, "C", "zstd", is_big=True)],
    3: [Layout(3, *parts) for parts in itertools.product("CF", CODECS, [False, True])]
    + [Layout(3, "F", "gzip", is_big=True), Layout(3, "C", "raw", True, True)],
}


def record(name: str, fields: Any) -> DataTypeCase:
    """Draw a structure of any fields, which zarrow names."""
    named = zarrow.create_array(zarrow.MemoryStore(), shape=(), dtype=np.dtype(fields)).metadata["data_type"]
    return replace(structure(name, [("n", "u1")], None), values=np.zeros(1, fields), v3=named)


LEAVES = [("flag", "?"), ("i", "<i2"), ("f", "<f8"), ("c", "<c8"), ("s", "S3"), ("u", "<U2"), ("v", "V5")]
TIMES = [("when", "<M8[us]"), ("span", "<m8[3h]")]


def cases() -> Iterator[DataTypeCase]:
    yield from PLAIN
    for unit, kind in itertools.product(UNITS, ("datetime64", "timedelta64")):
        dtype = np.dtype(
            f"<{'M' if kind == 'datetime64' else 'm'}8" + (f"[{unit}]" if unit != "generic" else "")
        )
        yield time(f"{kind}[{unit}]", dtype)
    yield record("record", LEAVES)
    yield record("record of times", TIMES)
    yield record("record of records", [("a", [("b", LEAVES), ("n", "u1")]), ("t", TIMES)])


CASES = {case.name: case for case in cases()}
# NumPy has no masked arrays of structures.
WITHOUT_MASKS = re.compile(r"complex_float([46]|8_(?!e5m2$)).*|record of .*")
OPTIONAL = {
    case.name: case
    for case in (optional(case) for name, case in CASES.items() if not WITHOUT_MASKS.match(name))
}


def without_payload(values: Values) -> Values:
    """Return values with the NaN that all libraries spell; `test_nan_with_a_payload` covers the others.

    Complex values contain no NaN, since zarr-python treats all complex values with a NaN as equal.
    """
    if values.dtype.names and values.dtype.name not in PARTS and values.dtype.names != ("real", "imag"):
        for name in values.dtype.names:
            values[name] = without_payload(values[name].copy())
        return values
    part = PARTS.get(values.dtype.name, values.dtype)
    if part.names == ("real", "imag"):
        part = part["real"]
    if part.kind == "f" or part.name.startswith(("bfloat", "float")):
        parts = values.view(part)
        # Signalling NaNs cause a warning.
        with np.errstate(invalid="ignore"):
            parts[np.isnan(parts)] = np.nan if part == values.dtype else 1
    return values


PARTS = {
    "complex64": np.dtype("f4"),
    "complex128": np.dtype("f8"),
    "complex32": np.dtype("f2"),
    "bcomplex32": np.dtype(ml_dtypes.bfloat16),
}
# Fill values that reveal a library's problems with a type.
FILLS = {
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu(2),
    "datetime64[generic]": np.array(7).view("M8")[()],
    "timedelta64[generic]": np.array(7).view("m8")[()],
    # zarrs omits a chunk if its concatenated bytes repeat the fill value: with a fill value of one zero byte,
    # elements of four zero bytes and of none would read as single ones.
    "bytes": b"\xff\xfe",
}


@dataclass(frozen=True)
class Sample:
    """An array to write: `fill` is the value of missing elements."""

    case: DataTypeCase
    layout: Layout
    first: Values
    second: Values
    fill: Any

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy type of an element."""
        return self.case.values.dtype

    def create(self, folder: Path) -> zarrow.Array:
        """Create the array with zarrow."""
        layout, options, dtype = self.layout, dict[str, Any](), self.case.v3
        if layout.is_big and layout.version == 2:
            dtype = self.dtype.newbyteorder(">")
        elif layout.is_big:
            options["serializer"] = {"name": "bytes", "configuration": {"endian": "big"}}
        return zarrow.create_array(
            folder,
            shape=SHAPE,
            dtype=dtype,
            chunks=CHUNKS,
            shards=SHARDS if layout.is_sharded else None,
            compressors=CODECS[layout.codec],
            order=layout.order,
            fill_value=self.fill,
            zarr_format=layout.version,
            **options,
        )

    def expected(self, written: Values) -> Values:
        """Return the expected elements."""
        if self.case.missing is not None:
            shape = (SHAPE[0] - WRITTEN.stop, SHAPE[1])
            if written.dtype == object:
                return np.concatenate([written[WRITTEN], np.full(shape, None)])
            rest = np.ma.masked_all(shape, self.dtype)
            return np.ma.concatenate([written[WRITTEN], rest])
        values = written.copy()
        values[WRITTEN.stop :] = self.fill
        return values


def sample(case: DataTypeCase, layout: Layout) -> Sample:
    """Choose values by the names alone."""
    rng = np.random.default_rng(seed_of(f"{layout.name} {case.name}"))
    first, second = (random_values(rng, case.values.dtype, SHAPE) for _ in range(2))
    if case.missing is not None:
        return Sample(case, layout, randomly_missing(rng, first), randomly_missing(rng, second), None)
    fill = without_payload(random_values(rng, case.values.dtype, (1,)))[0]
    return Sample(case, layout, first, second, FILLS.get(case.name, fill))


def parts(values: Values) -> tuple[Any, ...]:
    """Return a key that makes arrays comparable: missing elements, and the bits of the others."""
    gone = missing(values)
    there = np.ma.getdata(values)[~gone]
    if there.dtype.name in ("int2", "int4"):
        # The upper bits of the byte are undefined, and not all libraries extend the sign.
        there = there.astype("i1")
    return values.shape, gone.tobytes(), bits(there)


def layouts(case: DataTypeCase) -> Iterator[Layout]:
    """Return some of the type's possible layouts, different ones for each type; all on request."""
    fixed = case.values.dtype.itemsize > 1 and not case.is_variable and case.missing is None
    swapped = {2: fixed and not case.name.startswith("complex_"), 3: fixed}
    for version in (2, 3) if case.v2 is not None else (3,):
        every = [layout for layout in LAYOUTS[version] if swapped[version] or not layout.is_big]
        if THOROUGH:
            yield from every
            continue
        start, count = zlib.crc32(case.name.encode()), 2 if version == 2 or case.missing is not None else 3
        yield from (every[(start + 5 * number) % len(every)] for number in range(count))


@contextmanager
def knowing(library: str, verb: str, it: Sample) -> Iterator[None]:
    """Expect success, or failure if there is a gap."""
    known = gap(library, verb, it.case.name, it.layout.name)
    try:
        yield
    except Exception as error:
        if known is None:
            error.add_note(f"{library} {verb} {it.case.name}, {it.layout.name}")
            raise
        return
    assert known is None, f"{library} {verb} {it.case.name}, {it.layout.name}: not so, {known.reason}"


def check(found: Values, expected: Values) -> None:
    """Compare bit for bit."""
    assert parts(found) == parts(expected)


def written_by_zarrow(it: Sample, folder: Path) -> dict[str, Any]:
    """Write the array, and return its document."""
    array = it.create(folder)
    array[WRITTEN] = it.first[WRITTEN]
    for again in (array, zarrow.open(folder)):
        check(again[...].numpy(), it.expected(it.first))
    document: dict[str, Any] = json.loads((folder / DOCUMENTS[it.layout.version]).read_text())
    return document


def round_trip(it: Sample, folder: Path) -> None:
    """Write with each library, and read with the other."""
    document = written_by_zarrow(it, folder / "zarrow")
    for name, library in LIBRARIES.items():
        with knowing(name, "reads", it):
            check(library.read(folder / "zarrow", it.dtype), it.expected(it.first))
        theirs = folder / name
        with knowing(name, "creates", it):
            library.create(theirs, document, it.dtype, it.fill)
            library.write(theirs, WRITTEN, it.first[WRITTEN])
            check(zarrow.open(theirs)[...].numpy(), it.expected(it.first))
        if gap(name, "creates", it.case.name, it.layout.name) is None:
            zarrow.open(theirs)[WRITTEN] = it.second[WRITTEN]
            with knowing(name, "rereads", it):
                check(library.read(theirs, it.dtype), it.expected(it.second))


@pytest.mark.parametrize("name", [*CASES, *OPTIONAL])
def test_each_type_in_each_layout(name: str, tmp_path: Path) -> None:
    case = CASES.get(name) or OPTIONAL[name]
    for layout in layouts(case):
        round_trip(sample(case, layout), tmp_path / layout.name)


@pytest.mark.parametrize("name", [name for name in CASES if WITHOUT_MASKS.match(name)])
def test_numpy_has_no_masked_arrays_of_these(name: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises((TypeError, ValueError)):
        randomly_missing(rng, random_values(rng, CASES[name].values.dtype, SHAPE))


NANS = {
    "float16": 0x7E01,
    "bfloat16": 0x7FC1,
    "float32": 0x7FC00001,
    "float64": 0xFFF8000000000001,
    "complex64": 0x7FC00001FFC00002,
    "float8_e5m2": 0x7D,
}


@pytest.mark.parametrize("name", NANS)
def test_nan_with_a_payload(name: str, tmp_path: Path) -> None:
    """As a fill value, bit for bit; zarr-python keeps the bits for few types, and cannot write them."""
    case = CASES[name]
    values = np.full(SHAPE, NANS[name], f"u{case.values.dtype.itemsize}").view(case.values.dtype)
    it = Sample(case, LAYOUTS[3][0], values, values, values[0, 0])
    document = written_by_zarrow(it, tmp_path / "zarrow")
    for library in (LIBRARIES["TensorStore"], LIBRARIES["zarrs"]):
        check(library.read(tmp_path / "zarrow", it.dtype), values)
        theirs = tmp_path / type(library).__name__
        library.create(theirs, document, it.dtype, it.fill)
        check(zarrow.open(theirs)[...].numpy(), values)


def test_each_unit_of_time_is_among_the_types() -> None:
    assert list(UNITS) == re.findall(r'TimeUnit::\w+, "(\w+)"', (TABLES / "time_unit.rs").read_text())


def test_each_gap_is_about_some_array() -> None:
    known = {
        gap(library, verb, case.name, layout.name)
        for case in [*CASES.values(), *OPTIONAL.values()]
        for version in ((2, 3) if case.v2 is not None else (3,))
        for layout in LAYOUTS[version]
        for library in LIBRARIES
        for verb in ("reads", "creates", "rereads")
    }
    assert known - {None} == set(GAPS)
