"""What arrays of xarray and pandas have beside their values, on the way into one array of a store.

1. The names of the axes of an xarray become `dimension_names`, which version 3 has a place for.
2. Its attributes become those of the array; attributes that are given come before them.
3. Its coordinates, and the index of a pandas Series, have no place in one array. A warning says what stores
   them too.
"""

from __future__ import annotations

import warnings
from typing import Any

from zarrow.calling_line import frames_of_zarrow
from zarrow.errors import ZarrowWarning


def taken(data: Any, zarr_format: int, options: dict[str, Any]) -> dict[str, Any]:
    """Give the options of a new array, with what can be kept of the labels of its data."""
    family = type(data).__module__.partition(".")[0]
    if family == "xarray" and hasattr(data, "dims"):
        options = {**options, "attributes": {**data.attrs, **(options.get("attributes") or {})}}
        if options.get("dimension_names") is None and zarr_format == 3:
            options["dimension_names"] = [str(name) for name in data.dims]
        _warn_of_coordinates(data)
    elif family == "pandas" and hasattr(data, "reset_index") and not hasattr(data, "columns"):
        _warn_of_index(data)
    return options


def _warn_of_coordinates(data: Any) -> None:
    # The variable of a coordinate has itself for one.
    names = [str(name) for name in getattr(data, "coords", ()) if name != data.name]
    if names:
        _warn(
            f"coordinates of a DataArray are not stored in an array ({', '.join(names)}): "
            "data.to_dataset(name='x').to_zarr(path) stores them as well; data.drop_vars(data.coords) leaves "
            "them out without this warning"
        )


def _warn_of_index(series: Any) -> None:
    index = series.index
    if type(index).__name__ != "RangeIndex" or index.name is not None:
        _warn(
            "the index of this Series is not stored: zarrow.save(store, series.to_frame('value')) stores it "
            "as a column beside the values; series.reset_index(drop=True) leaves it out without this warning"
        )


def _warn(message: str) -> None:
    warnings.warn(message, ZarrowWarning, stacklevel=frames_of_zarrow())
