"""Which source samples an array or a group: plain arrays, and the encodings of AnnData."""

from __future__ import annotations

from collections.abc import Mapping

from zarrow._zarrow import Array, Group
from zarrow.anndata import elements, sparse
from zarrow.anndata.encoding import encoding_of
from zarrow.data.nullable_rows import NullableRows
from zarrow.data.rows import Rows
from zarrow.data.sources import Source
from zarrow.data.sparse_rows import SparseRows

_NULLABLE = (*elements.NULLABLE, "nullable-string-array")
# The name of a source that was given without one.
SOLE = ""


def called(name: str) -> str:
    """Return what a message calls a source."""
    return "the source" if name == SOLE else f"source {name!r}"


def source_of(node: Array | Group) -> Source:
    """Return the rows of an array, or of a sparse matrix or a column of AnnData."""
    encoding = encoding_of(node) if isinstance(node, Group) else ""
    if isinstance(node, Group):
        if encoding in sparse.FORMATS:
            return SparseRows(node)
        if encoding in _NULLABLE:
            return NullableRows(node)
        if encoding == "categorical":
            return Rows(node.get_array("codes"))
        raise TypeError(
            f"a source is an array, a sparse matrix or a column, found the group {node.name!r}: pass one of "
            f"its members, {sorted(node)[:8]}"
        )
    if isinstance(node, Array) and not node.ndim:
        raise ValueError(
            f'array {node.name!r} has no axes, and so no samples: choose others by name, as fields=["x", "y"]'
        )
    return Rows(node)


def members_of(group: Group) -> Mapping[str, Array | Source | Group]:
    """Return what a plan of a group samples: the group itself, its columns, or its arrays."""
    encoding = encoding_of(group)
    if encoding in (*sparse.FORMATS, *_NULLABLE, "categorical"):
        return {SOLE: source_of(group)}
    if encoding == "dataframe":
        return dict(group.items())
    if encoding == "anndata":
        raise ValueError(
            f"{group.name!r} is an AnnData with parts of different lengths: choose some by name, "
            'as fields=["X", "obs/label"]'
        )
    found = dict(group.arrays())
    if not found:
        raise ValueError(f"group {group.name!r} has no arrays: pass a dict of arrays")
    return found
