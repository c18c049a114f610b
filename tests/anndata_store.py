"""Groups in AnnData's format, by its specification: encodings 0.1.0 and 0.2.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr


def array(group: zarr.Group, name: str, values: np.ndarray[Any, Any], chunk: int = 2) -> None:
    """Write a plain array or an array of strings."""
    is_text = values.dtype.kind in "UT"
    dtype = str if is_text else values.dtype
    shape = tuple(max(1, min(chunk, extent)) for extent in values.shape)
    stored = group.create_array(name, shape=values.shape, chunks=shape, dtype=dtype)
    stored[...] = values
    kind = "string-array" if is_text else "array"
    stored.attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})


def nullable(group: zarr.Group, name: str, values: np.ndarray[Any, Any], mask: Sequence[bool]) -> None:
    """Write values with a mask."""
    kinds = {"b": "nullable-boolean", "U": "nullable-string-array", "T": "nullable-string-array"}
    encoding = {
        "encoding-type": kinds.get(values.dtype.kind, "nullable-integer"),
        "encoding-version": "0.1.0",
    }
    below = group.create_group(name, attributes=encoding)
    array(below, "values", values)
    array(below, "mask", np.array(mask, bool))


def categorical(
    group: zarr.Group,
    name: str,
    codes: Sequence[int],
    categories: np.ndarray[Any, Any],
    *,
    ordered: bool = False,
) -> None:
    """Write codes and categories."""
    encoding = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": ordered}
    below = group.create_group(name, attributes=encoding)
    array(below, "codes", np.array(codes, np.int8))
    array(below, "categories", categories)


def cells(group: zarr.Group) -> None:
    """Write a table of four cells."""
    group.attrs.update(
        {
            "encoding-type": "dataframe",
            "encoding-version": "0.2.0",
            "_index": "cell",
            "column-order": ["kind", "stage", "count", "doublet", "donor", "weight"],
        }
    )
    array(group, "cell", np.array(["AAA", "AAC", "AAG", "AAT"]))
    categorical(group, "kind", [1, -1, 0, 1], np.array(["B", "T"]))
    categorical(group, "stage", [0, 2, 1, 0], np.array([10, 20, 30]), ordered=True)
    nullable(group, "count", np.array([3, 0, 7, 0], np.int32), [False, True, False, False])
    nullable(group, "doublet", np.array([True, False, False, True]), [False, True, False, False])
    nullable(group, "donor", np.array(["Ada", "", "Ben", ""]), [False, True, False, True])
    array(group, "weight", np.array([0.5, 1.0, 1.5, 2.0]))
    array(group, "unlisted", np.arange(9))
