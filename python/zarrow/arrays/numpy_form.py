"""NumPy forms of arguments: decoded arrays become arrays of NumPy over the same memory."""

from __future__ import annotations

from typing import Any

from zarrow import _zarrow


def numpy_form(value: Any) -> Any:
    """Return the NumPy form of a decoded array, and anything else unchanged."""
    return value.numpy() if isinstance(value, _zarrow.DecodedArray) else value  # type: ignore[attr-defined]
