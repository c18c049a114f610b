"""Shapes of regions. A task that writes other elements than its region takes is refused.

NumPy's rules would repeat the elements of a block with one row, and store a wrong result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zarrow.errors import ShapeError


def shape_of(region: Sequence[slice], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a region of an array."""
    return tuple(len(range(*part.indices(extent))) for part, extent in zip(region, shape, strict=True))


def expect_block(
    block: tuple[int, ...], region: Any, shape: tuple[int, ...], *, store: str, path: str
) -> None:
    """Refuse the shape of a block of dask that differs from its region. A scalar fills the region.

    Raises
    ------
    ShapeError
        The shapes differ.
    """
    expected = shape if region is ... else shape_of(region, shape)
    if block and block != expected:
        raise ShapeError(
            f"a block has shape {block}, but dask expects {expected} for array {path!r} in {store}: correct "
            "chunks= of the function that makes the block, such as map_blocks",
            store=store,
            path=path,
        )
