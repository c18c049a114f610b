"""Hints for unknown names of an `Array`, which is in the store: names that compute need a read first."""

from __future__ import annotations

from typing import Any

from zarrow import _zarrow
from zarrow.arrays.arithmetic import METHODS, REDUCTIONS
from zarrow.hints.close_names import close_name, to_type
from zarrow.hints.names_on_decoded_arrays import by_pandas, for_layout, is_for_type, is_in_place
from zarrow.hints.ways_through_libraries import way_through_others

# Attributes of the CF conventions, which are attributes of netCDF variables in Python.
_CF_ATTRIBUTES = frozenset(("units", "long_name", "standard_name", "scale_factor", "add_offset"))


def of_array(array: Any, name: str) -> str:
    """Return what to type for a name that an `Array` does not have; "" if unknown."""
    from zarrow.hints.familiar_names import TEXT

    text = _of_stored(array, name)
    if is_for_type(array.dtype, text):
        return text
    if name in TEXT and array.dtype.kind in "TU":
        return f"read the array first: {to_type(TEXT[name].replace('x.', 'array[...].'))}"
    if name in ("torch", "jax"):
        return f"{name} has no elements of {array.dtype}: type array[...].numpy() or array[...].arrow()"
    return by_pandas(array, name, "read the array first: type array[...]")


def _of_stored(array: Any, name: str) -> str:
    from zarrow.hints.familiar_names import ARRAY, DECODED
    from zarrow.hints.names_of_others import XARRAY_ARRAY

    if name in _CF_ATTRIBUTES and name not in array.attrs:
        return f'this array has no attribute {name!r}: type array.attrs["{name}"] = value to store one'
    if name in ARRAY:
        return to_type(ARRAY[name].replace("{array}", "array"))
    if is_in_place(name):
        return f"type array[...] = array[...].torch().{name}(...), which stores the result"
    if hasattr(_zarrow.Tensor, name) or name in METHODS:
        return f"read the array first, as array[...].{name}{_axes_by_name(array, name)}"
    if name in array.attrs:
        return f'type array.attrs["{name}"]'
    if array.dimension_names and name in XARRAY_ARRAY:
        return f"type xarray.DataArray(array[...].numpy()).{name}"
    if name in DECODED:
        text = for_layout(array, DECODED[name]).replace("{tensor}", "array[...]")
        return to_type(text) if text.startswith("nothing: ") else f"read the array first: type {text}"
    if name.endswith("_async") and hasattr(array, name.removesuffix("_async")):
        return f"type await asyncio.to_thread(array.{name.removesuffix('_async')}, ...)"
    if close_name(name, dir(type(array))):
        return ""
    way = way_through_others(array, name)
    way = way.replace("(x", "(array[...]") if "(x" in way else way.replace("x.", "array[...].", 1)
    return way and f"read the array first: type {way}"


def _axes_by_name(array: Any, name: str) -> str:
    """Say which axis a dimension is, for methods that xarray's users call with its name."""
    names = array.dimension_names if name in REDUCTIONS else None
    axes = [f'axis={axis} for "{label}"' for axis, label in enumerate(names or ()) if label]
    return f", with {', '.join(axes)}" if axes else ""
