"""Hints for parameters of other libraries' data sets and loaders, given to the classes of `zarrow.data`."""

from __future__ import annotations

import functools
import inspect
from typing import Any, TypeVar

from zarrow._zarrow import Array, Group
from zarrow.hints.close_names import close_name
from zarrow.hints.unknown_names import to_type

_Class = TypeVar("_Class", bound=type)


def says_parameters(made: _Class) -> _Class:
    """Make a class say what to type for unknown parameters, and for nodes in place of a plan."""
    plain = vars(made)["__init__"]

    @functools.wraps(plain)
    def checked(self: Any, *given: Any, **options: Any) -> None:
        try:
            plain(self, *given, **options)
        except (TypeError, AttributeError):
            _check(type(self), given, options)
            raise

    setattr(made, "__init__", checked)  # noqa: B010
    return made


def _check(made: type, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse a call that `made` does not take.

    Raises
    ------
    TypeError
        The message says what to type.
    """
    from zarrow.hints.familiar_options import LOADING

    parameters = [
        parameter
        for owner in made.__mro__
        if owner.__module__.startswith("zarrow.") and "__init__" in vars(owner)
        for parameter in inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
        if parameter.kind < parameter.VAR_KEYWORD and parameter.name != "self"
    ]
    known = list(dict.fromkeys(parameter.name for parameter in parameters))
    for name in options:
        if name not in known:
            hint = to_type(LOADING[name]) if name in LOADING else close_name(name, known)
            if made.__name__.endswith("Loader"):
                own = ".".join((*made.__module__.split(".")[:2], made.__name__))
                hint = hint.replace("zarrow.data.Loader(plan", f"{own}(plan")
            hint = hint or f"its parameters are {', '.join(known)}"
            raise TypeError(f"{made.__name__}() has no parameter {name!r}: {hint}") from None
    first = given[0] if given else options.get(known[0])
    if known[0] == "plan" and isinstance(first, Array | Group | str):
        node = "zarrow.open(path)" if isinstance(first, str) else type(first).__name__.lower()
        raise TypeError(
            f"plan must be a zarrow.data.Plan, found {type(first).__name__}: type zarrow.data.Plan({node})"
        ) from None
