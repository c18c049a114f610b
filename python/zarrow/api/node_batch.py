"""Arrays and groups to be created together: in a remote store, each on its own takes several round trips.

`zarrow.api.creation` adds an array to a `NodeBatch` in place of a store or a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrow._zarrow import Array, Group, _create_all, _new_array, _NewNode

# Elements that wait in memory for the other nodes of a batch.
_MOST_NBYTES = 256 << 20

# Larger arrays keep a connection busy on their own, and take memory while they are converted.
SMALL_NBYTES = 4 << 20


class NotInBatchError(Exception):
    """The value is stored as a group, or part by part: create it on its own."""


class NodeBatch:
    """Nodes to be created together at and below a group or the root of a store.

    `create` creates them, or `add` once their elements exceed `most_nbytes`; None means no limit.
    """

    def __init__(self, target: Any, zarr_format: int, most_nbytes: int | None = _MOST_NBYTES) -> None:
        self.zarr_format = zarr_format
        self._most_nbytes = most_nbytes
        self._target = target
        self._nodes: list[_NewNode] = []
        self._nbytes = 0
        self._created: list[Array | Group] = []

    def add_group(self, path: str, attributes: Mapping[str, Any], *, keep: bool = False) -> None:
        """Add a group; with `keep`, an existing one stays and gets the attributes."""
        documents: dict[str, Any] = {
            "zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}
        }
        if self.zarr_format == 2:
            documents = {".zgroup": {"zarr_format": 2}, ".zattrs": dict(attributes)}
        self._nodes.append(_NewNode(path, documents, existing="keep" if keep else "refuse"))

    def add_documents(self, path: str, documents: Mapping[str, bytes]) -> None:
        """Add an array without elements, from its documents by name."""
        self._nodes.append(_NewNode(path, dict(documents)))

    def add_array(
        self,
        path: str,
        dtype: Any,
        fill_value: Any,
        description: dict[str, Any],
        *,
        data: Any,
        overwrite: Any,
    ) -> None:
        """Add an array, from arguments as for `_create_array`."""
        nbytes = getattr(data, "nbytes", None) or 0
        if self._most_nbytes is not None and self._nbytes and self._nbytes + nbytes > self._most_nbytes:
            self.create()
        node = _new_array(path, dtype, fill_value, description, data=data, overwrite=overwrite)
        self._nodes.append(node)
        self._nbytes += nbytes

    def create(
        self, *, consolidate: str | None = None, attributes_last: tuple[str, dict[str, Any]] | None = None
    ) -> list[Array | Group]:
        """Create the nodes that were added since the last call; return all in their order.

        `consolidate` is the path of a group that gets consolidated metadata at the end. `attributes_last` is
        the path of a group and attributes, which are stored last if the group is new.
        """
        nodes, self._nodes, self._nbytes = self._nodes, [], 0
        self._created += _create_all(
            self._target, nodes, consolidate=consolidate, attributes_last=attributes_last
        )
        return self._created


def is_small(value: Any) -> bool:
    """Return whether a value is created together with others."""
    if isinstance(value, Array | Group | dict):
        return False
    if isinstance(value, int | float | complex | str | bytes):
        return True
    if isinstance(value, list | tuple):
        return len(value) < 1000
    size_of_polars = getattr(value, "estimated_size", None)
    nbytes = getattr(value, "nbytes", None) if size_of_polars is None else size_of_polars()
    return isinstance(nbytes, int) and nbytes <= SMALL_NBYTES
