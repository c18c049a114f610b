"""Element types: their names in each version of Zarr, values to write, and fill values."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]

TEXTS = ["", "a", "né", "日本語", "🦀🦀", "a\0b", "tail ", "x" * 300]
BYTES = [b"", b"a", b"\0", b"\xff\xfe", b"\0\0\0\0", bytes(range(256)), b"x" * 300]
STRING = np.dtypes.StringDType()
# Without -0.0, since the writers drop a chunk that compares equal to a fill value of 0.
FLOATS = [0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-7, 6e4]


@dataclass(frozen=True, eq=False)
class Element:
    """A data type: `fills` are values, `fill_json` returns their JSON in a version."""

    name: str
    dtype: np.dtype[Any]
    v2: str | None
    v3: Any
    values: Callable[[np.random.Generator, int], Values]
    fills: tuple[Any, ...]
    fill_json: Callable[[Any, int], Any]
    zarr_python: bool = True
    tensorstore: bool = True

    @property
    def is_variable(self) -> bool:
        """Return whether elements have variable size."""
        return self.dtype == STRING or self.dtype == object

    @property
    def word(self) -> int:
        """Return the number of bytes that a byte order reverses; 1 without a byte order."""
        if self.is_variable or (self.dtype.kind in "SVb" and self.zarr_python):
            return 1
        match self.dtype.kind:
            case "U":
                return 4
            case "c":
                return self.dtype.itemsize // 2
            case _:
                return self.dtype.itemsize

    def formats(self) -> list[int]:
        """Return the versions of Zarr that have the type."""
        return [version for version, name in ((2, self.v2), (3, self.v3)) if name is not None]

    def full(self, shape: tuple[int, ...], fill: Any) -> Values:
        """Return an array of one fill value."""
        array: Values = np.empty(shape, self.dtype)
        array[...] = fill
        return array


def as_is(value: Any, version: int) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def real(value: Any, version: int) -> Any:
    number = float(value)
    if number != number:
        return "NaN"
    return number if abs(number) != np.inf else "Infinity" if number > 0 else "-Infinity"


def pair(value: Any, version: int) -> Any:
    return [real(value.real, version), real(value.imag, version)]


def ticks(value: Any, version: int) -> Any:
    return int(value.astype("i8"))


def base_64(value: Any, version: int) -> Any:
    return base64.b64encode(bytes(value)).decode()


def number(dtype: npt.DTypeLike, name: str) -> Element:
    """A number of a NumPy type."""
    numpy_type = np.dtype(dtype)

    def values(rng: np.random.Generator, count: int) -> Values:
        match numpy_type.kind:
            case "b":
                return rng.integers(0, 2, count).astype(bool)
            case "i" | "u":
                return np.frombuffer(rng.bytes(count * numpy_type.itemsize), numpy_type)
            case "f":
                return floats(rng, count).astype(numpy_type)
            case _:
                return floats(rng, 2 * count).astype(f"f{numpy_type.itemsize // 2}").view(numpy_type)

    fills: tuple[Any, ...]
    match numpy_type.kind:
        case "b":
            fills, fill_json = (False, True), as_is
        case "i" | "u":
            limits = np.iinfo(numpy_type)
            fills, fill_json = (0, limits.max, limits.min), as_is
        case "f":
            fills, fill_json = (0.0, -1.5, np.nan, np.inf), real
        case _:
            fills, fill_json = (0j, 1.5 - 2j, complex(np.nan, -np.inf)), pair
    return Element(
        name, numpy_type, numpy_type.str, name, values, tuple(map(numpy_type.type, fills)), fill_json
    )


def floats(rng: np.random.Generator, count: int) -> Values:
    special = rng.choice(FLOATS, count)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(rng.random(count) < 0.3, special, rng.normal(size=count) * 100)


def narrow_float(dtype: type[Any], in_v2: bool) -> Element:
    """A float that only TensorStore writes."""
    numpy_type = np.dtype(dtype)

    def values(rng: np.random.Generator, count: int) -> Values:
        return floats(rng, count).astype(numpy_type)

    fills = tuple(numpy_type.type(value) for value in (0.0, -1.5))
    name = numpy_type.name
    return Element(name, numpy_type, name if in_v2 else None, name, values, fills, real, zarr_python=False)


def time(kind: str, unit: str, scale: int) -> Element:
    """A date or a duration."""
    dtype = np.dtype(f"<{kind}8[{scale}{unit}]")
    long_kind = {"M": "datetime64", "m": "timedelta64"}[kind]

    def values(rng: np.random.Generator, count: int) -> Values:
        numbers = rng.integers(-(2**40), 2**40, count)
        numbers[rng.random(count) < 0.2] = np.iinfo("i8").min
        return numbers.view(dtype)

    fills = tuple(np.array([ticks], "i8").view(dtype)[0] for ticks in (0, np.iinfo("i8").min, -7))
    v3 = {"name": f"numpy.{long_kind}", "configuration": {"unit": unit, "scale_factor": scale}}
    name = f"{long_kind}-{scale}{unit}"
    return Element(name, dtype, dtype.str, v3, values, fills, ticks, tensorstore=False)


def text_of(value: Any, version: int) -> Any:
    return str(value)


def chosen(pool: list[Any], dtype: npt.DTypeLike) -> Callable[[np.random.Generator, int], Values]:
    def values(rng: np.random.Generator, count: int) -> Values:
        array: Values = np.empty(count, dtype)
        for at, which in enumerate(rng.integers(0, len(pool), count)):
            array[at] = pool[which]
        return array

    return values


def raw(rng: np.random.Generator, count: int) -> Values:
    return np.frombuffer(rng.bytes(count * 5), "V5")


def named(name: str, length: int) -> dict[str, Any]:
    return {"name": name, "configuration": {"length_bytes": length}}


ELEMENTS = [
    number("?", "bool"),
    *(
        number(f"<{kind}{size}", f"{long}{8 * size}")
        for kind, long in (("i", "int"), ("u", "uint"))
        for size in (1, 2, 4, 8)
    ),
    *(number(f"<f{size}", f"float{8 * size}") for size in (2, 4, 8)),
    number("<c8", "complex64"),
    number("<c16", "complex128"),
    narrow_float(ml_dtypes.bfloat16, in_v2=True),
    narrow_float(ml_dtypes.float8_e4m3fn, in_v2=True),
    narrow_float(ml_dtypes.float8_e5m2, in_v2=True),
    *(time("M", unit, scale) for unit, scale in (("ns", 1), ("s", 1), ("us", 10), ("D", 1))),
    *(time("m", unit, scale) for unit, scale in (("ms", 1), ("h", 6))),
    Element("string", STRING, "|O", "string", chosen(TEXTS, STRING), ("", "né"), text_of, tensorstore=False),
    Element(
        "bytes",
        np.dtype(object),
        "|O",
        "variable_length_bytes",
        chosen(BYTES, object),
        (b"", b"\xff\0fill"),
        base_64,
        tensorstore=False,
    ),
    Element(
        "fixed-text",
        np.dtype("<U4"),
        "<U4",
        named("fixed_length_utf32", 16),
        chosen(["", "a", "né", "日本語🦀"], "<U4"),
        (np.str_(""), np.str_("fünf")),
        text_of,
        tensorstore=False,
    ),
    Element(
        "fixed-bytes",
        np.dtype("S3"),
        "|S3",
        named("null_terminated_bytes", 3),
        chosen([b"", b"a", b"\xff\0b", b"xyz"], "S3"),
        (np.bytes_(b""), np.bytes_(b"\0ab")),
        base_64,
        tensorstore=False,
    ),
    Element(
        "raw",
        np.dtype("V5"),
        "|V5",
        named("raw_bytes", 5),
        raw,
        (np.void(b"\0" * 5), np.void(b"a\0\0\xffe")),
        base_64,
        tensorstore=False,
    ),
]
