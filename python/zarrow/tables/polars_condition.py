"""Converts a filter of polars to a condition of pyarrow that all matching rows fulfil.

polars writes its expressions as JSON, in a form that may change. Parts that are not known here are left out:
the condition then matches more rows.
"""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import polars

_COMPARISONS = {
    "Eq": operator.eq,
    "Gt": operator.gt,
    "GtEq": operator.ge,
    "Lt": operator.lt,
    "LtEq": operator.le,
}
_NUMBERS = {
    **{f"Int{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
}
_UNITS = {"Nanoseconds": "ns", "Microseconds": "us", "Milliseconds": "ms"}


def condition_of(predicate: polars.Expr) -> pc.Expression | None:
    """Return a condition that all matching rows fulfil; None if no part is known."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # polars cannot write each expression, and its errors for that differ.
        return None
    return _condition(tree)


def _condition(tree: Any) -> pc.Expression | None:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            known = [part for part in (_condition(left), _condition(right)) if part is not None]
            return None if not known else known[0] if len(known) == 1 else known[0] & known[1]
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            one, other = _condition(left), _condition(right)
            return None if one is None or other is None else one | other
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": right}}:
            value = _literal(right)
            return (
                None if value is None or op not in _COMPARISONS else _COMPARISONS[op](pc.field(name), value)
            )
        case {
            "Function": {
                "input": [{"Column": str(name)}, lower, upper],
                "function": {"Boolean": {"IsBetween": {"closed": "Both" | "Left" | "Right" | "None"}}},
            }
        }:
            low, high = _literal(lower), _literal(upper)
            # Without regard to open ends, which match fewer rows.
            return None if low is None or high is None else (pc.field(name) >= low) & (pc.field(name) <= high)
    return None


def _literal(tree: Any) -> pa.Scalar | None:
    match tree:
        case {"Literal": {"Scalar": {"String": str(text)}}}:
            return pa.scalar(text)
        case {"Literal": {"Scalar": {"Datetime": [int(value), str(unit), None]}}} if unit in _UNITS:
            return pa.scalar(value, pa.timestamp(_UNITS[unit]))
        case {"Literal": {"Scalar": {"Duration": [int(value), str(unit)]}}} if unit in _UNITS:
            return pa.scalar(value, pa.duration(_UNITS[unit]))
        case {"Literal": {"Scalar": {"Date": int(days)}}}:
            return pa.scalar(days, pa.date32())
        case {"Literal": {"Scalar": dict(value)}} if len(value) == 1:
            ((kind, number),) = value.items()
            if kind in _NUMBERS and isinstance(number, int | float) and not isinstance(number, bool):
                return pa.scalar(number, pa.type_for_alias(_NUMBERS[kind]))
    return None
