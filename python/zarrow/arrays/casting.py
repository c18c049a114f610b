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
        There is no such number type, or these elements cannot be read as it (a `TypeError`).
    """
    wanted = dtype_of(dtype)
    if wanted is None:
        raise DataTypeError(f"dtype is {dtype!r}, expected a number type of NumPy, ml_dtypes or PyTorch")
    if found.names is not None and wanted.names is None:
        raise DataTypeError(
            f"elements of {found} are structures: type array[{found.names[0]!r}].astype(dtype) for one field"
        )
    if found != wanted and (wanted.kind == "b" or not 0 <= _rank(found) <= _rank(wanted)):
        last = "torch(dtype=dtype)" if type(dtype).__module__ == "torch" else "astype(dtype)"
        raise DataTypeError(f"elements of {found} cannot be read as {wanted}: type array[...].{last}")
    return wanted


def read_then_cast(array: Any, selection: Any, wanted: Any, out: Any, order: str, error: Any) -> Any:
    """Read a selection and cast it, where elements cannot be cast while they are decoded.

    An integer of another element of a chunk, or a fill value, may not fit. If one of the selection does not
    fit, `error` is raised if it says so.

    Raises
    ------
    OverflowError
        An integer of the selection does not fit.
    """
    return cast_elements(array.read(selection, order=order).numpy(), wanted, out, error)


def cast_elements(values: Any, wanted: Any, out: Any = None, error: Any = None) -> Any:
    """Return elements of NumPy with another type; `read_then_cast` has the parameters and errors."""
    np = _zarrow._import("numpy")

    with np.errstate(all="ignore"):
        made = values.astype(wanted, order="K")
    if wanted.kind in "iu" or _is_small_integer(wanted):
        lost = np.ma.compressed(made).astype(values.dtype) != np.ma.compressed(values)
        if lost.any():
            if error is not None and error.kind == "bad_value":
                raise error
            value = np.ma.compressed(values)[lost][0]
            raise OverflowError(f"{value} does not fit {wanted}: type array[selection].astype(dtype)")
    if out is None:
        return _zarrow.asarray(made)
    store = _zarrow.MemoryStore()
    return _zarrow._import("zarrow").create_array(store, data=made, compressors=None).read(out=out)


def dtype_of(dtype: Any) -> Any:
    """Return a dtype of NumPy, also for one of PyTorch, in the machine's byte order; `None` for no dtype."""
    np = _zarrow._import("numpy")

    # "torch.float" has 32 bits, and "float" of NumPy 64.
    is_of_torch = type(dtype).__module__ == "torch" or (isinstance(dtype, str) and dtype[-1:].isdigit())
    name = str(dtype).removeprefix("torch.") if is_of_torch else dtype
    try:
        return np.dtype(name).newbyteorder("=")
    except TypeError:
        if not isinstance(name, str) or not name.startswith(("bfloat16", "float8")):
            return None
    small = getattr(_zarrow._import("ml_dtypes"), name, None)
    return None if small is None else np.dtype(small)


def _rank(dtype: Any) -> int:
    """Return 0 for integers, 1 for floats, 2 for complex numbers and -1 for others; ml_dtypes has kind V."""
    if dtype.kind == "V" and dtype.name.startswith(("bfloat", "float")):
        return 1
    return 0 if _is_small_integer(dtype) else {"b": 0, "i": 0, "u": 0, "f": 1, "c": 2}.get(dtype.kind, -1)


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
        "values.astype() does, or type array.write(selection, values, casting='unsafe')"
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
