"""Properties of HDF5 data sets and groups besides elements: attributes, dimension names, fill values.

1. Attributes for the dimension scales of HDF5 and netCDF-4 are left out: the names of the scales, or the
   labels of the dimensions, become the dimension names.
2. An attribute that JSON cannot say, such as a reference, is left out with a warning.
3. For missing elements xarray reads `_FillValue` of version 3, in base64, and the fill value of version 2.
"""

from __future__ import annotations

import posixpath
from typing import Any

from zarrow import _zarrow
from zarrow.arrays import missing
from zarrow.hints.calling_line import warn
from zarrow.interchange import fill_values

_OF_SCALES = frozenset(
    """
    CLASS DIMENSION_LABELS DIMENSION_LIST NAME REFERENCE_LIST _NCProperties _Netcdf4Coordinates
    _Netcdf4Dimid _nc3_strict
    """.split()
)


def names(dataset: Any) -> list[str | None] | None:
    """Return the dimension names, None if no dimension has one (step 1)."""
    found = [_name(dataset, dimension) for dimension in dataset.dims]
    if len(found) == 1 and not found[0] and dataset.is_scale:
        return [posixpath.basename(dataset.name)]
    return found if any(found) else None


def _name(dataset: Any, dimension: Any) -> str | None:
    scale = posixpath.basename(dimension[0].name or "") if len(dimension) else ""
    return dimension.label or scale or None


def carried(dataset: Any, zarr_format: int) -> dict[str, Any]:
    """Return attributes and fill value for an array in a version of the format (step 3)."""
    own, kind = attributes(dataset), dataset.dtype.kind
    fill = dataset.fillvalue if kind in "iufc" else None
    if "_FillValue" in own and kind in "iufc":
        np = _zarrow._import("numpy")
        named = np.asarray(own["_FillValue"]).ravel()
        if named.size == 1 and named.dtype.kind in "iufc":
            own |= missing.attributes_for(named[0], dataset.dtype)
            return {"attributes": own, "fill_value": named[0]}
    if "_FillValue" in own and zarr_format == 3 and names(dataset) is not None:
        own = fill_values.to_version_3(own, None, dataset.dtype, dataset.name)
    elif zarr_format == 2 and names(dataset) is not None:
        fill = fill_values.without_mask(fill, dataset.dtype, own, dataset.name)
    return {"attributes": own, "fill_value": fill}


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a data set or a group as JSON can say them (steps 1 and 2)."""
    found, left = {}, []
    for name, value in node.attrs.items():
        if name in _OF_SCALES:
            continue
        try:
            found[name] = _plain(value)
        except TypeError:
            left.append(name)
    if left:
        warn(
            f"attributes of {node.name!r} are not stored, because JSON cannot hold them: "
            f"{', '.join(map(repr, left))}"
        )
    return found


def _plain(value: Any) -> Any:
    np = _zarrow._import("numpy")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist()) if value.dtype.kind in "biufSUO" else _refused(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | bool | int | float) else _refused(value)


def _refused(value: Any) -> Any:
    raise TypeError(type(value).__name__)
