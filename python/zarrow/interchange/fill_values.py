"""Fill values of copies between versions: xarray finds the same elements missing before and after.

1. In version 2, xarray masks elements that equal the fill value; without one, the attribute `_FillValue`,
   undecoded. In version 3 it decodes `_FillValue` and ignores the fill value. In both it masks the attribute
   `missing_value`, undecoded.
2. A copy to version 3 names the value in `_FillValue`. xarray cannot decode text, lists and values of other
   types there, so they join `missing_value`.
3. A copy to version 2 makes `_FillValue` the fill value. A number outside the type's range stays an
   attribute. A fill value of text moves back from `missing_value`.
4. Without `_FillValue`, the fill value of version 3 masks nothing. A copy to version 2 keeps NaN alone:
   xarray would mask elements that equal another fill value.
5. A warning names values that the other version cannot express, and attributes that the copy replaces.

Source: xarray, `FillValueCoder` and `ZarrStore.open_store_variable`.
"""

from __future__ import annotations

import binascii
import struct
from typing import Any

from zarrow import _zarrow
from zarrow.arrays import missing
from zarrow.hints.calling_line import warn

_NUMBERS = (int, float, complex)
_PACKING = frozenset(("scale_factor", "add_offset"))


def to_version_3(attributes: dict[str, Any], fill_value: Any, dtype: Any, name: str) -> dict[str, Any]:
    """Return the attributes of a copy from version 2, where the fill value may be None (step 2)."""
    kept = dict(attributes)
    named = _plain(kept.pop("_FillValue", None))
    value = named if fill_value is None or dtype.kind in "mM" else _plain(fill_value)
    if value is not named and named is not None:
        decoded = _decoded(named, dtype)
        if not _equal(named if decoded is None else decoded, value):
            warn(
                f"the attribute _FillValue of {name!r} changes from {named!r} to {value!r}, the fill value, "
                "because xarray ignores the attribute of version 2; set it again if it was right"
            )
    if value is None:
        return kept
    number = _as_type(value, dtype)
    if number is not None:
        return kept | missing.attributes_for(number, dtype)
    if isinstance(value, str | int | float | list):
        return kept | {"missing_value": _joined(kept.get("missing_value"), value, dtype, name)}
    warn(
        f"xarray masks elements of {name!r} that equal the fill value {value!r}, but not in this copy: "
        f"version 3 has no such attribute for {dtype}; copy to a group of version 2 to keep the mask"
    )
    return kept


def to_version_2(
    attributes: dict[str, Any], fill_value: Any, dtype: Any, name: str
) -> tuple[dict[str, Any], Any]:
    """Return the attributes and the fill value, or None, of a copy from version 3 (steps 3 and 4)."""
    value = _decoded(_plain(attributes.get("_FillValue")), dtype)
    if value is not None:
        kept = {key: other for key, other in attributes.items() if key != "_FillValue"}
        if _fits(value, dtype):
            return kept, value
        kept = attributes if isinstance(value, complex) else kept | {"_FillValue": value}
        return kept, without_mask(fill_value, dtype, attributes, name)
    values = _listed(attributes.get("missing_value"))
    if not isinstance(fill_value, str) or fill_value not in values:
        return attributes, without_mask(fill_value, dtype, attributes, name)
    values.remove(fill_value)
    kept = {key: other for key, other in attributes.items() if key != "missing_value"}
    rest = {"missing_value": values[0] if len(values) == 1 else values} if values else {}
    return kept | rest, fill_value


def without_mask(fill_value: Any, dtype: Any, attributes: dict[str, Any], name: str) -> Any:
    """Return the fill value for version 2 if xarray masks nothing but NaN by it, else None (step 4)."""
    value = _plain(fill_value)
    # xarray decodes packed floats to another type if there is a fill value.
    is_packed = not _PACKING.isdisjoint(attributes)
    if dtype.kind in "mM" or (value != value and not is_packed):  # NaN; of times, xarray ignores it
        return fill_value
    if value:
        change = "decode them to another type" if value != value else f"mask elements that equal {value!r}"
        warn(
            f"the copy of {name!r} has no fill value, because xarray would {change} in version 2: to keep "
            f"it, give create_array the array as data= and fill_value={value!r}"
        )
    return None


def _as_type(value: Any, dtype: Any) -> Any:
    """Return a value as a number that xarray decodes for the type, or None."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if dtype.kind == "c" and isinstance(value, complex):
        return value
    if not isinstance(value, int | float):
        return None
    try:
        if dtype.kind == "b":
            return bool(value) if value in (0, 1) else None
        if dtype.kind in "iu":
            return int(value) if int(value) == value else None
        return float(value) if dtype.kind in "fc" else None
    except (OverflowError, ValueError):
        return None


def _decoded(value: Any, dtype: Any) -> Any:
    """Return the value of the attribute `_FillValue` of version 3, or None if it has another form."""
    try:
        if dtype.kind == "f" and isinstance(value, str):
            return _from_base64(value)
        if dtype.kind == "c" and isinstance(value, list) and len(value) == 2:
            return complex(*map(_from_base64, value))
        if dtype.kind in "biu" and isinstance(value, int | float):
            return bool(value) if dtype.kind == "b" else int(value)
    except (OverflowError, TypeError, ValueError, struct.error):
        return None
    return _as_type(value, dtype)


def _from_base64(text: str) -> float:
    return float(struct.unpack("<d", binascii.a2b_base64(text))[0])


def _fits(value: Any, dtype: Any) -> bool:
    """Return whether the type has exactly this value."""
    np = _zarrow._import("numpy")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return bool(limits.min <= value <= limits.max)
    with np.errstate(all="ignore"):
        return _equal(_plain(dtype.type(value)), value)


def _equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal, part by part for NaN."""
    if not (isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)):
        return bool(left == right)
    left, right = complex(left), complex(right)
    parts = ((left.real, right.real), (left.imag, right.imag))
    return all(one == other or (one != one and other != other) for one, other in parts)


def _joined(present: Any, value: Any, dtype: Any, name: str) -> Any:
    """Return the attribute `missing_value` with another value; xarray cannot read numbers beside text."""
    is_text = dtype.kind in "OTU"
    before = _listed(present)
    values = [one for one in before if isinstance(one, str) == is_text]
    if len(values) < len(before):
        warn(
            f"the attribute missing_value of {name!r} changes from {present!r} to {value!r}, the fill value, "
            "because xarray cannot read text beside numbers"
        )
    values += [one for one in _listed(value) if one not in values]
    return values[0] if len(values) == 1 and not isinstance(value, list) else values


def _listed(value: Any) -> list[Any]:
    value = _plain(value)
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def _plain(value: Any) -> Any:
    """Return a value of NumPy as one of Python."""
    return value.tolist() if hasattr(value, "tolist") else value
