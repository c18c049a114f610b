"""The values of a Categorical, from its codes and categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zarrow import _zarrow

if TYPE_CHECKING:
    import numpy.typing as npt

    from zarrow import Tensor, Variable


def tolist(codes: Tensor, categories: Tensor | Variable) -> list[Any]:
    """Give the values as Python objects, None where a code is negative."""
    values = categories.tolist()
    return [values[code] if code >= 0 else None for code in codes.tolist()]


def numpy(codes: Tensor, categories: Tensor | Variable) -> npt.NDArray[Any]:
    """Make an array of the values; where a code is negative, None among strings, and masked among others."""
    np = _zarrow._import("numpy")

    values, places = categories.numpy(), codes.numpy()
    missing = places < 0
    if not missing.any():
        whole: npt.NDArray[Any] = values[places]
        return whole
    is_text = values.dtype.kind == "T"
    given = values.astype(object) if is_text else values
    filled: npt.NDArray[Any] = np.zeros(places.shape, given.dtype)
    filled[~missing] = given[places[~missing]]
    if is_text:
        filled[missing] = None
        return filled
    masked: npt.NDArray[Any] = np.ma.MaskedArray(filled, mask=missing)
    return masked
