"""What runs where when zarr-python reads and writes an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["zarrow", "zarr-python"]


@dataclass(frozen=True)
class Explanation:
    """Which program reads and writes the chunks of an array.

    Attributes
    ----------
    read, write
        `"zarrow"` for the engine, `"zarr-python"` for zarr-python's own pipeline.
    store
        The store as the engine opens it; None if zarr-python reads it.
    why
        Why zarr-python reads or writes; None if the engine does both.
    """

    read: Side
    write: Side
    store: str | None
    why: str | None

    def __str__(self) -> str:
        lines = [f"read   {self.read}", f"write  {self.write}"]
        if self.store is not None:
            lines.append(f"store  {self.store}")
        if self.why is not None:
            lines.append(f"why    {self.why}")
        return "\n".join(lines)
