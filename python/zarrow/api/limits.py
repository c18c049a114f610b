"""Limits that protect against hostile stores."""

from __future__ import annotations

import operator


class DecodeLimits:
    """Limits that protect against hostile stores; None is the default.

    A store that exceeds a limit is refused with a `LimitError` or a `MetadataError`, before memory is
    allocated.

    Parameters
    ----------
    max_chunk_nbytes
        Maximum decoded size of a chunk or shard, in bytes. Default: 1 TiB.
    max_variable_nbytes
        Maximum decoded size of a chunk of strings or bytes, in bytes. Default: 4 GiB.
    max_ratio
        Maximum ratio of a chunk's decoded size to its stored size. Default: 4,194,304.
    max_ndim
        Maximum number of axes. Default: 32.
    max_metadata_nbytes
        Maximum size in bytes of a metadata document that is not consolidated. Default: 16 MiB.

    Examples
    --------
    >>> import zarrow
    >>> limits = zarrow.DecodeLimits(max_chunk_nbytes=1 << 30)
    >>> root = zarrow.open("data.zarr", limits=limits)
    """

    __slots__ = ("max_chunk_nbytes", "max_metadata_nbytes", "max_ndim", "max_ratio", "max_variable_nbytes")

    def __init__(
        self,
        *,
        max_chunk_nbytes: int | None = None,
        max_variable_nbytes: int | None = None,
        max_ratio: int | None = None,
        max_ndim: int | None = None,
        max_metadata_nbytes: int | None = None,
    ) -> None:
        self.max_chunk_nbytes = _limit("max_chunk_nbytes", max_chunk_nbytes)
        self.max_variable_nbytes = _limit("max_variable_nbytes", max_variable_nbytes)
        self.max_ratio = _limit("max_ratio", max_ratio)
        self.max_ndim = _limit("max_ndim", max_ndim)
        self.max_metadata_nbytes = _limit("max_metadata_nbytes", max_metadata_nbytes)

    def __repr__(self) -> str:
        """Name the limits that are set."""
        given = ((name, getattr(self, name)) for name in self.__slots__)
        return f"DecodeLimits({', '.join(f'{name}={value}' for name, value in given if value is not None)})"


def _limit(name: str, limit: int | None) -> int | None:
    """Return the limit as an integer in the engine's range."""
    if limit is None:
        return None
    expected = f"{name} is {limit!r}, expected an integer from 0 to 2**64 - 1, or None"
    try:
        number = operator.index(limit)
    except TypeError:
        raise TypeError(expected) from None
    if not 0 <= number < 1 << 64:
        raise ValueError(expected)
    return number
