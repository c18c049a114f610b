"""The two libraries with arrays of dask: `dask.array`, and `dask_array` of the package `dask-array`.

Their functions have the same names. The type of an array says which library computes it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import dask.array

Library: TypeAlias = Literal["dask.array", "dask_array"]


def library_named(name: Library) -> Any:
    """Return the module of a library.

    Raises
    ------
    ImportError
        It is not installed.
    """
    if name not in get_args(Library):
        raise ValueError(f"expected library 'dask.array' or 'dask_array', got {name!r}")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == "dask_array":
            error.add_note("pip install dask-array")
        raise


def is_array(value: Any) -> bool:
    """Return whether a value is an array of one of the libraries."""
    other = sys.modules.get("dask_array")
    return isinstance(value, dask.array.Array) or (other is not None and isinstance(value, other.Array))


def library_of(arrays: Sequence[Any]) -> Any:
    """Return the module that computes all these arrays.

    Raises
    ------
    TypeError
        They are of both libraries.
    """
    of_dask = [isinstance(array, dask.array.Array) for array in arrays]
    if any(of_dask) and not all(of_dask):
        raise TypeError("sources are arrays of dask.array and of dask_array: store them by two calls")
    return library_named("dask.array" if all(of_dask) else "dask_array")
