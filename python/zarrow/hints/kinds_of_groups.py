"""Hints for groups by their kind: an AnnData, a sparse matrix, a table, a grid of arrays, an image.

1. Attributes name most kinds. Without them, arrays of equal length are a table, and other arrays with names
   of dimensions are a grid. This opens the members, so it is asked only of local groups with few members.
2. Hints for other kinds of groups are left out, because their code would fail.
3. The same kinds explain a key that selects nothing, such as the rows of a sparse matrix.
"""

from __future__ import annotations

import re
from typing import Any

from zarrow import _zarrow
from zarrow.errors import ZarrowError

_WHAT = {
    "anndata": "an AnnData",
    "sparse": "a sparse matrix",
    "categorical": "a categorical array",
    "nullable": "an array with missing elements",
    "image": "an OME-Zarr image",
    "table": "a table",
    "grid": "a grid of arrays",
}
_ENCODINGS = {
    "anndata": "anndata",
    "csr_matrix": "sparse",
    "csc_matrix": "sparse",
    "categorical": "categorical",
    "nullable-integer": "nullable",
    "nullable-boolean": "nullable",
    "nullable-string-array": "nullable",
    "dataframe": "table",
}
_MOST_MEMBERS = 100
# Conversions of a table, a grid or an array, which fail for other kinds of groups (step 2).
_CONVERSIONS = ("to_pandas", "to_polars", "to_arrow", "num_rows", "schema", "xarray", '["name"]')


def kind_of(group: Any) -> str:
    """Return the kind of a group; "" if it is unknown (step 1)."""
    try:
        attributes = group._attributes()
        kind = _ENCODINGS.get(str(attributes.get("encoding-type", "")), "")
        inner = attributes.get("ome")
        if "multiscales" in attributes or (isinstance(inner, dict) and "multiscales" in inner):
            kind = kind or "image"
        if kind or group._is_remote() or not 0 < len(group) <= _MOST_MEMBERS:
            return kind
        return _kind_by_arrays(group)
    except ZarrowError:  # the store may be gone
        return ""


def _kind_by_arrays(group: Any) -> str:
    try:
        group.to_arrow()
    except ZarrowError:
        return "grid" if any(array.dimension_names for _, array in group.arrays()) else ""
    return "table"


def for_name(group: Any, kind: str, name: str) -> str:
    """Return what to type for a name on a group of this kind; "" without a hint."""
    from zarrow.hints import familiar_kinds as kinds

    table: dict[str, dict[str, str]] = {
        "anndata": kinds.ANNDATA,
        "sparse": kinds.SPARSE,
        "image": kinds.IMAGE,
        "table": kinds.TABLE,
        "grid": kinds.GRID,
    }
    text = table.get(kind, {}).get(name, "")
    if not text and kind in ("categorical", "nullable"):
        text = _of_encoded(kind, name)
    if not text and kind == "image":
        text = _of_image(name)
    return text and f"this group is {_WHAT[kind]}: type {text.replace('{group}', 'group')}"


def is_for(kind: str, text: str) -> bool:
    """Return whether a hint for any group holds for one of this kind (step 2)."""
    if kind in ("", "table", "grid"):
        return not (kind == "grid" and re.search(r"to_(pandas|polars|arrow)\(\)|num_rows|schema", text))
    return not any(way in text for way in _CONVERSIONS)


def _of_encoded(kind: str, name: str) -> str:
    """Return what to type on an array that is stored as a group: `read` returns it."""
    from zarrow.hints.familiar_names import CATEGORICAL, DECODED

    if kind == "categorical":
        if hasattr(_zarrow.Categorical, name):
            return f"group.read().{name}"
        return re.sub(r"\bx\b", "group.read()", CATEGORICAL.get(name, ""))
    if hasattr(_zarrow.MaskedTensor, name):
        return f"group.read().{name}"
    plain, _, of_masked = DECODED.get(name, "").partition("; of a masked layout ")
    text = "group.read()" + of_masked if of_masked.startswith(".") else of_masked or plain
    return "" if text.startswith("nothing: ") else text.replace("{tensor}", "group.read()")


def _of_image(name: str) -> str:
    if hasattr(_zarrow.Group, name):
        return ""
    if hasattr(_zarrow.Array, name):
        return f"group.multiscales[0].array.{name}"
    return f"group.multiscales[0].array[...].{name}" if hasattr(_zarrow.Tensor, name) else ""


def for_key(group: Any, key: Any) -> str:
    """Return what to type for a key that is no path, slice of rows or names of columns; "" if unknown."""
    kind, shown = kind_of(group), spelled(key)
    ways = {
        "anndata": f"zarrow.load(path)[{shown}]",
        "sparse": f"group.to_scipy()[{shown}]",
        "categorical": f"group.read()[{shown}]",
        "nullable": f"group.read()[{shown}]",
        "image": f"group.multiscales[0].array[{shown}]",
        "grid": f'group["name"][{shown}], with the name of an array',
        "table": _of_rows(key, shown),
    }
    if isinstance(key, int):
        ways["image"] += f", or group.multiscales[{shown}].array for a level"
    return f"this group is {_WHAT[kind]}: type {ways[kind]}" if ways.get(kind) else ""


def _of_rows(key: Any, shown: str) -> str:
    """Return what to type for rows of a table that are no contiguous range."""
    if key is ...:
        return "group[:]"
    if isinstance(key, int) and not isinstance(key, bool):
        return f"group[{key}:{key + 1 if key != -1 else ''}] for this row, or group.to_pandas().iloc[{key}]"
    if str(getattr(key, "dtype", "")) in ("bool", "boolean"):
        return "group.to_pandas()[mask], or group.scan_polars().filter(condition).collect()"
    if isinstance(key, tuple):
        return f"group.to_pandas().iloc[{shown}], or group[:10]['name'] for rows of one column"
    return f"group.to_pandas().iloc[{shown}]"


def spelled(key: Any) -> str:
    """Return the source text of a key."""
    if isinstance(key, tuple) and key:
        return ", ".join(map(spelled, key))
    if isinstance(key, slice):
        start, stop, step = ("" if part is None else repr(part) for part in (key.start, key.stop, key.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if key is ...:
        return "..."
    if isinstance(key, int | str) or (isinstance(key, list) and len(key) <= 10):
        return repr(key)
    return "index"
