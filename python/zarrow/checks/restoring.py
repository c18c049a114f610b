"""Restores the documents of a node from a copy, if the stored chunks have the copy's elements."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, _ChunkParts, _StoredValues
from zarrow.checks.comparing import differs
from zarrow.checks.nodes import chunks_in, parts
from zarrow.checks.verifying import DOCUMENTS, joined
from zarrow.errors import ZarrowError


def restore(location: Any, path: str, copy: Array | Group, dry_run: bool) -> str | None:
    """Write the documents of the copy at a path, unless `dry_run`; return why it cannot be done, or None."""
    documents = _documents_of(copy)
    values = _StoredValues(location, create=False)
    present = {name for name in values.list(path) if name in DOCUMENTS}
    other = present & ({"zarr.json"} if "zarr.json" not in documents else DOCUMENTS - {"zarr.json"})
    if other:
        return f"the copy has another format version, {sorted(other)} is here"
    if isinstance(copy, Array):
        name = "zarr.json" if "zarr.json" in documents else ".zarray"
        handle = _ChunkParts(location, path, copy.zarr_format, documents[name])
        place = _first_difference(handle.array(copy.shape), copy)
        if place is not None:
            return f"its chunks differ from the copy's, first at {list(place)}"
    if not dry_run:
        if ".zattrs" in present and _is_object(values.get_each([joined(path, ".zattrs")])[0]):
            documents.pop(".zattrs", None)
        elif ".zattrs" in present and ".zattrs" not in documents:
            values.erase(joined(path, ".zattrs"))
        for name, document in documents.items():
            values.set(joined(path, name), document)
    return None


def _is_object(document: bytes | None) -> bool:
    """Return whether a document is a JSON object."""
    try:
        return isinstance(json.loads(document or b""), dict)
    except ValueError:
        return False


def _documents_of(node: Array | Group) -> dict[str, bytes]:
    """Return the documents of a node, without those of other nodes."""
    location, path = node.__reduce__()[1][:2]
    # The document that makes the node comes last.
    names = [".zattrs", ".zarray" if isinstance(node, Array) else ".zgroup"]
    names = names if node.zarr_format == 2 else ["zarr.json"]
    found = _StoredValues(location, create=False).get_each([joined(path, name) for name in names])
    documents = {name: value for name, value in zip(names, found, strict=True) if value is not None}
    if isinstance(node, Group) and "zarr.json" in documents:
        document = json.loads(documents["zarr.json"])
        if isinstance(document, dict) and document.pop("consolidated_metadata", None) is not None:
            documents["zarr.json"] = json.dumps(document, indent=2).encode()
    return documents


def _first_difference(array: Array, copy: Array) -> tuple[int, ...] | None:
    """Return the place of the first readable chunk with other elements than the copy."""
    chunk = array.chunks
    for region in parts(array):
        for place, part in [((), region)] if chunk is None else chunks_in(region, chunk):
            try:
                left = np.asanyarray(array.read(part).numpy())
            except ZarrowError:
                continue
            if np.any(differs(left, np.asanyarray(copy.read(part).numpy()))):
                return place
    return None
