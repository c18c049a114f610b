"""The index of a pandas table, which is stored as columns that an attribute names.

1. The attribute `pandas` is the JSON text that pyarrow writes into Parquet files, with the index alone.
   `Group.to_arrow` passes it on as metadata of the schema, so that pyarrow makes the index again.
2. A `RangeIndex` without a name is not stored: each part of a frame that is appended has another one.
3. pyarrow calls unnamed levels `__index_level_0__`. Zarr reserves such names, so the underscores are dropped.
4. If a column of the index is not among the columns that are read, the rows get a default index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zarrow._zarrow import Group, _import

ATTRIBUTE = "pandas"


def is_stored(frame: Any) -> bool:
    """Return whether the index of a table of pandas is stored (step 2)."""
    return type(frame.index).__name__ != "RangeIndex" or frame.index.name is not None


def stored_name(name: str) -> str:
    """Return the name that a column of pyarrow is stored under (step 3)."""
    return name.strip("_") if name.startswith("__index_level_") else name


def attribute_of(table: Any) -> dict[str, str]:
    """Return the attribute for a table of pandas, or of pyarrow that pandas made; {} without an index."""
    family = type(table).__module__.partition(".")[0]
    described: list[dict[str, Any]] = []
    if family == "pandas" and hasattr(table, "columns") and is_stored(table):
        index = table.index
        fields = table.iloc[:0].reset_index().columns
        described = [
            _described(fields[at], name, index.get_level_values(at).dtype)
            for at, name in enumerate(index.names)
        ]
    elif family == "pyarrow" and hasattr(table, "column_names"):
        found = _index_columns((table.schema.metadata or {}).get(ATTRIBUTE.encode()), table.column_names)
        described = [{**column, "field_name": stored_name(column["field_name"])} for column in found]
    if not described:
        return {}
    fields = [column["field_name"] for column in described]
    return {
        ATTRIBUTE: _import("json").dumps(
            {"index_columns": fields, "column_indexes": [], "columns": described}
        )
    }


def levels(group: Group, names: Sequence[str]) -> dict[str, str | None]:
    """Return the columns of the index, with the names of its levels; {} if the names lack one."""
    found = _index_columns(group._attributes().get(ATTRIBUTE), names)
    return {column["field_name"]: column["name"] for column in found}


def _index_columns(text: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the descriptions of the index's columns; [] if the names lack one (step 4)."""
    try:
        note = _import("json").loads(text)
        described = {column["field_name"]: column for column in note["columns"] if "name" in column}
        # A range is described by a dict.
        fields = [field for field in note["index_columns"] if isinstance(field, str)]
        return [described[field] for field in fields] if set(fields) <= set(names) else []
    except (KeyError, TypeError, ValueError):
        return []


def _described(field: Any, name: Any, dtype: Any) -> dict[str, Any]:
    """Return the description of a column for pyarrow."""
    is_plain = type(dtype).__module__.partition(".")[0] == "numpy" and dtype.kind in "biufmM"
    kind = dtype.name if is_plain else "object"
    plain = {"object": "unicode", "m": "timedelta", "M": "datetime"}
    return {
        "field_name": field,
        "name": name,
        "pandas_type": plain.get(kind) or plain.get(dtype.kind, kind),
        "numpy_type": kind,
        "metadata": None,
    }
