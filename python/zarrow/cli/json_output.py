"""The JSON that the command prints, for programs that read it: nodes, and other results."""

from __future__ import annotations

import json
import math
from typing import Any

import zarrow
from zarrow.api.json_values import mapped
from zarrow.groups.descent import Way


def describe(node: zarrow.Array | zarrow.Group) -> dict[str, Any]:
    """Describe a node: its location, its metadata in the form of version 3, and the sizes of an array."""
    described: dict[str, Any] = {
        "kind": "array" if isinstance(node, zarrow.Array) else "group",
        "path": f"/{node.path}",
        "store": node.store,
        "zarr_format": node.zarr_format,
    }
    if isinstance(node, zarrow.Array):
        described |= {
            "shape": list(node.shape),
            "data_type": node.data_type,
            "chunks": None if node.chunks is None else list(node.chunks),
            "shards": None if node.shards is None else list(node.shards),
            "dimension_names": None if node.dimension_names is None else list(node.dimension_names),
            "fill_value": node.metadata.get("fill_value"),
            "codecs": node.metadata.get("codecs"),
            "nbytes": node.nbytes,
            "nbytes_stored": node.nbytes_stored(),
        }
    return described | {"attributes": dict(node.attrs)}


def describe_briefly(node: zarrow.Array | zarrow.Group | Exception) -> dict[str, Any]:
    """Describe a member of a group, without looking at its chunks."""
    if isinstance(node, Exception):
        return {"error": str(node), "kind": getattr(node, "kind", "")}
    if isinstance(node, zarrow.Group):
        return {"kind": "group"}
    return {"kind": "array", "shape": list(node.shape), "data_type": node.data_type, "nbytes": node.nbytes}


def describe_tree(
    node: zarrow.Array | zarrow.Group, depth: int | None, above: Way | None = None
) -> dict[str, Any]:
    """Describe a node and `depth` levels of members: unreadable members are described by their errors."""
    described = describe(node)
    if isinstance(node, zarrow.Group) and (depth is None or depth > 0):
        below = None if depth is None else depth - 1
        way = (above or Way()).to(node)
        described["members"] = {name: _member(node, name, below, way) for name in node}
    return described


def as_json(described: dict[str, Any]) -> str:
    """Write a description as JSON: numbers that JSON does not have are text, as Zarr writes them."""
    return json.dumps(mapped(described, _plain), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return a number or text as JSON has it."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
        case complex():
            return [_plain(value.real), _plain(value.imag)]
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)


def _member(group: zarrow.Group, name: str, depth: int | None, way: Way) -> dict[str, Any]:
    try:
        return describe_tree(group[name], depth, way)
    except zarrow.ZarrowError as error:
        return {"error": str(error), "kind": error.kind}
