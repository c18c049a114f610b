"""Equality of tensors of a GPU: element by element, or as a whole, compared on the device.

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
            "a GPU does not compare text and Python objects: type .cpu() for a copy on the CPU",
            kind="unsupported",
        )
    try:
        ours, theirs = _alike(np, tensor, other)
    except OverflowError:  # an integer of Python that no element can be
        different = DeviceTensor._empty(tensor.shape, np.dtype(bool), tensor.device)
        different._fill(bytes(1))
        return different
    return _same(ours, theirs)


def _same(ours: Any, theirs: Any) -> Any:
    """Compare tensors of one type. NaT, an integer to the device, does not equal itself."""
    same = ours._equal(theirs)
    if ours.dtype.kind not in "mM":
        return same
    is_nat = on_device_of(ours, -(2**63), "i8")
    is_time = ours._astype("i8")._equal(is_nat)._equal(on_device_of(same, False))
    # Both have to be true: so are the two parts of a complex number.
    both = DeviceTensor._empty([*same.shape, 2], "f4", same.device)
    both[..., 0]._assign(same._astype("f4"))
    both[..., 1]._assign(is_time._astype("f4"))
    pairs = both._reinterpret("c8")._reshape(same.shape)
    return pairs._equal(on_device_of(pairs, 1 + 1j))


def not_equal(tensor: Any, other: Any) -> Any:
    """Compare element by element, the other way round."""
    same = equal(tensor, other)
    return same._equal(on_device_of(same, False))


def array_equal(tensor: Any, other: Any, equal_nan: bool = False) -> bool:
    """Return whether shape and elements are the same, as `numpy.array_equal` does."""
    np = _zarrow._import("numpy")
    return tuple(tensor.shape) == tuple(np.shape(other)) and bool(
        _is_everywhere(np, tensor, other, equal_nan, by_bits=False)
    )


def all_equal(tensor: Any, other: Any, equal_nan: bool = True) -> bool:
    """Return whether each element is that of `other`, bit by bit, after both are broadcast."""
    np = _zarrow._import("numpy")
    return bool(_is_everywhere(np, tensor, other, equal_nan, by_bits=True))


def _is_everywhere(np: Any, tensor: Any, other: Any, equal_nan: bool, by_bits: bool) -> bool:
    try:
        ours, theirs = _alike(np, tensor, other)
    except (ValueError, OverflowError):
        return False
    if by_bits:
        # By bits, NaN can equal NaN; without `equal_nan` it must not.
        return ours._all_equal(theirs, equal_nan) and (equal_nan or _equals_itself(ours))
    if not equal_nan:
        return bool(_same(ours, theirs)._all())
    # Zeros of both signs are equal, and so are NaN: elements that differ must both be NaN.
    same = _same(ours, theirs)
    if same._all():
        return True
    both = (_same(side, side) for side in (ours, theirs))
    nan_here, nan_there = (side._equal(on_device_of(side, False)) for side in both)
    positions = np.flatnonzero(~same.cpu().numpy().reshape(-1))
    return all(side.reshape(-1)._take(positions)._all() for side in (nan_here, nan_there))


def _equals_itself(tensor: Any) -> bool:
    return tensor.dtype.kind in "biuSUV" or bool(_same(tensor, tensor)._all())


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
