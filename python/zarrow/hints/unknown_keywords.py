"""Keywords that a compiled function does not have: an error with what to type instead."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NoReturn

from zarrow import _zarrow
from zarrow.hints.close_names import close_name, to_type


def refuse_keywords(function: str, given: Mapping[str, Any]) -> NoReturn:
    """Refuse keywords that a compiled function does not have.

    Raises
    ------
    TypeError
        Always; the message says what to type for the first of them.
    """
    from zarrow.hints.familiar_options import CALLS, OPTIONS

    name, found = next(iter(given)), _zarrow
    for part in function.split("."):
        found = getattr(found, part)
    known = [one.name for one in parameters_of(found) if one.kind is not one.VAR_KEYWORD]
    texts = {**OPTIONS, **CALLS.get(function, {})}
    hint = close_name(name, known) or (to_type(texts[name]) if name in texts else "")
    if not hint and known:
        hint = f"its parameters are {', '.join(parameter for parameter in known if parameter != 'self')}"
    raise TypeError(f"{function}() has no parameter {name!r}" + (f": {hint}" if hint else ""))


def parameters_of(function: Any) -> list[Any]:
    """Return the parameters of a function, also of compiled ones and of universal functions of NumPy."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        kind = inspect.Parameter.POSITIONAL_ONLY
        return [inspect.Parameter(f"x{at}", kind) for at in range(getattr(function, "nin", 0))]
