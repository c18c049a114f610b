"""Labels of arrays besides their values, and their storage in one array.

1. The names of the axes of an xarray become `dimension_names`.
2. Its attributes become the array's; attributes given as an option win over them.
3. Its coordinates, and the index of a pandas Series, have no place in one array. A warning says what stores
   them too.
4. Version 2 stores dimension names as the attribute `_ARRAY_DIMENSIONS`, one for every dimension. A copy to
   version 3 moves them to `dimension_names`, a copy to version 2 back. Version 2 cannot store names of some
   dimensions only: a warning says so.
5. xarray takes the fill value of version 2, and in version 3 the attribute `_FillValue`, for missing
   elements. A copy of an array with dimension names moves the one to the other (`fill_values`). A new array
   of version 2 with dimension names has no fill value unless the caller gives one.

Source: https://docs.xarray.dev/en/stable/internals/zarr-encoding-spec.html
"""

from __future__ import annotations

from typing import Any, NamedTuple

from zarrow import _zarrow
from zarrow._zarrow import Array
from zarrow.groups import pandas_index
from zarrow.hints.calling_line import warn
from zarrow.interchange import fill_values, hdf5


def taken(data: Any, zarr_format: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a new array, with what can be kept of the labels of its data."""
    family = type(data).__module__.partition(".")[0]
    if isinstance(data, Array):
        return _copied(_of_array(data), zarr_format, options)
    if family == "zarr" and hasattr(data, "metadata"):
        return _copied(_of_zarr_python(data), zarr_format, options)
    if family == "h5py" and hasattr(data, "dims"):
        return _kept(options, hdf5.names(data), hdf5.carried(data, zarr_format), data.dtype)
    if family == "xarray" and hasattr(data, "dims"):
        own = dict(data.attrs)
        if zarr_format == 3:
            name = str(getattr(data, "name", None) or "data")
            own = fill_values.to_version_3(own, None, _wanted(options, data.dtype), name)
        options = {**options, "attributes": {**own, **(options.get("attributes") or {})}}
        if options.get("dimension_names") is None:
            options["dimension_names"] = [str(name) for name in data.dims]
        _warn_of_coordinates(data)
    elif family == "pandas" and hasattr(data, "reset_index") and not hasattr(data, "columns"):
        _warn_of_index(data)
    return options


def from_group(data: Any) -> dict[str, Any]:
    """Return the attributes of a group of HDF5, and that of the index of a pandas table; of others none."""
    is_hdf5 = type(data).__module__.partition(".")[0] == "h5py" and hasattr(data, "attrs")
    return hdf5.attributes(data) if is_hdf5 else dict(pandas_index.attribute_of(data))


def _kept(options: dict[str, Any], names: Any, own: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """Return the options with names, attributes and fill value of an array, unless they give others."""
    kept = {**options, "attributes": {**own["attributes"], **(options.get("attributes") or {})}}
    if options.get("dimension_names") is None:
        kept["dimension_names"] = names
    if options.get("fill_value") is None and _holds(options.get("dtype"), own.get("fill_value"), dtype):
        kept["fill_value"] = own.get("fill_value")
    return kept


def _holds(dtype: Any, value: Any, own: Any) -> bool:
    """Return whether a fill value of one type is one of another; of a type that NumPy lacks, it should be."""
    np = _zarrow._import("numpy")
    if value is None or dtype is None:
        return True
    try:
        wanted = np.dtype(dtype)
    except (TypeError, ValueError):
        return True
    if wanted == own or own.kind not in "biufc" or wanted.kind not in "biufc":
        return bool(wanted == own)
    with np.errstate(all="ignore"):
        cast = np.asarray(value).astype(wanted)
    return bool(cast == value or (cast != cast and value != value))


class _Source(NamedTuple):
    """Metadata of an array to copy; the fill value may be None in version 2."""

    name: str
    zarr_format: int
    dtype: Any
    names: tuple[str | None, ...] | None
    attributes: dict[str, Any]
    fill_value: Any


def _of_array(array: Array) -> _Source:
    fill_value = array.fill_value if array._has_fill_value() else None
    attributes = array.attrs.asdict()
    return _Source(array.name, array.zarr_format, array.dtype, _names_of(array), attributes, fill_value)


def _of_zarr_python(array: Any) -> _Source:
    attributes, zarr_format = dict(array.attrs), array.metadata.zarr_format
    names = None
    if zarr_format == 3:
        names = array.metadata.dimension_names if array.shape else ()
    else:
        stored = attributes.get("_ARRAY_DIMENSIONS")
        if isinstance(stored, list) and len(stored) == len(array.shape):
            names = tuple(stored) if all(isinstance(name, str) for name in stored) else None
    return _Source(array.name, zarr_format, array.dtype, names, attributes, array.fill_value)


def _copied(source: _Source, zarr_format: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a copy in a version of the format (steps 4 and 5)."""
    names, wanted = source.names, _wanted(options, source.dtype)
    attributes, fill_value = source.attributes, source.fill_value
    is_same = source.zarr_format == zarr_format and (zarr_format == 2 or wanted.kind == source.dtype.kind)
    if not is_same and names is not None and None not in names:
        attributes = {key: value for key, value in attributes.items() if key != "_ARRAY_DIMENSIONS"}
        if source.zarr_format == 3:
            attributes, named = fill_values.to_version_2(attributes, fill_value, source.dtype, source.name)
            if zarr_format == 3:
                attributes = fill_values.to_version_3(attributes, named, wanted, source.name)
            else:
                fill_value = named
        else:
            attributes = fill_values.to_version_3(attributes, fill_value, wanted, source.name)
    own = {"attributes": attributes, "fill_value": fill_value}
    return _kept(options, _named(names, source.name, zarr_format), own, source.dtype)


def _wanted(options: dict[str, Any], dtype: Any) -> Any:
    """Return the data type that the options give a copy, if NumPy has it."""
    try:
        return dtype if options.get("dtype") is None else _zarrow._import("numpy").dtype(options["dtype"])
    except (TypeError, ValueError):
        return dtype


def names_for(array: Array, zarr_format: int) -> tuple[str | None, ...] | None:
    """Return the dimension names that a version of the format can store (step 4)."""
    return _named(_names_of(array), array.name, zarr_format)


def _named(
    names: tuple[str | None, ...] | None, name: str, zarr_format: int
) -> tuple[str | None, ...] | None:
    if zarr_format == 2 and names is not None and None in names:
        if any(names):
            warn(
                f"the dimension names {names} of {name!r} are not stored: version 2 needs one for "
                "every dimension; copy the array to a group of version 3 to keep them"
            )
        return None
    return names or (None if zarr_format == 3 else names)


def _names_of(array: Array) -> tuple[str | None, ...] | None:
    """Return the dimension names; for no dimensions, version 3 omits the empty list that version 2 needs."""
    return () if not array.shape and array.zarr_format == 3 else array.dimension_names


def _warn_of_coordinates(data: Any) -> None:
    # The variable of a coordinate has itself for one.
    names = [str(name) for name in getattr(data, "coords", ()) if name != data.name]
    if names:
        warn(
            f"coordinates of a DataArray are not stored in an array ({', '.join(names)}): "
            "data.to_dataset(name='x').to_zarr(path) stores them as well; data.drop_vars(data.coords) leaves "
            "them out without this warning"
        )


def _warn_of_index(series: Any) -> None:
    index = series.index
    if type(index).__name__ != "RangeIndex" or index.name is not None:
        warn(
            "the index of this Series is not stored: zarrow.save(store, series.to_frame('value')) stores it "
            "as a column beside the values; series.reset_index(drop=True) leaves it out without this warning"
        )
