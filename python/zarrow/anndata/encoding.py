"""What the type of an object, or the attributes of a node, say about AnnData's format."""

from __future__ import annotations

from typing import Any

from zarrow._zarrow import Array, Group
from zarrow.errors import MetadataError, ShapeError

# Attributes of the root until an AnnData is stored completely.
UNFINISHED = {"encoding-type": "unfinished-anndata", "encoding-version": "0.1.0"}
# Attributes of a group until all rows of a table are stored.
UNFINISHED_TABLE = {"encoding-type": "unfinished-table", "encoding-version": "0.1.0"}


def is_anndata(value: Any) -> bool:
    """Return whether a value is an AnnData object; anndata is not imported."""
    return any(
        parent.__name__ == "AnnData" and parent.__module__.partition(".")[0] == "anndata"
        for parent in type(value).__mro__
    )


def encoding_of(node: Array | Group) -> str:
    """Return the attribute `encoding-type`; "" if there is none."""
    return str(node._attributes().get("encoding-type", ""))


def refuse_unfinished(group: Group) -> None:
    """Refuse to read a table with rows that are not stored yet.

    Raises
    ------
    MetadataError
        The group is one.
    """
    if encoding_of(group) != UNFINISHED_TABLE["encoding-type"]:
        return
    # Another handle or process may have finished it.
    group.refresh()
    if encoding_of(group) == UNFINISHED_TABLE["encoding-type"]:
        raise MetadataError(
            f"{group.name!r} is an unfinished table: its writer is running, or it failed; compute what "
            "to_table(..., compute=False) returned, or write the table again with mode='w'",
            node=group,
        )


def refuse_no_table(group: Group, method: str) -> None:
    """Refuse to read a group as a table by a method, if it is no table: an AnnData, a matrix, or one column.

    Raises
    ------
    ShapeError
        The group is one; the message says what reads it.
    """
    encoding = encoding_of(group)
    if encoding == "anndata":
        found = f'is an AnnData, and its tables are obs and var: type group["obs"].{method}()'
    elif encoding in ("csr_matrix", "csc_matrix"):
        found = "is a sparse matrix: type group.to_scipy()"
    elif encoding.startswith(("categorical", "nullable-")):
        found = "is one column: type group.read(), or read the table that it belongs to"
    else:
        return
    raise ShapeError(f"{group.name!r} {found}", node=group)


def finish(group: Group, attributes: dict[str, Any]) -> None:
    """Store attributes of a table, and remove the mark of an unfinished one in the same write."""
    if "encoding-type" not in attributes and encoding_of(group) == UNFINISHED_TABLE["encoding-type"]:
        group.refresh()
        found = group._attributes()
        if found.get("encoding-type") == UNFINISHED_TABLE["encoding-type"]:
            others = {key: value for key, value in found.items() if key not in UNFINISHED_TABLE}
            return group.attrs.put({**others, **attributes})
    return group.attrs.update(attributes)


# The version of each encoding that anndata 0.13 reads.
KNOWN = {
    "": "",
    "anndata": "0.1.0",
    "array": "0.2.0",
    "awkward-array": "0.1.0",
    "bytes": "0.2.0",
    "categorical": "0.2.0",
    "csc_matrix": "0.1.0",
    "csr_matrix": "0.1.0",
    "dataframe": "0.2.0",
    "dict": "0.1.0",
    "null": "0.1.0",
    "nullable-boolean": "0.1.0",
    "nullable-integer": "0.1.0",
    "nullable-string-array": "0.1.0",
    "numeric-scalar": "0.2.0",
    "raw": "0.1.0",
    "rec-array": "0.2.0",
    "string": "0.2.0",
    "string-array": "0.2.0",
}


def is_known(node: Array | Group) -> bool:
    """Return whether anndata 0.13 reads an encoding of this type and version."""
    version = node._attributes().get("encoding-version", "")
    encoding = encoding_of(node)
    return version == KNOWN.get(encoding) or (encoding, version) == ("dataframe", "0.1.0")
