"""The class MemoryStore."""

from typing import Any, Self, final

@final
class MemoryStore:
    """A store in memory, for tests and for small hierarchies that never touch a disk.

    Arrays and groups opened in the store keep it alive. It pickles with all its values.

    Parameters
    ----------
    values
        Initial values: bytes by key, such as `"model/zarr.json"`.

    Raises
    ------
    InvalidKeyError
        A key is invalid (a `ValueError`).

    Examples
    --------
    >>> import zarrow
    >>> store = zarrow.MemoryStore()
    >>> zarrow.save(store, x=[1, 2, 3])
    >>> zarrow.open(store)["x"][:].tolist(), list(store.to_dict())
    ([1, 2, 3], ['x/c/0', 'x/zarr.json', 'zarr.json'])
    """

    def __new__(cls, values: dict[str, bytes] | None = None, /) -> Self: ...
    def to_dict(self) -> dict[str, bytes]:
        """Return a copy of all values by their keys."""
    def __reduce__(self) -> tuple[Any, ...]: ...
