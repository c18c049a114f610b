"""Creating many nodes, and writing to many arrays, in one call."""

from collections.abc import Sequence
from typing import Any, Literal, Self, final

from zarrow.arrays._array import Array
from zarrow.groups._group import Group

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

def _create_all(
    target: Any, nodes: Sequence[_NewNode], *, consolidate: str | None = None, durability: str = "none"
) -> list[Array | Group]: ...
def _write_many(
    items: Sequence[tuple[Any, Any, Any]],
    *,
    durability: str | None = None,
    write_empty_chunks: bool = False,
    casting: str = "same_kind",
) -> None: ...
