"""Hints for unknown names of decoded arrays, on the CPU or a GPU: what to type instead."""

from __future__ import annotations

import sys
from typing import Any

from zarrow import _zarrow
from zarrow.arrays.arithmetic import BINARY, METHODS
from zarrow.hints.close_names import close_name, to_type
from zarrow.hints.ways_through_libraries import other_accessors, way_through_others


def of_decoded(array: Any, name: str) -> str:
    """Return what to type for a name that a decoded array does not have; "" if unknown."""
    if name in ("torch", "jax"):
        return f"{name} has no arrays of text: type .numpy() or .arrow()"
    text = _of_elements(array, name)
    return text if is_for_type(array.dtype, text) else by_pandas(array, name, "type x")


# Functions of numbers, which have none of text and structures, and some none of dates.
_OF_NUMBERS = (".torch()", ".jax()", "nan_to_num", "isnan", "nanmean", "numpy.real", "numpy.imag")


def is_for_type(dtype: Any, text: str) -> bool:
    """Return whether what a hint says to type takes elements of the type."""
    if dtype.kind in "mM":
        return not any(way in text for way in _OF_NUMBERS[:3])
    if dtype.names is not None:
        return not any(way in text for way in (*_OF_NUMBERS, ".arrow()"))
    return dtype.kind not in "OSTU" or not any(way in text for way in _OF_NUMBERS)


def by_pandas(array: Any, name: str, start: str) -> str:
    """Say how to reach a name of a Series of pandas, which has text and dates."""
    from zarrow.hints.names_of_others import PANDAS_SERIES

    if array.dtype.kind in "mM" and name in ("long", "int", "float", "double"):
        return f'{start}.astype("int64"), in units of {array.dtype.name.partition("[")[2][:-1]}'
    is_column = array.ndim == 1 and array.dtype.names is None and name not in other_accessors(array)
    return f"{start}.arrow().to_pandas().{name}" if is_column and name in PANDAS_SERIES else ""


def _of_elements(array: Any, name: str) -> str:
    from zarrow.hints.familiar_names import ARRAY, DECODED, TEXT

    if name in TEXT and array.dtype.kind in "TU":
        return to_type(TEXT[name])
    if name in DECODED:
        return to_type(for_layout(array, DECODED[name]).replace("{tensor}", "x"))
    if is_in_place(name):
        return f"type x.torch().{name}, which shares the memory"
    way = way_through_others(array, name)
    if not way and hasattr(_zarrow.Array, name):
        return f"type array.{name}, of the Array that was read"
    if not way and name in ARRAY and "{store}" not in ARRAY[name] and "{parent}" not in ARRAY[name]:
        text = to_type(ARRAY[name].replace("{array}", "array"))
        return f"{text}, of the Array that was read" if text.startswith("type ") else text
    return f"type {way}" if way else ""


def is_in_place(name: str) -> bool:
    """Return whether a name is that of a method of PyTorch that changes its tensor, such as `abs_`."""
    from zarrow.hints.names_of_others import TORCH_TENSOR

    plain = name.removesuffix("_")
    return plain != name and (plain in TORCH_TENSOR or plain in METHODS or plain in BINARY)


def for_layout(array: Any, text: str) -> str:
    """Return the part of a text that holds for the layout, and for the number of axes."""
    plain, _, of_masked = text.partition("; of a masked layout ")
    if of_masked:
        text = "x" + of_masked if of_masked.startswith(".") else of_masked
        text = text if isinstance(array, _zarrow.MaskedTensor | _zarrow.MaskedVariable) else plain
    way = ".arrow().to_pandas()"
    if array.ndim == 1 or way not in text:
        return text
    if array.ndim == 2:
        return text.replace("{tensor}" + way, "pandas.DataFrame({tensor}.numpy())").replace(".to_frame()", "")
    rest = [part for part in text.split(", or ") if way not in part]
    series = text.replace("{tensor}" + way, "xarray.DataArray({tensor}.numpy()).to_series()")
    return ", or ".join(rest) or series


def for_device_tensor(name: str) -> str:
    """Return what to type for a name that a tensor of a GPU does not have."""
    from zarrow.hints.familiar_names import DECODED, DEVICE

    np = _zarrow._import("numpy")
    torch = sys.modules.get("torch")
    if name in DEVICE:
        return to_type(DEVICE[name])
    if name in METHODS or hasattr(np.ndarray, name):
        return f"type x.torch().{name}, which shares the memory (or .cupy(), .jax()), or x.cpu().{name}"
    if name in DECODED or hasattr(getattr(torch, "Tensor", None), name):
        return f"type x.torch().{name}, which shares the memory"
    if close := close_name(name, dir(_zarrow.DeviceTensor)):
        return close
    return ".torch(), .cupy() and .jax() share its memory and compute, .cpu() is a copy on the CPU"
