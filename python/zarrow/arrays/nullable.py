"""Creating an array with missing elements in AnnData's form: a group of `values` and `mask`.

Source: AnnData, "On-disk format", nullable integers, booleans and strings, encoding version 0.1.0.
"""

from __future__ import annotations

from typing import Any

from zarrow import _zarrow
from zarrow._zarrow import Array, Group, _create_group
from zarrow.arrays.missing import ANNDATA_ARRAY

STRINGS = {"encoding-type": "string-array", "encoding-version": "0.2.0"}
NULLABLE = {
    "b": {"encoding-type": "nullable-boolean", "encoding-version": "0.1.0"},
    "i": {"encoding-type": "nullable-integer", "encoding-version": "0.1.0"},
    "u": {"encoding-type": "nullable-integer", "encoding-version": "0.1.0"},
    "T": {"encoding-type": "nullable-string-array", "encoding-version": "0.1.0"},
}


def create(
    target: Any,
    path: str,
    durability: str,
    zarr_format: int,
    data: Any,
    dtype: Any,
    options: dict[str, Any],
) -> Group:
    """Create the group, with `options` of `create_array` for its two arrays.

    Raises
    ------
    ValueError
        AnnData has no nullable array of this type.
    """
    encoding = NULLABLE.get(data.dtype.kind)
    if encoding is None:
        raise ValueError(
            f"AnnData stores no nullable {data.dtype}: type missing='fill' or missing='optional'"
        )
    is_text = isinstance(data, _zarrow.MaskedVariable)
    values = data.filled("" if is_text else data.dtype.type(0))
    group = create_group(target, path, durability, zarr_format, encoding, options)
    group.create_array(
        "values", data=values, dtype=dtype, attributes=STRINGS if is_text else ANNDATA_ARRAY, **options
    )
    options.pop("fill_value", None)
    group.create_array("mask", data=data.mask, attributes=ANNDATA_ARRAY, **options)
    return group


def create_group(
    target: Any,
    path: str,
    durability: str,
    zarr_format: int,
    encoding: dict[str, Any],
    options: dict[str, Any],
) -> Group:
    """Create the group that stands for an array; takes `attributes` and `overwrite` out of the options."""
    attributes = {**(options.pop("attributes", None) or {}), **encoding}
    overwrite = options.pop("overwrite", False)
    if overwrite == "array":
        overwrite = _stands_for_an_array(target, path)
    return _create_group(
        target, path, attributes, zarr_format=zarr_format, overwrite=overwrite, durability=durability
    )


def _stands_for_an_array(target: Any, path: str) -> bool:
    """Return whether the existing node may be replaced: an array, or a group that stands for one."""
    existing = target.get(path) if isinstance(target, Group) else None
    if isinstance(existing, Group):
        encoding = str(existing.attrs.get("encoding-type", ""))
        return encoding.startswith("nullable-") or encoding == "categorical"
    return isinstance(existing, Array)
