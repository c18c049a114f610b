"""Creating one node or many, in one call."""

from collections.abc import Sequence
from typing import Any, Literal, Self, final

from zarrow.arrays._array import Array
from zarrow.groups._group import Group

def _create_array(
    target: Any,
    path: str,
    dtype: Any,
    fill_value: Any,
    description: dict[str, Any],
    *,
    data: Any,
    parts: Any,
    overwrite: bool | Literal["array"],
    durability: str,
) -> Array: ...
def _create_group(
    target: Any, path: str, attributes: dict[str, Any], *, zarr_format: int, overwrite: bool, durability: str
) -> Group: ...

@final
class _NewNode:
    def __new__(
        cls,
        path: str,
        documents: dict[str, dict[str, Any] | str | bytes],
        *,
        data: Any = None,
        existing: Literal["refuse", "erase", "array", "keep"] = "refuse",
        write_empty_chunks: bool = False,
    ) -> Self: ...

def _is_remote(store: Any) -> bool: ...
def _new_array(
    path: str,
    dtype: Any,
    fill_value: Any,
    description: dict[str, Any],
    *,
    data: Any,
    overwrite: bool | Literal["array"],
) -> _NewNode: ...
def _create_all(
    target: Any,
    nodes: Sequence[_NewNode],
    *,
    consolidate: str | None = None,
    attributes_last: tuple[str, dict[str, Any]] | None = None,
    durability: str = "none",
) -> list[Array | Group]: ...
