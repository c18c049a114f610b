"""What a store may ask for before it is refused as hostile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DecodeLimits:
    """Limits that no honest store meets; None stands for the default.

    A store that goes beyond one is refused with a `LimitError` or a `MetadataError`, before memory is taken for it.

    >>> import zarrow
    >>> array = zarrow.open("data.zarr", "temperature", limits=zarrow.DecodeLimits(max_chunk_nbytes=1 << 30))
    """

    max_chunk_nbytes: int | None = None
    """The most bytes that one chunk (or shard) may decode to. Default: 1 TiB."""

    max_variable_nbytes: int | None = None
    """The most bytes that one chunk of strings or bytes may decode to. Default: 4 GiB."""

    max_ratio: int | None = None
    """The most bytes that one stored byte of a chunk may decode to. Default: 4,194,304."""

    max_ndim: int | None = None
    """The most axes. Default: 32."""

    max_metadata_nbytes: int | None = None
    """The most bytes of one metadata document that is not consolidated. Default: 16 MiB."""
