"""Equality of tensors of a GPU, as zarr-python's arrays and buffers have it, compared on the device.

1. Both are made tensors of one type, that which NumPy's comparison has.
2. Both are broadcast to one shape.
"""

from __future__ import annotations

from typing import Any

from zarrow import _zarrow
from zarrow._zarrow import DeviceTensor
from zarrow.device_tensor.methods import cast, on_device_of
from zarrow.errors import UnsupportedError


def equal(tensor: Any, other: Any) -> Any:
    """Compare element by element, as IEEE 754 says."""
    np = _zarrow._import("numpy")
    if other is None:
        raise TypeError("None is compared by `is`: type `tensor is None`")
    if not isinstance(other, int | float | complex) and not hasattr(other, "dtype"):
        other = np.asarray(other)
    kinds = tensor.dtype.kind, getattr(getattr(other, "dtype", None), "kind", "")
    if any(kind in ("S", "U", "T", "O") for kind in kinds):
        raise UnsupportedError(
            "a GPU does not compare text and Python objects: type .cpu() for a copy on the CPU"
        )
    try:
        ours, theirs = _alike(np, tensor, other)
    except OverflowError:  # an integer of Python that no element can be
        different = DeviceTensor._empty(tensor.shape, np.dtype(bool), tensor.device)
        different._fill(bytes(1))
        return different
    if ours.dtype.kind in "mM":
        raise UnsupportedError(
            "a GPU does not compare times, where NaT equals nothing: type .cpu() for a copy on the CPU"
        )
    return ours._equal(theirs)


def not_equal(tensor: Any, other: Any) -> Any:
    """Compare element by element, the other way round."""
    same = equal(tensor, other)
    return same._equal(on_device_of(same, False))


def all_equal(tensor: Any, other: Any, equal_nan: bool = True) -> bool:
    """Return whether each element is that of `other`, bit by bit, after both are broadcast."""
    np = _zarrow._import("numpy")
    try:
        ours, theirs = _alike(np, tensor, other)
    except (ValueError, OverflowError):
        return False
    # By bits, NaN can equal NaN; without `equal_nan` it must not.
    return ours._all_equal(theirs, equal_nan) and (equal_nan or not _has_nan(np, ours))


def _has_nan(np: Any, tensor: Any) -> bool:
    if tensor.dtype.kind in "mM":
        return bool(np.isnat(tensor.cpu().numpy()).any())
    return tensor.dtype.kind not in "biuSUV" and not tensor._equal(tensor)._all()


def _alike(np: Any, tensor: Any, other: Any) -> tuple[Any, Any]:
    """Make both alike (steps 1 and 2)."""
    if isinstance(other, int | float | complex | bool):
        dtype = np.result_type(tensor.dtype, other)
    elif not hasattr(other, "dtype"):
        other = np.asarray(other)
        dtype = np.result_type(tensor.dtype, other.dtype)
    else:
        dtype = (
            tensor.dtype
            if tensor.dtype == other.dtype
            else np.result_type(tensor.dtype, np.dtype(other.dtype))
        )
    theirs_dtype = np.dtype(getattr(other, "dtype", type(other)))
    kinds = {tensor.dtype.kind, theirs_dtype.kind}
    # NumPy compares integers exactly, which a common type of floats does not.
    if (kinds == {"i", "u"} and dtype.kind == "f") or (kinds & {"m", "M"} and len(kinds) > 1):
        raise TypeError(
            f"{tensor.dtype} and {theirs_dtype} are compared on the CPU: type .cpu() for a copy there"
        )
    ours = tensor if tensor.dtype == dtype else cast(tensor, dtype)
    theirs = on_device_of(ours, other, dtype)
    shape = np.broadcast_shapes(ours.shape, theirs.shape)
    return ours if ours.shape == shape else ours._broadcast_to(shape), theirs
