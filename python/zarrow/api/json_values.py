"""Values of JSON: converts the numbers and texts in nested dicts and lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mapped(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a copy of nested dicts and lists, in which `convert` replaces each other value."""
    match value:
        case dict():
            return {key: mapped(item, convert) for key, item in value.items()}
        case list() | tuple():
            return [mapped(item, convert) for item in value]
        case _:
            return convert(value)
