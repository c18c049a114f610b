"""Hints for unknown names of tables, of streams of rows and of categorical columns."""

from __future__ import annotations

import sys
from typing import Any

from zarrow import _zarrow
from zarrow.hints.close_names import close_name, to_type
from zarrow.hints.ways_through_libraries import way_to_a_table


def of_rows(table: Any, name: str) -> str:
    """Return what to type for a name that a `Table` does not have; "" if unknown."""
    from zarrow.hints.familiar_kinds import ROWS

    if name in ROWS:
        return to_type(ROWS[name].replace("{table}", "table"))
    if close_name(name, dir(type(table))):
        return ""
    if name in table.column_names:
        return f'type table["{name}"]'
    if hasattr(_zarrow.Group, name):
        return f"type table.group.{name}"
    way = way_to_a_table(name, "table.to_arrow()")
    return way and f"type {way}"


def of_stream(stream: Any, name: str) -> str:
    """Return what to type for a name that a stream of rows does not have; "" if unknown."""
    from zarrow.hints.familiar_kinds import ROWS
    from zarrow.hints.familiar_names import STREAM

    if name in STREAM:
        return to_type(STREAM[name].replace("{rows}", "rows"))
    if way := way_to_a_table(name, "rows"):
        return f"type {way}"
    if name in ROWS:
        return to_type(ROWS[name].replace("{table}", "group[:]"))
    return f"type group.{name}, of the group that was read" if hasattr(_zarrow.Group, name) else ""


def of_categorical(categorical: Any, name: str) -> str:
    """Return what to type for a name that a categorical column does not have; "" if unknown."""
    from zarrow.hints.familiar_names import CATEGORICAL

    if name in CATEGORICAL:
        return to_type(CATEGORICAL[name])
    np, pandas = _zarrow._import("numpy"), sys.modules.get("pandas")
    is_by_order = categorical.ordered and name in ("argmax", "argmin", "argsort", "max", "min", "sort")
    if is_by_order:  # NumPy knows no order but that of the values
        return f"type pandas.Series(x.arrow().to_pandas()).{name.removeprefix('arg')}()"
    if hasattr(np.ndarray, name):
        return f"type x.numpy().{name}"
    series = getattr(pandas, "Series", None)
    for owner, way in ((getattr(series, "cat", None), ".cat"), (series, "")):
        if hasattr(owner, name):
            return f"type pandas.Series(x.arrow().to_pandas()){way}.{name}"
    return ""
