"""Decoding of elements by CF attributes: `Array.read(decode="cf")`.

1. Elements equal to `_FillValue` or `missing_value` become NaN, or NaT. The engine marks them while it
   decodes chunks (`mask=`).
2. `element * scale_factor + add_offset`, in the float type that xarray chooses.
3. `units` of the form "days since 2000-01-01" give `datetime64[ns]`. A length of time is decoded only if the
   attribute `dtype` says `timedelta64`, as xarray writes it.
4. Each step changes the memory of the read in place, unless the type changes: then it is copied once.

Sources: CF conventions 1.11, sections 2.5.1, 4.4 and 8.1; xarray 2026.9, `coding/variables.py` and
`coding/times.py`.
"""

from __future__ import annotations

import binascii
import re
import struct
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import Array, Indexer, MaskedTensor, Tensor, _import, _read_masked, asarray
from zarrow._zarrow import read_many as _read_many
from zarrow.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from zarrow.api.progress import Progress
    from zarrow.api.typed import AnyElements

_CALENDARS = frozenset(("standard", "gregorian", "proleptic_gregorian"))

# Nanoseconds of each unit; names without the final "s" are the same.
_NANOSECONDS = {
    "nanosecond": 1,
    "microsecond": 10**3,
    "millisecond": 10**6,
    "second": 10**9,
    "minute": 60 * 10**9,
    "hour": 3600 * 10**9,
    "day": 86400 * 10**9,
}
_RESOLUTIONS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

_DATE = re.compile(
    r"(?P<year>\d{1,4})-(?P<month>\d{1,2})(-(?P<day>\d{1,2}))?"
    r"([T\s]\s*(?P<hour>\d{1,2})(:(?P<minute>\d{1,2})(:(?P<second>\d{1,2})(\.(?P<fraction>\d{0,9})\d*)?)?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{1,2}(:?\d{2})?)?",
    re.IGNORECASE,
)
_REFORM = "1582-10-15"
_MISSING = -(2**63)  # NaT


def read(
    array: Array,
    selection: Any,
    decode: Any,
    others: dict[str, Any],
    progress: Progress | bool | None = None,
) -> AnyElements:
    """Read a selection and decode it (steps 1 to 3)."""
    _check(decode, others)
    mask, finish = _prepared(array)
    return finish(array.read(selection, mask=mask, progress=progress))


async def read_async(array: Array, selection: Any, decode: Any, others: dict[str, Any]) -> AnyElements:
    """Read a selection as `read` does, and await it."""
    _check(decode, others)
    mask, finish = _prepared(array)
    return finish(await array.read_async(selection, mask=mask))


def read_many(
    items: Iterable[Any],
    decode: Any,
    others: dict[str, Any],
    read_each: Callable[[Sequence[Any], Sequence[Any]], list[Any]] = _read_masked,
) -> AnyElements:
    """Read items of `zarrow.read_many` in one batch, and decode each (steps 1 to 3).

    Results of one shape and type are stacked, as without `decode`. `read_each` reads items by their masks.
    """
    _check(decode, others)
    pairs = [item if isinstance(item, tuple) else (item, ...) for item in items]
    arrays: list[Any] = [
        pair[0].array if pair and isinstance(pair[0], Indexer) else (pair or [None])[0] for pair in pairs
    ]
    if not pairs or not all(isinstance(array, Array) for array in arrays):
        # The same result or error as without `decode`.
        return _read_many(pairs)
    # Two handles of one array are equal.
    prepared = {key: _prepared(array) for key, array in {id(array): array for array in arrays}.items()}
    each = [prepared[id(array)] for array in arrays]
    parts = read_each(pairs, [mask for mask, _ in each])
    decoded = [finish(part) for (_, finish), part in zip(each, parts, strict=True)]
    kinds = {(part.shape, part.dtype) if isinstance(part, Tensor) else None for part in decoded}
    if len(kinds) > 1 or None in kinds:
        return decoded
    np = _import("numpy")
    return asarray(np.stack([part.numpy() for part in decoded]))


def _check(form: Any, others: dict[str, Any]) -> None:
    """Refuse a value of `decode` other than "cf", and `decode` beside other options."""
    if form != "cf":
        raise ValueError(f"decode is {form!r}, expected 'cf' or None")
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"decode= needs new memory in the host: pass it without {name}=")


def _prepared(array: Array) -> tuple[Any, Callable[[Any], AnyElements]]:
    """Return the `mask` to read with, and the function that decodes the result."""
    attributes = array._attributes()
    given, values = _missing_values(array, attributes)
    if array.dtype.kind not in "iufcb":
        return "cf" if values else None, lambda elements: elements
    keeps_type = given and not values and array.dtype.kind in "fc"
    return _in_type(values, array.dtype) or None, lambda elements: _decoded(
        elements, attributes, array.name, bool(values), keeps_type
    )


def _decoded(
    elements: Any, attributes: dict[str, Any], name: str, has_missing_values: bool, keeps_type: bool
) -> AnyElements:
    """Decode elements in memory, which is changed (steps 1 to 3)."""
    np = _import("numpy")
    missing = None
    if isinstance(elements, MaskedTensor):
        data, missing = elements.data.numpy(), elements.mask.numpy()
    else:
        data = elements.numpy()
    if data.dtype.kind not in "iufcb":  # an optional type of text, or a structure
        return elements
    if attributes.get("_Unsigned") in ("true", "false") and data.dtype.kind in "iu":
        data = data.view(("u" if attributes["_Unsigned"] == "true" else "i") + str(data.itemsize))
    units = attributes.get("units")
    since = _since(units, name)
    span = _time_span(units, attributes)
    scale, offset = _number(attributes, "scale_factor", name), _number(attributes, "add_offset", name)
    is_packed = scale is not None or offset is not None
    has_missing = has_missing_values or missing is not None
    if is_packed:
        if has_missing or not keeps_type or since or span:
            data = _as_type(data, _packed_type(data.dtype, scale, offset, has_missing))
        _fill(data, missing, np.nan)
        if scale is not None:
            data *= scale
        if offset is not None:
            data += offset
    elif has_missing:
        if (since or span) and data.dtype.kind in "iu":
            data = _as_type(data, np.dtype("i8"))
            _fill(data, missing, _MISSING)
        else:
            data = _as_type(data, _promoted(data.dtype))
            _fill(data, missing, np.nan)
    if span:
        data = _time_spans(data, *span, name)
    elif since:
        data = _dates(data, *since, attributes.get("calendar"), name)
    elif attributes.get("dtype") == "bool":
        data = data.astype(bool)
    return asarray(data)


def _missing_values(array: Array, attributes: dict[str, Any]) -> tuple[bool, list[Any]]:
    """Return whether attributes name missing values, and the values other than NaN, which stays NaN."""
    given = attributes.get("_FillValue")
    if array.zarr_format == 3:
        given = _unpacked(given) if array.dtype.kind in "fc" else given
    elif array._has_fill_value() and "_ARRAY_DIMENSIONS" in attributes:
        fill = array.fill_value
        given = fill.item() if hasattr(fill, "item") else fill
    found: list[Any] = []
    both = (given, attributes.get("missing_value"))
    for value in both:
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is not None and each == each and each not in found:
                found.append(each)
    return both != (None, None), found


def _unpacked(value: Any) -> Any:
    """Return the float that xarray stored in base64; complex numbers are pairs of them."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value):
        real, imaginary = _unpacked(value[0]), _unpacked(value[1])
        return complex(real, imaginary) if isinstance(real, float) and isinstance(imaginary, float) else value
    if not isinstance(value, str):
        return value
    try:
        unpacked: float = struct.unpack("<d", binascii.a2b_base64(value))[0]
    except (binascii.Error, struct.error):
        return value
    return unpacked


def _in_type(values: list[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Return the values that an element of the type can have; others have no effect."""
    np = _import("numpy")
    found = []
    for value in values:
        try:
            with np.errstate(over="ignore"):
                typed = dtype.type(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if dtype.kind in "fc" or typed == value:
            found.append(typed.item() if dtype.kind in "iufcb" else typed)
    return found


def _number(attributes: dict[str, Any], key: str, name: str) -> int | float | None:
    value = attributes.get(key)
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise ValueError(
        f"{name!r}: attribute {key!r} is {value!r}, expected a number: read without decode=, or correct it "
        f"by array.attrs[{key!r}] = ..."
    )


def _packed_type(dtype: np.dtype[Any], scale: Any, offset: Any, has_missing: bool) -> Any:
    """Return the type of `element * scale + offset`, as xarray chooses it for numbers of JSON."""
    np = _import("numpy")
    if dtype.kind == "c":
        return dtype
    if offset is None and isinstance(scale, int) and not has_missing:
        return np.dtype("i8")
    return np.dtype("f8")


def _promoted(dtype: np.dtype[Any]) -> Any:
    """Return the type that also represents NaN."""
    np = _import("numpy")
    if dtype.kind in "fc":
        return dtype
    return np.dtype("f4" if dtype.itemsize <= 2 else "f8")


def _as_type(data: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    return data.astype(dtype, copy=False)


def _fill(data: npt.NDArray[Any], missing: npt.NDArray[Any] | None, value: Any) -> None:
    if missing is not None:
        data[missing] = value


def _since(units: Any, name: str) -> tuple[int, str, str] | None:
    """Return the length of the unit, the reference date and the units; None if they are no units of time."""
    if not isinstance(units, str) or "since" not in units:
        return None
    found = re.fullmatch(r"(.+) since (.+)", units)
    if found is None:
        raise ValueError(
            f"{name!r}: units are {units!r}, expected the form 'days since 2000-01-01': read without decode="
        )
    unit = found[1].strip().lower()
    unit = {"d": "day", "h": "hour", "hr": "hour", "min": "minute", "sec": "second", "s": "second"}.get(
        unit.removesuffix("s") or "s", unit.removesuffix("s")
    )
    return _NANOSECONDS.get(unit, 0), found[2].strip(), units


def _time_span(units: Any, attributes: dict[str, Any]) -> tuple[str, str] | None:
    """Return unit and resolution of lengths of time that xarray wrote; None for anything else."""
    dtype = attributes.get("dtype")
    if (
        not isinstance(dtype, str)
        or not isinstance(units, str)
        or units.removesuffix("s") not in _NANOSECONDS
    ):
        return None
    resolution = re.fullmatch(r"timedelta64\[(\w+)\]", dtype)
    if resolution is None:
        return None
    return units, resolution[1] if resolution[1] in _RESOLUTIONS else "s"


def _dates(
    data: npt.NDArray[Any], unit: int, reference: str, units: str, calendar: Any, name: str
) -> npt.NDArray[Any]:
    """Return the dates as `datetime64[ns]`; data of int64 are changed in place."""
    np = _import("numpy")
    text = f"{name!r}: units {units!r}"
    if str(calendar or "standard").lower() not in _CALENDARS:
        raise UnsupportedError(
            f"{name!r}: dates of calendar {calendar!r} do not fit datetime64: type xarray.open_zarr(path), "
            "which decodes them by cftime, or read without decode="
        )
    if not unit:
        raise UnsupportedError(
            f"{text} have a unit without a fixed length: type xarray.open_zarr(path), which decodes them by "
            "cftime, or read without decode="
        )
    start = _reference(reference, text)
    earliest = _MISSING + 1
    if str(calendar or "standard").lower() != "proleptic_gregorian":
        # Earlier dates are Julian in the standard calendar, and Gregorian in datetime64.
        earliest = max(earliest, int(np.datetime64(_REFORM, "s").astype("i8")) * 10**9)
    if start < earliest or not _fit(data, unit, start, earliest):
        raise UnsupportedError(
            f"{text}: dates do not fit datetime64[ns] of the calendar {calendar or 'standard'!r}: type "
            "xarray.open_zarr(path, decode_times=xarray.coders.CFDatetimeCoder(time_unit='us')), which may "
            "need cftime, or read without decode="
        )
    missing = _is_missing(data)
    if data.dtype.kind == "f":
        data = data.astype("f8", copy=False)
        data *= unit
        data[missing] = 0
        unit = 1
    counts = data.astype("i8", copy=False)
    counts *= unit
    counts += start
    counts[missing] = _MISSING
    return counts.view("M8[ns]")


def _time_spans(data: npt.NDArray[Any], units: str, resolution: str, name: str) -> npt.NDArray[Any]:
    """Return lengths of time as `timedelta64` of the resolution, or of a finer one that keeps fractions."""
    np = _import("numpy")
    unit = _NANOSECONDS[units.removesuffix("s")]
    size = min(unit, _RESOLUTIONS["s"])
    missing = _is_missing(data)
    if data.dtype.kind == "f":
        data = data.astype("f8", copy=False)
        data *= unit // size
        data[missing] = 0
        while size > 1 and np.isfinite(data).all() and (data % 1).any():
            data *= 1000
            size //= 1000
        unit = size
    final = min(size, _RESOLUTIONS[resolution])
    if not _fit(data, unit // final, 0, _MISSING + 1):
        raise UnsupportedError(
            f"{name!r}: values of {units!r} do not fit timedelta64[{resolution}]: read without decode="
        )
    counts = data.astype("i8", copy=False)
    counts *= unit // final
    counts[missing] = _MISSING
    names = {nanoseconds: code for code, nanoseconds in _RESOLUTIONS.items()}
    return counts.view(f"m8[{names[final]}]")


def _fit(data: npt.NDArray[Any], unit: int, start: int, earliest: int) -> bool:
    """Return whether `start + data * unit` lies between `earliest` and the largest int64."""
    known = data[~_is_missing(data)]
    if not known.size:
        return True
    bounds = (known.min().item(), known.max().item())
    return all(abs(bound) < 2**64 and earliest <= start + int(bound * unit) < 2**63 for bound in bounds)


def _is_missing(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    np = _import("numpy")
    missing: npt.NDArray[Any]
    if data.dtype.kind == "f":
        missing = np.isnan(data)
    else:
        missing = data == _MISSING if data.dtype == np.int64 else np.zeros(data.shape, bool)
    return missing


def _reference(date: str, text: str) -> int:
    """Return the reference date in nanoseconds since 1970."""
    import datetime

    found = _DATE.fullmatch(f"{date}-01-01" if re.fullmatch(r"\d{4}", date) else date)
    if found is None:
        raise ValueError(f"{text} have no date of the form 2000-01-31 12:00:00: read without decode=")
    part = {
        key: int(value)
        for key, value in found.groupdict().items()
        if value and key not in ("zone", "fraction")
    }
    try:
        day = datetime.date(part["year"], part["month"], part.get("day", 1))
    except ValueError as error:
        raise ValueError(f"{text}: {error}: read without decode=") from None
    seconds = (day.toordinal() - datetime.date(1970, 1, 1).toordinal()) * 86400
    seconds += part.get("hour", 0) * 3600 + part.get("minute", 0) * 60 + part.get("second", 0)
    zone = re.fullmatch(r"([+-])(\d{1,2}):?(\d{2})?", found["zone"] or "")
    if zone is not None:
        east = int(zone[2]) * 3600 + int(zone[3] or 0) * 60
        seconds -= east if zone[1] == "+" else -east
    return seconds * 10**9 + int((found["fraction"] or "").ljust(9, "0"))
