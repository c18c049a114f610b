"""What the type of an object, or the attributes of a node, say about AnnData's format."""

from __future__ import annotations

from typing import Any

from zarrow._zarrow import Array, Group


def is_anndata(value: Any) -> bool:
    """Return whether a value is an AnnData object; anndata is not imported."""
    return any(
        parent.__name__ == "AnnData" and parent.__module__.partition(".")[0] == "anndata"
        for parent in type(value).__mro__
    )


def encoding_of(node: Array | Group) -> str:
    """Return the attribute `encoding-type`; "" if there is none."""
    return str(node._attributes().get("encoding-type", ""))
