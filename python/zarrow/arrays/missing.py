"""Forms of missing elements: one that only zarrow and zarrs read, and two that other libraries read.

1. "optional" is Zarr's optional type: nothing is lost, and zarr-python cannot open such an array.
2. "fill" stores a value for missing elements, and names it twice: as fill value, and as attribute
   `_FillValue` (of text `missing_value`). xarray and `Array.read(mask="cf")` recognise the attribute.
3. "anndata" is a group of two arrays, `values` and `mask`, as AnnData stores nullable columns; floats are an
   array with NaN there. `Group.read` gives the masked array again.
4. By default it is the optional type, and the first such array of a process warns.

Sources: CF conventions 1.11, section 2.5.1; xarray, `FillValueCoder`; AnnData, "On-disk format", nullable
arrays.
"""

from __future__ import annotations

import binascii
import struct
from typing import TYPE_CHECKING, Any, Literal

from zarrow import _zarrow
from zarrow.errors import MetadataError
from zarrow.hints.calling_line import warn

if TYPE_CHECKING:
    from zarrow import MaskedTensor, MaskedVariable

__all__ = ["set_missing"]

FORMS = ("optional", "fill", "anndata")

ANNDATA_ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}

_chosen: str | None = None
_has_warned = False


def set_missing(form: Literal["optional", "fill", "anndata"] | None) -> None:
    """Set how new arrays store missing elements, for calls of `create_array` and `save` without `missing`.

    Parameters
    ----------
    form
        "optional", "fill" or "anndata", as `create_array` explains; None chooses the optional type again,
        with a warning.

    Raises
    ------
    ValueError
        `form` is another one.

    Examples
    --------
    >>> import zarrow
    >>> zarrow.set_missing("fill")
    >>> root = zarrow.create_group("new.zarr")
    >>> root["height"] = [3.5, None]  # zarr-python reads it as [3.5, nan]
    >>> root["height"].dtype, root["height"].attrs["_FillValue"]
    (dtype('float64'), 'AAAAAAAA+H8=')
    >>> root["height"].read(mask="cf").tolist()
    [3.5, None]
    >>> zarrow.set_missing(None)
    """
    global _chosen
    _chosen = None if form is None else checked(form)


def chosen() -> str | None:
    """Return the form that `set_missing` chose."""
    return _chosen


def checked(form: str) -> str:
    """Return the form if it is valid."""
    if form not in FORMS:
        raise ValueError(f"missing={form!r}: expected {', '.join(map(repr, FORMS))}")
    return form


def refuse_optional(form: str | None, name: str) -> None:
    """Refuse the optional type in version 2, which does not have it.

    Raises
    ------
    MetadataError
        It is the form; the message names the others.
    """
    if (form or _chosen or "optional") == "optional":
        raise MetadataError(
            f"Zarr version 2 has no type for the missing elements of {name or 'this array'}: pass "
            "missing='fill' or missing='anndata', or create a group of version 3"
        )


def form_of(form: str | None, name: str) -> str:
    """Return the form to store: the given one, the default set by the user, or "optional" with a warning."""
    global _has_warned
    if form is not None:
        return checked(form)
    if _chosen is not None:
        return _chosen
    if not _has_warned:
        _has_warned = True
        warn(
            f"zarr-python cannot open {name or 'this array'}, because it lacks Zarr's optional type for "
            "missing elements: pass missing='fill' or missing='anndata' to store a form that it reads, call "
            "zarrow.set_missing('fill') to make that the default, or pass missing='optional' to silence this "
            "warning"
        )
    return "optional"


def fill_value_for(data: MaskedTensor | MaskedVariable, given: Any, dtype: Any = None) -> Any:
    """Return a value of the type that stands for missing elements only (step 2).

    Raises
    ------
    ValueError
        No value can be chosen, or the value also occurs in the data.
    """
    np = _zarrow._import("numpy")

    wanted = data.dtype if dtype is None else np.dtype(dtype)
    kind = wanted.kind
    if given is not None:
        value = given
    elif kind in "fcMm" or wanted.name.startswith(("bfloat", "float")):
        value = np.array("nat" if kind in "Mm" else np.nan, wanted)[()]
    elif kind in "iu":
        limits = np.iinfo(wanted)
        value = wanted.type(limits.min if kind == "i" else limits.max)
    elif isinstance(data, _zarrow.MaskedVariable):
        value = "" if kind == "T" else b""
    else:
        raise ValueError(
            f"missing='fill' needs a fill value unequal to all elements, and {data.dtype} has no default: "
            "pass fill_value=... or missing='anndata'"
        )
    there = data.data.numpy()[~data.mask.numpy()]
    if np.any(there == value):
        raise ValueError(
            f"the fill value {value!r} also occurs in the data and would read back as missing: pass another "
            "fill_value=..., or missing='anndata'"
        )
    return value


def attributes_for(value: Any, dtype: Any) -> dict[str, Any]:
    """Return the attribute that tells others the fill value; floats are in base64, as xarray writes them."""
    np = _zarrow._import("numpy")

    def coded(number: float) -> str:
        return binascii.b2a_base64(struct.pack("<d", number), newline=False).decode()

    if dtype.kind in "Mm":
        return {}  # NaT says by itself that it is missing, and xarray knows no attribute for it
    if dtype.kind == "c":
        return {"_FillValue": [coded(float(value.real)), coded(float(value.imag))]}
    if dtype.kind in "iu":
        return {"_FillValue": int(value)}
    if isinstance(value, bytes):
        return {"_FillValue": binascii.b2a_base64(value, newline=False).decode()}
    if isinstance(value, str):
        return {"missing_value": value}  # xarray cannot open text that has a `_FillValue`
    if isinstance(value, bool | np.bool_):
        return {"_FillValue": bool(value)}
    return {"_FillValue": coded(float(value))}


def filled(data: Any, form: str, dtype: Any, options: dict[str, Any]) -> Any:
    """Fill missing elements, and add the value and its attribute to the options (steps 2 and 3)."""
    value = fill_value_for(data, options.get("fill_value"), dtype)
    encoding = ANNDATA_ARRAY if form == "anndata" else {}
    attributes = {**(options.get("attributes") or {}), **attributes_for(value, data.dtype), **encoding}
    options.update(fill_value=value, attributes=attributes)
    return data.filled(value)
