"""Equality of decoded arrays: element by element as in NumPy, or as a whole."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from zarrow import _zarrow
from zarrow.arrays.numpy_form import numpy_form

if TYPE_CHECKING:
    import numpy as np


def elementwise(array: Any, other: Any, name: str) -> Any:
    """Compare as NumPy compares: a bool for each element, masked for missing ones."""
    return getattr(operator, name)(array.numpy(), numpy_form(other))


def equals(array: Any, other: Any) -> bool:
    """Return whether both have the same layout, type, shape and elements; NaN equals NaN."""
    np = _zarrow._import("numpy")

    if type(array) is not type(other) or array.dtype != other.dtype or array.shape != other.shape:
        return False
    if isinstance(array, _zarrow.MaskedTensor | _zarrow.MaskedVariable):
        missing = array.mask.numpy()
        if not np.array_equal(missing, other.mask.numpy()):
            return False
        ours, theirs = array.data.numpy()[~missing], other.data.numpy()[~missing]
    else:
        ours, theirs = array.numpy(), other.numpy()
    return _are_same(ours, theirs)


def _are_same(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    """Return whether all elements are the same; the fields of a structure are compared one by one."""
    if ours.dtype.names is not None:
        return all(_are_same(ours[name], theirs[name]) for name in ours.dtype.names)
    same = ours == theirs
    if ours.dtype.kind not in "OSTU":
        same |= (ours != ours) & (theirs != theirs)
    return bool(same.all())
