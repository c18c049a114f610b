"""What runs where when zarr-python reads and writes an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Side = Literal["zarrow", "zarr-python"]


@dataclass(frozen=True)
class Explanation:
    """Who reads and writes the chunks of an array.

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


def explain(array: Any, selection: Any = None) -> Explanation:
    """Say who reads and writes the chunks of an array of zarr-python, and why.

    No chunk is read.

    Parameters
    ----------
    array
        A `zarr.Array` or `zarr.AsyncArray`.
    selection
        A selection by integers, slices and lists, as in brackets; all of the array by default.

    Returns
    -------
    Explanation
        A short table when printed.

    Raises
    ------
    TypeError
        `array` is not an array of zarr-python.

    Examples
    --------
    >>> import zarr, zarrow
    >>> with zarrow.zarr_python.enable():
    ...     array = zarr.open_array("data.zarr/temperature", mode="r")
    >>> zarrow.zarr_python.explain(array).read
    'zarrow'
    >>> print(zarrow.zarr_python.explain(zarr.zeros((4,))).read)
    zarr-python
    """
    kind = type(array)
    if not kind.__module__.startswith("zarr.") or kind.__name__ not in ("Array", "AsyncArray"):
        raise TypeError(f"expected an array of zarr-python, found {kind.__module__}.{kind.__qualname__}")
    from zarrow.zarr_python.decision import explained

    return explained(getattr(array, "_async_array", array), selection)
