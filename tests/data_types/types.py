"""The rows: each data type, with values to exchange, and its names in both versions of Zarr."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

import handwritten
import zarrow

Values = npt.NDArray[Any]
FLOAT8 = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
TINY = ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")


@dataclass(frozen=True, eq=False)
class DataTypeCase:
    """A data type: `values` are its elements, and `chunk` their stored bytes."""

    name: str
    values: Values
    v3: Any
    v2: Any
    fill_v3: Any
    fill_v2: Any = None
    codec: str = "bytes"
    missing: Values | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_variable(self) -> bool:
        return self.codec != "bytes"

    @property
    def chunk(self) -> bytes:
        """Return the array's single chunk."""
        if self.missing is None:
            return self._encode(self.values)
        validity = (~self.missing).tobytes()
        data = self._encode(self.values[~self.missing])
        return struct.pack("<QQ", len(validity), len(data)) + validity + data

    def _encode(self, values: Values) -> bytes:
        if not self.is_variable:
            return values.tobytes()
        encoded = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
        lengths = [struct.pack("<I", len(one)) + one for one in encoded]
        return struct.pack("<I", len(encoded)) + b"".join(lengths)

    def write(self, folder: Path, version: Literal[2, 3], chunk: bytes | None) -> Path:
        """Write the array, byte by byte; zarrow writes the chunk if it is None."""
        if version == 3:
            codec = handwritten.BYTES if not self.is_variable else {"name": self.codec}
            if self.missing is not None:
                configuration = {"mask_codecs": [{"name": "bytes"}], "data_codecs": [codec]}
                codec = {"name": "zarrs.optional", "configuration": configuration}
            handwritten.write(folder, self.values.shape, self.v3, [codec], chunk or b"", self.fill_v3)
            key = folder / "c" / "0"
        else:
            folder.mkdir(parents=True)
            document = {
                "zarr_format": 2,
                "shape": self.values.shape,
                "chunks": self.values.shape,
                "dtype": self.v2,
                "fill_value": self.fill_v2,
                "order": "C",
                "filters": [{"id": self.codec}] if self.is_variable else None,
                "compressor": None,
            }
            (folder / ".zarray").write_text(json.dumps(document))
            key = folder / "0"
            key.write_bytes(chunk or b"")
        if chunk is None:
            key.unlink()
        return key

    def read(self, folder: Path) -> Any:
        """Return the values as zarrow decodes them."""
        self.write(folder, 3, self.chunk)
        return zarrow.open(folder)[...]


def number(name: str, dtype: npt.DTypeLike, v2: str | None, fill: Any = 1) -> DataTypeCase:
    """A number of a NumPy or ml_dtypes type."""
    numpy_type = np.dtype(dtype)
    counted = np.arange(1, 5)
    if numpy_type.kind == "b" or name in ("int2", "uint2"):
        counted %= 2
    values = counted.astype(np.float32).astype(numpy_type)
    fill = {"b": False, "c": [1.0, 0.0], "W": [1.0, 0.0]}.get(numpy_type.kind, fill)
    return DataTypeCase(name, values, name, v2, fill)


def parts(name: str) -> DataTypeCase:
    """A complex number of a type outside NumPy and ml_dtypes."""
    part = np.dtype(getattr(ml_dtypes, name))
    values = np.ones(4, [("real", part), ("imag", part)])
    return DataTypeCase(f"complex_{name}", values, f"complex_{name}", f"complex_{name}", [2.0, 2.0])


def time(name: str, dtype: str) -> DataTypeCase:
    """A date or a duration; the last one is NaT."""
    values = np.array([1, 2, -3, np.iinfo("i8").min]).view(dtype)
    unit, scale = np.datetime_data(values.dtype)
    v3 = {"name": f"numpy.{name.partition('[')[0]}", "configuration": {"unit": unit, "scale_factor": scale}}
    return DataTypeCase(name, values, v3, values.dtype.str, "NaT", "NaT")


def fixed(name: str, v3: str, values: Values) -> DataTypeCase:
    """Text or bytes of fixed length."""
    fill = "" if values.dtype.kind == "U" else base64.b64encode(bytes(values.dtype.itemsize)).decode()
    configuration = {"name": v3, "configuration": {"length_bytes": values.dtype.itemsize}}
    return DataTypeCase(name, values, configuration, values.dtype.str, fill, None)


def structure(name: str, dtype: Any, fill: Any) -> DataTypeCase:
    """A structure without padding, with ones in every field."""
    values = np.zeros(4, dtype)
    for at in range(4):
        values[at] = np.ones((), dtype)
    return DataTypeCase(name, values, v3_of(values.dtype), v2_of(values.dtype), fill, None)


def v2_of(dtype: np.dtype[Any]) -> Any:
    """Return the name in version 2."""
    if dtype.names is None:
        return dtype.str
    assert dtype.fields is not None
    return [[name, v2_of(dtype.fields[name][0])] for name in dtype.names]


def v3_of(dtype: np.dtype[Any]) -> Any:
    """Return the name in version 3, for the field types of these structures."""
    if dtype.names is None:
        return dtype.name
    assert dtype.fields is not None
    fields = [{"name": name, "data_type": v3_of(dtype.fields[name][0])} for name in dtype.names]
    return {"name": "struct", "configuration": {"fields": fields}}


def variable(name: str, elements: Sequence[Any], codec: str) -> DataTypeCase:
    """Text or bytes of variable length."""
    dtype = np.dtypes.StringDType() if name == "string" else np.dtype(object)
    values = np.array(elements, dtype)
    return DataTypeCase(name, values, name, "|O", "", "", codec)


def optional(inner: DataTypeCase) -> DataTypeCase:
    """The inner type, with the second element missing."""
    missing = np.array([False, True, False, False])
    v3 = inner.v3 if isinstance(inner.v3, dict) else {"name": inner.v3, "configuration": {}}
    optional = {"name": "zarrs.optional", "configuration": v3}
    return DataTypeCase(
        f"optional {inner.name}", inner.values, optional, None, None, None, inner.codec, missing
    )


def _cases() -> Iterator[DataTypeCase]:
    yield number("bool", bool, "|b1")
    for kind, long in (("i", "int"), ("u", "uint")):
        for size in (1, 2, 4, 8):
            yield number(f"{long}{size * 8}", f"{kind}{size}", np.dtype(f"{kind}{size}").str)
    for name in ("int2", "int4", "uint2", "uint4"):
        yield number(name, getattr(ml_dtypes, name), name)
    for size in (2, 4, 8):
        yield number(f"float{size * 8}", f"f{size}", f"<f{size}")
    yield number("bfloat16", ml_dtypes.bfloat16, "bfloat16")
    for kind in FLOAT8:
        yield number(f"float8_{kind}", getattr(ml_dtypes, f"float8_{kind}"), f"float8_{kind}")
    for name in TINY:
        yield number(name, getattr(ml_dtypes, name), name)
    yield number("complex64", "c8", "<c8")
    yield number("complex128", "c16", "<c16")
    yield number("complex_float16", ml_dtypes.complex32, "complex_float16")
    yield number("complex_bfloat16", ml_dtypes.bcomplex32, "complex_bfloat16")
    for kind in FLOAT8:
        yield parts(f"float8_{kind}")
    for name in TINY:
        yield parts(name)
    for unit in ("ns", "us", "ms", "s"):
        yield time(f"datetime64[{unit}]", f"<M8[{unit}]")
    yield time("datetime64[D]", "<M8[D]")
    yield time("datetime64[10s]", "<M8[10s]")
    yield time("timedelta64[ns]", "<m8[ns]")
    yield time("timedelta64[h]", "<m8[h]")
    yield fixed("fixed-length UTF-32", "fixed_length_utf32", np.array(["", "a", "né", "日本"], "<U2"))
    yield fixed(
        "null-terminated bytes", "null_terminated_bytes", np.array([b"", b"a", b"\xff", b"xyz"], "S3")
    )
    yield fixed("raw bytes", "raw_bytes", np.frombuffer(bytes(range(12)), "V3"))
    inner = [("n", "<i2"), ("x", "<f4")]
    yield structure("structure", inner, {"n": 0, "x": 1.0})
    yield structure(
        "nested structure", [("p", inner), ("flag", "?")], {"p": {"n": 0, "x": 0.0}, "flag": True}
    )
    yield variable("string", ["", "a", "né", "longer than twelve bytes"], "vlen-utf8")
    yield variable("bytes", [b"", b"a", b"\xff\0", b"longer than twelve bytes"], "vlen-bytes")


PLAIN = list(_cases())
OPTIONAL = [
    optional(case)
    for case in PLAIN
    if case.name
    in ("bool", "int32", "float64", "bfloat16", "complex64", "datetime64[ns]", "string", "bytes", "structure")
]
CASES = PLAIN + OPTIONAL
