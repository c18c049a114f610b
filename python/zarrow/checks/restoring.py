"""Restores the documents of a node from a copy.

A wrong document makes sound chunks unreadable, and a wrong path would become a copy. So a trace of the node
is needed: of a group, a member of the copy; of an array, a stored chunk that reads as the copy does. Each
readable chunk must have the copy's elements, and each member the copy's version of Zarr.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from zarrow._zarrow import Array, Group, MemoryStore, _ChunkParts, _StoredValues
from zarrow.api.filled_arrays import full_like
from zarrow.checks.chunk_regions import chunks_in, parts
from zarrow.checks.comparing import differs
from zarrow.checks.verifying import DOCUMENTS
from zarrow.errors import ZarrowError
from zarrow.groups.places import joined
from zarrow.jobs.raw import documents_of


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
        problem = _problem_of_array(handle.array(copy.shape), copy, is_lost=not present)
    else:
        problem = _problem_of_group(values, path, copy, is_lost=not present)
    if problem is not None:
        return problem
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
    except (ValueError, RecursionError):
        return False


def _documents_of(node: Array | Group) -> dict[str, bytes]:
    """Return the documents of a node, without copies of its members."""
    location, path = node.__reduce__()[1][:2]
    # The document that makes the node comes last.
    names = [".zattrs", ".zarray" if isinstance(node, Array) else ".zgroup"]
    names = names if node.zarr_format == 2 else ["zarr.json"]
    documents = documents_of(_StoredValues(location, create=False), path, names)
    if isinstance(node, Group) and "zarr.json" in documents:
        document = json.loads(documents["zarr.json"])
        if isinstance(document, dict) and document.pop("consolidated_metadata", None) is not None:
            documents["zarr.json"] = json.dumps(document, indent=2).encode()
    return documents


def _problem_of_group(values: _StoredValues, path: str, copy: Group, *, is_lost: bool) -> str | None:
    """Return why the document of a group cannot be that of the copy."""
    others = DOCUMENTS - {"zarr.json"} if copy.zarr_format == 3 else {"zarr.json"}
    own = DOCUMENTS - others
    names = values.list(path)
    if is_lost and not set(names) & set(copy):
        return "no member of the copy is here"
    for name in names:
        found = set(values.list(joined(path, name)))
        if found & others and not found & own:
            return f"the copy has another format version than {name!r}"
    return None


def _problem_of_array(array: Array, copy: Array, *, is_lost: bool) -> str | None:
    """Return why the document of an array cannot be that of the copy."""
    chunk, is_readable, is_broken = array.chunks, False, False
    fill = full_like(array, array.fill_value, shape=(1,) * array.ndim, store=MemoryStore())[...].numpy()
    for region in parts(array):
        for place, part in [((), region)] if chunk is None else chunks_in(region, chunk):
            try:
                left = np.asanyarray(array.read(part).numpy())
            except ZarrowError:
                is_broken = True
                continue
            if np.any(differs(left, np.asanyarray(copy.read(part).numpy()))):
                return f"its chunks differ from the copy's, first at {list(place)}"
            is_readable = is_readable or bool(
                np.any(differs(left, np.broadcast_to(np.asanyarray(fill), left.shape)))
            )
    if (is_broken or is_lost) and not is_readable:
        return "no stored chunk can be read through the copy's metadata"
    return None
