"""Says which program reads and writes the chunks of an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zarrow.zarr_python.explanation import Explanation


def explain(array: Any, selection: Any = None) -> Explanation:
    """Say which program reads and writes the chunks of an array of zarr-python, and why.

    No chunk is read.

    Parameters
    ----------
    array
        A `zarr.Array` or `zarr.AsyncArray`.
    selection
        A selection as in brackets, also by coordinates and masks; all of the array by default.

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
    from zarrow.zarr_python.explained_selection import explained

    return explained(getattr(array, "_async_array", array), selection)
