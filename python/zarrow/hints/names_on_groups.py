"""Hints for unknown names of a group and of its attributes: a member may have the name, or its arrays."""

from __future__ import annotations

import contextlib
from typing import Any

from zarrow import _zarrow
from zarrow.errors import ZarrowError
from zarrow.hints.close_names import close_name, to_type
from zarrow.hints.ways_through_libraries import way_to_a_table


def of_group(group: Any, name: str) -> str:
    """Return what to type for a name that a group does not have; "" if unknown."""
    from zarrow.hints.familiar_names import GROUP
    from zarrow.hints.kinds_of_groups import for_name, is_for, kind_of

    kind = kind_of(group)
    if text := for_name(group, kind, name):
        return text
    text = GROUP.get(name, "").replace("{group}", "group")
    if text and is_for(kind, text):
        return to_type(text if kind else _of_some_columns(text))
    is_of_array = hasattr(_zarrow.Array, name)
    if name.endswith("_async") and not is_of_array and hasattr(group, name.removesuffix("_async")):
        return f"type await asyncio.to_thread(group.{name.removesuffix('_async')}, ...)"
    if close_name(name, dir(type(group))):
        return ""
    with contextlib.suppress(ZarrowError):  # the store may be gone
        if name in group:
            return f'type group["{name}"]'
        if name in group.attrs:
            return f'type group.attrs["{name}"]'
    return _way_to_members(kind, name)


def _of_some_columns(text: str) -> str:
    """Select columns in a hint for a group that is no table: its arrays differ in length."""
    import re

    return re.sub(r"group\.to_(arrow|pandas|polars)\(\)", r'group.to_\1(["name"])', text)


def _way_to_members(kind: str, name: str) -> str:
    """Say how to reach a name of tables, datasets or arrays from a group."""
    from zarrow.hints.familiar_names import ARRAY, DECODED
    from zarrow.hints.names_of_others import XARRAY_ARRAY

    if kind not in ("", "table", "grid"):
        return ""
    if hasattr(_zarrow.Array, name):
        return f'arrays have it, and groups do not: type group["name"].{name}'
    if kind != "grid" and (way := way_to_a_table(name, "group.to_arrow()")):
        return f"type {way if kind else _of_some_columns(way)}"
    if name in XARRAY_ARRAY and kind != "table":
        way = "zarrow.xarray.open_zarr(path)" if kind else 'xarray.DataArray(group["name"][...].numpy())'
        return f"type {way}.{name}"
    if hasattr(_zarrow.Tensor, name):
        return f'a group is not one array: type group["name"][...].{name}'
    if name in ARRAY:
        return to_type(ARRAY[name].replace("{array}", 'group["name"]'))
    text = DECODED.get(name, "").partition("; of a masked layout ")[0]
    return to_type(text.replace("{tensor}", 'group["name"][...]')) if text else ""


def of_attributes(attributes: Any, name: str) -> str:
    """Return what to type for a name that the attributes of a node do not have."""
    if name in attributes:
        return f'type attrs["{name}"]'
    if name in ("create", "modify"):
        return 'type attrs["name"] = value'
    if name in ("copy", "dict", "to_dict"):
        return "type attrs.asdict()"
    if name in ("delete", "remove"):
        return 'type del attrs["name"]'
    if name == "has_key":
        return 'type "name" in attrs'
    if name == "append":
        return 'type attrs["name"] = [*attrs["name"], value]'
    if name == "refresh":
        return "nothing is cached: leave .refresh() out"
    return close_name(name, dir(type(attributes))) or f'type attrs["{name}"] = value to store one'
