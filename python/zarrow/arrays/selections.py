"""Selections of an Array by zarr-python's names: each has a shorter one here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from zarrow._zarrow import Array
from zarrow.arrays.methods import add_method

if TYPE_CHECKING:
    from zarrow.arrays._array import _Index

Fields: TypeAlias = str | Sequence[str] | None
"""The name of a field of structures, or several."""


def add_to_class() -> None:
    """Give the class Array these methods."""
    for function in (
        get_basic_selection,
        get_block_selection,
        get_coordinate_selection,
        get_mask_selection,
        get_orthogonal_selection,
        set_basic_selection,
        set_block_selection,
        set_coordinate_selection,
        set_mask_selection,
        set_orthogonal_selection,
    ):
        add_method(Array, function.__name__, function)


def _with_fields(selection: Any, fields: Fields) -> Any:
    """Put names of fields before the rest of an index, where `__getitem__` finds them."""
    if fields is None:
        return selection
    if not isinstance(fields, str | list | tuple):
        raise TypeError(f"expected fields as a name or a list of names, got {type(fields).__name__}")
    names = fields if isinstance(fields, str) else list(fields)
    return (names, *selection) if isinstance(selection, tuple) else (names, selection)


def get_basic_selection(
    self: Array, selection: _Index = ..., *, out: Any = None, fields: Fields = None
) -> Any:
    """Read a selection, as `read` does; `fields` names a field of structures, or several."""
    return self.read(_with_fields(selection, fields), out=out)


def set_basic_selection(self: Array, selection: _Index, value: Any, *, fields: Fields = None) -> None:
    """Write to a selection: `write` by zarr-python's name."""
    self.write(_with_fields(selection, fields), value)


def get_orthogonal_selection(
    self: Array, selection: _Index, *, out: Any = None, fields: Fields = None
) -> Any:
    """Combine lists: `oindex.read` by zarr-python's name; `fields` as for `get_basic_selection`."""
    return self.oindex.read(_with_fields(selection, fields), out=out)


def set_orthogonal_selection(self: Array, selection: _Index, value: Any, *, fields: Fields = None) -> None:
    """Write to combined lists: `oindex.write` by zarr-python's name."""
    self.oindex.write(_with_fields(selection, fields), value)


def get_coordinate_selection(
    self: Array, selection: _Index, *, out: Any = None, fields: Fields = None
) -> Any:
    """Read points: `vindex.read` by zarr-python's name; `fields` as for `get_basic_selection`."""
    return self.vindex.read(_with_fields(selection, fields), out=out)


def set_coordinate_selection(self: Array, selection: _Index, value: Any, *, fields: Fields = None) -> None:
    """Write to points: `vindex.write` by zarr-python's name."""
    self.vindex.write(_with_fields(selection, fields), value)


def get_mask_selection(self: Array, mask: _Index, *, out: Any = None, fields: Fields = None) -> Any:
    """Read by a mask: `vindex.read` by zarr-python's name; `fields` as for `get_basic_selection`."""
    return self.vindex.read(_with_fields(mask, fields), out=out)


def set_mask_selection(self: Array, mask: _Index, value: Any, *, fields: Fields = None) -> None:
    """Write where a mask is true: `vindex.write` by zarr-python's name."""
    self.vindex.write(_with_fields(mask, fields), value)


def get_block_selection(self: Array, selection: _Index, *, out: Any = None, fields: Fields = None) -> Any:
    """Read chunks: `blocks.read` by zarr-python's name; `fields` as for `get_basic_selection`."""
    return self.blocks.read(_with_fields(selection, fields), out=out)


def set_block_selection(self: Array, selection: _Index, value: Any, *, fields: Fields = None) -> None:
    """Write chunks: `blocks.write` by zarr-python's name."""
    self.blocks.write(_with_fields(selection, fields), value)
