"""Casts between an array's type and another one, and the handling of values that do not fit.

1. `casting` is NumPy's: "no", "equiv", "safe", "same_kind" or "unsafe". By default it is "same_kind": floats
   go to smaller floats, and integers to all integers and floats, but floats do not go to integers.
2. With anything but "unsafe", integers have to fit: one that does not is an OverflowError, and nothing is
   written. NumPy would silently keep its low bits.
3. Text, bytes and times are never cut off, and fields of structures never cast, but with "unsafe".
4. A float that becomes infinite is reported as `numpy.errstate(over=...)` says: by default as a
   RuntimeWarning.

The values are looked at before anything is written, and are cast later, on their way into each chunk.
"""

from __future__ import annotations

import warnings
from typing import Any

from zarrow import _zarrow
from zarrow.errors import DataTypeError


def is_allowed(found: Any, wanted: Any, casting: str) -> bool:
    """Return whether values of one dtype may be written as another (steps 1 and 3)."""
    np = _zarrow._import("numpy")

    if casting == "same_kind":
        if found.kind in "iu" and (wanted.kind in "iu" or _is_small_integer(wanted)):
            return True
        is_small_float = wanted.name.startswith(("bfloat", "float"))  # of kind V, those of ml_dtypes
        is_number = found.kind in "biufc" and (wanted.kind in "biufc" or is_small_float)
        if not is_number and not (found.kind == wanted.kind and found.kind in "mM"):
            casting = "safe"
    return bool(np.can_cast(found, wanted, casting))


def read_type(found: Any, dtype: Any) -> Any:
    """Return the dtype, of NumPy or PyTorch, that an array's numbers are read as.

    Raises
    ------
    DataTypeError
        These elements cannot be cast while they are read (a `TypeError`).
    """
    np = _zarrow._import("numpy")

    of_torch = type(dtype).__module__ == "torch"
    try:
        wanted = np.dtype(str(dtype).removeprefix("torch.") if of_torch else dtype).newbyteorder("=")
    except TypeError:
        wanted = None
    if wanted is None or "V" in (found.kind, wanted.kind) or not is_allowed(found, wanted, "same_kind"):
        name = str(dtype if wanted is None else wanted)
        last = "torch(dtype=dtype)" if of_torch else "astype(dtype)"
        raise DataTypeError(f"elements of {found} cannot be read as {name}: type array[...].{last}")
    return wanted


def check(values: Any, wanted: Any, casting: str) -> None:
    """Look for values that do not fit (steps 2 and 4). `values` is a NumPy array, or one of `numpy.ma`.

    Raises
    ------
    OverflowError
        An integer does not fit.
    DataTypeError
        A time has more digits than the unit.
    FloatingPointError
        A float becomes infinite, and `numpy.errstate(over="raise")` is set.
    """
    np = _zarrow._import("numpy")

    found = values.dtype
    if np.can_cast(found, wanted, "safe"):
        return
    if isinstance(values, np.ma.MaskedArray):
        values = values.compressed()
    if values.size == 0:
        return
    if wanted.kind == "f" and found.kind in "iuf":
        _report_overflow(np, _extremes(np, values), wanted)
    elif casting == "unsafe":
        return
    elif wanted.kind in "iu" and found.kind in "iu":
        limits = np.iinfo(wanted)
        for value in (values.min(), values.max()):
            if not limits.min <= int(value) <= limits.max:
                raise _does_not_fit(value, wanted)
    elif wanted.kind in "mM" and found.kind == wanted.kind:
        changed = (values.astype(wanted).astype(found) != values) & ~np.isnat(values)
        if changed.any():
            raise _is_cut_off(values[changed][0], wanted)
    elif _is_small_integer(wanted):
        changed = values.astype(wanted).astype(found) != values
        if changed.any():
            raise _does_not_fit(values[changed][0], wanted)


def _is_small_integer(dtype: Any) -> bool:
    """Tell the integers of 2 and 4 bits of ml_dtypes."""
    return bool(dtype.kind == "V" and dtype.name.startswith(("int", "uint")))


def _does_not_fit(value: Any, wanted: Any) -> OverflowError:
    return OverflowError(
        f"{value} does not fit {wanted}; array.write(selection, values, casting='unsafe') "
        "keeps the low bits of such integers"
    )


def _is_cut_off(value: Any, wanted: Any) -> DataTypeError:
    return DataTypeError(
        f"cannot write {value} to an array of {wanted}, which would cut it off: round it first, as "
        "values.astype() does, or type array.write(selection, values, casting='unsafe')",
        kind="data_type",
    )


def _extremes(np: Any, values: Any) -> Any:
    """Return the lowest and the highest finite number, without a copy if all are finite."""
    if values.dtype.kind != "f":
        return np.array([values.min(), values.max()])
    extremes = np.array([np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)])
    if np.isinf(extremes).any():
        finite = values[np.isfinite(values)]
        extremes = np.array([finite.min(), finite.max()] if finite.size else [], values.dtype)
    return extremes


def _report_overflow(np: Any, extremes: Any, wanted: Any) -> None:
    try:
        with np.errstate(over="raise", invalid="ignore", under="ignore"):
            extremes.astype(wanted)
    except FloatingPointError:
        message = f"overflow encountered in cast: values beyond the range of {wanted} become infinite"
        how = np.geterr()["over"]
        if how == "warn":
            # Told of the line that writes, which called this through the compiled module.
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        elif how == "raise":
            raise FloatingPointError(message) from None
        elif how != "ignore":
            extremes.astype(wanted)  # NumPy prints, logs or calls as it was told to
