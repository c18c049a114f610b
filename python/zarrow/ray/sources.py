"""Finds the store and the arrays that a dataset reads or writes, and describes arrays in a schema.

1. A path is made absolute, because workers have other working folders.
2. A file system is asked only if it is given: otherwise the engine opens the store itself.
3. The description of arrays is JSON in the metadata of the schema, once, and not in each row.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import fsspec
import pyarrow.fs

from zarrow._zarrow import Array, CloudStore, Group, MemoryStore
from zarrow.errors import NotFoundError
from zarrow.jobs.work import located

# The key of the description in a schema's metadata.
KEY = b"zarr"


def opened_store(path: Any, filesystem: Any) -> Any:
    """Return the store at a path, as other processes open it (steps 1 and 2).

    Raises
    ------
    TypeError
        The file system is of another library than fsspec and pyarrow, or other processes have no such store.
    """
    if isinstance(path, MemoryStore):
        raise TypeError("workers of Ray do not see a MemoryStore of this process: use a folder or a URL")
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if not isinstance(path, str):
        if filesystem is not None:
            raise TypeError(f"a file system needs a path, got {type(path).__name__}")
        return path
    path = path.removeprefix("local://")
    if filesystem is None or isinstance(filesystem, pyarrow.fs.LocalFileSystem):
        scheme, anonymous, rest = path.partition("://anonymous@")
        return CloudStore(f"{scheme}://{rest}", {"anon": True}) if anonymous else located(path)
    if isinstance(filesystem, pyarrow.fs.FileSystem):
        from fsspec.implementations.arrow import ArrowFSWrapper

        filesystem = ArrowFSWrapper(filesystem)
    elif not isinstance(filesystem, fsspec.AbstractFileSystem):
        raise TypeError(
            "filesystem must be pyarrow.fs.FileSystem or fsspec.spec.AbstractFileSystem, got "
            f"{type(filesystem).__name__}"
        )
    if filesystem.protocol == "zip" and path.endswith(".zip"):
        return filesystem.get_mapper("")
    return filesystem.get_mapper(path.partition("://")[2] or path)


def normalized(path: str) -> str:
    """Return the path of a node without superfluous slashes."""
    return "/".join(part for part in re.split(r"[/\\]", path) if part)


def selected(
    root: Array | Group, array_paths: Iterable[str] | None, allow_full_metadata_scan: bool
) -> dict[str, Array]:
    """Return the arrays to read, by their paths.

    Raises
    ------
    ValueError
        There is no such array; or no path is given, and the metadata are not consolidated.
    """
    requested = {normalized(path): path for path in array_paths} if array_paths else None
    if isinstance(root, Array):
        if requested is not None and set(requested) != {""}:
            raise ValueError(
                f"This Zarr store is a single root-level array (path ''), but array_paths={array_paths!r} "
                "requested other path(s). Pass array_paths=[''] or omit it."
            )
        return {"": root}
    if requested is not None:
        return {path: _requested(root, path, given) for path, given in sorted(requested.items())}
    if not root._is_consolidated() and not allow_full_metadata_scan:
        raise ValueError(
            "No array_paths were provided and this Zarr store does not contain consolidated metadata "
            "(.zmetadata). Pass array_paths=[...] or set allow_full_metadata_scan=True."
        )
    members = root.members(max_depth=None)
    return {path: node for path, node in sorted(members) if isinstance(node, Array)}


def _requested(root: Group, path: str, given: str) -> Array:
    try:
        found = root[path]
    except NotFoundError as error:
        raise ValueError(f"Array path {given!r} not found in Zarr store.") from error
    if not isinstance(found, Array):
        raise ValueError(f"Array path {given!r} is a group, not an array.")
    return found


def description(root: Array | Group, arrays: Mapping[str, Array]) -> bytes:
    """Return the attributes and the layout of arrays as JSON (step 3)."""
    found = {
        "attributes": dict(root.attrs) if isinstance(root, Group) else {},
        "arrays": {
            path: {
                "attributes": dict(array.attrs),
                "shape": array.shape,
                "dtype": array.data_type,
                "chunks": array.chunks,
                "shards": array.shards,
                "dimension_names": array.dimension_names,
                "zarr_format": array.zarr_format,
            }
            for path, array in arrays.items()
        },
    }
    return json.dumps(found).encode()


def described(schema: Any) -> dict[str, Any]:
    """Return the description in a schema, empty without one."""
    schema = getattr(schema, "base_schema", schema)
    text = (getattr(schema, "metadata", None) or {}).get(KEY)
    return json.loads(text) if text else {}
