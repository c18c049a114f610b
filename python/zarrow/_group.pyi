"""The class Group."""

from collections.abc import Iterator
from typing import Any, final

from zarrow._array import Array
from zarrow._tree import Tree

@final
class Group:
    """A group of arrays and groups in a store.

    Examples
    --------
    >>> import zarrow
    >>> root = zarrow.open("data.zarr")
    >>> "model/pressure" in root, list(root)
    (True, ['model', 'nickname', 'station', 'temperature', 'turbidity_on_land'])
    """

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, as a new dict."""
    @property
    def path(self) -> str:
        """The path in the store, without a slash before it; "" is the root."""
    @property
    def name(self) -> str:
        """The path in the store, with a slash before it."""
    @property
    def store(self) -> str:
        """The store, as it calls itself."""
    @property
    def zarr_format(self) -> int:
        """The version of the Zarr format: 2 or 3."""
    def __getitem__(self, path: str, /) -> Any:
        """Give the Array or Group at a path below, such as "model/pressure".

        Raises
        ------
        NotFoundError
            There is none (a `KeyError`).
        MetadataError
            Its metadata is malformed (a `ValueError`).
        """
    def __contains__(self, path: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def keys(self) -> list[str]:
        """List the names of the members, sorted."""
    def values(self) -> list[Any]:
        """List the members, sorted by name."""
    def items(self) -> list[tuple[str, Any]]:
        """List the members with their names, sorted."""
    def arrays(self) -> list[tuple[str, Array]]:
        """List the arrays with their names, sorted."""
    def groups(self) -> list[tuple[str, Group]]:
        """List the groups with their names, sorted."""
    def tree(self, depth: int | None = None) -> Tree:
        """Draw what is below the group, as a tree to print; depth limits the levels."""
