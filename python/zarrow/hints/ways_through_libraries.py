"""Says how to reach a name of NumPy, or of an imported library, from an object of zarrow: by a conversion."""

from __future__ import annotations

import operator
import sys
from typing import Any

from zarrow import _zarrow
from zarrow.hints.unknown_keywords import parameters_of


def way_through_others(array: Any, name: str) -> str:
    """Reach a name of NumPy, or of an imported library (step 2 of `zarrow.hints.unknown_names`)."""
    from zarrow.hints import names_of_others as others

    np = _zarrow._import("numpy")
    is_text = array.dtype == np.dtypes.StringDType() or array.dtype == object
    is_masked = isinstance(array, _zarrow.MaskedTensor | _zarrow.MaskedVariable)
    if hasattr(np.ndarray, name) or (is_masked and hasattr(np.ma.MaskedArray, name)):
        return f"x.numpy().{name}"
    if is_text and hasattr(np.strings, name):
        return f"numpy.strings.{name}(x.numpy(){_rest(getattr(np.strings, name))})"
    if _takes_an_array(getattr(np, name, None)):
        return f"numpy.{name}(x{_rest(getattr(np, name))})"
    values = "x.filled(value)" if is_masked else "x"
    ways = []
    if not is_text:
        ways.append(("torch", others.TORCH_TENSOR, f"{values}.torch()"))
    if array.ndim == 1:
        other = other_accessors(array)
        ways.append(("pandas", others.PANDAS_SERIES - other, "x.arrow().to_pandas()"))
        ways.append(("polars", others.POLARS_SERIES - other, "x.polars()"))
    if array.ndim == 2:
        ways.append(("pandas", others.PANDAS_FRAME, "pandas.DataFrame(x.numpy())"))
    ways.append(("xarray", others.XARRAY_ARRAY, "xarray.DataArray(x.numpy())"))
    return _first_way(name, ways)


def way_to_a_table(name: str, rows: str) -> str:
    """Say how to reach a method of a table of another library."""
    from zarrow.hints import names_of_others as others

    owner = rows.removesuffix(".to_arrow()")
    pandas = f"{rows}.arrow().to_pandas()" if owner == rows else f"{owner}.to_pandas()"
    return _first_way(
        name,
        [
            ("pandas", others.PANDAS_FRAME, pandas),
            ("polars", others.POLARS_FRAME, f"{rows}.polars()"),
            ("pyarrow", others.ARROW_TABLE, f"{rows}.arrow()"),
        ],
    )


def _first_way(name: str, ways: list[tuple[str, frozenset[str], str]]) -> str:
    """Choose a library that has the name, one that is imported before others."""
    found = [(module not in sys.modules, way) for module, names, way in ways if name in names]
    return f"{min(found, key=operator.itemgetter(0))[1]}.{name}" if found else ""


def other_accessors(array: Any) -> set[str]:
    """Return the accessors of a Series for elements of other types."""
    own = {"m": "dt", "M": "dt", "T": "str", "U": "str", "O": "str"}.get(array.dtype.kind)
    return {"arr", "bin", "cat", "dt", "list", "sparse", "str", "struct"} - {own}


# First parameters of functions that create arrays from other values, or take no array.
_NO_ARRAY = {
    *("shape", "file", "fname", "filename", "object", "start", "N", "n", "dtype", "M", "buffer"),
    *("condition", "condlist"),
}


def _takes_an_array(function: Any) -> bool:
    """Return whether a function of NumPy computes with an array."""
    if isinstance(function, type) or not callable(function):
        return False
    first = next(iter(parameters_of(function)), None)
    return first is not None and first.name not in _NO_ARRAY and first.kind is not first.VAR_POSITIONAL


def _rest(function: Any) -> str:
    """Return ", ..." if a function needs more arguments than the array."""
    needed = [given for given in parameters_of(function) if given.default is given.empty and given.kind < 2]
    return ", ..." if len(needed) > 1 else ""
