"""JSON that is equal for equal values: for comparing attributes, and for checksums."""

from __future__ import annotations

import json
from typing import Any

from zarrow.api.json_values import mapped


def canonical_json(value: Any) -> bytes:
    """Return a line of JSON, equal for equal values: keys are sorted, and 1.0 is written as 1."""
    plain = mapped(value, _integer_if_equal)
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _integer_if_equal(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
