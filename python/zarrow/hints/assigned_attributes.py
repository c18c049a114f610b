"""Hints for attributes that are assigned, such as `array.shape = (10, 20)`: what to type instead."""

from __future__ import annotations

from typing import Any

from zarrow import _zarrow
from zarrow.groups.attributes import Attributes

# What to type for properties that other libraries let one set.
_SETTERS: dict[str, dict[type, str]] = {
    "shape": {_zarrow.Array: "array.resize(shape)", _zarrow.DecodedArray: "x.reshape(shape)"},
    "dtype": {
        _zarrow.Array: 'group["new"] = array[...].astype(dtype)',
        _zarrow.DecodedArray: "x.astype(dtype), or x.numpy().view(dtype)",
    },
    **{
        name: {_zarrow.Array: f"zarrow.copy(array, target), with {option}=..., which stores a new array"}
        for name, option in (
            ("chunks", "chunks"),
            ("shards", "shards"),
            ("compressor", "compressors"),
            ("compressors", "compressors"),
            ("filters", "filters"),
        )
    },
    **{
        name: {_zarrow.Array: f"zarrow.create_array(store, data=array[...], {option}=...)"}
        for name, option in (
            ("fill_value", "fill_value"),
            ("dims", "dimension_names"),
            ("dimension_names", "dimension_names"),
        )
    },
    "name": {
        _zarrow.Array: 'group["new"] = array, then del group["old"]',
        _zarrow.Group: 'group["new"] = group["old"], then del group["old"]',
    },
    "flat": {_zarrow.DecodedArray: "x[...] = value"},
    "data": {_zarrow.Array: "array[...] = values", _zarrow.DecodedArray: "x[...] = values"},
    "values": {_zarrow.Array: "array[...] = values", _zarrow.DecodedArray: "x[...] = values"},
}


def set_attribute(self: Any, name: str, value: Any, /) -> None:
    """Set an attribute, or raise an AttributeError that says what to type."""
    try:
        object.__setattr__(self, name, value)
    except AttributeError as error:
        ways = [way for owner, way in _SETTERS.get(name, {}).items() if isinstance(self, owner)]
        if isinstance(self, Attributes):
            ways = [f'attrs["{name}"] = value']
        elif not ways and isinstance(self, _zarrow.Group):
            ways = [f'group["{name}"] = value, or group.attrs["{name}"] = value']
        elif not ways and isinstance(self, _zarrow.Array) and not hasattr(type(self), name):
            ways = [f'array.attrs["{name}"] = value']
        if not ways:
            raise
        raise AttributeError(f"{error}: type {ways[0]}", name=name) from None
